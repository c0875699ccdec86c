from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from decimal import Decimal

import networkx as nx
import pytest

import agentnb as nb
from agentnb.engine.persistence.event_log import Entry, seal
from agentnb.engine.persistence.journal import Batch
from agentnb.session.stored_run import make_aux, parse_head, parse_options, to_batch
from agentnb.store import MemoryLog
from tests.session.small_sessions import counting


def test_durability_controls_how_much_may_be_lost():
    assert to_batch("step") is None
    assert to_batch("batch") == Batch()
    assert to_batch({"steps": 5}) == Batch(5)
    assert to_batch({"ms": 50}) == Batch(ms=50)
    assert to_batch(Batch(7, 8)) == Batch(7, 8)


@pytest.mark.parametrize("wrong", ["bacth", {"stps": 1}, {"steps": 0}, {"steps": True}, {"ms": 1.5}, 7, None])
def test_an_unknown_durability_is_rejected(wrong):
    with pytest.raises(nb.ExecutionError, match="X140"):
        to_batch(wrong)


def test_the_head_contains_the_inputs_and_options_of_a_run():
    log = MemoryLog()
    chaos = {"latency_ms": 1, "error_rate": 0.0}
    session = nb.Session(nb.load(counting()), {"n": 0, "token": "t-12345"}, store=log, seed=7, chaos=chaos,
                         budget={"max_cost_usd": Decimal("0.5")}, strict_expressions=False, name="mine")  # fmt: skip
    row = log.run(session.run_id)
    head = parse_head(row)
    assert (row.name, row.recipe, row.dialect, row.fingerprint) == (
        "mine",
        session.recipe.name,
        "networkx",
        session.recipe.fingerprint,
    )
    assert (head["seed"], head["strict"], head["nodes"]) == (7, False, ["add", "check", "done"])
    assert "t-12345" not in row.head
    budget, same = parse_options(head, json.loads(json.dumps(make_aux(session._parts.state))))
    assert budget.max_cost_usd == Decimal("0.5")
    assert same == session._parts.run.chaos


def test_a_head_that_is_damaged_is_reported():
    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0}, store=log)
    row = log.run(session.run_id)
    for head in ("nonsense", "{}", "[]"):
        with pytest.raises(nb.AgentNbError, match="L402"):
            parse_head(row._replace(head=head))


@pytest.mark.parametrize("body", ['{"p":[[7]]}', '{"told":[["back",1,[]]]}'])
def test_a_damaged_run_is_named_with_its_store(body, tmp_path):
    session = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="run")
    session._parts.state.log.append("run", [seal("run", session._parts.state.log.last("run") + 1, 0, body)])
    with pytest.raises(nb.AgentNbError) as caught:
        nb.open(tmp_path / "runs.db", "run")
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("L402", f"run 'run' of {session._parts.state.log.url}")


@pytest.mark.parametrize("body", ["nonsense", '{"p":[[7]]}', '{"p":[[7]],"crc":"00000000"}'])
def test_a_run_opens_up_to_the_entry_that_is_damaged(body, tmp_path):
    recipe = nb.load(counting())
    session = nb.Session(recipe, {"n": 0}, store=tmp_path / "runs.db", run_id="run")
    session.step(3)
    session._parts.state.log.append("run", [Entry(session._parts.state.log.last("run") + 1, 4, body)])
    for given_recipe in (None, recipe):
        with pytest.warns(UserWarning, match="L435.* opens at step 3"):
            opened = nb.open(tmp_path / "runs.db", "run", recipe=given_recipe)
        assert opened.board["n"] == session.board["n"]
        assert len(opened.trace) == 3
    opened.run()  # with its recipe it goes on, and leaves the damaged store alone
    opened.save(tmp_path / "other.db")
    assert nb.open(tmp_path / "other.db").status == "finished"


def test_a_missing_entry_is_noticed(tmp_path):
    session = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="run")
    session.step(6)
    session.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("DELETE FROM agentnb_entries WHERE step = 4")
    connection.close()
    with pytest.warns(UserWarning, match="L435.* opens at step 3"):
        assert len(nb.open(tmp_path / "runs.db", "run").trace) == 3


def test_a_run_without_checksums_opens_as_before(tmp_path):
    session = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="run")
    session.step(6)
    session.back(2)
    session.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        for table, column in (("entries", "body"), ("runs", "head"), ("standing", "at")):
            connection.execute(
                f"UPDATE agentnb_{table} SET {column} = substr({column}, 1, length({column}) - 18) || '}}'"
            )
        connection.execute("UPDATE agentnb_runs SET name = 'older'")
    connection.close()
    opened = nb.open(tmp_path / "runs.db", "run")
    assert (len(opened.trace), opened.position) == (6, 4)
    assert nb.runs(tmp_path / "runs.db").name.tolist() == ["older"]


def test_a_position_that_cannot_be_read_is_noticed(tmp_path):
    session = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="run")
    session.step(6)
    session.back(2)
    session.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE agentnb_standing SET at = replace(at, '4', '3')")
    connection.close()
    with pytest.warns(UserWarning, match="L436"):
        assert nb.open(tmp_path / "runs.db", "run").position == 6


def test_a_modified_row_is_not_listed_and_the_others_are(tmp_path):
    for run_id in ("one", "two", "three"):
        nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id=run_id).close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE agentnb_runs SET name = 'another' WHERE run_id = 'one'")
        connection.execute("UPDATE agentnb_standing SET updated = 'never' WHERE run = 2")
    connection.close()
    with pytest.warns(UserWarning, match="L434") as caught:
        assert nb.runs(tmp_path / "runs.db").run_id.tolist() == ["three"]
    assert len(caught) == 2
    with pytest.raises(nb.AgentNbError, match="L402"):
        nb.open(tmp_path / "runs.db", "one")


@pytest.mark.parametrize("run_id", ["", "  ", 7])
@pytest.mark.parametrize("store", [None, MemoryLog()])
def test_an_invalid_id_is_rejected(run_id, store):
    with pytest.raises(nb.AgentNbError, match="X143"):
        nb.Session(nb.load(counting()), {"n": 0}, store=store, run_id=run_id)


def test_a_breakpoint_with_a_function_is_not_stored_but_the_others_are():
    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0}, store=log)
    session.breakpoints.add(when=lambda board: board["n"] > 5)
    session.breakpoints.add("done")
    session.watch(lambda board: board["n"])
    session.watch("n + 1")
    session.close()
    reopened = nb.open(log, recipe=session.recipe)
    assert [row.node for row in reopened.breakpoints] == ["done"]
    assert list(reopened.watches) == ["n + 1"]


# What a run of two prompts had written before its calls told who had answered; as it stood in the file.
BEFORE_PROVIDERS = [
    (1, 0,
     ('{"t":{"acts":[0,[[0,0,0,-1,-1]]]},"p":[[0,[[4294967295],[1795402696092385973],[0],[0],[0],[0],[1]],['
     '[],[]],[0],{"new":[null,0,null]}]],"run":{"chain":[0],"left":[],"random":null,"ids":{},"clock":null}'
     ',"crc":"1ea9d943"}')),
    (2, 0,
     ('{"told":[["out",0,0,1,"llm","a",{"messages":[{"role":"user","content":"Hi"}]},1795402696766811171]],'
     '"crc":"f45e72ee"}')),
    (3, 0,
     ('{"told":[["back",0,[1,0,0,"llm","a",1,0.0,null,"x",null,0.009218428,null,null,null],true]],"crc":"51'
     '767571"}')),
    (4, 1,
     ('{"t":{"acts":[1,[[1,0,0,-1,-1]]],"codes":[0,[[0,["a"]]]]},"p":[[0,[[0],[674288025],[9895250],[64],[1'
     '],[1],[1]],[[0],["x"]],[1],{"notes":[[1,[null,null,{"status":200,"text":"x","json":null,"items":null'
     ',"result":"x","error":null},null,null]]],"calls":[[1,0,0,1]]}]],"crc":"fc98e28b"}')),
    (5, 1,
     ('{"told":[["out",1,0,1,"llm","b",{"messages":[{"role":"user","content":"More"}]},1795402696776998955]'
     '],"crc":"675dfc58"}')),
    (6, 1,
     ('{"told":[["back",1,[2,1,0,"llm","b",1,0.0,null,"x",null,0.000348456,null,null,null],true]],"crc":"c0'
     '1f2fe8"}')),
    (7, 2,
     ('{"t":{"codes":[1,[[0,["b"]]]]},"p":[[0,[[1],[10252500],[662361],[64],[1],[1],[0]],[[4],["x"]],[],{"n'
     'otes":[[2,[null,null,{"status":200,"text":"x","json":null,"items":null,"result":"x","error":null},nu'
     'll,null]]],"calls":[[2,1,0,1]]}]],"crc":"b17a8d90"}')),
]  # fmt: skip


def test_a_run_without_providers_of_calls_opens_and_replays(tmp_path):
    graph = nx.DiGraph(name="g")
    graph.add_node("a", kind="llm", prompt="Hi")
    graph.add_node("b", kind="llm", prompt="More")
    graph.add_edge("a", "b")
    recipe = nb.load(graph)
    session = nb.Session(recipe, llm=lambda request: "x", store=tmp_path / "runs.db", run_id="whole")
    session.run()
    session.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("DELETE FROM agentnb_entries")
        connection.executemany("INSERT INTO agentnb_entries VALUES (1, ?, ?, ?)", BEFORE_PROVIDERS)
    connection.close()
    opened = nb.open(tmp_path / "runs.db", "whole", recipe=recipe, llm=lambda request: "y")
    assert (opened.status, opened.board["a"], opened.board["b"]) == ("finished", "x", "x")
    calls = opened.trace.frames.calls
    assert calls[["provider", "model", "finish_reason"]].isna().all(axis=None)
    assert opened.replay().ok
    opened.goto(1)
    opened.run()
    calls = opened.trace.frames.calls
    assert (opened.board["b"], calls["provider"].isna().tolist()) == ("y", [True, False])
    opened.close()
    assert nb.open(tmp_path / "runs.db", opened.run_id).trace.frames.calls["result"].tolist() == ["x", "y"]
