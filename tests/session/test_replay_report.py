from __future__ import annotations

import pandas as pd
import pytest

import agentnb as nb
from agentnb.errors import ExecutionError, RecipeError, ReplayDivergence
from agentnb.load import load
from agentnb.secrets import hide
from agentnb.session.replay_report import ReplayReport
from tests.session.small_sessions import counting, graph, session

# ------------------------------------------------------------------------------------------------------- what is found


def edited(limit=3, **functions):
    built_graph = counting(limit)
    for name, function in functions.items():
        built_graph.nodes[name].update(function=function)
    return load(built_graph)


def test_a_changed_function_is_named_with_both_values():
    run = session(counting(), {"n": 0})
    run.run()
    report = run.replay(recipe=edited(add=lambda n: {"n": n + (2 if n == 1 else 1)}))
    first = report.first_divergence
    assert (first.step, first.node, first.what, first.path, first.recorded, first.replayed) == (
        3,
        "add",
        "write",
        "n",
        2,
        3,
    )
    assert report.ended.step == 4
    assert not report.ok
    with pytest.raises(ReplayDivergence) as caught:
        report.raise_for_divergence()
    (problem,) = caught.value.problems
    assert (problem.code, problem.what) == ("L430", "step 3, 'add': it wrote 2 to 'n', and the replay writes 3")
    assert problem.why.endswith("; 1 more in the report")


def test_a_changed_condition_is_named():
    run = session(counting(), {"n": 0})
    run.run()
    report = run.replay(recipe=edited(2), strict="path")
    assert str(report.first_divergence) == "step 4, 'check': 'check' led to 'add', and in the replay to 'done'"


def test_inputs_of_a_node_are_compared_too():
    run = session(counting(1), {"n": 0, "m": 0})
    run.run()
    built_graph = counting(1)
    built_graph.nodes["add"].update(inputs={"n": "m"})
    assert run.replay(recipe=load(built_graph)).ok
    report = run.replay(recipe=load(built_graph), strict="reads")
    assert [(row.step, row.what, row.path, row.recorded) for row in report.divergences] == [
        (1, "read", "m", False),
        (1, "read", "n", True),
    ]


def test_a_changed_function_is_detected():
    seen = []
    run = session(graph("a", "b", b=lambda board: {"b": len(seen)}))
    run.run()
    seen.append(1)
    assert [str(row) for row in run.replay().divergences] == ["step 2, 'b': it wrote 0 to 'b', and the replay writes 1"]


def test_a_new_effect_of_an_edited_recipe_is_not_called():
    run = session(graph("a", "b"))
    run.run()
    built_graph = graph("a", "b")
    built_graph.nodes["b"].update(kind="tool", function="nobody has given it", inputs={})
    report = run.replay(recipe=load(built_graph))
    assert [(row.step, row.what, row.ends) for row in report.divergences] == [(2, "call", True)]


def test_a_missing_function_fails_where_it_is_called():
    run = session(graph("a", "b"))
    run.run()
    built_graph = graph("a", "b")
    built_graph.nodes["b"].update(function="nobody has given it")
    report = run.replay(recipe=load(built_graph))
    assert (report.first_divergence.step, report.first_divergence.what) == (2, "error")
    assert "nobody has given it" in report.first_divergence.replayed


def test_the_frame_has_a_row_for_each_difference():
    hide("hidden-in-a-frame")
    run = session(counting(1), {"n": 0})
    run.run()
    report = run.replay(recipe=edited(1, add=lambda n: {"n": n + 1, "token": "abc", "m": "hidden-in-a-frame"}))
    frame = report.to_frame()
    assert list(frame.columns) == ["step", "node", "what", "path", "recorded", "replayed"]
    assert frame.step.dtype == "Int64"
    assert frame.node.dtype == "category"
    assert frame[["step", "node", "what", "path"]].to_numpy().tolist() == [
        [1, "add", "write", "token"],
        [1, "add", "write", "m"],
    ]
    assert frame.recorded.isna().all()
    assert frame.replayed.tolist() == ["********", "********"]
    empty = run.replay().to_frame()
    assert (len(empty), list(empty.columns), empty.step.dtype) == (0, list(frame.columns), "Int64")
    assert isinstance(empty, pd.DataFrame)


def test_the_report_has_a_text_form():
    run = session(counting(10), {"n": 0}, name="the count")
    run.run()
    assert repr(run.replay()) == "<ReplayReport of 'the count': steps 1 to 21 replayed, nothing differs (values)>"
    assert repr(run.replay(21)) == "<ReplayReport of 'the count': no step replayed, nothing differs (values)>"
    report = run.replay(recipe=edited(10, add=lambda n: {"n": n + 2}))
    assert repr(report).splitlines() == [
        "<ReplayReport of 'the count': steps 1 to 21: 6 differences (values)>",
        "  step 1, 'add': it wrote 1 to 'n', and the replay writes 2",
        "  step 3, 'add': it wrote 2 to 'n', and the replay writes 4",
        "  step 5, 'add': it wrote 3 to 'n', and the replay writes 6",
        "  step 7, 'add': it wrote 4 to 'n', and the replay writes 8",
        "  step 9, 'add': it wrote 5 to 'n', and the replay writes 10",
        "  and 1 more",
        "  the replay ended at step 10, 11 steps before the end of the record",
    ]
    assert run.replay(recipe=edited(10)).raise_for_divergence().ok


def test_the_report_in_a_notebook_is_escaped():
    hide("hidden-in-a-page")
    run = session(counting(1), {"n": 0}, name="<b>")
    run.run()
    report = run.replay(recipe=edited(1, add=lambda n: {"n": "<script>", "<i>": "hidden-in-a-page"}))
    page = report._repr_html_()
    assert "&lt;b&gt;" in page
    assert "&lt;script&gt;" in page
    assert not any(text in page for text in ("<script>", "<i>", "hidden-in-a-page", "<b>"))
    assert "<table" not in run.replay()._repr_html_()


def test_objects_by_reference_are_listed_as_not_comparable():
    class Thing:
        pass

    run = session(graph("a", a=lambda board: {"thing": Thing()}))
    with pytest.warns(UserWarning, match="by reference"):
        run.run()
    report = run.replay()
    assert (report.ok, [row.path for row in report.unsure]) == (True, ["thing"])
    assert "it cannot be compared: thing (step 1)" in repr(report)


def test_differences_after_the_start_step_are_reported():
    run = session(counting(), {"n": 0})
    run.run()
    other = edited(add=lambda n: {"n": n + (5 if n == 0 else 1)})
    assert [report.ok for report in (run.replay(recipe=other), run.replay(1, recipe=other))] == [False, True]


# ---------------------------------------------------------------------------------------------------- what it refuses


def test_invalid_arguments_are_errors():
    run = session(counting(), {"n": 0})
    run.run()
    with pytest.raises(ExecutionError, match="did you mean 'values'"):
        run.replay(strict="value")
    for step in (-1, 8, True, "3", None):
        with pytest.raises(ExecutionError) as caught:
            run.replay(step)
        assert caught.value.problems[0].code == "L432"
    with pytest.raises(ExecutionError, match="X117"):
        run.replay(recipe="counting")
    built_graph = counting()
    built_graph.nodes["add"].update(kind="agnt")
    with pytest.raises(RecipeError):
        run.replay(recipe=load(built_graph))


def test_a_node_may_not_move_the_session_during_a_replay():
    runs = []

    def moves(board):
        try:
            runs[0].back()
        except ExecutionError:
            return {"refused": True}
        return {}

    run = session(graph("a", a=moves))
    runs.append(run)
    run.run()
    report = run.replay()
    assert (report.ok, run.position, run.board["refused"]) == (True, 1, True)


def test_an_interrupt_leaves_the_session_unchanged():
    armed = []

    def interrupted(board):
        if armed:
            raise KeyboardInterrupt

    run = session(graph("a", "b", b=interrupted))
    run.run()
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        run.replay()
    armed.clear()
    assert (run.replay().ok, run.position, run.status) == (True, 2, "finished")


def test_replay_returns_a_replay_report():
    run = nb.Session(load(counting()), {"n": 0})
    run.run()
    assert isinstance(run.replay(), ReplayReport)
