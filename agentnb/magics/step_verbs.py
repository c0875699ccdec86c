"""The verbs of `%agent` that move the current session. Each returns the resulting status."""

from __future__ import annotations

from collections.abc import Callable

from agentnb.magics.line_parsing import make_argument_error, number, require_text
from agentnb.magics.workspace import Workspace, format_status
from agentnb.ui.commands import COMMANDS


def make_verb(name: str) -> Callable[[Workspace, list[str]], str]:
    """Return a verb that does what the cockpit's button of this name does."""
    command = COMMANDS[name]

    def act(bench: Workspace, _: list[str]) -> str:
        command.run(bench.session, None, None)
        return format_status(bench.session)

    act.__doc__ = f"`{name}`: {command.tip}."
    return act


def step(bench: Workspace, words: list[str]) -> str:
    """`step [n]`: run the next n steps."""
    bench.session.step(number(words, 1, "step"))
    return format_status(bench.session)


def go_back(bench: Workspace, words: list[str]) -> str:
    """`back [n]`: go n steps back."""
    return format_status(bench.session.back(number(words, 1, "back")))


def go_to(bench: Workspace, words: list[str]) -> str:
    """`goto K`: go to step K; 0 is before the first."""
    return format_status(bench.session.goto(number(words, None, "goto")))


def run(bench: Workspace, words: list[str]) -> str:
    """`run [UNTIL]`: run until a node, a step number or a condition.

    A breakpoint, a pending question, the budget and the end stop it too.
    """
    bench.session.run(until=_parse_until(words))
    return format_status(bench.session)


def run_back(bench: Workspace, words: list[str]) -> str:
    """`runback [UNTIL]`: the same, backwards; by default to the start, or to a breakpoint."""
    bench.session.run_back(_parse_until(words))
    return format_status(bench.session)


def start(bench: Workspace, words: list[str]) -> str:
    """`start [UNTIL]`: run in the background; %agent pause stops it."""
    bench.session.start(_parse_until(words))
    return format_status(bench.session)


def set_speed(bench: Workspace, words: list[str]) -> str:
    """`speed [STEPS]`: the maximum number of steps per second of `start`; `full` or no number: unlimited."""
    text = " ".join(words)
    try:
        bench.session.speed = None if text in ("", "full") else float(text)
    except ValueError:
        raise make_argument_error(
            f"{text!r} is not a speed",
            f"%agent speed {text}",
            "it is a number of steps a second, or full",
            "write for example %agent speed 3",
        ) from None
    steps = bench.session.speed
    return "full speed" if steps is None else f"{steps:g} steps a second"


def skip(bench: Workspace, _: list[str]) -> str:
    """`skip`: continue as if the next node had written nothing."""
    bench.session.skip()
    return format_status(bench.session)


def set_next(bench: Workspace, words: list[str]) -> str:
    """`next NODE`: make NODE the next node."""
    return format_status(bench.session.set_next(require_text(words, "next", "a node")))


def _parse_until(words: list[str]) -> int | str | None:
    text = " ".join(words)
    return int(text) if text.isdecimal() else text or None
