from __future__ import annotations

import agentnb as nb
from agentnb.ui.details.inner_run import describe_inner_run


def steps_of(session, name, phase=None):
    return [step.step for step in session.trace.steps if step.node_id == name and phase in (None, step.phase)]


def test_a_leaf_has_no_inner_steps():
    session = nb.Session(nb.samples("refine"))
    session.run()
    assert describe_inner_run(session, steps_of(session, "measure")[0]) is None


def test_a_loop_is_reported_by_iteration():
    session = nb.Session(nb.samples("refine"))
    session.run()
    entered, *again, left = steps_of(session, "improve")
    inner_run = describe_inner_run(session, entered)
    assert (inner_run["opened"], inner_run["last"], inner_run["more"]) == (entered, left, 0)
    assert [part["round"] for part in inner_run["parts"]] == list(range(1, len(again) + 2))
    assert [part["first"] for part in inner_run["parts"]] == [step + 1 for step in (entered, *again)]
    assert [part["last"] for part in inner_run["parts"]] == [step - 1 for step in (*again, left)]
    assert {(part["node"], part["status"], part["steps"]) for part in inner_run["parts"]} == {("measure", "ok", 5)}
    assert describe_inner_run(session, again[1]) == describe_inner_run(session, left) == inner_run


def test_each_branch_is_reported():
    session = nb.Session(nb.samples("search"))
    session.run()
    entered = steps_of(session, "side_by_side", "enter")[1]
    inner_run = describe_inner_run(session, entered)
    assert sorted(part["branch"] for part in inner_run["parts"]) == [0, 1]  # in the order in which they end
    assert inner_run["last"] == steps_of(session, "side_by_side", "leave")[1]
    assert all(part["steps"] == part["last"] - part["first"] + 1 == 1 for part in inner_run["parts"])


def test_each_execution_of_a_node_has_separate_inner_steps():
    session = nb.Session(nb.samples("research"))
    session.run()
    first, second = (describe_inner_run(session, step) for step in steps_of(session, "answer", "enter"))
    assert first["last"] < second["opened"]
    assert [part["title"] for part in first["parts"]] == ["look_up"]


def test_an_open_node_has_no_end():
    session = nb.Session(nb.samples("refine"))
    session.step(4)
    inner_run = describe_inner_run(session, steps_of(session, "improve")[0])
    assert (inner_run["last"], len(inner_run["parts"])) == (None, 1)
