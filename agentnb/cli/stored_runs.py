"""`agentnb resume`, `answer` and `fork`: continue runs of a store."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing, nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from agentnb.cli.run import format_step, report
from agentnb.cli.script import read_script
from agentnb.recipe.descriptions import parse_typed

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session


def resume_command(args: argparse.Namespace) -> int:
    """Continue a run of a store until it stops."""
    return _continue(args, lambda session, _recipe: session.run())


def answer_command(args: argparse.Namespace) -> int:
    """Answer what a run of a store waits for, and continue it."""

    def answer(session: Session, _recipe: Recipe) -> None:
        session.answer(parse_typed(args.value), args.node)
        session.run()

    return _continue(args, answer)


def fork_command(args: argparse.Namespace) -> int:
    """Fork a run of a store at a step, with other values, and run the fork; it is kept in the store too."""
    return _continue(args, lambda session, _recipe: session.run(), fork=True)


def _continue(args: argparse.Namespace, move: Any, *, fork: bool = False) -> int:
    from agentnb.cli.python_objects import load_models, load_recipe, load_tools
    from agentnb.recordings.formats import open as open_run

    recipe = load_recipe(args.file, args.allow)
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        options = {**read_script(args.script, recipe), **load_models(args)}
        options["tools"] = {**options.get("tools", {}), **load_tools(args.tools)}
        options["take_over"] = not fork and args.take_over
        with closing(open_run(args.store, args.run, recipe=recipe, **options)) as session:
            continued = session
            if fork:
                continued = session.fork(args.at, edit={key: parse_typed(text) for key, text in args.edits} or None)
            with closing(continued):
                if not args.json:
                    continued.subscribe(lambda step: print(format_step(step), flush=True))
                move(continued, recipe)
    return report(args, recipe, continued)


__all__ = ["answer_command", "fork_command", "resume_command"]
