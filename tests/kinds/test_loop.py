from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import AgentRuntimeError, NodeExecutionError, RecipeError
from tests.dialects.agentruntime.agent_files import line, ran, text
from tests.session.small_sessions import add, graph, looping, path, session


def body():
    built_graph = nx.DiGraph()
    built_graph.add_node("add", function=add, inputs={"n": "n"})
    return built_graph


def rounds(run):
    return path(run).count("add")


def test_it_runs_a_number_of_times():
    run = session(looping(body(), times=3), {"n": 0})
    run.run()
    assert path(run) == ["again enter", "add", "again again", "add", "again again", "add", "again leave", "done"]
    assert run.board["n"] == 3


def test_zero_iterations_are_one_step():
    run = session(looping(body(), times=0), {"n": 0})
    run.run()
    assert path(run) == ["again", "done"]
    assert run.board["n"] == 0


@pytest.mark.parametrize(("start", "count"), [(0, 3), (3, 0), (9, 0)])
def test_while_is_evaluated_before_each_iteration(start, count):
    run = session(looping(body(), **{"while": "n < 3"}), {"n": start})
    run.run()
    assert (rounds(run), run.status) == (count, "finished")


@pytest.mark.parametrize(("start", "count"), [(0, 3), (3, 1), (9, 1)])
def test_until_is_evaluated_after_each_iteration(start, count):
    run = session(looping(body(), until="n >= 3"), {"n": start})
    run.run()
    assert rounds(run) == count


def test_times_while_and_until_can_be_combined():
    run = session(looping(body(), times=5, until="n >= 3", **{"while": {"<": [{"var": "n"}, 2]}}), {"n": 0})
    run.run()
    assert rounds(run) == 2


@pytest.mark.parametrize(
    ("condition", "unmet"),
    [({"until": "n >= 9"}, "its `until` is still false"), ({"while": "n < 9"}, "its `while` condition still holds")],
)
def test_max_is_a_failure_and_an_edit_allows_more_iterations(condition, unmet):
    run = session(looping(body(), max=4, **condition), {"n": 0})
    run.run()
    assert (run.status, run.error.code, rounds(run)) == ("failed", "X401", 4)
    assert run.error.why == f"{unmet}, and its `max` is reached"
    assert "4 times" in run.error.what
    run.edit({"n": 9}).retry()
    run.run()
    assert (run.status, run.board["done"]) == ("finished", 1)


def test_without_a_max_it_ends_after_a_thousand_iterations():
    run = session(looping(body(), until="n < 0"), {"n": 0}, budget={"max_steps": 10_000})
    run.run()
    assert (run.error.code, rounds(run)) == ("X401", 1000)


def test_a_loop_without_an_end_condition_cannot_be_loaded():
    with pytest.raises(RecipeError, match="R113"):
        session(looping(body()), {"n": 0})


def test_a_body_of_many_nodes_is_one_iteration():
    run = session(looping(graph("a", "b", "c"), times=2))
    run.run()
    assert path(run)[1:9] == ["a", "b", "c", "again again", "a", "b", "c", "again leave"]
    assert dict(run.board) == {"a": 2, "b": 2, "c": 2, "done": 1}


def test_the_iteration_is_in_the_frames_and_goes_back_with_them():
    run = session(looping(body(), times=3), {"n": 0})
    run.step(5)
    assert [frame.iteration for frame in run.stack] == [1, 3]
    run.back(2)
    assert [frame.iteration for frame in run.stack] == [1, 2]
    run.goto(1)
    assert [(frame.node, frame.iteration) for frame in run.stack] == [(None, 1), ("again", 1)]
    run.run()
    assert run.board["n"] == 3


def test_loops_can_be_nested():
    inner = nx.DiGraph()
    inner.add_node("in", kind="loop", graph=body(), times=2)
    run = session(looping(inner, times=3), {"n": 0})
    run.run()
    assert (run.board["n"], rounds(run), run.status) == (6, 6, "finished")
    for k in reversed(range(run.position)):
        run.goto(k)
        assert run.board["n"] == path(run).count("add")


def test_a_failure_in_the_body_is_retried_in_the_same_iteration():
    def fragile(board):
        if board["n"] == 1 and not board.get("fixed"):
            raise ValueError("once")
        return {"n": board["n"] + 1}

    run = session(looping(graph("add", add=fragile), times=3), {"n": 0})
    run.run()
    assert (run.status, run.current, run.board["n"]) == ("failed", "add", 1)
    run.edit({"fixed": True}).run()
    assert (run.status, run.board["n"]) == ("finished", 3)


def test_an_error_edge_of_the_loop_catches_what_fails_inside():
    def breaks():
        raise ValueError("inside")

    built_graph = looping(graph("a", "b", b=breaks), times=3)
    built_graph.add_node("rescue", function=lambda: {"rescued": True})
    built_graph.add_edge("again", "rescue", kind="error")
    run = session(built_graph)
    run.run()
    assert path(run) == ["again enter", "a", "b error", "again leave error", "rescue"]
    assert (run.status, run.board["rescued"], len(run.stack)) == ("finished", True, 1)


# -- of one body, with rules and templates --------------------------------------------------------------------------


ADDS = "{id: w, type: tool, uses: add, inputs: {n: '{{ n }}'}, map: {set: {n: '{{ result.result }}'}}}"


def rounds_of(tmp_path, loop, body=ADDS, more="", **options):
    nodes = f"nodes:\n  - {{id: l, type: loop, body: w, {loop}}}\n  - {body}\n"
    return ran(
        tmp_path, text(f"{nodes}{line('after', 'rescue').removeprefix('nodes:')[1:]}\n{more or AFTER}"), **options
    )


AFTER = """edges:
  - {from: l, to: after}
  - {from: after, to: rescue, when: {"==": [1, 2]}}
"""


def test_until_is_evaluated_after_each_iteration_and_sees_the_result_of_the_body(tmp_path):
    for until in (
        '{">=": [{var: state.n}, 3]}',
        '{">=": [{var: result.result}, 3]}',
        '{"==": [{var: output.result}, "{{ 3 }}"]}',
    ):
        done = rounds_of(tmp_path, f"until: {until}, max_iterations: 5")
        assert done.path == ["l enter", "w", "l again", "w", "l again", "w", "l leave", "after"]
        assert done.state["n"] == 3


def test_edges_of_a_loop_see_the_result_of_its_body(tmp_path):
    edges = 'edges:\n  - {from: l, to: after, when: {"==": [{var: result.result}, 2]}}\n  - {from: after, to: rescue}\n'
    until = 'until: {">=": [{var: state.n}, 2]}'
    assert rounds_of(tmp_path, until, more=edges).path[-2:] == ["after", "rescue"]


def test_it_runs_once_at_least(tmp_path):
    assert rounds_of(tmp_path, 'until: {"==": [1, 1]}').state["n"] == 1


@pytest.mark.parametrize(("loop", "count"), [("max_iterations: 4", 4), ("name: ten", 10)])
def test_without_until_it_ends_after_its_iterations(tmp_path, loop, count):
    done = rounds_of(tmp_path, loop)
    assert (done.state["n"], done.path[-1]) == (count, "after")


NEVER = 'until: {"==": [1, 2]}, max_iterations: 2'


def test_an_until_that_never_holds_is_an_error(tmp_path):
    with pytest.raises(AgentRuntimeError, match=r"X401.*'l' has run 2 times") as caught:
        rounds_of(tmp_path, NEVER)
    assert caught.value.problems[0].why == "its `until` is still false, and its max_iterations is reached"


def test_the_handler_of_the_loop_catches_an_unmet_until(tmp_path):
    done = rounds_of(tmp_path, f"{NEVER}, on_error: {{to: rescue}}")
    assert (done.path[-2:], done.state["n"]) == (["l leave error", "rescue"], 2)
    assert rounds_of(tmp_path, f"{NEVER}, on_error: {{resume: true}}").path[-1] == "after"


def test_a_loop_can_ignore_an_unmet_until(tmp_path):
    assert rounds_of(tmp_path, f"{NEVER}, on_exhausted: continue").path[-1] == "after"
    with pytest.raises(AgentRuntimeError, match="X401"):
        rounds_of(tmp_path, "max_iterations: 2, on_exhausted: error")


FAILS = "{id: w, type: tool, uses: raising%s}"


def test_a_failing_body_ends_the_loop(tmp_path):
    with pytest.raises(NodeExecutionError, match=r"'w' in 'l' failed \(type=tool, tool=raising\)"):
        rounds_of(tmp_path, "max_iterations: 3", FAILS % "")


def test_the_handler_of_the_loop_catches_a_failing_body(tmp_path):
    done = rounds_of(tmp_path, "max_iterations: 3, on_error: {to: rescue}", FAILS % "")
    assert done.path == ["l enter", "w error", "l leave error", "rescue"]
    done = rounds_of(tmp_path, "max_iterations: 3, on_error: {to: rescue, resume: true}", FAILS % "")
    assert done.path[-2:] == ["rescue", "after"]


def test_a_body_that_resumes_continues_with_the_next_iteration(tmp_path):
    done = rounds_of(tmp_path, "max_iterations: 3", FAILS % ", on_error: {resume: true}")
    assert done.path == ["l enter", "w error", "l again", "w error", "l again", "w error", "l leave", "after"]


def test_until_sees_the_failure_of_a_body_that_resumes(tmp_path):
    fails = "{id: w, type: tool, uses: failing, on_error: {resume: true}}"
    done = rounds_of(tmp_path, 'until: {"==": [{var: result.error.type}, quota]}, max_iterations: 3', fails)
    assert done.path == ["l enter", "w error", "l leave", "after"]


def test_the_targets_of_a_router_as_body_are_not_followed(tmp_path):
    routes = '{id: w, type: router, cases: [{when: {"==": [1, 1]}, to: rescue}], default: after}'
    done = rounds_of(tmp_path, "max_iterations: 2", routes)
    assert done.path == ["l enter", "w", "l again", "w", "l leave", "after"]


def test_a_subgraph_as_body_runs_in_each_iteration(tmp_path):
    inner = (
        "subgraphs:\n  one: {inputs: [k], outputs: [n], nodes: [{id: up, type: noop, map: {set: {n: '{{ k + 1 }}'}}}]}"
    )
    graph = """
    nodes:
      - {id: l, type: loop, body: sub, until: {"==": [{var: result.n}, 3]}}
      - {id: sub, type: subgraph, graph: one, inputs: {k: "{{ n }}"}}
    """
    done = ran(tmp_path, text(graph, inner))
    assert (done.state["n"], done.path.count("up")) == (3, 3)
    assert done.path[:6] == ["l enter", "sub enter", "up", "sub leave", "l again", "sub enter"]


def test_a_loop_as_body_of_a_loop(tmp_path):
    graph = """
    nodes:
      - {id: outer, type: loop, body: inner, max_iterations: 2}
      - {id: inner, type: loop, body: w, max_iterations: 3}
      - {id: w, type: noop, map: {merge: {log: ["{{ n }}"]}}}
    """
    assert len(ran(tmp_path, text(graph)).state["log"]) == 6


def test_without_until_its_edges_see_the_result_of_the_body(tmp_path):
    edges = 'edges:\n  - {from: l, to: after, when: {"==": [{var: result.result}, 2]}}\n  - {from: after, to: rescue}\n'
    assert rounds_of(tmp_path, "max_iterations: 2", more=edges).path[-2:] == ["after", "rescue"]
