"""An agent in a tool's place, in every dialect that names one: one node outside, a graph inside."""

from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects.agentruntime import build_agent_from_yaml
from agentnb.dialects.polaris import Graph, HooksAPI, Out
from agentnb.dialects.symphony import AgentConfig, AgentExecutor
from tests.dialects.polaris.polaris_graphs import execute, refused
from tests.dialects.symphony.symphony_agents import call, executor

INSIDE = ["system_prompt", "request", "llm", "parse", "check", "tool", "result"]
COREASON = """
metadata: {name: desk}
interface: {}
topology: [{id: help, type: agent, agent_ref: helper, inputs_map: {task: question}}]
"""
AGENTRUNTIME: dict[str, Any] = {
    "meta": {"name": "desk"},
    "state": {"shape": {"question": "str", "answer": "str"}},
    "tools": [{"id": "helper", "kind": "python", "impl": "nowhere:none"}],
    "graph": {
        "inputs": ["question"],
        "outputs": ["answer"],
        "nodes": [
            {"id": "help", "uses": "helper", "inputs": {"task": "{{ question }}"},
             "map": {"set": {"answer": "{{ result.text }}"}}},
        ],
    },
}  # fmt: skip


def networkx_recipe(function: Any = "helper") -> Any:
    graph = nx.DiGraph(name="desk")
    graph.add_node("help", kind="tool", function=function, inputs={"task": "question"}, output="answer")
    graph.add_node("after", function=lambda answer: {"length": len(answer)}, inputs={"answer": "answer"})
    graph.add_edge("help", "after")
    return nb.load(graph)


def sessions(agent: Any) -> dict[str, Any]:
    tools, inputs = {"helper": agent}, {"question": "double 2"}
    return {
        "coreason": nb.Session(nb.load(COREASON), inputs, tools=tools),
        "agentruntime": build_agent_from_yaml(AGENTRUNTIME).session(inputs, tools=tools),
        "networkx": nb.Session(networkx_recipe(), inputs, tools=tools),
    }


@pytest.mark.parametrize("dialect", ["coreason", "agentruntime", "networkx"])
def test_an_agent_is_one_node_in_a_recipe_of_each_dialect(dialect: str) -> None:
    session = sessions(executor(call("ok", n=2)))[dialect]
    assert session.recipe.dialect == dialect
    session.step()
    assert (session.current, session.stack[-1].node) == ("help/system_prompt", "help")
    session.run()
    assert session.status == "finished"
    assert [step.node_id for step in session.trace.steps if step.depth] == [f"help/{name}" for name in INSIDE]
    key = {"coreason": "output"}.get(dialect, "answer")
    assert session.board[key] == 'Tool ok executed. Success: true. Result: {"twice": 4}'
    assert "system_prompt" not in session.board


@pytest.mark.parametrize("dialect", ["coreason", "agentruntime", "networkx"])
def test_an_agent_without_success_is_a_failed_node(dialect: str) -> None:
    session = sessions(executor(call("bad")))[dialect]
    session.run()
    assert (session.status, session.current) == ("failed", "help")
    assert session.error.code == "X441"
    assert "sold out" in session.error.why


def test_a_failed_agent_takes_the_error_edge_of_the_node() -> None:
    graph = nx.MultiDiGraph(name="desk")
    graph.add_node("help", function=executor(call("bad")), inputs={"task": "question"})
    graph.add_node("sorry", function=lambda: {"said": "sorry"}, kind="function")
    graph.add_edge("help", "sorry", kind="error")
    session = nb.Session(nb.load(graph), {"question": "go"})
    session.run()
    assert (session.status, session.board["said"]) == ("finished", "sorry")


def test_step_over_completes_the_agent_and_step_into_enters_it() -> None:
    agent = executor(call("ok", n=2))
    over = nb.Session(networkx_recipe(agent), {"question": "go"})
    over.step_over()
    assert (over.current, over.position) == ("after", len(INSIDE) + 2)
    into = nb.Session(networkx_recipe(agent), {"question": "go"})
    into.step()
    into.step()
    assert into.current == "help/request"
    into.step_out()
    assert into.current in {"help", "after"}


def test_an_agent_in_the_graph_itself_is_drawn_before_it_runs() -> None:
    recipe = networkx_recipe(executor(call("ok", n=2)))
    assert recipe.nodes["help"].kind == "task"
    assert recipe.regions["help"].title == "Helper"
    dot = recipe.draw().dot
    assert "cluster" in dot
    assert "help/parse" in dot


def test_two_nodes_may_share_an_agent_and_two_agents_a_recipe() -> None:
    graph = nx.DiGraph(name="desk")
    first, second = executor({"tool_name": "none", "response": "a"}), executor({"tool_name": "none", "response": "b"})
    for name, agent in (("one", first), ("two", second), ("three", first)):
        graph.add_node(name, function=agent, inputs={"task": "question"})
    nx.add_path(graph, ["one", "two", "three"])
    session = nb.Session(nb.load(graph), {"question": "go"})
    session.run()
    assert [session.board[name] for name in ("one", "two", "three")] == ["a", "b", "a"]


def test_inputs_without_a_task_become_text() -> None:
    seen = []

    def model(request: Any) -> str:
        seen.append(request.messages[-1].content)
        return "fine"

    agent = AgentExecutor(AgentConfig(name="A"), llm=model)
    graph = nx.DiGraph(name="desk")
    graph.add_node("help", function=agent, inputs={"city": "where", "days": "n"})
    session = nb.Session(nb.load(graph), {"where": "Oslo", "n": 3})
    session.run()
    assert seen == ["city: Oslo\ndays: 3"]
    assert session.board["help"] == "fine"


def test_inner_steps_do_not_count_towards_the_steps_of_the_outer_recipe() -> None:
    session = nb.Session(networkx_recipe(executor(call("ok", n=2))), {"question": "go"}, budget={"max_steps": 2})
    session.run()
    assert session.status == "finished"


def test_a_stored_run_with_an_agent_inside_is_opened_and_continues(tmp_path: Path) -> None:
    agent, recipe = executor(call("ok", n=2)), networkx_recipe()
    session = nb.Session(recipe, {"question": "go"}, tools={"helper": agent}, store=tmp_path / "runs.db")
    session.step(4)
    session.close()
    reopened = nb.open(tmp_path / "runs.db", recipe=recipe, tools={"helper": agent})
    assert reopened.current == "help/parse"
    reopened.run()
    assert (reopened.status, reopened.board["length"]) == ("finished", len(reopened.board["answer"]))
    assert reopened.replay().ok


def test_a_fork_may_have_another_agent_inside() -> None:
    session = nb.Session(networkx_recipe(), {"question": "go"}, tools={"helper": executor(call("bad"))})
    session.run()
    assert session.status == "failed"
    other = session.fork(at=0, tools={"helper": executor(call("ok", n=5))})
    other.run()
    assert other.status == "finished"
    assert "10" in other.board["answer"]


def test_an_agent_is_a_plain_callable_too() -> None:
    assert executor({"tool_name": "none", "response": "hello"})("go") == "hello"
    with pytest.raises(nb.ExecutionError, match="sold out"):
        executor(call("bad"))("go")


@pytest.mark.parametrize("dialect", ["coreason", "agentruntime", "networkx"])
def test_a_fork_may_replace_the_agent_with_a_plain_function(dialect: str) -> None:
    session = sessions(executor(call("ok", n=2)))[dialect]
    before = session.recipe.graph.number_of_nodes()
    session.run()
    other = session.fork(at=0, tools={"helper": lambda **given: "by hand"})
    other.run()
    assert other.status == "finished"
    assert other.recipe.graph.number_of_nodes() == before - len(INSIDE)
    assert "by hand" in str(dict(other.board))
    assert session.fork(at=0, tools={"other": len}).recipe.graph.number_of_nodes() == before


@pytest.mark.parametrize("retry", [1, 3])
def test_a_retry_of_the_node_restarts_the_agent(retry: int) -> None:
    node = AGENTRUNTIME["graph"]["nodes"][0] | {"retry": {"max_attempts": retry, "backoff": 0}}
    content = {**AGENTRUNTIME, "graph": {**AGENTRUNTIME["graph"], "nodes": [node]}}
    agent = executor("words", "more words", {"tool_name": "none", "response": "at last"})
    session = build_agent_from_yaml(content).session({"question": "?"}, tools={"helper": agent})
    session.run()
    assert session.status == ("finished" if retry == 3 else "failed")
    assert session.board.get("answer") == ("at last" if retry == 3 else None)
    assert session.replay(strict="reads").ok


def test_agents_work_in_joined_branches_and_in_a_loop() -> None:
    graph = nx.DiGraph(name="both", entry="split")
    graph.add_node("split", kind="noop")
    for name in ("left", "right"):
        graph.add_node(name, kind="agent", ref="helper", inputs={"task": name})
        graph.add_edge("split", name, kind="parallel")
        graph.add_edge(name, "meet")
    graph.nodes["meet"]["kind"] = "join"
    graph.add_node("count", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("end", kind="noop")
    graph.add_edge("meet", "count")
    graph.add_edge("count", "split", when="n < 2")
    graph.add_edge("count", "end")
    config = AgentConfig(name="echo", tools=["ok"])
    agent = AgentExecutor(config, llm=lambda request: {"tool_name": "none", "response": request.messages[1].content})
    session = nb.Session(nb.load(graph), {"left": "l", "right": "r", "n": 0}, tools={"helper": agent})
    session.breakpoints.add(node="right/parse")
    session.run()
    assert session.current == "right/parse"
    session.breakpoints.clear()
    session.run()
    assert (session.status, session.board["n"]) == ("finished", 2)
    assert {name: session.board[name] for name in ("left", "right")} == {"left": "l", "right": "r"}
    assert session.replay(strict="reads").ok
    end = len(session.trace)
    session.back(end)
    session.run()
    assert len(session.trace) == end


@pytest.mark.parametrize(
    ("limit", "inside"), [({"max_llm_calls": 1}, "help/parse"), ({"max_tool_calls": 1}, "help/result")]
)
def test_the_limits_of_a_run_hold_inside_an_agent(limit: dict[str, int], inside: str) -> None:
    agent = executor(call("ok", n=2))
    session = nb.Session(networkx_recipe(), {"question": "?"}, tools={"helper": agent}, budget=limit)
    session.run()
    assert (session.status, session.current) == ("exhausted", inside)


def test_the_name_of_an_agent_is_only_text_in_a_drawing() -> None:
    evil = "<script>alert(1)</script>"
    agent = AgentExecutor(AgentConfig(name=evil, tools=[evil]), llm=["x"], tools={evil: lambda given: given})
    session = nb.Session(networkx_recipe(agent), {"question": evil})
    session.run()
    drawing = session.draw()
    assert "<script" not in drawing.svg
    assert "<script" not in drawing.mermaid


def test_a_node_named_like_one_inside_an_agent_is_not_affected() -> None:
    graph: Any = nx.DiGraph(name="desk", entry="help")
    graph.add_node("help", kind="agent", inputs={"task": "question"})
    graph.add_node("help/llm", function=lambda: {"after": True})
    graph.add_edge("help", "help/llm")
    agent = executor({"tool_name": "none", "response": "x"})
    session = nb.Session(nb.load(graph), {"question": "?"}, tools={"help": agent})
    session.run()
    assert session.status == "finished"
    assert (session.board["help"], session.board["after"]) == ("x", True)
    assert session.trace.frames.calls.node.tolist() == ["help/inside/llm"]


def asks() -> str:
    return "double 2"


def counts(answer: Out[str]) -> int:
    return len(answer)


def polaris_graph(agent: Any) -> Graph:
    return Graph("desk").add_system(asks).add_system(agent).add_system(counts)


def test_an_agent_as_a_polaris_system_reads_and_stores_str() -> None:
    graph = polaris_graph(executor(call("ok", n=2)))
    assert graph.validate().ok
    session = nb.Session(nb.load(graph))
    session.step(2)
    assert (session.current, session.stack[-1].node) == ("Helper/system_prompt", "Helper")
    session.run()
    answer = 'Tool ok executed. Success: true. Result: {"twice": 4}'
    assert (session.status, dict(session.board)) == ("finished", {"builtins.str": answer, "builtins.int": len(answer)})
    assert [step.node_id for step in session.trace.steps if step.depth] == [f"Helper/{name}" for name in INSIDE]
    assert session.replay(strict="reads").ok
    assert "cluster" in graph.draw().dot
    result = execute(polaris_graph(executor(call("ok", n=2))))
    assert (result.nodes_executed, result.output(str)) == (3, answer)


def test_an_agent_works_in_branches_loops_and_with_handlers_of_a_polaris_graph() -> None:
    agent = AgentExecutor(AgentConfig(name="echo"), llm=lambda request: request.messages[-1].content + "!")
    graph = Graph().add_system(asks).add_parallel("both", [lambda g: g.add_loop_n("twice", 2, agent), counts_branch])
    assert execute(graph).output(str) == "double 2!!"
    graph = Graph().add_system(asks)
    failed = graph.add_system_node(executor(call("bad")))
    graph.add_error_handler(failed, lambda g: g.add_system(counts), resume=True).add_system(asks)
    assert execute(graph).output(int) == len("double 2")
    assert refused(polaris_graph(executor(call("bad")))) == ("SystemError", "Helper")


def counts_branch(graph: Graph) -> None:
    graph.add_system(counts)


def test_an_agent_without_a_task_reports_the_missing_output() -> None:
    graph = Graph().add_system(executor(call("ok"))).add_system(counts)
    assert [finding.kind for finding in graph.validate().warnings] == ["OutputNotProduced"]
    assert refused(graph) == ("SystemError", "Helper")
    with pytest.raises(nb.RecipeError, match="'Helper' is an agent"):
        graph.set_timeout("Helper", 1)


def test_a_fork_may_replace_an_agent_of_a_polaris_graph_with_a_function() -> None:
    session = nb.Session(nb.load(polaris_graph(executor(call("bad")))))
    session.run()
    assert session.status == "failed"
    other = session.fork(at=1, tools={"Helper": lambda task: f"{task} by hand"})
    other.run()
    assert (other.status, other.board["builtins.str"]) == ("finished", "double 2 by hand")


def test_hooks_are_called_for_an_agent_as_for_a_system() -> None:
    api, seen = HooksAPI(), list[Any]()
    api.register(["OnSystemStart", "OnSystemComplete"], "seen", seen.append)
    execute(polaris_graph(executor(call("ok", n=2))), hooks=api)
    schedules = [event.schedule for event in seen if event.node_id == "Helper"]
    assert schedules == ["OnSystemStart", "OnSystemComplete"]
