"""Interrupts at random moments, with and without a store: no step is lost, and the run goes on as if there were none.

`ATTACKS_INTERRUPTS` is the number of interrupts.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal

import networkx as nx
import pytest

import agentnb as nb

INTERRUPTS = int(os.environ.get("ATTACKS_INTERRUPTS", "60"))
LONGEST = 0.01  # seconds until an interrupt comes
STEPS = 20_000

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer"),
    # An interrupt may come between the making of a coroutine and its first step.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def endless():
    graph = nx.DiGraph(name="endless", entry="count")
    graph.add_node("count", function=lambda n, rng: {"n": n + 1, "drawn": rng.random()}, inputs={"n": "n"})
    graph.add_node("ask", kind="tool", function=lambda n: {"asked": n * 2}, inputs={"n": "n"})
    graph.add_edge("count", "ask")
    graph.add_edge("ask", "count", when=f"n < {STEPS}")
    return nb.load(graph)


@contextlib.contextmanager
def interrupted(after):
    """Raise a KeyboardInterrupt in the block after so many seconds; nowhere else."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a store"])
def test_a_repeatedly_interrupted_run_equals_an_uninterrupted_one(kept, tmp_path):
    rng = random.Random(7)
    store = tmp_path / "runs.db" if kept else None
    session = nb.Session(endless(), {"n": 0}, seed=1, store=store, run_id="mine")
    for _ in range(INTERRUPTS):
        before = session.position
        with interrupted(rng.uniform(0.0005, LONGEST)):
            session.run(max_steps=2_000)
        assert session.status in ("ready", "paused")
        assert session.position >= before
    uninterrupted = nb.Session(endless(), {"n": 0}, seed=1)
    uninterrupted.run(max_steps=session.position) if session.position else None
    assert dict(session.board) == dict(uninterrupted.board)
    assert [step.outputs for step in session.trace.steps] == [step.outputs for step in uninterrupted.trace.steps]
    calls = session.trace.frames.calls
    cut_short = calls.error.notna()
    assert calls.error[cut_short].str.startswith("CancelledError").all()  # an attempt that was under way stays known
    # An answer that the last interrupt cut off from its step has no step yet: the next attempt of the step takes it.
    committed = calls[~cut_short & calls.step.notna()]
    assert committed.result.tolist() == uninterrupted.trace.frames.calls.result.tolist()
    assert (~cut_short & calls.step.isna()).sum() <= 1
    if kept:
        session.step()
        session.close()
        opened = nb.open(store, recipe=endless())
        assert (opened.position, dict(opened.board)) == (session.position, dict(session.board))
        opened.step()
        assert opened.position == session.position + 1
