from __future__ import annotations

import numpy as np
import pytest

import agentnb as nb
from agentnb.engine.control.breakpoints import Breakpoints
from agentnb.recipe.model import Edge
from tests.session.shape_sessions import session_of
from tests.session.small_sessions import asking, broken, calling, counting, fan, graph, looping, path, session


def stops(made, inputs=None, **clauses):
    """Run with one breakpoint, and return after which steps it stopped."""
    run = session(made, inputs)
    run.breakpoints.add(**clauses)
    results = []
    while True:
        before = run.position
        run.run()
        if run.status != "paused" or (results and run.position == before):
            return results
        results.append(run.position)


@pytest.mark.parametrize(
    ("clauses", "where"),
    [
        ({"node": "check"}, [1, 3, 5]),
        ({"node": "check", "side": "after"}, [2, 4, 6]),
        ({"edge": ("check", "add")}, [2, 4]),
        ({"edge": ("check", "done")}, [6]),
        ({"key": "n"}, [1, 3, 5]),
        ({"key": "end"}, []),  # the last step ends the run as well
        ({"when": "n == 2"}, [3, 4]),
        ({"when": {">=": [{"var": "n"}, 3]}}, [5, 6]),
        ({"when": lambda board: board["n"] == 1}, [1, 2]),
        ({"step": 4}, [4]),
        ({"node": "check", "when": "n == 2"}, [3]),
        ({"node": "check", "on_hit": 2}, [3, 5]),
        ({"node": "check", "once": True}, [1]),
        ({"node": "check", "on_hit": 3, "once": True}, [5]),
        ({"error": True}, []),
        ({"error": False, "step": 2}, [2]),
    ],
)
def test_each_clause_stops_at_its_condition(clauses, where):
    assert stops(counting(), {"n": 0}, **clauses) == where


def test_a_breakpoint_at_the_entry_stops_before_the_first_step():
    run = session(graph("a", "b"))
    run.breakpoints.add("a")
    run.run()
    assert (run.position, run.current) == (0, "a")
    run.run()
    assert run.status == "finished"


def test_stepping_ignores_breakpoints():
    run = session(graph("a", "b", "c"))
    run.breakpoints.add("b")
    run.step(3)
    assert run.position == 3


def test_a_key_matches_writes_to_paths_below_it():
    built_graph = graph("a", "b", "c", a=lambda: {"d": {"x": 1}}, b=lambda: {"dx": 1})
    assert stops(built_graph, key="d") == [1]
    assert stops(built_graph, key="dx") == [2]


def test_a_breakpoint_stops_at_a_handled_failure():
    built_graph = broken()
    built_graph.add_node("rescue", function=lambda: None)
    built_graph.add_edge("middle", "rescue", kind="error")
    built_graph.add_edge("rescue", "last")
    assert stops(built_graph, error=True) == [2]


def test_a_breakpoint_stops_at_an_event():
    run = session(graph("a", "b", "c"))
    point = run.breakpoints.add(event="note")
    run.run()
    assert (run.status, point.hits) == ("finished", 0)


@pytest.mark.parametrize(
    ("made", "node", "count"), [(fan("x", "y"), "meet", 1), (looping(graph("x"), times=3), "x", 3)]
)
def test_breakpoints_stop_in_branches_and_loops(made, node, count):
    assert len(stops(made, node=node)) == count


@pytest.mark.parametrize(("side", "done"), [("before", []), ("after", ["x", "x", "x"])])
def test_a_breakpoint_at_a_composite_node_stops_once(side, done):
    run = session(looping(graph("x"), times=3))
    point = run.breakpoints.add(node="again", side=side)
    run.run()
    assert [node for node in path(run) if node == "x"] == done
    assert run.current == ("again" if side == "before" else "done")
    run.run()
    assert (run.status, point.hits) == ("finished", 1)


def test_hits_are_counted_and_a_breakpoint_can_be_disabled():
    run = session(counting(), {"n": 0})
    point = run.breakpoints.add("check", on_hit=2)
    run.run()
    assert (run.position, point.hits) == (3, 2)
    point.enabled = False
    run.run()
    assert (run.status, point.hits) == ("finished", 2)


def test_a_condition_that_cannot_be_evaluated_yet_does_not_hold_and_reports_why():
    run = session(counting(), {"n": 0})
    point = run.breakpoints.add(when=lambda board: board["end"] == 3)
    run.run()
    assert run.status == "finished"
    assert "'end'" in point.failed


def test_breakpoints_can_be_listed_named_and_removed():
    run = session(counting(), {"n": 0})
    points = run.breakpoints
    one, two = points.add("check"), points.add(edge=("check", "done"), when="n > 1")
    assert (list(points), len(points), one.id != two.id) == ([one, two], 2, True)
    assert (str(one), str(two)) == ("before 'check'", "edge check -> done, when n > 1")
    points.remove(one)
    points.remove(two.id)
    assert len(points) == 0
    points.add("check")
    points.add("check", when="n > 1")
    points.remove("check")
    assert len(points) == 0
    points.add("check")
    points.clear()
    assert len(points) == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({}, "X116"),
        ({"node": "chek"}, "X101"),
        ({"edge": ("check", "gone")}, "X101"),
        ({"when": "n =="}, "R"),
    ],
)
def test_all_errors_are_reported_at_once(words, code):
    run = session(counting(), {"n": 0})
    with pytest.raises(nb.AgentNbError) as caught:
        run.breakpoints.add(**words)
    assert caught.value.problems[0].code.startswith(code)
    assert len(run.breakpoints) == 0


def test_a_missing_breakpoint_is_a_problem():
    run = session(counting(), {"n": 0})
    run.breakpoints.add("check")
    with pytest.raises(nb.ExecutionError, match="X109"):
        run.breakpoints.remove(99)


@pytest.mark.parametrize(
    ("clauses", "held"),
    [
        ({"call": "tool"}, True),
        ({"call": "l??k"}, True),
        ({"call": "tool", "node": "look"}, True),
        ({"call": "tool", "node": "before"}, False),
        ({"call": "llm"}, False),
        ({"call": "tool", "on_hit": 2}, False),
    ],
)
def test_a_call_is_paused_by_its_kind_or_name(clauses, held):
    run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: word})
    run.breakpoints.add(**clauses)
    run.run()
    assert run.status == ("in_flight" if held else "finished")


def test_a_question_to_a_person_can_be_paused_too():
    run = session(asking(), answers=["yes"])
    run.breakpoints.add(call="human")
    run.run()
    assert run.status == "in_flight"
    run.run()
    assert (run.status, path(run)) == ("finished", ["before", "ask", "after"])


def test_a_call_can_be_paused_before_and_after():
    run = session(calling(), {"word": "rain"})
    run.breakpoints.add(call="*")
    run.breakpoints.add(call="*", side="after")
    run.run()
    assert run.pending[0].answer is nb.ABSENT
    run.run()
    assert run.pending[0].answer == "about rain"
    run.run()
    assert run.status == "finished"


def refused(nodes=("check", "chose", "done"), edges=(("check", "done"),), **clauses):
    """Return the problems of a breakpoint on these nodes and edges; nothing of it may stay."""
    known_edges = None if edges is None else [Edge(*edge) for edge in edges]
    points = Breakpoints(lambda: dict.fromkeys(nodes), lambda: None, known_edges and (lambda: known_edges))
    with pytest.raises(nb.ExecutionError) as caught:
        points.add(**clauses)
    assert len(points) == 0
    return [(problem.code, problem.do) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("clauses", "code", "order"),
    [
        ({"node": "check", "side": "befor"}, "X120", "did you mean 'before'?"),
        ({"node": "check", "side": None}, "X120", "write one of: before, after"),
        ({"node": "check", "on_hit": 0}, "X120", "pass an integer of at least 1"),
        ({"node": "check", "on_hit": True}, "X120", "pass an integer of at least 1"),
        ({"node": "check", "on_hit": "2"}, "X120", "pass an integer of at least 1"),
        ({"edge": "check -> done"}, "X120", "write edge=('check', 'done')"),
        ({"edge": "check"}, "X120", "write edge=('SOURCE', 'TARGET')"),
        ({"edge": ("check",)}, "X120", "write edge=('SOURCE', 'TARGET')"),
        ({"edge": ()}, "X120", "write edge=('SOURCE', 'TARGET')"),
        ({"edge": ([], {})}, "X120", "write edge=('SOURCE', 'TARGET')"),
        ({"node": ["check"]}, "X101", "did you mean 'check'?"),
        ({"edge": ("chek", "done")}, "X101", "did you mean 'check'?"),
        ({"edge": ("check", "chose")}, "X119", "use one of them"),
        ({"edge": ("done", "check")}, "X119", "write edge=('check', 'done')"),
        ({"step": "x"}, "X120", "pass an integer of at least 0"),
        ({"step": True}, "X120", "pass an integer of at least 0"),
        ({"step": 2.0}, "X120", "pass an integer of at least 0"),
        ({"step": -1}, "X120", "pass an integer of at least 0"),
        ({"key": ""}, "X120", "pass a non-empty string"),
        ({"event": 3}, "X120", "pass a non-empty string"),
        ({"node": "check", "once": 1}, "X120", "pass True or False"),
        ({"error": 5}, "X120", "pass True, an exception class (error=ValueError), or its name"),
        ({"error": KeyboardInterrupt}, "X120", "pass True, an exception class (error=ValueError), or its name"),
        ({"error": "ValueErorr"}, "X120", "did you mean 'ValueError'?"),
        (
            {"call": "tool", "key": "n"},
            "X120",
            "add two breakpoints; call= can be combined with node=, when=, step= and side=",
        ),
        ({"edge": ("check", "dona"), "nodes": ("check", "dona", "done")}, "X119", "did you mean 'done'?"),
    ],
)
def test_a_breakpoint_that_can_never_stop_is_rejected(clauses, code, order):
    assert refused(**clauses) == [(code, order)]


def test_all_errors_of_a_breakpoint_are_reported_at_once():
    assert [code for code, _ in refused(node="x", edge="y", side="z", on_hit=-1)] == ["X120", "X101", "X120", "X120"]


def test_without_a_list_of_edges_any_two_nodes_are_an_edge():
    points = Breakpoints(lambda: {"a": 1, "b": 2}, lambda: None)
    assert points.add(edge=["a", "b"]).edge == ("a", "b")


@pytest.mark.parametrize("clauses", [{"error": True}, {"step": 3}, {"step": 4}, {"node": "left", "side": "after"}])
def test_a_failure_that_cancels_another_branch_stops_the_run_too(clauses):
    run = session_of("branches")
    run.step(2)
    point = run.breakpoints.add(**clauses)
    run.step()  # the failure is step 3, what it has cancelled step 4
    assert (run.position, run.stopped_by, point.hits) == (4, point, 1)


def test_a_problem_names_what_there_is():
    def why(action, *words, **clauses):
        with pytest.raises(nb.ExecutionError) as caught:
            action(*words, **clauses)
        return caught.value.problems[0].why

    run = session(counting(), {"n": 0})
    add, remove = run.breakpoints.add, run.breakpoints.remove
    assert why(add, edge=("check", "check")) == "edges lead from 'check' to: add, done"
    assert why(add, edge=("done", "add")) == "edges lead from 'done' to: no node"
    assert why(add, "chek") == "the recipe's nodes are: add, check, done"
    assert why(remove, 1) == "there are: none"
    add("check")
    add(key="n")
    assert why(remove, "n") == "there are: 1 (before 'check'), 2 (key n)"
    for clause in ("edge", "key", "error", "event", "in_place", "no_progress", "budget"):
        value = {"edge": ("check", "add"), "key": "n", "event": "x", "budget": 1}.get(clause, True)
        with pytest.raises(nb.ExecutionError, match=f"call= cannot be combined with {clause}="):
            add(call="tool", **{clause: value})


def test_each_change_is_announced():
    changes = []
    points = Breakpoints(lambda: {"a": 1}, lambda: changes.append(len(points)))
    first = points.add("a")
    points.log("here", "a")
    points.add(step=1)
    assert changes == [1, 2, 3]
    points.remove(first)
    points.remove("a")
    points.clear()
    assert changes == [1, 2, 3, 2, 1, 0]
    points.make({"step": 1})
    assert len(changes) == 6


def test_clauses_of_a_breakpoint_can_be_checked_without_adding_it():
    run = session(counting(), {"n": 0})
    row = run.breakpoints.make({"node": "check", "when": "n > 1"})
    assert (row.node, row.text, row.side, len(run.breakpoints)) == ("check", "n > 1", "before", 0)


class OutOfStock(LookupError):
    """An exception of a user's own."""


@pytest.mark.parametrize(
    ("wanted", "stops"),
    [
        (True, True),
        (False, False),
        (OutOfStock, True),
        ("OutOfStock", True),
        (LookupError, True),
        ("LookupError", True),
        (Exception, True),
        (ValueError, False),
        ("KeyError", False),
    ],
)
def test_an_error_can_be_named_by_its_class(wanted, stops):
    built_graph = broken(OutOfStock("none left"))
    built_graph.add_node("rescue", function=lambda: None)
    built_graph.add_edge("middle", "rescue", kind="error")
    built_graph.add_edge("rescue", "last")
    run = session(built_graph)
    point = run.breakpoints.add(error=wanted, node="middle", side="after")
    run.run()
    assert (run.stopped_by is point, point.hits) == (stops, int(stops))


def test_a_retried_attempt_is_not_a_failed_step():
    answers = iter([ConnectionError("reset"), "fine"])

    def flaky(word):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    run = session(calling(flaky, attempts=2), {"word": "rain"})
    run.breakpoints.add(error=True)
    run.run()
    assert run.status == "finished"
    assert run.trace.frames.calls.error.notna().tolist() == [True, False]


def test_each_matching_breakpoint_counts_a_hit_and_may_stop_the_run_later():
    run = session(counting(), {"n": 0})
    first = run.breakpoints.add("check")
    counted = run.breakpoints.add(key="n", on_hit=2)
    both = run.breakpoints.add(step=3)
    run.run()
    assert (run.position, run.stopped_by, [row.hits for row in run.breakpoints]) == (1, first, [1, 1, 0])
    first.enabled = False
    run.run()
    assert (run.position, run.stopped_by, counted.hits, both.hits) == (3, counted, 2, 1)


def test_all_matching_breakpoints_with_once_are_removed():
    run = session(counting(), {"n": 0})
    points = [run.breakpoints.add("check", once=True), run.breakpoints.add(key="n", once=True)]
    run.run()
    assert (run.stopped_by, len(run.breakpoints)) == (points[0], 0)
    run.run()
    assert (run.status, run.stopped_by) == ("finished", None)


def test_hits_are_counted_in_concurrent_branches():
    run = session(fan("x", "y"))
    points = [
        run.breakpoints.add("y"),
        run.breakpoints.add("y", on_hit=2),
        run.breakpoints.add("y", when="nothing > 0"),
    ]
    run.run()
    assert (run.stopped_by, [row.hits for row in points]) == (points[0], [1, 1, 0])


def test_every_breakpoint_of_a_call_counts_too():
    run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: word})
    points = [run.breakpoints.add(call="tool"), run.breakpoints.add(call="look", node="look", on_hit=2)]
    run.run()
    assert (run.stopped_by, [row.hits for row in points]) == (points[0], [1, 1])


@pytest.mark.parametrize(
    ("clauses", "held"),
    [
        ({"when": "word == 'rain'"}, True),
        ({"when": "word == 'sun'"}, False),
        ({"step": 2}, True),
        ({"step": 1}, False),
        ({"step": 3}, False),
        ({"side": "after"}, True),
        ({"side": "after", "step": 2, "node": "look", "when": "word == 'rain'"}, True),
        ({"side": "after", "node": "after"}, False),
    ],
)
def test_all_clauses_of_a_call_must_hold(clauses, held):
    run = session(calling(), {"word": "rain"})
    point = run.breakpoints.add(call="tool", **clauses)
    run.run()
    assert (run.status, run.stopped_by) == (("in_flight", point) if held else ("finished", None))


def test_stopped_by_is_the_breakpoint_of_the_last_stop_only():
    run = session(calling("look"), {"word": "rain"}, tools={"look": lambda word: word})
    node, call = run.breakpoints.add("look"), run.breakpoints.add(call="look")
    run.run()
    assert run.stopped_by is node
    run.run()
    assert run.stopped_by is call
    run.breakpoints.clear()
    assert run.stopped_by is call  # it has stopped the run, whatever became of it
    run.run()
    assert (run.status, run.stopped_by) == ("finished", None)


@pytest.mark.parametrize("move", ["step", "back", "step_over", "skip", "stop_and_goto"])
def test_stopped_by_ends_when_the_run_moves(move):
    run = session(graph("a", "b", "c"))
    point = run.breakpoints.add("b")
    run.run()
    assert run.stopped_by is point
    run.breakpoints.clear()
    if move == "stop_and_goto":
        run.goto(1)
    else:
        getattr(run, move)()
    assert run.stopped_by is None


def test_an_answer_moves_the_run():
    run = session(asking())
    point = run.breakpoints.add("ask")
    run.run()
    assert run.stopped_by is point
    run.run()
    assert (run.status, run.stopped_by) == ("waiting", None)


def test_each_has_a_one_line_repr():
    run = session(counting(), {"n": 0})
    assert repr(run.breakpoints) == "no breakpoints"
    run.breakpoints.add("check", on_hit=2, once=True)
    run.breakpoints.add(key="n").enabled = False
    assert repr(run.breakpoints).splitlines() == [
        "<Breakpoint 1: before 'check'; from hit 2 on, once, 0 hits>",
        "<Breakpoint 2: key n; disabled, 0 hits>",
    ]
    run.run(max_steps=1)
    assert repr(next(iter(run.breakpoints))) == "<Breakpoint 1: before 'check'; from hit 2 on, once, 1 hit>"


@pytest.mark.parametrize(
    ("clauses", "text"),
    [
        ({"node": "check", "side": "after", "step": 0}, "after 'check', step 0"),
        ({"edge": ("check", "add"), "key": "n"}, "edge check -> add, key n"),
        ({"event": "sent", "error": False}, "event sent, error False"),
        ({"error": ValueError, "when": "n > 1"}, "error ValueError, when n > 1"),
        ({"call": "look*", "step": 2}, "step 2, call look*"),
        ({"budget": 1, "in_place": True}, "changed in place, budget 100%"),
        ({"budget": 0.25, "no_progress": True}, "no progress, budget 25%"),
    ],
)
def test_each_is_described_by_its_clauses(clauses, text):
    run = session(counting(), {"n": 0})
    assert str(run.breakpoints.add(**clauses)) == text


async def later(board):
    return True


@pytest.mark.parametrize("answer", [lambda: (n for n in [1]), lambda: later({}), lambda: np.array([0, 1])])
def test_a_condition_that_returns_none_is_warned_about_once(answer):
    run = session(counting(), {"n": 0})
    point = run.breakpoints.add(when=lambda _board: answer())
    with pytest.warns(UserWarning, match=r"breakpoint 1 .* never stops: X314: .* has no truth value") as caught:
        run.run()
    assert (run.status, point.hits, len(caught)) == ("finished", 0, 1)
    assert "X314" in point.failed


def test_a_breakpoint_has_no_other_attributes():
    run = session(counting(), {"n": 0})
    point = run.breakpoints.add("check")
    with pytest.raises(AttributeError, match="a Breakpoint has no attribute 'enbled'; did you mean 'enabled'"):
        point.enbled = False
    point.enabled = False
    run.run()
    assert run.status == "finished"


def test_an_unknown_attribute_of_the_collection_is_rejected_with_a_suggestion():
    breakpoints = session(counting()).breakpoints
    with pytest.raises(AttributeError, match="has no attribute 'node'; did you mean 'nodes'"):
        breakpoints.node = 1
    with pytest.raises(AttributeError, match="has no attribute 'zzz'"):
        breakpoints.zzz = 1
