"""`agentnb check` and `agentnb draw`: report the problems of recipes, and draw one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace

from agentnb.cli.output import print_all, print_json
from agentnb.errors import Problem, RecipeError


def check_command(args: argparse.Namespace) -> int:
    """Print every problem of every recipe; return 1 if any is an error.

    A tool that cannot be loaded is an error: the command line offers no replacement.
    """
    from agentnb.cli.python_objects import load_recipe
    from agentnb.world.tools.loading import OF_TARGETS

    findings: dict[str, list[Problem]] = {}
    for file in args.files:
        try:
            problems = load_recipe(file, args.allow).check()
            errors = [replace(problem, severity="error") for problem in problems if problem.code in OF_TARGETS]
            findings[file] = [*errors, *(problem for problem in problems if problem.code not in OF_TARGETS)]
        except RecipeError as error:
            findings[file] = list(error.problems)
    count = sum(problem.severity == "error" for problems in findings.values() for problem in problems)
    if args.json:
        print_json({"ok": not count, "files": {file: list(map(asdict, rows)) for file, rows in findings.items()}})
    else:
        for file, problems in findings.items():
            print_all(problems)
            print(f"{file}: {_count(problems)}")
    return 1 if count else 0


def _count(problems: Sequence[Problem]) -> str:
    parts = []
    for severity in ("error", "warning"):
        number = sum(problem.severity == severity for problem in problems)
        if number:
            parts.append(f"{number} {severity}{'s' if number > 1 else ''}")
    return ", ".join(parts) or "no problems"


def draw_command(args: argparse.Namespace) -> int:
    """Write a recipe's drawing in the format of the file's suffix."""
    from agentnb.cli.python_objects import load_recipe

    recipe = load_recipe(args.file, args.allow)
    recipe.draw().save(args.output)
    if args.json:
        print_json({"recipe": recipe.name, "nodes": len(recipe.nodes), "output": str(args.output)})
    else:
        print(f"{args.output}: {len(recipe.nodes)} nodes of {recipe.name!r}")
    return 0
