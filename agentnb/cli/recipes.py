"""recipes: `agentnb check` and `agentnb draw`: what is wrong with recipes, and how one looks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from agentnb.cli.printed import print_all, print_json
from agentnb.errors import Problem, RecipeError


def check_command(args: argparse.Namespace) -> int:
    """Print every problem of every file; 1 if any is an error."""
    from agentnb.load import load

    found: dict[str, list[Problem]] = {}
    for file in args.files:
        try:
            found[file] = load(file).check()
        except RecipeError as error:
            found[file] = list(error.problems)
    errors = sum(problem.severity == "error" for problems in found.values() for problem in problems)
    if args.json:
        print_json({"ok": not errors, "files": {file: list(map(asdict, rows)) for file, rows in found.items()}})
    else:
        for file, problems in found.items():
            print_all(problems)
            print(f"{file}: {_count(problems)}")
    return 1 if errors else 0


def _count(problems: Sequence[Problem]) -> str:
    parts = []
    for severity in ("error", "warning"):
        number = sum(problem.severity == severity for problem in problems)
        if number:
            parts.append(f"{number} {severity}{'s' if number > 1 else ''}")
    return ", ".join(parts) or "no problems"


def draw_command(args: argparse.Namespace) -> int:
    """Write a recipe's drawing in the form that the file's suffix names."""
    from agentnb.load import load

    recipe = load(args.file)
    recipe.draw().save(args.output)
    if args.json:
        print_json({"recipe": recipe.name, "nodes": len(recipe.nodes), "output": str(args.output)})
    else:
        print(f"{args.output}: {len(recipe.nodes)} nodes of {recipe.name!r}")
    return 0
