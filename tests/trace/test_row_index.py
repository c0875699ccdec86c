from __future__ import annotations

from agentnb.board.values import ABSENT
from agentnb.engine.control import interventions
from agentnb.engine.core.time_travel import goto, start_branch
from agentnb.trace import SimulationTrace
from agentnb.trace.row_index import get_previous
from tests.trace.random_runs import go, started


def test_a_fork_shares_the_steps_of_its_parent_and_its_edits_belong_to_its_start():
    run = go(started(), 5)
    old = SimulationTrace.of(run).reading()
    goto(run, 3)
    start_branch(run)
    interventions.edit(run, {"n": 50})
    go(run, 2)
    new = SimulationTrace.of(run).reading()
    assert (old.tip, new.tip) == (5, 5)
    assert new.owner(3)[0] is old.owner(3)[0]
    assert new.owner(4)[0] is run.history
    assert len(new.at(3)) == 2
    assert [(row[1], row[4]) for row in new.writes(3)][-1] == (("n",), 50)
    assert new.outputs(3) == old.outputs(3)
    assert new.inputs(4)["n"] == 50


def test_frames_and_scopes_have_names():
    reading = SimulationTrace.of(go(started(), 9)).reading()
    assert reading.frame_name(0) == "root"
    assert reading.frame_name(1) == "body@7"
    assert reading.scope_of("body@7") == 1
    assert reading.scope_of("nobody") is None
    assert (reading.depth(0), reading.depth(1), reading.branch(1)) == (0, 1, None)


def test_the_previous_value_of_a_path_is_found():
    assert get_previous(ABSENT, ("a", "b")) is ABSENT
    assert get_previous(5, ("a",)) == 5


def test_reads_of_declared_inputs_are_recorded_at_each_step():
    import networkx as nx

    from agentnb.load import load
    from agentnb.session import Session

    graph = nx.DiGraph(name="sum", entry="add")
    graph.add_node("add", function=lambda n, by=1: {"n": n + by}, inputs={"n": "n", "by": "options.by"})
    graph.add_edge("add", "add", when="n < 4")
    trace = Session(load(graph), {"n": 1, "options": {"by": 2}}).run()
    assert [(read.scope, read.key) for read in trace.steps[0].reads] == [("root", "n"), ("root", "options.by")]
    assert trace.steps[1].inputs == {"n": 3, "by": 2}
    table = trace.frames.reads
    assert list(zip(table["step"], table["key"], strict=True)) == [
        (1, "n"), (1, "options.by"), (2, "n"), (2, "options.by")
    ]  # fmt: skip
    assert trace.frames.steps["inputs"].tolist() == [{"n": 1, "by": 2}, {"n": 3, "by": 2}]
