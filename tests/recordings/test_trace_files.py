from __future__ import annotations

import json
import warnings
from pathlib import PurePath

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.errors import AgentNbError, ExecutionError, StoreError
from agentnb.trace.export import parse_trace_text
from tests.samples.installed import NAMES


def counter(limit=3):
    graph = nx.DiGraph(name="counter", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1}, inputs={"n": "n"})
    graph.add_node("end", kind="noop")
    graph.add_edge("add", "add", kind="loop_back", when=f"n < {limit}")
    graph.add_edge("add", "end")
    return nb.load(graph)


@pytest.fixture
def made(tmp_path):
    session = nb.Session(counter(), {"n": 0, "password": "hunter2-hunter2"}, validate_inputs=False)
    session.run()
    session.trace.to_json(tmp_path / "run.json")
    return session, tmp_path / "run.json"


def test_a_trace_opens_and_goes_everywhere(made):
    session, path = made
    reopened = nb.open(path)
    assert (reopened.status, reopened.position, reopened.current) == ("finished", session.position, None)
    for step in range(session.position, -1, -1):
        reopened.goto(step)
        session.goto(step)
        assert reopened.board["n"] == session.board["n"]
        assert reopened.current == session.current
    assert reopened.status == "ready"
    assert reopened.step().outputs == {"n": 1}
    reopened.run(until="n == 2")
    assert (reopened.position, reopened.status) == (2, "paused")
    reopened.breakpoints.add(node="end")
    reopened.run()
    assert reopened.current == "end"
    reopened.run_back(until="n == 1")
    assert reopened.position == 1
    assert reopened.who_wrote("n") == 1
    assert reopened.recipe.draw().dot == session.recipe.draw().dot


@pytest.mark.parametrize("name", ["approval", *(["cafe"] if "cafe" in NAMES else [])])
def test_pending_questions_are_part_of_a_trace(name, tmp_path):
    session = nb.Session(nb.samples(name))
    session.run()
    question = [(row.kind, row.node, row.name, dict(row.arguments)) for row in session.pending]
    assert len(question) == 1
    path = tmp_path / "run.json"
    session.trace.to_json(path)
    reopened = nb.open(path)
    reopened.goto(0)
    reopened.goto(session.position)
    assert reopened.status == "waiting"
    assert [(row.kind, row.node, row.name, dict(row.arguments)) for row in reopened.pending] == question
    for copy in (reopened.trace, nb.SimulationTrace.read(path)):
        copy.to_json(tmp_path / "copy.json")
        assert [row.arguments for row in nb.open(tmp_path / "copy.json").pending] == [question[0][3]]
    if session.position:
        assert reopened.goto(session.position - 1).pending == ()
    with pytest.raises(ExecutionError, match="L450"):
        reopened.answer("yes")


def test_a_trace_of_a_run_that_has_not_started_is_ready(tmp_path):
    nb.Session(counter(), {"n": 0}).trace.to_json(tmp_path / "run.json")
    assert nb.open(tmp_path / "run.json").status == "ready"


def test_a_damaged_question_is_reported(tmp_path):
    session = nb.Session(nb.samples("approval"))
    session.run()
    document = json.loads(session.trace.to_json())
    document.pop("crc")
    for at, wrong in ((1, 10**6), (1, -1), (1, "x"), (4, 3), (5, None), (6, [1]), (6, "x")):
        damaged = json.loads(json.dumps(document))
        damaged["slices"][-1]["told"][0][at] = wrong
        (tmp_path / "run.json").write_text(json.dumps(damaged))
        with pytest.raises(StoreError, match="L402"):
            nb.open(tmp_path / "run.json")


def test_it_is_read_only_and_reports_it(made):
    reopened = nb.open(made[1])
    for action in (
        lambda: reopened.edit({"n": 1}),
        reopened.retry,
        reopened.skip,
        lambda: reopened.goto(0).set_next("end"),
    ):
        with pytest.raises(ExecutionError, match="L450"):
            action()
    assert "hunter2" not in made[1].read_text()


@pytest.mark.parametrize(("llm", "simulated"), [(["Blue."], ()), (None, ("answer",))])
def test_a_recorded_run_reports_which_answers_were_simulated(tmp_path, llm, simulated):
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    session = nb.Session(nb.samples("rag"), llm=llm, store=store)
    session.run()
    session.trace.to_json(tmp_path / "run.json")
    for reopened in (nb.open(tmp_path / "run.json"), nb.open(store)):
        assert reopened.simulated == session.simulated == simulated
        assert reopened.trace.metadata["simulated"] == list(simulated)
        assert ("simulated model" in repr(nb.Debugger(reopened))) == bool(simulated)


def test_it_knows_the_fingerprint_of_its_recipe(made):
    session, path = made
    assert nb.SimulationTrace.read(path).fingerprint == session.recipe.fingerprint
    assert nb.open(path).trace.fingerprint == session.recipe.fingerprint
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nb.open(path, recipe=counter())._parts.persistence.changes == ()
    with pytest.warns(UserWarning, match="another recipe"):
        other = nb.open(path, recipe=counter(limit=9))
    assert any("n < 9" in line for line in other._parts.persistence.changes)
    with pytest.raises(StoreError, match="L404"):
        nb.open(path, recipe=nb.samples("triage"))


def test_a_trace_without_its_recipe_is_drawn_from_its_rows(made):
    session, path = made
    document = json.loads(path.read_text())
    for name in ("recipe", "given", "seed", "crc"):
        document.pop(name)
    path.write_text(json.dumps(document))
    reopened = nb.open(path)
    assert list(reopened.recipe.nodes) == list(session.recipe.nodes)
    assert reopened.goto(1).board["n"] == 1
    assert reopened.trace.fingerprint is not None
    assert "add" in reopened.draw().svg


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_survives_a_round_trip(name, tmp_path):
    session = nb.Session(nb.samples(name), {}, validate_inputs=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.run(max_steps=20)
    path = tmp_path / "run.json"
    session.trace.to_json(path)
    reopened = nb.open(path)
    assert len(reopened.trace) == len(session.trace)
    assert reopened.recipe.draw().mermaid == session.recipe.draw().mermaid
    assert session.recipe.file is None or str(PurePath(session.recipe.file).parent) not in path.read_text()
    assert reopened.goto(0).current == session.goto(0).current


def test_a_format_may_be_named_and_an_unknown_one_is_reported(made, tmp_path):
    assert nb.open(made[1], format="trace").position == made[0].position
    with pytest.raises(ExecutionError, match="L570"):
        nb.open(made[1], format="tracee")
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    with pytest.raises(StoreError, match="L571"):
        nb.open(other)
    with pytest.raises(StoreError, match="L402"):
        nb.open(other, format="trace")


DAMAGE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def parts(value, path=()):
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from parts(item, (*path, key))


@given(st.data())
def test_a_damaged_recipe_in_a_trace_is_reported_or_shown(tmp_path_factory, data):
    session = nb.Session(counter(), {"n": 2})
    session.run()
    document = json.loads(session.trace.to_json())
    document.pop("crc")
    place = document
    path = data.draw(st.sampled_from(sorted(parts(document["recipe"]), key=repr)))
    for key in ("recipe", *path)[:-1]:
        place = place[key]
    place[("recipe", *path)[-1]] = data.draw(DAMAGE)
    file = tmp_path_factory.mktemp("trace") / "run.json"
    file.write_text(json.dumps(document))
    try:
        reopened = nb.open(file)
        reopened.goto(0)
        reopened.run()
        reopened.draw()
        reopened.recipe.check()
    except AgentNbError:
        return
    assert len(reopened.trace) == len(parse_trace_text(json.dumps(document)))
