from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.engine.control.cursor import Cursor
from agentnb.errors import BoardError, ExecutionError
from tests.session.small_sessions import asking, broken, counting, fan, graph, path, session


def code(verb, *words, **named):
    with pytest.raises(nb.AgentNbError) as caught:
        verb(*words, **named)
    return caught.value.problems[0].code


# -- acts ------------------------------------------------------------------------------------------------------------


def test_retry_is_a_new_step():
    run = session(broken())
    run.run()
    assert run.retry().status == "error"
    step = run.edit({"fixed": True}).retry()
    assert (step.node_id, step.status, run.status) == ("middle", "ok", "paused")
    assert path(run) == ["first", "middle error", "middle error", "middle"]


def test_skip_continues_with_the_given_writes():
    run = session(broken())
    run.run()
    step = run.skip({"middle": "mine"})
    assert (step.node_id, step.status, step.outputs) == ("middle", "skipped", {"middle": "mine"})
    assert (run.status, run.current) == ("paused", "last")
    run.run()
    assert (run.status, run.board["middle"]) == ("finished", "mine")
    assert run.trace.frames.interventions["action"].tolist() == ["skip"]


def test_skip_works_without_a_failure_and_not_at_the_end():
    run = session(graph("a", "b"))
    run.skip()
    run.skip()
    assert (run.status, dict(run.board)) == ("finished", {})
    assert code(run.skip) == "X108"


def test_an_edit_is_visible_at_once_and_belongs_to_the_previous_step():
    run = session(graph("a", "b"))
    run.step()
    assert run.edit({"x.deep": [1], "a": nb.ABSENT}) is run
    assert (run.position, dict(run.board)) == (1, {"x": {"deep": [1]}})
    assert run.trace.state_at(1) == {"x": {"deep": [1]}}
    interventions = run.trace.frames.interventions
    assert interventions["target"].tolist() == ["x.deep", "a"]
    assert interventions["old"].tolist()[1] == 1
    run.back()
    assert dict(run.board) == {}


def test_an_edit_before_the_first_step_belongs_to_the_start():
    run = session(counting(), {"n": 0})
    run.edit({"n": 2})
    run.step()
    assert (run.board["n"], run.goto(0).board["n"]) == (3, 2)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"d.a.1": 9}, {"d": {"a": [1, 9]}}),
        ({"d.a.2": 9}, {"d": {"a": [1, 2, 9]}}),
        ({"d.a.0": nb.ABSENT}, {"d": {"a": [2]}}),
        ({"d.b.c": 9}, {"d": {"a": [1, 2], "b": {"c": 9}}}),
        ({"d": nb.ABSENT}, {}),
        ({"gone": nb.ABSENT, "d.gone": nb.ABSENT}, {"d": {"a": [1, 2]}}),
        ({"d.a": nb.Append(3)}, {"d": {"a": [1, 2, 3]}}),
    ],
)
def test_edits_accept_paths(changes, expected):
    run = session(graph("a"), {"d": {"a": [1, 2]}})
    run.edit(changes)
    assert dict(run.board) == expected


def test_an_edit_writes_all_or_nothing():
    run = session(graph("a", "b"), {"n": 1, "list": []})
    run.step()
    for changes in ({"x": 1, "n.below": 2}, {"x": 1, "list.5": 2}):
        with pytest.raises(BoardError):
            run.edit(changes)
        assert dict(run.board) == {"n": 1, "list": [], "a": 1}
        assert len(run.trace.frames.interventions) == 0
    run.run()
    assert run.status == "finished"


def test_an_edit_in_the_past_starts_a_fork():
    run = session(counting(), {"n": 0})
    run.run()
    run.goto(2).edit({"n": 2})
    assert (run.position, len(run.trace), run.board["n"]) == (2, 2, 2)
    run.run()
    assert (run.position, run.board["end"]) == (5, 3)
    (old,) = run.forks
    assert old.position == 7
    assert old.trace.state_at(2) == {"n": 1}


def test_set_next_changes_the_next_node():
    run = session(counting(), {"n": 0})
    run.step()
    assert run.set_next("done").current == "done"
    run.run()
    assert (path(run), run.board["end"]) == (["add", "done"], 1)
    assert run.trace.frames.interventions["action"].tolist() == ["set_next"]


def test_set_next_continues_a_finished_run():
    run = session(counting(), {"n": 0})
    run.run()
    run.set_next("add")
    assert run.status == "paused"
    run.run()
    assert (run.board["n"], run.status) == (4, "finished")


def test_set_next_requires_an_existing_node():
    run = session(counting(), {"n": 0})
    assert code(run.set_next, "ad") == "X101"
    assert run.current == "add"


def test_emit_without_a_listener_is_stored_as_an_event():
    run = session(graph("a", "b"))
    run.step()
    assert run.emit("note", {"x": 1}) is run
    assert run.current == "b"
    (event,) = run.trace.frames.events.to_dict("records")
    assert (event["type"], event["actor"], event["payload"]) == ("note", "user", {"x": 1})


def test_answer_can_name_its_node():
    run = session(asking())
    assert code(run.answer, "yes") == "X115"
    run.run()
    assert code(run.answer, "yes", node="after") == "X115"
    assert run.answer("yes", node="ask").node_id == "ask"
    assert run.trace.frames.interventions.to_dict("records")[0]["action"] == "answer"


def test_two_questions_can_be_answered_in_any_order():
    built_graph = fan("a", "b")
    for name in ("a", "b"):
        built_graph.nodes[name].clear()
        built_graph.nodes[name].update(kind="human", output=name)
    run = session(built_graph)
    run.run()
    assert run.status == "waiting"
    names = [one.node for one in run.pending]
    for name in reversed(names):
        run.answer(name.upper(), node=name)
    run.run()
    while run.pending:
        run.answer(run.pending[0].node.upper())
        run.run()
    assert (run.status, run.board["a"], run.board["b"]) == ("finished", "A", "B")


# -- what can be asked -----------------------------------------------------------------------------------------------


def test_status_is_correct_in_each_situation():
    run = session(graph("a", "b"))
    words = [run.status]
    while run.step() is not None:
        words.append(run.status)
    assert words == ["ready", "paused", "finished"]
    assert run.back().status == "paused"
    assert run.goto(0).status == "ready"
    run = session(broken())
    run.run()
    assert run.status == "failed"
    run = session(asking())
    run.run()
    assert run.status == "waiting"
    run = session(counting(), {"n": 0}, budget={"max_steps": 2})
    run.run()
    assert run.status == "exhausted"


def test_the_error_of_a_failed_run_has_four_answers_and_its_cause():
    run = session(broken())
    run.run()
    problem = run.error
    assert (problem.code, run.trace.outcome["status"]) == ("X100", "failed")
    assert "'middle'" in problem.what
    assert "ValueError: it broke" in problem.what
    assert "step 2" in problem.where
    assert "retry()" in problem.do
    assert isinstance(run.cause, ValueError)
    assert run.trace.outcome["error"] == problem.what
    run.back()
    assert (run.error, run.cause) == (None, None)


def test_a_problem_raised_in_a_node_is_reported_in_its_own_words():
    problem = nb.Problem("X999", "my own", "here", "because", "do this")
    run = session(broken(ExecutionError(problem)))
    run.run()
    assert (run.error.code, run.error.what, run.error.do) == ("X999", "my own", "do this")


def test_an_error_is_cleared_when_the_next_node_changes():
    run = session(broken())
    run.run()
    run.set_next("last")
    assert (run.status, run.error) == ("paused", None)


def test_frontier_stack_and_cursor_give_the_position():
    run = session(fan("a", "b"))
    run.step()
    assert [(one.node, one.phase) for one in run.frontier] == [("a", "start"), ("b", "start")]
    assert all("'open'" in one.why for one in run.frontier)
    cursor = run.cursor
    assert isinstance(cursor, Cursor)
    assert (cursor.position, cursor.frontier, cursor.frames) == (1, run.frontier, run.stack)
    run.step()
    assert cursor.position == 1
    assert cursor != run.cursor
    assert run.back().cursor == cursor


def test_the_reason_for_the_next_node_contains_the_value_of_the_condition():
    run = session(counting(), {"n": 2})
    assert run.frontier[0].why == "entry of the recipe"
    run.step(2)
    assert run.frontier[0].why == "edge 'check' -> 'done'"


def test_the_board_is_read_only_and_reads_paths():
    run = session(graph("a"), {"d": {"list": [{"x": 1}]}, "dotted.key": 2})
    assert (run.board["d.list.0.x"], run.board["dotted.key"]) == (1, 2)
    assert "d.list.1" not in run.board
    assert run.board.get("gone", 5) == 5
    with pytest.raises(TypeError):
        run.board["a"] = 1
    run.board["d"]["list"].append(2)
    assert run.board["d.list"] == [{"x": 1}]


def test_who_wrote_returns_the_step_that_wrote_a_value():
    functions = {"a": lambda: {"d": {"x": 1, "y": 1}}, "b": lambda: {"d": {"x": 2}}, "c": lambda: {"other": 1}}
    run = session(graph("a", "b", "c", **functions), {"start": 0})
    run.run()
    assert (run.who_wrote("d"), run.who_wrote("d.x"), run.who_wrote("d.y")) == (2, 2, 2)
    assert (run.who_wrote("start"), run.who_wrote("gone"), run.who_wrote("other")) == (0, None, 3)
    assert (run.who_wrote("d.x", at=1), run.who_wrote("d", at=0), run.who_wrote("other", at=2)) == (1, None, None)


def test_who_wrote_considers_writes_above_and_below_a_path():
    run = session(graph("a", "b", "c", "d", a=lambda: {"d": {"list": [1]}}), {"keep": 1})
    run.step()
    run.step()
    run.edit({"d.list.0": 5})
    run.step()
    assert (run.who_wrote("d"), run.who_wrote("d.list"), run.who_wrote("d.list.0"), run.who_wrote("d.other")) == (
        2,
        2,
        2,
        None,
    )
    run.edit({"d": nb.ABSENT})
    assert run.who_wrote("d.list") == 3


def test_the_repr_of_a_session_is_one_line():
    run = session(graph("a", "b", name="line"))
    run.step()
    assert repr(run) == "<Session 'line': paused after step 1, next 'b'>"
    run.run()
    assert repr(run) == "<Session 'line': finished after step 2>"


def test_the_drawing_of_a_session_shows_the_run():
    run = session(broken())
    run.breakpoints.add("last")
    run.run()
    view = run._parts.pictures.view()
    assert (view.current, view.failed, view.breakpoints) == ("middle", {"middle"}, {"last"})
    assert dict(view.visited) == {"first": 1, "middle": 1}
    assert run.draw().dot != run.recipe.draw().dot


def test_subscribers_are_notified_after_each_step_until_they_unsubscribe():
    run, seen = session(graph("a", "b", "c")), []
    stop = run.subscribe(seen.append)
    run.step(2)
    stop()
    run.step()
    assert [step.node_id for step in seen] == ["a", "b"]


@pytest.mark.parametrize(("name", "hint"), [("sped", "speed"), ("breakpoint", "breakpoints"), ("watch_", "watch")])
def test_an_attribute_that_a_session_does_not_have_cannot_be_set(name, hint):
    run = session(graph("a"))
    with pytest.raises(AttributeError, match=f"a Session has no attribute '{name}'; did you mean '{hint}'"):
        setattr(run, name, 3)
    for each_session in (run, run.fork()):
        each_session.speed = 3
        assert each_session.speed == 3
        with pytest.raises(AttributeError):
            each_session.board = {}


def test_a_subclass_of_session_may_declare_attributes():
    class Noted(nb.Session):
        note = ""

    run = Noted(nb.load(graph("a")))
    run.note = "mine"
    assert run.note == "mine"
