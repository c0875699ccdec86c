from __future__ import annotations

import json
import warnings
from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.engine.core import scheduler
from agentnb.engine.core.drivers import find_heads
from agentnb.engine.core.history import History
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import CHECKPOINT_ROWS
from agentnb.engine.core.step import step as engine_step
from agentnb.engine.core.time_travel import goto
from agentnb.engine.persistence.delta_loader import load_document
from agentnb.engine.persistence.deltas import VERSION
from agentnb.engine.persistence.snapshot import dump, restore_run
from agentnb.errors import StoreError
from agentnb.recipe.model import Edge, Node, Recipe, Region
from agentnb.secrets import MASK
from agentnb.store import MemoryLog
from tests.engine.graph_shapes import leaf
from tests.engine.small_runs import run_of
from tests.session.small_sessions import graph, looping, session
from tests.trace.random_runs import KINDS, counter, go, node, odyssey, started


def dump_as_json(run, **words):
    return json.loads(json.dumps(dump(run, **words)))


def facts(run):
    data = {frame.scope.id: dict(frame.scope.data) for frame in run.frames.values()}
    for scope in data.values():
        for key in ("password", "api_key"):
            scope.pop(key, None)
    iterations = [(frame.id, frame.iteration) for frame in run.frames.values()]
    return run.position, run.frontier(), run.counted_steps, iterations, repr(data)


@given(st.integers(0, 10_000), st.data())
def test_a_restored_run_has_the_same_state_and_continues_alike(seed, data):
    run = odyssey(seed)
    goto(run, data.draw(st.integers(0, run.history.tip)))
    restored = restore_run(run.plan, dump_as_json(run), clock=run.clock)
    assert facts(restored) == facts(run)
    for _ in range(3):
        step = data.draw(st.integers(0, run.history.tip))
        goto(run, step)
        goto(restored, step)
        assert facts(restored) == facts(run)
    goto(run, run.history.tip)
    goto(restored, restored.history.tip)
    assert facts(go(restored, 5)) == facts(go(run, 5))


@given(st.integers(0, 10_000))
def test_a_restored_run_writes_the_same_log(seed):
    run = odyssey(seed)
    assert dump_as_json(restore_run(run.plan, dump_as_json(run))) == dump_as_json(run)


def test_a_long_run_is_restored_with_its_checkpoints():
    run = go(started(), 3000)
    restored = restore_run(run.plan, dump_as_json(run))
    assert len(restored.history.checkpoints) > 3
    for step in (0, 1, 511, 512, 1024, 1500, 2999, 3000):
        goto(run, step)
        goto(restored, step)
        assert facts(restored) == facts(run)


def test_checkpoints_of_a_restored_run_are_as_far_apart_as_they_are_large():
    run = go(started(**{f"k{number}": number for number in range(500)}), 3200)
    checkpoints = restore_run(run.plan, dump_as_json(run)).history.checkpoints
    assert len(checkpoints) > 2
    for checkpoint, following in pairwise(checkpoints):
        distance = CHECKPOINT_ROWS + (sum(map(len, checkpoint.data.values())) if checkpoint.step else 0)
        assert distance <= following.step - checkpoint.step < distance + CHECKPOINT_ROWS
    last = checkpoints[-1]
    assert run.history.tip < last.step + 2 * CHECKPOINT_ROWS + sum(map(len, last.data.values()))


def branches(width, length):
    """Return a run of one node with so many branches, each a line of so many nodes."""
    regions = [Region(f"r{branch}", (f"n{branch}_0",), owner="n0") for branch in range(width)]
    nodes = [
        leaf(f"n{branch}_{at}", lambda work, at=at: {"x": at}, scope=f"r{branch}")
        for branch in range(width)
        for at in range(length)
    ]
    edges = [Edge(f"n{branch}_{at}", f"n{branch}_{at + 1}") for branch in range(width) for at in range(length - 1)]
    nest = Node("n0", "nest", bodies=tuple(region.id for region in regions), params={"policy": "child"})
    return run_of(nodes=[nest, *nodes], edges=edges, regions=regions)


def compare_histories(restored, run):
    for name in History.__slots__:
        if name not in {"tables", "plan", "parent", "checkpoints", "_last_inherited"}:
            assert getattr(restored, name, None) == getattr(run, name, None), name


@pytest.mark.parametrize("short", [0, scheduler.SHORT], ids=["changed in place", "written anew"])
@pytest.mark.parametrize("steps", [1, 2, 5, 8, 10, 14])
def test_the_queue_of_branches_that_advance_in_turn_is_restored(steps, short, monkeypatch):
    monkeypatch.setattr(scheduler, "SHORT", short)
    run = branches(3, 4)
    heads = deque()
    for _ in range(steps):
        known = {activation.id for activation in heads}
        heads.extend(activation for activation in find_heads(run) if activation.id not in known)
        engine_step(run, heads.popleft())
    restored = restore_run(run.plan, dump_as_json(run))
    compare_histories(restored.history, run.history)
    assert restored.frontier() == run.frontier()
    for at in [*range(steps), steps]:
        goto(run, at)
        goto(restored, at)
        assert restored.frontier() == run.frontier()
    assert facts(go(restored, 20)) == facts(go(run, 20))


@given(st.integers(0, 10_000))
def test_a_restored_history_has_the_same_rows(seed):
    run = odyssey(seed)
    restored = restore_run(run.plan, dump_as_json(run))
    for mine, other in zip(restored.chain, run.chain, strict=True):
        assert [*mine.start_times] == [*other.start_times]
        assert (mine.interventions, mine.events) == (other.interventions, other.events)
        for name in ("read_steps", "read_codes", "rare", "opened_frames", "closed_frames", "insertions", "in_place"):
            assert getattr(mine, name) == getattr(other, name), name


def test_values_that_share_parts_are_stored_as_differences():
    def grow(work):
        log = work.board["log"]
        log.append("a line of some length")
        return {"log": log, "big": {**work.board["big"], "k1": len(log)}}

    plan = Plan(Recipe("grow", "graph", {"grow": node("grow", grow)}, (), ("grow",)), KINDS, None)
    run = started(plan, log=[], big={f"k{number}": "x" * 50 for number in range(50)})
    before = len(json.dumps(dump(run)))
    for _ in range(40):
        run.history.push_activations.append(0)
        run.history.push_values.append(None)
        run.history.push_ends[-1] = len(run.history.push_activations)
        run.history.queue_starts[-1] = run.queue_start = len(run.history.push_activations) - 1
        go(run, 1)
    assert run.position == 40
    assert len(json.dumps(dump(run))) - before < 40 * 300
    restored = restore_run(plan, dump_as_json(run))
    assert restored.root.scope.data["log"] == run.root.scope.data["log"]
    assert restored.history.new_values[-1]["k2"] is restored.history.old_values[-1]["k2"]
    assert list(restored.history.old_values[-2].items) == list(run.history.old_values[-2].items)


def test_secrets_are_not_stored_and_are_requested_on_opening():
    run = go(started(), 20)
    assert "s3cret" not in json.dumps(dump(run))
    assert restore_run(run.plan, dump_as_json(run)).root.scope.data["password"] is MASK


def test_random_numbers_and_ids_continue():
    run = started()
    run.random.random()
    run.ids("call")
    restored = restore_run(run.plan, dump_as_json(run))
    assert restored.random.random() == run.random.random()
    assert restored.ids("call") == run.ids("call")


def test_a_value_without_a_codec_is_rejected_or_stored_as_text():
    class Odd:
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = started(odd=Odd())
    with pytest.raises(StoreError, match="L401"):
        dump(run)
    assert "opaque" in json.dumps(dump(run, lenient=True))


def test_the_order_of_nodes_does_not_matter_but_a_missing_one_does():
    run = go(started(), 9)
    document = dump_as_json(run)
    recipe = run.plan.recipe
    turned = Recipe(
        "turned", "graph", dict(reversed(recipe.nodes.items())), recipe.edges, recipe.entry, regions=recipe.regions
    )
    restored = restore_run(Plan(turned, KINDS, None), document)
    assert go(restored, 3).position == 12
    assert [
        restored.plan.nodes[restored.tables.activations[activation].node].id
        for activation in restored.history.step_activations[1:4]
    ] == [
        "count",
        "route",
        "count",
    ]
    lesser = Recipe("lesser", "graph", {"count": recipe.nodes["count"]}, (), ("count",))
    with pytest.raises(StoreError, match=r"L404[\s\S]*'route'"):
        restore_run(Plan(lesser, KINDS, None), document)


def test_an_invalid_log_is_reported():
    with pytest.raises(StoreError, match="L402"):
        load_document({"tables": {}})
    with pytest.raises(StoreError, match="L403"):
        load_document({"version": VERSION + 1})
    assert counter().index["count"] == 0


def test_an_entry_has_only_tables_with_new_rows():
    log = MemoryLog()
    session(looping(graph("a"), times=2), store=log, run_id="r").run()
    added = [table for entry in log.entries("r") for table in json.loads(entry.body).get("t", {}).items()]
    assert [name for name, _ in added] == ["acts", "frames", "acts", "acts", "codes", "acts", "codes"]
    assert all(rows for _, (_, rows) in added)
