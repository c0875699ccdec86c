from __future__ import annotations

import json
from decimal import Decimal

import pytest

import agentnb as nb
from agentnb.engine.journal import Batch
from agentnb.engine.log import Entry
from agentnb.session.stored import aux_of, batch_of, head_of, options_of
from agentnb.store import MemoryLog
from tests.session.making import counting


def test_durability_says_how_much_may_be_lost():
    assert batch_of("step") is None
    assert batch_of("batch") == Batch()
    assert batch_of({"steps": 5}) == Batch(5)
    assert batch_of({"ms": 50}) == Batch(ms=50)
    assert batch_of(Batch(7, 8)) == Batch(7, 8)


@pytest.mark.parametrize("wrong", ["bacth", {"stps": 1}, {"steps": 0}, {"steps": True}, {"ms": 1.5}, 7, None])
def test_any_other_durability_is_refused(wrong):
    with pytest.raises(nb.ExecutionError, match="X140"):
        batch_of(wrong)


def test_what_a_run_was_begun_with_is_in_its_head():
    log = MemoryLog()
    chaos = {"latency_ms": 1, "error_rate": 0.0}
    session = nb.Session(nb.load(counting()), {"n": 0, "token": "t-12345"}, store=log, seed=7, chaos=chaos,
                         budget={"max_cost_usd": Decimal("0.5")}, strict_expressions=False, name="mine")  # fmt: skip
    row = log.run(session.run_id)
    head = head_of(row)
    assert (row.name, row.recipe, row.dialect, row.fingerprint) == (
        "mine",
        session.recipe.name,
        "networkx",
        session.recipe.fingerprint,
    )
    assert (head["seed"], head["strict"], head["nodes"]) == (7, False, ["add", "check", "done"])
    assert "t-12345" not in row.head
    budget, same = options_of(head, json.loads(json.dumps(aux_of(session))))
    assert budget.max_cost_usd == Decimal("0.5")
    assert same == session.engine.chaos


def test_a_head_that_is_damaged_is_told():
    from dataclasses import replace

    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0}, store=log)
    row = log.run(session.run_id)
    for head in ("nonsense", "{}", "[]"):
        with pytest.raises(nb.AgentNbError, match="L402"):
            head_of(replace(row, head=head))


@pytest.mark.parametrize("body", ["nonsense", '{"p":[[7]]}', '{"told":[["back",1,[]]]}'])
def test_a_damaged_run_is_named_with_its_store(body, tmp_path):
    session = nb.Session(nb.load(counting()), {"n": 0}, store=tmp_path / "runs.db", run_id="run")
    session.log.append("run", [Entry(session.log.last("run") + 1, 0, body)])
    with pytest.raises(nb.AgentNbError) as caught:
        nb.open(tmp_path / "runs.db", "run")
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("L402", f"run 'run' of {session.log.url}")


@pytest.mark.parametrize("run_id", ["", "  ", 7])
@pytest.mark.parametrize("store", [None, MemoryLog()])
def test_what_can_be_no_id_is_refused(run_id, store):
    with pytest.raises(nb.AgentNbError, match="X143"):
        nb.Session(nb.load(counting()), {"n": 0}, store=store, run_id=run_id)


def test_a_function_that_breaks_cannot_be_kept_but_the_rest_is():
    log = MemoryLog()
    session = nb.Session(nb.load(counting()), {"n": 0}, store=log)
    session.breakpoints.add(when=lambda board: board["n"] > 5)
    session.breakpoints.add("done")
    session.watch(lambda board: board["n"])
    session.watch("n + 1")
    session.close()
    again = nb.open(log, recipe=session.recipe)
    assert [row.node for row in again.breakpoints] == ["done"]
    assert list(again.watches) == ["n + 1"]
