from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.cli.python_objects import load_recipe
from agentnb.errors import AgentNbError, ExecutionError, RecipeError, StoreError
from agentnb.testing import record_golden, replay_golden, replay_goldens
from tests.samples.installed import NAMES

ROOT = Path(__file__).parent.parent.parent
calls = []


def search(question):
    calls.append(question)
    return {"id": len(calls), "found": question.upper()}


def graph(grade=lambda found: {"grade": "good" if found else "poor"}):
    built_graph = nx.DiGraph(name="asking", entry="ask")
    built_graph.add_node("ask", kind="tool", function="search", inputs={"question": "question"})
    built_graph.add_node("grade", function=grade, inputs={"found": "found"})
    built_graph.add_node("good", kind="noop")
    built_graph.add_node("poor", kind="noop")
    built_graph.add_edge("ask", "grade")
    built_graph.add_edge("grade", "good", when="grade == 'good'")
    built_graph.add_edge("grade", "poor")
    return nb.load(built_graph)


def session(**more):
    return nb.Session(graph(**more), {"question": "where?"}, tools={"search": search})


@pytest.fixture
def golden(tmp_path):
    return record_golden(session(), tmp_path / "asking.jsonl")


def test_a_golden_matches_its_recipe_and_makes_no_call(golden):
    calls.clear()
    assert replay_golden(graph(), golden).ok
    report = replay_golden(session(), golden, holds=("route", "values", "reads", "calls"))
    assert (report.ok, report.steps, calls) == (True, 3, [])
    assert "matches" in str(report)


def test_an_edited_recipe_fails_with_step_node_path_and_both_values(golden):
    report = replay_golden(graph(lambda found: {"grade": "fine"}), golden)
    first = report.differences[0]
    assert (first.step, first.node, first.path, first.recorded, first.replayed) == (2, "grade", "grade", "good", "fine")
    for word in ("step 2", "'grade'", "'good'", "'fine'", "--update-goldens"):
        assert word in str(report)


def test_the_compared_levels_can_be_chosen(golden):
    other = graph(lambda found: {"grade": "good", "extra": 1})
    assert not replay_golden(other, golden, holds=("values",)).ok
    assert replay_golden(other, golden, holds=("route",)).ok
    quiet = graph(lambda found: {"grade": "good"})
    assert replay_golden(quiet, golden, holds=("route", "values")).ok
    with pytest.raises(ExecutionError, match="L582"):
        replay_golden(other, golden, holds=("value",))


def test_at_least_one_level_must_be_compared(golden):
    with pytest.raises(ExecutionError, match=r"L582.*no level"):
        replay_golden(graph(), golden, holds=())
    assert replay_golden(graph(), golden, holds="route").ok


def test_a_run_without_steps_is_not_a_golden(tmp_path):
    """It would hold for every recipe."""
    with pytest.raises(ExecutionError, match="L586"):
        record_golden(nb.Session(nb.samples("incident"), {}), tmp_path / "idle.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_stands_for_its_goldens(golden, capsys):
    from agentnb.cli import main

    record_golden(session(), golden.parent / "more" / "other.jsonl")
    places = [golden, golden.parent / "more"]
    assert list(replay_goldens(places, graph()).golden) == ["asking", "other"]
    with pytest.raises(ExecutionError, match="L582"):
        replay_goldens(places, graph(), holds=())
    assert main(["replay", "rag", str(golden.parent / "more")]) == 1
    assert "'other'" in capsys.readouterr().out
    (golden.parent / "none").mkdir()
    assert main(["replay", "rag", str(golden.parent / "none")]) == 1
    assert main(["replay", "rag", str(golden.parent / "none"), "--json"]) == 1


TOOLS = """
meta:
  name: asking
  defaults: {llm: "ours:MODEL"}
  providers: {ours: {type: simulated}}
state: {reducer: replace, shape: {question: asked, found: text, answer: text}, init: {question: "why?"}}
prompts: {templates: {say: {user: "Say {{ found }}"}}}
tools:
  - {id: search, kind: python, impl: "tools.py#search", config: {k: 3, filter: {year: 2026}}}
  - {id: unused, kind: python, impl: "tools.py#unused", config: {size: 3}}
graph:
  inputs: [question]
  outputs: [answer]
  nodes:
    - {id: find, type: tool, uses: search, inputs: {query: "{{ question }}"}, map: {set: {found: "{{ result.text }}"}}}
    - {id: tell, type: llm, prompt: say, map: {set: {answer: "{{ result.text }}"}}}
  edges: [{from: find, to: tell}]
"""


def load_tools(old="", new=""):
    assert old in TOOLS
    return nb.load(TOOLS.replace(old, new, 1).replace("MODEL", "small"))


CHANGES = [
    ("k: 3", "k: 2", "search.config.k", 3, 2),
    ("year: 2026", "year: 2025", "search.config.filter.year", 2026, 2025),
    ("tools.py#search", "tools.py#lookup", "search.impl", "tools.py#search", "tools.py#lookup"),
    ("MODEL", "large", "say.provider", "ours:small", "ours:large"),
]


@pytest.mark.parametrize(("old", "new", "path", "then", "now"), CHANGES)
def test_a_changed_setting_of_a_call_is_a_difference(tmp_path, old, new, path, then, now):
    run = nb.Session(load_tools(), {"question": "why?"}, llm=["Because."],
                      tools={name: lambda **given: {"text": "it"} for name in ("search", "unused")})  # fmt: skip
    file = record_golden(run, tmp_path / "tools.jsonl")
    assert replay_golden(load_tools(), file).ok
    assert replay_golden(load_tools("size: 3", "size: 4"), file).ok  # of a tool that is not called
    changed = load_tools(old, new)
    report = replay_golden(changed, file, holds=("calls",))
    assert [(row.path, row.recorded, row.replayed) for row in report.differences] == [(path, then, now)]
    assert replay_golden(changed, file, holds=("route", "values", "reads")).ok
    assert [row.path for row in run.replay(recipe=changed).divergences] == [path]
    assert changed.fingerprint != load_tools().fingerprint


def test_volatile_values_are_declared(tmp_path):
    path = record_golden(session(), tmp_path / "one.jsonl", redact=["calls.search.result.id", "id"])
    second = record_golden(session(), tmp_path / "two.jsonl", redact=["calls.search.result.id", "id"])
    assert path.read_text() == second.read_text()
    assert replay_golden(graph(), path).ok
    plain = record_golden(session(), tmp_path / "three.jsonl")
    assert plain.read_text() != record_golden(session(), tmp_path / "four.jsonl").read_text()


@pytest.mark.parametrize("path", ["calls.search.result.ids", "calls.serch.result.id", "identity", "found.deeper", ""])
def test_a_redacted_path_that_matches_nothing_is_a_problem(tmp_path, path):
    file = record_golden(session(), tmp_path / "one.jsonl")
    before = file.read_text()
    with pytest.raises(ExecutionError, match="L584") as caught:
        record_golden(session(), file, redact=["calls.search.result.id", "id", path])
    assert [problem.code for problem in caught.value.problems] == ["L584"]
    assert file.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["one.jsonl"]


def test_a_problem_about_a_redacted_path_suggests_another_one(tmp_path):
    with pytest.raises(ExecutionError, match=r"did you mean 'calls\.search\.result\.id'"):
        record_golden(session(), tmp_path / "one.jsonl", redact="calls.search.results.id")


def test_a_redacted_value_does_not_occur_in_the_file(tmp_path):
    run = nb.Session(graph(), {"question": "4711"}, tools={"search": search})
    paths = ["question", "found", "calls.search.arguments.question", "calls.search.result.found"]
    text = record_golden(run, tmp_path / "one.jsonl", redact=paths).read_text()
    assert "4711" not in text
    assert text.count("<redacted>") == 5  # the inputs have it, too
    assert replay_golden(graph(), tmp_path / "one.jsonl").ok


def test_reports_of_a_redacted_value_are_omitted(tmp_path):
    tools = dict.fromkeys(("search", "unused"), lambda **given: {"text": "4711", "day": "Monday"})
    run = nb.Session(load_tools(), {"question": "why?"}, llm=["Because."], tools=tools)
    paths = ["calls.search.result.text", "found", "calls.say.arguments.messages.*.content"]
    run.run()
    known = [call.name for call in run.trace.frames.calls.itertuples()]
    paths[2] = paths[2].replace("say", known[1])
    assert "4711" not in record_golden(run, tmp_path / "one.jsonl", redact=paths).read_text()
    assert replay_golden(load_tools(), tmp_path / "one.jsonl").ok


def test_an_object_on_the_board_can_be_redacted_in_part(tmp_path):
    run = nb.Session(graph(lambda found: {"grade": "good", "pair": Pair(len(calls), "same")}), {"question": "where?"},
                      tools={"search": search})  # fmt: skip
    path = record_golden(run, tmp_path / "one.jsonl", redact=["id", "calls.search.result.id", "pair.id"])
    written = [write for line in map(json.loads, path.read_text().splitlines()) for write in line.get("writes", ())]
    assert str(len(calls)) not in str(next(value for name, _, value in written if name == "pair"))


def test_the_items_of_a_list_that_grows_can_be_redacted(tmp_path):
    """An append is recorded as the item alone; its path has the index that the item got."""

    ids = iter(range(100, 200))

    def add(entries):
        return {"entries": [*entries, {"id": next(ids), "text": "same"}]}

    built_graph = nx.DiGraph(name="growing", entry="one")
    for name in ("one", "two"):
        built_graph.add_node(name, function=add, inputs={"entries": "entries"})
    built_graph.add_edge("one", "two")
    recipe = nb.load(built_graph)
    run = nb.Session(recipe, {"entries": []})
    assert not replay_golden(recipe, record_golden(run, tmp_path / "plain.jsonl")).ok
    path = record_golden(run, tmp_path / "one.jsonl", redact=["entries.*.id"])
    assert not any(f": {id}" in path.read_text() for id in range(100, 200))
    assert replay_golden(recipe, path).ok
    with pytest.raises(ExecutionError, match=r"L585.*entries\.1\.id"):
        record_golden(run, tmp_path / "two.jsonl", redact=["entries.0.id"])


def branching():
    """Return a graph whose first edge depends on the answer of a tool."""
    built_graph = nx.DiGraph(name="branching", entry="ask")
    built_graph.add_node("ask", kind="tool", function="search", inputs={"question": "question"})
    built_graph.add_node("good", kind="noop")
    built_graph.add_node("poor", kind="noop")
    built_graph.add_edge("ask", "good", when="found == 'WHERE?'")
    built_graph.add_edge("ask", "poor")
    return nb.load(built_graph)


@dataclass
class Pair:
    id: int
    name: str


@pytest.mark.parametrize("node", ["condition", "function"])
def test_redacting_a_value_that_affects_the_run_is_a_problem(tmp_path, node):
    """A golden that fails with the unchanged recipe is of no use, so it is not written."""
    redact = ["found", "calls.search.result.found"]
    if node == "condition":
        run = nb.Session(branching(), {"question": "where?"}, tools={"search": search})
        expected = "step 1, 'ask'.*'good'.*'poor'.*do not redact what it depends on"
    else:
        run = session(grade=lambda found: {"grade": found.lower()})
        expected = "redact 'grade' too"
    file = tmp_path / "one.jsonl"
    with pytest.raises(ExecutionError, match=f"(?s)L585.*{expected}"):
        record_golden(run, file, redact=redact)
    assert not file.exists()
    if node == "function":  # its value need not hold
        record_golden(run, file, redact=redact, holds=("route",))
        assert replay_golden(graph(lambda found: {"grade": found.lower()}), file, holds=("route",)).ok


def test_the_file_is_readable_lines_without_times_and_paths(golden):
    lines = [json.loads(line) for line in golden.read_text().splitlines()]
    assert [line.get("node") for line in lines[2:]] == ["ask", "grade", "good"]
    assert lines[3]["writes"] == [["grade", "set", "good"]]
    assert lines[2]["calls"][0]["result"]["found"] == "WHERE?"
    assert str(ROOT) not in golden.read_text()
    loaded = nb.open(golden)
    assert (loaded.status, loaded.board["grade"]) == ("finished", "good")
    assert loaded.back().current == "good"


def test_the_file_contains_no_secrets(tmp_path):
    run = nb.Session(graph(), {"question": "hunter2-hunter2", "password": "hunter2-hunter2"},
                      tools={"search": search}, validate_inputs=False)  # fmt: skip
    assert "hunter2" not in record_golden(run, tmp_path / "secret.jsonl").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_can_be_a_golden(name, tmp_path):
    run = nb.Session(nb.samples(name), {}, validate_inputs=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run.run(max_steps=40)
        path = record_golden(run, tmp_path / "run.jsonl") if run.position else None
        if path is None:
            return
        reopened = nb.open(path)
        for step in range(run.position + 1):
            assert reopened.trace.state_at(step) == run.trace.state_at(step)
        assert replay_golden(nb.samples(name), path, holds=("route", "values", "reads", "calls")).ok


def test_a_run_with_interventions_and_forks_is_recorded_as_one(tmp_path):
    run = session()
    run.step(2)
    fork = run.fork(at=1, edit={"found": ""})
    fork.run()
    path = record_golden(fork, tmp_path / "fork.jsonl")
    reopened = nb.open(path)
    assert [step.node_id for step in reopened.trace.steps] == ["ask", "grade", "poor"]
    assert reopened.trace.state_at(1) == fork.trace.state_at(1)
    assert replay_golden(graph(), path).differences == ()


def test_goldens_and_recipes_are_combined_in_one_frame(golden, tmp_path):
    record_golden(session(), tmp_path / "second.jsonl")
    other = graph(lambda found: {"grade": "fine"})
    frame = replay_goldens(tmp_path, {"old": graph(), "new": other, "triage": nb.samples("triage")})
    assert list(zip(frame.golden, frame.recipe, frame.ok, strict=True)) == [
        ("asking", "old", True), ("asking", "new", False), ("asking", "triage", False),
        ("second", "old", True), ("second", "new", False), ("second", "triage", False),
    ]  # fmt: skip
    row = frame.iloc[1]
    assert (row.step, row.node, row.path, row.recorded, row.replayed) == (2, "grade", "grade", "good", "fine")


def test_python_recipes_are_named_as_module_and_object(tmp_path, monkeypatch):
    (tmp_path / "my_agents.py").write_text(
        "import networkx as nx\ndef make():\n    g = nx.DiGraph(name='made')\n    g.add_node('a', kind='noop')\n"
        "    return g\nready = make()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_recipe("my_agents:make").name == load_recipe("my_agents:ready").name == "made"
    for wrong in ("my_agents:other", "no_such_module:x"):
        with pytest.raises(RecipeError, match="L583"):
            load_recipe(wrong)


@given(st.data())
def test_a_damaged_golden_is_reported_or_opens(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("golden")
    path = record_golden(session(), folder / "asking.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    line = data.draw(st.sampled_from(lines))
    key = data.draw(st.sampled_from(sorted(line)))
    line[key] = data.draw(st.none() | st.integers(-1, 9) | st.text(max_size=2) | st.just([]) | st.just([[1]]))
    path.write_text("\n".join(map(json.dumps, lines)))
    try:
        nb.open(path, format="golden").goto(0).run()
        replay_golden(graph(), path)
    except AgentNbError:
        pass


def test_a_missing_golden_is_reported(tmp_path):
    with pytest.raises(StoreError, match="R340"):
        replay_golden(graph(), tmp_path / "none.jsonl")


TEST = """
import networkx as nx
import pytest
import agentnb as nb

CALLED = []

def grade(question):
    return {"grade": GRADE}

GRADE = "good"

def recipe():
    graph = nx.DiGraph(name="g")
    graph.add_node("ask", kind="tool", function="ask", inputs={"question": "question"})
    graph.add_node("grade", function=lambda question: {"grade": GRADE}, inputs={"question": "question"})
    graph.add_edge("ask", "grade")
    return nb.load(graph)

def ask(question):
    CALLED.append(question)
    return "answer"

def test_it(replay_golden):
    replay_golden(nb.Session(recipe(), {"question": "q"}, tools={"ask": ask}), "first")
    print("called", CALLED)
"""


def run_pytest(folder, *words):
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "agentnb.testing.plugin",
               *words, str(folder)]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=_environment())
    return done.returncode, done.stdout


def _environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_pytest_finds_the_plugin_by_its_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"agentnb": "agentnb.testing.plugin"}


@pytest.mark.starts_programs
def test_the_plugin_records_replays_and_fails(tmp_path):
    test = tmp_path / "test_first.py"
    test.write_text(TEST)
    code, out = run_pytest(tmp_path, "--update-goldens")
    assert (code, "called ['q']" in out, (tmp_path / "goldens" / "first.jsonl").exists()) == (0, True, True)
    code, out = run_pytest(tmp_path)
    assert (code, "called []" in out) == (0, True)
    test.write_text(TEST.replace('GRADE = "good"', 'GRADE = "poor"'))
    code, out = run_pytest(tmp_path)
    assert code == 1
    for word in ("step 2", "'grade'", "'good'", "'poor'"):
        assert word in out
    assert "called" not in out
