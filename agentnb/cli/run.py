"""run: `agentnb run` runs a recipe to where it stops, one line a step, or its scenarios."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentnb.board.secrets import masked, short
from agentnb.cli.printed import print_all, print_json
from agentnb.cli.scenarios import asked_for, chaos_of, run_all
from agentnb.cli.script import script
from agentnb.errors import Problem
from agentnb.recipe.words import typed

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session
    from agentnb.trace.trace import SimulationStep

EXITS = {"failed": 1, "exhausted": 3, "waiting": 4}


def run_command(args: argparse.Namespace) -> int:
    """Run a recipe to where it stops, a line a step, then the board; or its scenarios."""
    if asked_for(args):
        return run_all(args)
    from agentnb.load import load
    from agentnb.session import Session

    recipe = load(args.file)
    budget = None if args.max_steps is None else {"max_steps": args.max_steps}
    inputs = {key: typed(text, recipe.inputs.get(key)) for key, text in args.inputs}
    # What nodes print themselves is no part of the document.
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        options = script(args.script, recipe)
        words = {"budget": budget, "seed": args.seed, "chaos": chaos_of(args), "store": args.store}
        session = Session(recipe, inputs, **words, **options)
        if not args.json:
            session.subscribe(lambda step: print(_line(step), flush=True))
        session.run()
    if args.trace:
        session.trace.to_json(args.trace)
    problems = [_unanswered(recipe, session)] if session.status == "waiting" else []
    if not (problems or args.json or session.position) and session.error is not None:
        problems = [session.error]  # nothing has run, so no step's line says why
    if args.json:
        print_json(_told(session, problems))
    else:
        _print_end(session)
        print_all(problems, sys.stderr)
    return EXITS.get(session.status, 0)


def _line(step: SimulationStep) -> str:
    kind = step.kind if step.phase == "run" else f"{step.kind} {step.phase}"
    told = step.error or ", ".join(f"{key} = {short(value, key)}" for key, value in step.outputs.items())
    return f"{step.step:>5}  {step.node_id:<20} {kind:<14} {step.seconds * 1000:>8.1f} ms  {told}".rstrip()


def _print_end(session: Session) -> None:
    limit = _limit(session)
    used = "" if limit is None else f": its {limit} is used up"
    kept = "" if session.log is None else f", kept as run {session.run_id!r} in {session.log.url}"
    print(f"\n{session.status} after {session.position} steps{used}{kept}")
    width = max(map(len, session.board), default=0)
    for key, value in session.board.items():
        print(f"  {key:<{width}}  {short(value, key, width=100)}")


def _limit(session: Session) -> str | None:
    """Return the name of the limit that an exhausted run has reached; None for any other."""
    return (session.trace.outcome or {}).get("limit") if session.status == "exhausted" else None


def _told(session: Session, problems: list[Problem]) -> dict[str, Any]:
    problems = problems or ([session.error] if session.error else [])
    return {
        "run_id": None if session.log is None else session.run_id,
        "status": str(session.status),
        "steps": session.position,
        "current": session.current,
        "limit": _limit(session),
        "board": masked(dict(session.board)),
        "error": str(session.error) if session.error else None,
        "problems": list(map(asdict, problems)),
    }


def _unanswered(recipe: Recipe, session: Session) -> Problem:
    nodes = ", ".join(repr(pending.node) for pending in session.pending)
    return Problem(
        code="U905",
        what=f"{nodes} waits for a person",
        where=f"{recipe.name!r}, after step {session.position}",
        why="no answer is left in the script, and nobody can be asked here",
        do="write the answers into a YAML file, `answers: {NODE: [TEXT]}`, and pass it as --script FILE",
    )
