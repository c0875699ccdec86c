"""In every dialect, a step that has several edges to one node shows the one that it took, wherever edges are shown."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import TypedDict
from xml.etree import ElementTree as ET

import networkx as nx
import pytest
import yaml

import agentnb as nb
from agentnb.testing import record_golden
from agentnb.ui.details.cells import Cells
from agentnb.ui.details.step import describe_step
from tests.cli.command_files import called
from tests.dialects.symphony.symphony_agents import call, executor

# -- programs in which the input `word` chooses one of several edges to the same node --------------------------------


def networkx_conditions(word):
    graph = nx.MultiDiGraph(name="words", entry="look", inputs=["word"])
    graph.add_node("look", function=lambda board: None)
    graph.add_node("write", function=lambda board: {"text": "x"})
    graph.add_edge("look", "write", when="word == 'bug'")
    graph.add_edge("look", "write", when="word == 'refund'")
    graph.add_edge("look", "write")
    return nb.Session(nb.load(graph), {"word": word})


def networkx_routes(word):
    graph = nx.MultiDiGraph(name="words", entry="look", inputs=["word"])
    graph.add_node("look", kind="router", input_key="word", routes={"bug": "write"})
    graph.add_node("write", function=lambda board: {"text": "x"})
    graph.add_edge("look", "write", value="refund")
    graph.add_edge("look", "write", value="")
    return nb.Session(nb.load(graph), {"word": word})


def networkx_failures(word):
    def look(word):
        if word == "bug":
            raise ValueError("it broke")
        if word == "refund":
            raise TimeoutError("it took too long")

    graph = nx.MultiDiGraph(name="words", entry="look", inputs=["word"])
    graph.add_node("look", function=look, inputs={"word": "word"})
    graph.add_node("write", function=lambda board: {"text": "x"})
    for kind in ("timeout", "sequential", "error"):
        graph.add_edge("look", "write", kind=kind, label=kind)
    return nb.Session(nb.load(graph), {"word": word})


def coreason(word):
    nodes = [
        {"id": "look", "type": "router", "input_key": "word", "routes": {"refund": "write", "bug": "write"},
         "default_route": "write"},
        {"id": "write", "type": "agent", "agent_ref": "w"},
    ]  # fmt: skip
    recipe = nb.load({
        "apiVersion": "coreason.ai/v2", "kind": "Recipe", "metadata": {"name": "words"},
        "interface": {"inputs": {"word": {"type": "string"}}, "outputs": {}},
        "topology": {"entry_point": "look", "nodes": nodes, "edges": []},
    })  # fmt: skip
    return nb.Session(recipe, {"word": word}, tools={"w": lambda: {"text": "x"}})


def _load_agentruntime(nodes, edges):
    return nb.load(yaml.safe_dump({
        "meta": {"name": "words"},
        "state": {"shape": {"word": "the input"}},
        "graph": {"inputs": ["word"], "outputs": ["word"], "nodes": nodes, "edges": edges},
    }), dialect="agentruntime")  # fmt: skip


def _is(word):
    return {"==": [{"var": "state.word"}, word]}


def agentruntime_cases(word):
    cases = [{"when": _is("refund"), "to": "write"}, {"when": _is("bug"), "to": "write"}]
    nodes = [{"id": "look", "type": "router", "cases": cases, "default": "write"}, {"id": "write", "type": "noop"}]
    return nb.Session(_load_agentruntime(nodes, []), {"word": word})


def agentruntime_edges(word):
    edges = [{"from": "look", "to": "write", "when": _is(each)} for each in ("refund", "bug", "x")]
    nodes = [{"id": "look", "type": "noop"}, {"id": "write", "type": "noop"}]
    return nb.Session(_load_agentruntime(nodes, edges), {"word": word})


class State(TypedDict, total=False):
    word: str
    text: str


def langgraph_path_map(word, **options):
    graph = pytest.importorskip("langgraph.graph")
    program = graph.StateGraph(State)
    program.add_node("look", lambda state: {})
    program.add_node("write", lambda state: {"text": "x"})
    program.add_edge(graph.START, "look")
    program.add_conditional_edges("look", lambda state: state["word"], dict.fromkeys(("refund", "bug", "x"), "write"))
    return nb.Session(nb.load(program), {"word": word}, **options)


def langgraph_start(word):
    graph = pytest.importorskip("langgraph.graph")
    program = graph.StateGraph(State)
    program.add_node("write", lambda state: {"text": "x"})
    program.add_conditional_edges(
        graph.START, lambda state: [state["word"]], dict.fromkeys(("refund", "bug", "x"), "write")
    )
    return nb.Session(nb.load(program), {"word": word})


def langgraph_subgraph(word):
    graph = pytest.importorskip("langgraph.graph")
    inner, outer = graph.StateGraph(State), graph.StateGraph(State)
    inner.add_node("look", lambda state: {})
    inner.add_node("write", lambda state: {"text": "x"})
    inner.add_edge(graph.START, "look")
    inner.add_conditional_edges("look", lambda state: state["word"], dict.fromkeys(("refund", "bug", "x"), "write"))
    outer.add_node("inner", inner.compile())
    outer.add_edge(graph.START, "inner")
    return nb.Session(nb.load(outer), {"word": word})


def langgraph_async(word):
    graph = pytest.importorskip("langgraph.graph")

    async def choose(state):
        return state["word"]

    program = graph.StateGraph(State)
    program.add_node("look", lambda state: {})
    program.add_node("write", lambda state: {"text": "x"})
    program.add_edge(graph.START, "look")
    program.add_conditional_edges("look", choose, dict.fromkeys(("refund", "bug", "x"), "write"))
    return nb.Session(nb.load(program), {"word": word})


def burr(word):
    core = pytest.importorskip("burr.core")

    @core.action(reads=["word"], writes=["seen"])
    def look(state):
        return state.update(seen=state["word"])

    @core.action(reads=[], writes=["text"])
    def write(state):
        return state.update(text="x")

    program = core.ApplicationBuilder().with_actions(look, write)
    program = program.with_transitions(
        ("look", "write", core.when(seen="refund")), ("look", "write", core.when(seen="bug")), ("look", "write")
    )
    return nb.Session(nb.load(program.with_state(word=word).with_entrypoint("look").build()))


OTHERWISE = "otherwise"
# What the edges that a word takes are called.
PROGRAMS = {
    networkx_conditions: {"refund": "word == 'refund'", "bug": "word == 'bug'", "x": ""},
    networkx_routes: {"refund": "refund", "bug": "bug", "x": OTHERWISE},
    networkx_failures: {"refund": "timeout", "bug": "error", "x": "sequential"},
    coreason: {"refund": "refund", "bug": "bug", "x": OTHERWISE},
    agentruntime_cases: {"refund": "state.word == 'refund'", "bug": "state.word == 'bug'", "x": OTHERWISE},
    agentruntime_edges: {word: f"state.word == {word!r}" for word in ("refund", "bug", "x")},
    langgraph_path_map: {"refund": "refund", "bug": "bug", "x": "x"},
    langgraph_start: {"refund": "refund", "bug": "bug", "x": "x"},
    langgraph_subgraph: {"refund": "refund", "bug": "bug", "x": "x"},
    langgraph_async: {"refund": "refund", "bug": "bug", "x": "x"},
    burr: {"refund": "seen=refund", "bug": "seen=bug", "x": ""},
}
WORDS = ("refund", "bug", "x")
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


def run(program, word):
    session = program(word)
    session.run()
    assert session.status == "finished"
    return session


def list_edges(source):
    """Return the conditions in the table of edges, of those into `write`."""
    edges = source.trace.frames.edges if hasattr(source, "trace") else source
    target = edges["target"].astype(str)
    return (
        edges["condition"].astype(object).where(edges["condition"].notna(), "")[target.str.endswith("write")].tolist()
    )


def list_drawn(drawing):
    """Return the marks of each edge of a drawing that is marked as taken or visited, by its index in the recipe."""
    groups = ET.fromstring(drawing.svg).iter("{http://www.w3.org/2000/svg}g")
    edges = {int(group.get("data-edge")): group.get("class").split() for group in groups if group.get("data-edge")}
    return {index: marks for index, marks in edges.items() if not {"taken"}.isdisjoint(marks) or "heat" in str(marks)}


def list_conditions(recipe, indices):
    """Return the conditions of those of these edges that lead to `write`."""
    edges = [recipe.edges[index] for index in indices]
    return [edge.condition for edge in edges if edge.target.endswith("write")]


@every_program
def test_the_tables_the_drawing_and_the_details_show_the_taken_edge(program):
    for word, condition in PROGRAMS[program].items():
        session = run(program, word)
        assert list_edges(session) == [condition]
        assert list_conditions(session.recipe, list_drawn(session.draw())) == [condition]
        steps = range(1, session.position + 1)
        targets = [target for step in steps for target in describe_step(session, step, Cells())["targets"]]
        assert [each["condition"] for each in targets if each["target"].endswith("write")] == [condition]


@every_program
def test_coverage_counts_and_draws_the_taken_edge(program):
    coverage = nb.coverage([run(program, word) for word in WORDS[:2]])
    frame = coverage.to_frame()
    into = frame[(frame["kind"] == "edge") & frame["element"].str.contains("write [", regex=False)]
    counts = {
        element.partition("[")[2].rstrip("]"): visits
        for element, visits in zip(into["element"], into["visits"], strict=True)
    }
    first, second, other = (PROGRAMS[program][word] or "sequential" for word in WORDS)
    assert counts == {first: 1, second: 1, other: 0}
    drawn = list_conditions(coverage.recipe, list_drawn(coverage.draw()))
    assert sorted(drawn) == sorted(PROGRAMS[program][word] for word in WORDS[:2])


def test_suspects_name_the_taken_edge():
    runs = [run(coreason, word) for word in ("refund", "bug", "x")]
    ranking = nb.suspects(runs, [True, True, False])
    assert ranking.iloc[0]["element"] == "look -> write [otherwise]"


def describe_conditions(session):
    return [(each.condition, each.value, each.taken) for each in session.why(1).conditions]


def test_why_marks_the_condition_of_the_taken_edge():
    assert describe_conditions(run(coreason, "bug")) == [
        ("word == 'refund'", False, False), ("word == 'bug'", True, True),
    ]  # fmt: skip
    assert describe_conditions(run(coreason, "x")) == [
        ("word == 'refund'", False, False), ("word == 'bug'", False, False), (OTHERWISE, True, True),
    ]  # fmt: skip
    assert describe_conditions(run(agentruntime_cases, "x"))[-1] == (OTHERWISE, True, True)
    assert describe_conditions(run(networkx_conditions, "refund")) == [
        ("word == 'bug'", False, False), ("word == 'refund'", True, True),
    ]  # fmt: skip
    assert describe_conditions(run(burr, "bug")) == [("seen=refund", False, False), ("seen=bug", True, True)]


def test_the_command_line_shows_the_taken_edge(tmp_path, capsys):
    run(coreason, "x").save(tmp_path / "runs.db")
    _, out, _ = called(capsys, "trace", str(tmp_path / "runs.db"), "--table", "edges", "--json")
    assert '"condition": "otherwise"' in out


def test_an_agents_failed_tool_takes_the_error_edge():
    for answer, kind in ((call("ok", n=1), "sequential"), (call("bad"), "error")):
        session = executor(answer).session("go")
        session.run()
        edges = session.trace.frames.edges
        assert edges[edges["source"] == "tool"]["kind"].tolist() == [kind]


def test_why_not_explains_each_edge_by_its_own_condition():
    def explain(program, word):
        edges = run(program, word).why_not("write").incoming_edges
        return [(edge.result, [each.condition for each in edge.conditions]) for edge in edges]

    assert explain(networkx_conditions, "refund") == [
        ("its condition did not hold in step 1", ["word == 'bug'"]),
        ("taken in step 1", ["word == 'refund'"]),
        ("in step 1 it led to 'write'", []),
    ]
    assert explain(networkx_failures, "bug") == [
        ("step 1 did not take too long", []),
        ("step 1 failed: it broke", []),
        ("taken in step 1", []),
    ]


def test_runs_that_took_different_edges_to_the_same_node_differ():
    a, b = run(langgraph_path_map, "refund"), run(langgraph_path_map, "bug")
    compared = nb.compare(a, b)
    (route,) = [each for each in compared.differences if each.path == "route"]
    assert (route.a, route.b, route.step_a) == ("refund", "bug", 1)
    assert route.reason == "it led to 'write' by the edge 'refund' in a and 'bug' in b"
    marks = list_drawn(compared.draw())
    assert [{"only-a", "only-b"} & set(marks.get(index, ())) for index in range(3)] == [{"only-a"}, {"only-b"}, set()]


def test_an_edited_condition_is_no_other_route():
    graph = nx.DiGraph(name="words", entry="look", inputs=["word"])
    graph.add_node("look", function=lambda board: None)
    graph.add_node("write", function=lambda board: {"text": "x"})
    sessions = []
    for condition in ("word == 'bug'", "word != 'refund'"):
        graph.add_edge("look", "write", when=condition)
        sessions.append(nb.Session(nb.load(graph), {"word": "bug"}))
        sessions[-1].run()
    assert nb.compare(*sessions).first_divergence is None


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[coreason, langgraph_path_map, networkx_conditions], ids=lambda program: program.__name__)
def recorded(request):
    """A run, and the condition of the edge that it took."""
    return run(request.param, "bug"), PROGRAMS[request.param]["bug"]


def check_record(record, condition):
    """Check that a run which was opened again shows the edge."""
    assert list_edges(record) == [condition]
    assert list_conditions(record.recipe, list_drawn(record.draw())) == [condition]
    assert [each["condition"] for each in describe_step(record, 1, Cells())["targets"]] == [condition]


def test_a_stored_run_shows_the_taken_edge_with_its_recipe_and_without(recorded, tmp_path):
    session, condition = recorded
    session.save(tmp_path / "runs.db")
    check_record(nb.open(tmp_path / "runs.db"), condition)
    tools = {"w": lambda: {"text": "x"}} if session.recipe.dialect == "coreason" else None
    check_record(nb.open(tmp_path / "runs.db", recipe=session.recipe, tools=tools), condition)


def test_a_run_that_was_stored_step_by_step_shows_the_taken_edge(tmp_path):
    session = langgraph_path_map("bug", store=tmp_path / "runs.db")
    session.run()
    session.close()
    check_record(nb.open(tmp_path / "runs.db"), "bug")
    assert nb.coverage(str(tmp_path / "runs.db")).unvisited == ["look -> write [refund]", "look -> write [x]"]


def test_a_trace_and_a_golden_show_the_taken_edge(recorded, tmp_path):
    session, condition = recorded
    session.trace.to_json(tmp_path / "trace.json")
    check_record(nb.open(tmp_path / "trace.json"), condition)
    assert list_edges(nb.SimulationTrace.read(tmp_path / "trace.json").frames.edges) == [condition]
    record_golden(session, tmp_path / "golden.jsonl")
    check_record(nb.open(tmp_path / "golden.jsonl"), condition)


def test_an_exported_page_shows_the_taken_edge():
    text = run(coreason, "bug").to_html()
    chunks = re.findall(r'data-name="[\w -]+">([^<]*)<', text)
    pages = [json.dumps(json.loads(zlib.decompress(base64.b64decode(chunk), -15))) for chunk in chunks]
    assert '"targets": [{"target": "write", "kind": "route", "condition": "bug", "value": "bug"}]' in "".join(pages)


def test_a_record_without_the_edge_says_nothing_if_several_are_possible(tmp_path):
    run(coreason, "bug").trace.to_json(tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text())
    document.pop("crc")
    (part,) = document["slices"][0]["p"]
    assert part[-1].pop("edges") == [-1, 1]
    (tmp_path / "trace.json").write_text(json.dumps(document))
    record = nb.open(tmp_path / "trace.json")
    assert list_edges(record) == [""]
    assert list_drawn(record.draw()) == {}
    document["edges"], document["recipe"]["edges"] = document["edges"][:1], document["recipe"]["edges"][:1]
    (tmp_path / "trace.json").write_text(json.dumps(document))
    assert list_edges(nb.open(tmp_path / "trace.json")) == ["refund"]


def test_a_fork_with_edited_routes_shows_the_edges_of_both_recipes():
    def load(*conditions):
        graph = nx.MultiDiGraph(name="words", entry="look", inputs=["word"])
        graph.add_node("look", function=lambda board: {"seen": board["word"]})
        graph.add_node("again", kind="noop")
        for condition in conditions:
            graph.add_edge("look", "again", when=condition)
            graph.add_edge("again", "look", when=condition)
        return nb.load(graph)

    session = nb.Session(load("word == 'bug'", "word == 'refund'"), {"word": "refund"})
    session.step()
    fork = session.fork(recipe=load("word == 'x'", "word == 'refund'", "word == 'bug'"))
    fork.step()
    assert fork.trace.frames.edges["condition"].tolist() == ["word == 'refund'", "word == 'refund'"]
    fork.edit({"word": "x"})
    fork.step(2)
    assert fork.trace.frames.edges["condition"].tolist()[2:] == ["word == 'x'", "word == 'x'"]
    drawn = [fork.recipe.edges[index].condition for index in list_drawn(fork.draw())]
    assert sorted(drawn) == ["word == 'refund'", "word == 'refund'", "word == 'x'", "word == 'x'"]
    removed = session.fork(recipe=load("word == 'x'"))
    assert removed.trace.frames.edges["condition"].tolist() == ["word == 'refund'"]
    assert list_drawn(removed.draw()) == {}


def test_a_stored_run_opened_with_an_edited_recipe_shows_its_own_edge_or_none(tmp_path):
    def load(*conditions):
        graph = nx.MultiDiGraph(name="words", entry="look", inputs=["word"])
        graph.add_node("look", kind="noop")
        graph.add_node("write", kind="noop")
        for condition in conditions:
            graph.add_edge("look", "write", when=condition)
        return nb.load(graph)

    session = nb.Session(load("word == 'bug'", "word == 'refund'"), {"word": "refund"})
    session.run()
    session.save(tmp_path / "runs.db")
    for conditions, shown in (
        (["word == 'x'", "word == 'refund'", "word == 'bug'"], ["word == 'refund'"]),
        (["word == 'x'", "word == 'bug'"], [""]),
    ):
        with pytest.warns(UserWarning, match="another version of this recipe"):
            opened = nb.open(tmp_path / "runs.db", recipe=load(*conditions))
        assert list_edges(opened) == shown


def test_a_command_to_a_node_is_not_one_of_the_conditional_edges_to_it():
    graph, types = pytest.importorskip("langgraph.graph"), pytest.importorskip("langgraph.types")
    program = graph.StateGraph(State)
    program.add_node("look", lambda state: types.Command(goto="write"))
    program.add_node("write", lambda state: {"text": "x"})
    program.add_edge(graph.START, "look")
    program.add_conditional_edges("look", lambda state: graph.END, {"refund": "write", graph.END: graph.END})
    session = nb.Session(nb.load(program), {"word": "bug"})
    session.run()
    assert session.trace.frames.edges["condition"].isna().all()
    assert list_drawn(session.draw()) == {}
