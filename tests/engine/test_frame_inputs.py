from __future__ import annotations

import networkx as nx
import pytest

from agentnb.engine.core.frames import get_frame_inputs, get_last_observation, get_step_result
from tests.dialects.agentruntime.agent_files import stepped, text, write
from tests.session.small_sessions import looping, session

NESTED = """
subgraphs:
  one: {inputs: [k], outputs: [a], nodes: [{id: deep, type: subgraph, graph: two, inputs: {k: "{{ k + 1 }}", l: 5}}]}
  two: {inputs: [k], outputs: [a], nodes: [{id: say, type: noop, map: {set: {a: "{{ inputs }}"}}}]}
"""
OUTER = "nodes: [{id: s, type: subgraph, graph: one, inputs: {k: 1}}]"


@pytest.fixture
def nested(tmp_path):
    return stepped(write(tmp_path, text(OUTER, NESTED)), {"x": 0})


def test_inputs_of_a_frame_extend_those_of_the_enclosing_one(nested):
    run = nested._parts.run
    assert [get_frame_inputs(run, frame) for frame in range(3)] == [
        {"x": 0}, {"x": 0, "k": 1}, {"x": 0, "k": 2, "l": 5},
    ]  # fmt: skip
    assert nested.board["a"] == {"x": 0, "k": 2, "l": 5}


def test_inputs_of_a_frame_are_copies(nested):
    get_frame_inputs(nested._parts.run, 1)["k"] = 9
    assert get_frame_inputs(nested._parts.run, 1)["k"] == 1


def test_inputs_of_a_frame_are_the_same_after_going_back_and_in_a_fork(nested):
    nested.goto(2)
    assert (
        get_frame_inputs(
            nested._parts.run, nested._parts.run.find_activation(nested._parts.run.frontier()[0]).frame.id
        )["k"]
        == 2
    )
    fork = nested.fork(at=2)
    fork.run()
    assert fork.board["a"] == {"x": 0, "k": 2, "l": 5}


def test_the_result_of_a_step_is_its_observation_or_its_failure(tmp_path):
    graph = """
    nodes:
      - {id: a, type: tool, uses: add, inputs: {n: 1}}
      - {id: b, type: tool, uses: failing, on_error: {resume: true}}
      - {id: c, type: tool, uses: raising, on_error: {resume: true}}
      - {id: d, type: noop}
    edges: [{from: a, to: b}, {from: b, to: c}, {from: c, to: d}]
    """
    run = stepped(write(tmp_path, text(graph)), {"x": 1})._parts.run
    actual = [get_step_result(run.history, step) for step in range(1, 5)]
    assert (actual[0], actual[1]["error"]["type"], actual[3]) == ({"result": 2}, "quota", None)
    assert actual[2] == {"exception": "it broke"}


def test_the_last_step_of_a_frame_is_its_own_and_not_that_of_a_nested_frame(tmp_path):
    graph = """
    nodes:
      - {id: l, type: loop, body: s, until: {"==": [{var: result.a.k}, 2]}, max_iterations: 3}
      - {id: s, type: subgraph, graph: one, inputs: {k: 1}}
    """
    run = stepped(write(tmp_path, text(graph, NESTED)), {"x": 0})
    assert run.status == "finished"
    run.goto(len(run.trace.steps) - 1)
    frames = [frame for frame in run._parts.run.frames.values() if frame.parent is run._parts.run.root]
    assert get_last_observation(run._parts.run, frames)["a"]["k"] == 2
    assert get_last_observation(run._parts.run, []) is None


def test_before_the_first_iteration_there_is_no_last_step():
    body = nx.DiGraph()
    body.add_node("in", kind="noop")
    run = session(looping(body, times=2))
    run.step()
    frames = [frame for frame in run._parts.run.frames.values() if frame.parent is run._parts.run.root]
    assert get_last_observation(run._parts.run, frames) is None
