"""`agentnb run` runs a recipe until it stops, one line per step, or runs its scenarios."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentnb.board.masking import mask_value
from agentnb.cli.output import print_all, print_json
from agentnb.cli.scenarios import parse_chaos, run_all, wants_scenarios
from agentnb.cli.script import read_script
from agentnb.errors import Problem, pluralize
from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.descriptions import parse_typed
from agentnb.session.state import get_state
from agentnb.text import safe_repr
from agentnb.world.agents import get_agents

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session
    from agentnb.trace.trace import SimulationStep

EXITS = {"failed": 1, "exhausted": 3, "waiting": 4}


def run_command(args: argparse.Namespace) -> int:
    """Run a recipe until it stops, printing one line per step and then the board; or run its scenarios."""
    if wants_scenarios(args):
        return run_all(args)
    from agentnb.cli.python_objects import load_models, load_recipe, load_tools
    from agentnb.session import Session

    recipe = load_recipe(args.file, args.allow)
    budget = None if args.max_steps is None else {"max_steps": args.max_steps}
    inputs = {key: parse_typed(text, recipe.inputs.get(key)) for key, text in args.inputs}
    # Output of the nodes themselves is not part of the document.
    with ExitStack() as at_end:
        with redirect_stdout(sys.stderr) if args.json else nullcontext():
            options = {**read_script(args.script, recipe), **load_models(args)}
            options["tools"] = {**options.get("tools", {}), **load_tools(args.tools)}
            session_options = {"budget": budget, "seed": args.seed, "chaos": parse_chaos(args), "store": args.store}
            session = at_end.enter_context(closing(Session(recipe, inputs, **session_options, **options)))
            if not args.json:
                session.subscribe(lambda step: print(format_step(step), flush=True))
            for type_, payload in args.events:
                session.emit(type_, parse_typed(payload, None))
            session.run()
        return report(args, recipe, session)


def report(args: argparse.Namespace, recipe: Recipe, session: Session) -> int:
    """Write the trace if requested, print how a run ended, and return the exit code."""
    if args.trace:
        session.trace.to_json(args.trace)
    problems = list(_iter_problems(recipe, session))
    if args.json:
        print_json(_make_result(session, problems))
    else:
        _print_end(session)
        print_all(problems, sys.stderr)
    return 1 if any(problem.code == "X424" for problem in problems) else EXITS.get(session.status, 0)


def _iter_problems(recipe: Recipe, session: Session) -> Iterator[Problem]:
    """Yield the reasons why a run has not succeeded.

    X424: an agent ended its task without success
    """
    if session.status == "waiting":
        yield _describe_unanswered(recipe, session)
    elif session.error is not None:
        yield session.error
    elif session.status == "finished" and WHOLE in get_agents(recipe.meta):
        result = session.board.get("result")
        if isinstance(result, Mapping) and not result.get("success"):
            yield Problem("X424", f"agent {recipe.name!r} ended without success", f"after step {session.position}",
                          f"its result is: {safe_repr(result.get('error') or 'no reason')}",
                          "look at its steps: the tools that failed, and the model's answers")  # fmt: skip


def format_step(step: SimulationStep) -> str:
    """Return a step as one line: number, node, kind, duration, and what it wrote or why it failed."""
    kind = step.kind if step.phase == "run" else f"{step.kind} {step.phase}"
    text = step.error or ", ".join(f"{key} = {safe_repr(value, key=key)}" for key, value in step.outputs.items())
    return f"{step.step:>5}  {step.node_id:<20} {kind:<14} {step.seconds * 1000:>8.1f} ms  {text}".rstrip()


def _print_end(session: Session) -> None:
    limit = _get_limit(session)
    used = "" if limit is None else f": its {limit} is used up"
    log = get_state(session).log
    note = "" if log is None else f", stored as run {session.run_id!r} in {log.url}"
    print(f"\n{session.status} after {pluralize(session.position, 'step')}{used}{note}")
    if session.simulated:
        print(f"no model was passed: the answers of {', '.join(session.simulated)} are simulated")
    width = max(map(len, session.board), default=0)
    for key, value in session.board.items():
        print(f"  {key:<{width}}  {safe_repr(value, key=key, limit=100)}")


def _get_limit(session: Session) -> str | None:
    """Return the name of the limit that an exhausted run has reached; None for any other run."""
    return (session.trace.outcome or {}).get("limit") if session.status == "exhausted" else None


def _make_result(session: Session, problems: list[Problem]) -> dict[str, Any]:
    return {
        "run_id": None if get_state(session).log is None else session.run_id,
        "status": str(session.status),
        "steps": session.position,
        "current": session.current,
        "limit": _get_limit(session),
        "simulated": list(session.simulated),
        "board": mask_value(dict(session.board)),
        "error": str(session.error) if session.error else None,
        "problems": list(map(asdict, problems)),
    }


def _describe_unanswered(recipe: Recipe, session: Session) -> Problem:
    nodes = ", ".join(repr(pending.node) for pending in session.pending)
    return Problem(
        code="U905",
        what=f"{nodes} waits for a person",
        where=f"{recipe.name!r}, after step {session.position}",
        why="the script has no answer left, and no one can be asked here",
        do="put the answers into a YAML file, `answers: {NODE: [TEXT]}`, and pass it as --script FILE",
    )
