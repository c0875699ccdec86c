"""The verbs of `%agent` that move the current session. Each returns the resulting status."""

from __future__ import annotations

from collections.abc import Callable

from agentnb.magics.line_parsing import number, require_text, wrong
from agentnb.magics.workspace import Bench, standing
from agentnb.ui.commands import COMMANDS


def plain(name: str) -> Callable[[Bench, list[str]], str]:
    """Return a verb that does what the cockpit's button of this name does."""
    command = COMMANDS[name]

    def act(bench: Bench, _: list[str]) -> str:
        command.run(bench.session, None, None)
        return standing(bench.session)

    act.__doc__ = f"`{name}`: {command.tip}."
    return act


def step(bench: Bench, words: list[str]) -> str:
    """`step [n]`: run the next n steps."""
    bench.session.step(number(words, 1, "step"))
    return standing(bench.session)


def back(bench: Bench, words: list[str]) -> str:
    """`back [n]`: go n steps back."""
    return standing(bench.session.back(number(words, 1, "back")))


def goto(bench: Bench, words: list[str]) -> str:
    """`goto K`: go to step K; 0 is before the first."""
    return standing(bench.session.goto(number(words, None, "goto")))


def run(bench: Bench, words: list[str]) -> str:
    """`run [UNTIL]`: run until a node, a step number or a condition.

    A breakpoint, a pending question, the budget and the end stop it too.
    """
    bench.session.run(until=_until(words))
    return standing(bench.session)


def run_back(bench: Bench, words: list[str]) -> str:
    """`runback [UNTIL]`: the same, backwards; by default to the start, or to a breakpoint."""
    bench.session.run_back(_until(words))
    return standing(bench.session)


def start(bench: Bench, words: list[str]) -> str:
    """`start [UNTIL]`: run in the background; %agent pause stops it."""
    bench.session.start(_until(words))
    return standing(bench.session)


def speed(bench: Bench, words: list[str]) -> str:
    """`speed [STEPS]`: the maximum number of steps per second of `start`; `full` or no number: unlimited."""
    text = " ".join(words)
    try:
        bench.session.speed = None if text in ("", "full") else float(text)
    except ValueError:
        raise wrong(f"{text!r} is not a speed", f"%agent speed {text}", "it is a number of steps a second, or full",
                    "write for example %agent speed 3") from None  # fmt: skip
    steps = bench.session.speed
    return "full speed" if steps is None else f"{steps:g} steps a second"


def skip(bench: Bench, _: list[str]) -> str:
    """`skip`: continue as if the next node had written nothing."""
    bench.session.skip()
    return standing(bench.session)


def set_next(bench: Bench, words: list[str]) -> str:
    """`next NODE`: make NODE the next node."""
    return standing(bench.session.set_next(require_text(words, "next", "a node")))


def _until(words: list[str]) -> int | str | None:
    text = " ".join(words)
    return int(text) if text.isdecimal() else text or None
