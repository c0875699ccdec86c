from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from agentnb.board.values import thaw
from agentnb.load import load
from agentnb.session import Session
from tests.property.random_polaris_graphs import expected, graph_of, graphs


def session_of(level):
    return Session(load(graph_of(level)))


def ran(session):
    """Return how often each node began."""
    steps = session.trace.steps
    return Counter(step.node_id for step in steps if step.phase in ("run", "enter") and step.status != "cancelled")


def board(session):
    return {key: repr(thaw(value)) for key, value in session._parts.run.root.scope.visible_items().items()}


def stepped(session):
    for _ in range(100_000):
        if session.step() is None or session.status == "failed":
            return session
    raise AssertionError("it never ends")


@given(graphs)
def test_a_generated_graph_has_no_errors(level):
    assert graph_of(level).validate().errors == ()


@given(graphs)
@example([("failing", [("failing", [("system",)], True)], True), ("system",)])
@example([("failing", [("failing", [("system",)], False)], True), ("system",)])
def test_stepping_and_running_give_the_predicted_result(level):
    want = expected(level)
    steps, full_run = stepped(session_of(level)), session_of(level)
    full_run.run()
    for session in (steps, full_run):
        assert session.status == ("finished" if want.failed is None else "failed")
        assert session.board["tests.property.random_polaris_graphs.Mark"] is not None
        if not want.beside:
            assert ran(session) == want.counts
            assert session._parts.run.counted_steps == want.counts.total()
            assert session.current == want.failed
    if not want.beside:
        assert thaw(steps._parts.run.root.scope.get("tests.property.random_polaris_graphs.Mark")) == want.mark
        assert board(steps) == board(full_run)


def test_no_branch_continues_after_another_has_failed():
    """Whether two steps end at the same moment is up to the threads, so it is tried many times."""
    branches = [[("system",)], [("system",), ("system",), ("failing", None, False)],
                [("decision", True, [("system",), ("system",)], None)]]  # fmt: skip
    for _ in range(50):
        session = session_of([("system",), ("parallel", branches)])
        session.run()
        assert session.status == "failed"
        assert session.trace.steps[-1].status in ("error", "cancelled")


@given(graphs, st.integers(0, 100))
def test_going_back_and_forward_again_gives_the_same_result(level, share):
    session = stepped(session_of(level))
    end, status, at = board(session), session.status, session.position * share // 100
    before = [step.node_id for step in session.trace.steps[:at]]
    session.goto(at)
    stepped(session)
    assert (board(session), session.status) == (end, status)
    assert [step.node_id for step in session.trace.steps[:at]] == before


@given(graphs)
def test_a_replay_has_no_divergence(level):
    session = session_of(level)
    session.run()
    assert session.replay().ok
