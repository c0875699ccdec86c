"""What a node or a listener may ask of the session that is running it, and what leaves it."""

from __future__ import annotations

import json

import networkx as nx
import pytest

from agentnb.errors import ExecutionError
from agentnb.load import load
from agentnb.session import Session

SECRET = "sk-live-4711-abcdef"


def nothing():
    """Write nothing."""


def line(size=4, **functions):
    graph = nx.DiGraph(name="line")
    names = [f"n{number}" for number in range(size)]
    for name in names:
        graph.add_node(name, function=functions.get(name, nothing))
    nx.add_path(graph, names)
    return Session(load(graph))


def test_a_listener_may_pause_the_run():
    session = line()
    session.subscribe(lambda step: session.pause())
    session.run()
    assert (session.position, session.status) == (1, "paused")
    session.run()
    assert session.position == 2


@pytest.mark.parametrize("verb", ["step", "run", "back", "reset", "stop"])
def test_a_node_may_not_move_the_session_that_runs_it(verb):
    messages = []

    def moves():
        try:
            getattr(session, verb)()
        except ExecutionError as error:
            messages.append(error.problems[0].code)

    session = line(n1=moves)
    session.run()
    assert (session.position, session.status, messages) == (4, "finished", ["X112"])


def test_inside_a_node_the_session_is_running():
    seen = []
    session = line(n1=lambda: seen.append(session.status))
    session.subscribe(lambda step: seen.append(session.status))
    session.subscribe(lambda _: seen.append(session.status), to="end")
    session.run()
    assert seen == ["running"] * 5 + ["finished"]


def test_breakpoints_match_at_the_last_step_and_at_a_failure():
    def fails():
        raise ValueError("no")

    session = line()
    last = session.breakpoints.add("n3", side="after")
    session.run()
    assert (last.hits, session.status) == (1, "finished")
    assert session.trace.frames.interventions["action"].tolist() == ["breakpoint"]
    session = line(n1=fails)
    error = session.breakpoints.add(error=True)
    session.run()
    assert (error.hits, session.status) == (1, "failed")


def test_a_misspelled_node_has_a_suggestion():
    with pytest.raises(ExecutionError, match="did you mean 'n2'"):
        line().run(until="n22")
    with pytest.raises(ExecutionError, match="X118"):
        line().run(until=3.5)


def test_a_reset_run_starts_from_its_inputs():
    inputs = {"items": [1]}
    graph = nx.DiGraph()
    graph.add_node("a", function=lambda: {"done": True})
    session = Session(load(graph), inputs, run_id="r")
    first = session.run().trace_id
    inputs["items"].append(2)
    session.reset()
    assert session.board["items"] == [1]
    assert session.run().trace_id != first


def test_a_called_function_cannot_change_the_recorded_arguments():
    graph = nx.DiGraph()
    graph.add_node("a", kind="tool", function=lambda items: items.append("mine"), inputs={"items": "items"})
    session = Session(load(graph), {"items": [1]})
    assert session.run().frames.calls["arguments"].tolist() == [{"items": [1]}]


def test_a_secret_is_masked_in_other_outputs(tmp_path):
    def tells(board):
        raise ValueError(f"refused: {board['api_key']}")

    graph = nx.DiGraph(name="leaks")
    graph.add_node("copy", function=lambda board: {"copied": board["api_key"], "settings": {"password": "hunter2!"}})
    graph.add_node("tell", function=tells)
    graph.add_edge("copy", "tell")
    session = Session(load(graph), {"api_key": SECRET})
    session.watch("api_key")
    trace = session.run()
    trace.to_json(tmp_path / "trace.json")
    seen = [
        *(str(session.error), json.dumps(trace.outcome), repr(trace.steps), repr(session.board), repr(session.watches)),
        *(frame.to_string() for frame in trace.frames.values()),
        *(session.draw().svg, session.draw().dot, (tmp_path / "trace.json").read_text()),
    ]
    assert not [text for text in seen if SECRET in text or "hunter2!" in text]
    assert (session.board["api_key"], session.board["copied"]) == (SECRET, SECRET)
