from __future__ import annotations

from typing import Any

import networkx as nx

import agentnb as nb
from tests.dialects.symphony.symphony_agents import call, executor


def session(agent: Any, board: dict[str, Any], **attributes: Any) -> nb.Session:
    graph = nx.DiGraph(name="desk")
    graph.add_node("help", kind="agent", **attributes)
    return nb.Session(nb.load(graph), board, tools={"help": agent})


def test_without_inputs_the_task_is_read_from_the_board() -> None:
    run = session(executor({"tool_name": "none", "response": "x"}), {"task": "count"})
    run.step()
    assert run.board["task"] == "count"
    run.run()
    assert run.board["help"] == "x"


def test_it_has_its_own_board() -> None:
    run = session(executor(call("ok", n=1)), {"task": "count", "answer": "outer"})
    run.run()
    assert run.board["answer"] == "outer"
    assert set(run.board) == {"task", "answer", "help"}


def test_its_observation_is_the_complete_result() -> None:
    run = session(executor(call("ok", n=1)), {"task": "count"})
    run.run()
    seen = run.trace.steps[-1].observation
    assert seen["tools_executed"][0]["result"] == {"twice": 2}
    assert seen["success"]


def test_a_failure_has_a_reason_and_can_be_retried() -> None:
    run = session(executor(call("bad")), {"task": "count"})
    run.run()
    assert (run.status, run.error.code) == ("failed", "X441")  # type: ignore[union-attr]  # it has failed
    run.retry()
    assert run.current == "help/system_prompt"
    run.run()
    assert run.status == "failed"
    run.skip({"help": "by hand"})
    assert run.board["help"] == "by hand"


def test_an_answer_that_cannot_be_read_is_the_nodes_failure_with_its_reason() -> None:
    run = session(executor("mere words"), {"task": "count"})
    run.run()
    assert "not the one JSON object" in run.error.why  # type: ignore[union-attr]  # it has failed


def test_a_model_that_fails_after_a_tool_is_the_nodes_failure_with_its_reason() -> None:
    run = session(executor(call("ok", n=1), max_calls=2), {"task": "count"})
    run.run()
    assert "no answer left" in run.error.why  # type: ignore[union-attr]  # it has failed


def test_attempts_of_the_node_restart_the_agent() -> None:
    agent = executor(call("bad"), "words", call("ok", n=1), {"tool_name": "none", "response": "x"}, max_calls=2)
    run = session(agent, {"task": "count"}, attempts=2)
    run.run()
    assert (run.status, run.board["help"]) == ("finished", "x")
    ends = [step for step in run.trace.steps if step.node_id == "help"]
    assert len(ends) == 3
    assert [tool["name"] for tool in ends[-1].observation["tools_executed"]] == ["ok"]
    assert ends[-1].observation["usage"]["requests"] == 2
    assert run.replay(strict="reads").ok
    for position in (0, 5, len(run.trace)):
        run.goto(position)
    assert run.board["help"] == "x"


def test_the_failure_of_the_last_attempt_is_that_of_the_node() -> None:
    run = session(executor(call("bad"), call("throws")), {"task": "count"}, attempts=2)
    run.run()
    assert run.status == "failed"
    assert "no such thing" in run.error.why  # type: ignore[union-attr]  # it has failed


def test_retrying_the_failed_node_calls_the_agent_again() -> None:
    run = session(executor("words", {"tool_name": "none", "response": "x"}), {"task": "count"})
    run.run()
    assert run.status == "failed"
    run.retry()
    run.run()
    assert (run.status, run.board["help"]) == ("finished", "x")
    assert run.replay(strict="reads").ok
    other = run.fork(at=7)
    other.run()
    assert (other.status, other.board["help"]) == ("finished", "x")
