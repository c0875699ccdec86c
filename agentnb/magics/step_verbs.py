"""The verbs of `%agent` that move the current session. Each returns the resulting status."""

from __future__ import annotations

from agentnb.magics.line_parsing import needed, number, wrong
from agentnb.magics.workspace import Bench, standing


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


def over(bench: Bench, _: list[str]) -> str:
    """`over`: run until the next node has completed, with a loop or a subgraph as one step."""
    bench.session.step_over()
    return standing(bench.session)


def into(bench: Bench, _: list[str]) -> str:
    """`into`: run the next step, stopping inside the node: at each event emitted, and before and after each call."""
    bench.session.step_into()
    return standing(bench.session)


def out(bench: Bench, _: list[str]) -> str:
    """`out`: run until the frame around the next node has ended."""
    bench.session.step_out()
    return standing(bench.session)


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
        raise wrong(f"{text!r} is no speed", f"%agent speed {text}", "it is a number of steps a second, or full",
                    "write for example %agent speed 3") from None  # fmt: skip
    steps = bench.session.speed
    return "full speed" if steps is None else f"{steps:g} steps a second"


def pause(bench: Bench, _: list[str]) -> str:
    """`pause`: start no further step; a step in flight completes first."""
    return standing(bench.session.pause())


def stop(bench: Bench, _: list[str]) -> str:
    """`stop`: pause and cancel the step in flight; it runs again at the next step."""
    return standing(bench.session.stop())


def reset(bench: Bench, _: list[str]) -> str:
    """`reset`: start over from the inputs; the run so far remains among the forks."""
    return standing(bench.session.reset())


def retry(bench: Bench, _: list[str]) -> str:
    """`retry`: run the failed node again, as a new step."""
    bench.session.retry()
    return standing(bench.session)


def skip(bench: Bench, _: list[str]) -> str:
    """`skip`: continue as if the next node had written nothing."""
    bench.session.skip()
    return standing(bench.session)


def set_next(bench: Bench, words: list[str]) -> str:
    """`next NODE`: make NODE the next node."""
    return standing(bench.session.set_next(needed(words, "next", "a node")))


def _until(words: list[str]) -> int | str | None:
    text = " ".join(words)
    return int(text) if text.isdecimal() else text or None
