"""The verbs of `%agent` that move the current session. Each returns the resulting status."""

from __future__ import annotations

from collections.abc import Callable

from agentnb.magics.line_parsing import make_argument_error, parse_number, require_text
from agentnb.magics.workspace import Workspace, format_status
from agentnb.ui.commands import COMMANDS


def make_verb(name: str) -> Callable[[Workspace, list[str]], str]:
    """Return a verb that does what the cockpit's button of this name does."""
    command = COMMANDS[name]

    def run_verb(workspace: Workspace, _: list[str]) -> str:
        command.run(workspace.session, None, None)
        return format_status(workspace.session)

    run_verb.__doc__ = f"`{name}`: {command.tip}."
    return run_verb


def step(workspace: Workspace, args: list[str]) -> str:
    """`step [n]`: run the next n steps."""
    workspace.session.step(parse_number(args, 1, "step"))
    return format_status(workspace.session)


def go_back(workspace: Workspace, args: list[str]) -> str:
    """`back [n]`: go n steps back."""
    return format_status(workspace.session.back(parse_number(args, 1, "back")))


def go_to(workspace: Workspace, args: list[str]) -> str:
    """`goto K`: go to step K; 0 is before the first."""
    return format_status(workspace.session.goto(parse_number(args, None, "goto")))


def run(workspace: Workspace, args: list[str]) -> str:
    """`run [UNTIL]`: run until a node, a step number or a condition.

    A breakpoint, a pending question, the budget and the end stop it too.
    """
    workspace.session.run(until=_parse_until(args))
    return format_status(workspace.session)


def run_back(workspace: Workspace, args: list[str]) -> str:
    """`runback [UNTIL]`: the same, backwards; by default to the start, or to a breakpoint."""
    workspace.session.run_back(_parse_until(args))
    return format_status(workspace.session)


def start(workspace: Workspace, args: list[str]) -> str:
    """`start [UNTIL]`: run in the background; %agent pause stops it."""
    workspace.session.start(_parse_until(args))
    return format_status(workspace.session)


def set_speed(workspace: Workspace, args: list[str]) -> str:
    """`speed [STEPS]`: the maximum number of steps per second of `start`; `full` or no number: unlimited."""
    text = " ".join(args)
    try:
        workspace.session.speed = None if text in ("", "full") else float(text)
    except ValueError:
        raise make_argument_error(
            f"{text!r} is not a speed",
            f"%agent speed {text}",
            "a speed is a number of steps per second, or 'full'",
            "write for example %agent speed 3",
        ) from None
    steps = workspace.session.speed
    return "full speed" if steps is None else f"{steps:g} steps per second"


def skip(workspace: Workspace, _: list[str]) -> str:
    """`skip`: continue as if the next node had written nothing."""
    workspace.session.skip()
    return format_status(workspace.session)


def set_next(workspace: Workspace, args: list[str]) -> str:
    """`next NODE`: make NODE the next node."""
    return format_status(workspace.session.set_next(require_text(args, "next", "a node")))


def _parse_until(args: list[str]) -> int | str | None:
    text = " ".join(args)
    return int(text) if text.isdecimal() else text or None
