"""`agentnb run FILE --scenarios`: run a recipe's own tests, one line each, with an exit code.

U908: arguments exclude each other
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentnb.cli.output import print_json
from agentnb.cli.script import read_script
from agentnb.errors import AgentNbError, Problem, RecipeError, did_you_mean
from agentnb.recipe.descriptions import list_names, parse_typed

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe, Scenario
    from agentnb.scenarios import ScenarioResult


def wants_scenarios(args: argparse.Namespace) -> bool:
    """Return True if scenarios are to run: requested with --scenarios or by id."""
    return bool(args.scenarios or args.only)


def run_all(args: argparse.Namespace) -> int:
    """Run the scenarios of a recipe; return 0 if all of them passed, otherwise 1."""
    from agentnb.cli.python_objects import load_models, load_recipe
    from agentnb.scenarios import run_scenarios

    _refuse_mixed(args)
    recipe = load_recipe(args.file, args.allow)
    # Output of the nodes themselves is not part of the document.
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        report = run_scenarios(
            recipe,
            _choose(recipe, args.only),
            budget=None if args.max_steps is None else {"max_steps": args.max_steps},
            chaos=parse_chaos(args),
            seed=args.seed,
            listener=None if args.json else lambda result: print(result, flush=True),
            **{**read_script(args.script), **load_models(args)},
        )
    if args.json:
        problems = [result.problem for result in report if result.problem is not None]
        counts = {"ok": report.ok, "passed": report.passed, "failed": report.failed}
        print_json({**counts, "scenarios": list(map(_make_row, report)), "problems": list(map(asdict, problems))})
    else:
        print(f"\n{report.counts}")
    return 0 if report.ok else 1


def parse_chaos(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the fault injection requested by the arguments, in the form of `Chaos`; None if there is none."""
    return {key: parse_typed(text) for key, text in args.chaos} or None


def _refuse_mixed(args: argparse.Namespace) -> None:
    """Raise for arguments of a single run combined with --scenarios.

    Raises:
        AgentNbError: U908, for each of them.
    """
    reasons = {
        "--input": (args.inputs, "each scenario has its own inputs", "leave it out, or run without --scenarios"),
        "--trace": (args.trace, "it writes the trace of one run, but scenarios are several runs",
                    "leave it out, or run a single scenario by its inputs: --input KEY=VALUE --trace OUT"),
    }  # fmt: skip
    problems = [
        Problem("U908", f"{word} cannot be combined with --scenarios", f"agentnb run {args.file}", why, order)
        for word, (is_set, why, order) in reasons.items() if is_set
    ]  # fmt: skip
    if problems:
        raise AgentNbError(*problems)


def _choose(recipe: Recipe, ids: Iterable[str]) -> list[Scenario] | None:
    """Return the recipe's scenarios of these ids, in its own order; None for all of them.

    Raises:
        RecipeError: U909, for each unknown id.
    """
    by_id, requested = {scenario.id: scenario for scenario in recipe.scenarios}, dict.fromkeys(ids)
    if not requested or not by_id:
        return None
    problems = [
        Problem("U909", f"there is no scenario {id!r}", recipe.file or f"recipe {recipe.name!r}",
                f"its scenarios are: {list_names(by_id)}", did_you_mean(id, by_id, "use one of them"))
        for id in requested if id not in by_id
    ]  # fmt: skip
    if problems:
        raise RecipeError(*problems)
    return [scenario for scenario in recipe.scenarios if scenario.id in requested]


def _make_row(result: ScenarioResult) -> dict[str, Any]:
    row = result.row()
    mismatches, problem = list(map(str, result.mismatches)), result.problem and asdict(result.problem)
    return {
        "id": row.pop("scenario"), **row, "told": result.description, "problem": problem, "mismatches": mismatches,
        "reason": result.reason,
    }  # fmt: skip
