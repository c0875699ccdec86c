"""A queue of events: matched when their turn comes, put off, passed over, however long it is."""

from __future__ import annotations

import pytest

from agentnb.engine.core import event_queue
from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.history import LATE
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.work import Kind
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.recipe.model import Node, Recipe
from agentnb.world.world import World
from tests.engine.graph_shapes import path, step

KINDS = {"does": Kind("does", lambda node, world: node.params["do"], keeps_writes=True)}


class Rules:
    """Sets `first` off by "one", and `second` by what the board says when the turn of "two" comes."""

    def has_listeners(self, event):
        return event.type != "silent"

    def list_triggered(self, run, event):
        return None if event.type == "two" else ["first"] if event.type == "one" else []

    def list_deliveries(self, run, event):
        if event.type == "two" and run.root.scope.get("open") is True:
            return [("second", 1), ("second", 2)]
        return []

    def list_delayed(self, run, event):
        return [("first", LATE, event.seq)] if event.type == "later" else []

    def project(self, run, event):
        return [(("told",), event.payload)] if event.type == "told" else []

    def listens(self, node, event):
        return True

    def find_matches(self, run, node):
        return ()

    def explain_refusal(self, run, node, event):
        return []


@pytest.fixture
def run():
    def first(work):
        work.write("open", value=True)
        work.write("about", work.activation.row.about)
        work.emit("silent")

    nodes = {
        "first": Node("first", "does", params={"do": first}, on=("one",)),
        "second": Node("second", "does", params={"do": lambda work: {"about": work.activation.row.about}}, on=("two",)),
    }
    run = Run(Plan(Recipe("rules", "test", nodes, (), (), reactive=Rules()), KINDS, World()), EffectDispatcher())
    run.begin({})
    return run


def waiting(run):
    return [(run.tables.activations[number].node, run.tables.activations[number].about) for number in run.frontier()]


def test_an_event_is_matched_when_it_is_delivered_and_not_before(run):
    emit_from_outside(run, "two", None)
    emit_from_outside(run, "one", None)
    emit_from_outside(run, "two", None)
    event_queue.settle(run)
    assert waiting(run) == [(0, -1), (-1, -1)]  # the first "two" has found nothing open
    step(run)
    assert waiting(run) == [(1, 1), (1, 2)]
    step(run)
    step(run)
    assert (path(run), waiting(run), run.root.scope.get("about")) == (["first", "second", "second"], [], 2)


def test_an_event_without_listeners_is_not_queued(run):
    emit_from_outside(run, "silent", None)
    assert waiting(run) == []


def test_a_deferred_delivery_comes_after_the_event(run):
    emit_from_outside(run, "later", None)
    event_queue.settle(run)
    assert waiting(run) == [(0, LATE)]
    step(run)
    assert (waiting(run), run.root.scope.get("about")) == ([], LATE)


def test_a_long_queue_is_not_written_again_at_each_step(run):
    for _ in range(200):
        emit_from_outside(run, "one", None)
    event_queue.settle(run)
    before = len(run.history.push_activations)
    for _ in range(200):
        step(run)
    assert len(run.history.push_activations) == before == 200
    assert len(run.live_activations) == 0  # and the turns that are over are forgotten


def test_going_back_finds_the_queue_as_it_was(run):
    from agentnb.engine.core import time_travel

    emit_from_outside(run, "one", None)
    emit_from_outside(run, "two", None)
    event_queue.settle(run)
    queues = [waiting(run)]
    while run.queue_start < run.current_history.push_ends[run.position - run.current_history.base]:
        step(run)
        queues.append(waiting(run))
    for position in reversed(range(len(queues))):
        time_travel.goto(run, position)
        assert waiting(run) == queues[position]


@pytest.fixture
def long_queue(run):
    """A run in which many events wait to be matched, and some are put off or come from the steps themselves."""
    emit_from_outside(run, "one", None)
    for number in range(100):
        emit_from_outside(run, "two" if number % 7 else "later", None)
    event_queue.settle(run)
    return run


def test_triggering_a_behavior_does_not_rewrite_the_queue(long_queue):
    run, before = long_queue, len(long_queue.history.push_activations)
    steps = 0
    while waiting(run):
        step(run)
        steps += 1
    assert steps == 1 + 2 * 85 + 15
    assert len(run.history.push_activations) - before <= steps  # not one more than the turns that were set off
    assert path(run)[:5] == ["first", "first", "second", "second", "second"]


def test_going_back_restores_such_a_queue_and_a_person_may_change_it(long_queue):
    from agentnb.engine.control import interventions
    from agentnb.engine.core import time_travel

    run, queues = long_queue, [waiting(long_queue)]
    for number in range(30):
        step(run)
        if number == 9:
            interventions.set_next(run, "second")
        if number in (4, 5, 20):
            emit_from_outside(run, "two", None)
        queues.append(waiting(run))
    for position in (30, 7, 29, 0, 12, 11, 10, 30):
        time_travel.goto(run, position)
        assert waiting(run) == queues[position]
    time_travel.goto(run, 12)
    fork = time_travel.fork_run(run, run.plan, 12)
    assert waiting(fork) == queues[12]
    while waiting(fork):
        step(fork)
    assert len(path(fork)) > 30


def test_such_a_queue_survives_storing(long_queue):
    from agentnb.engine.persistence.snapshot import dump, restore_run

    run, queues = long_queue, [waiting(long_queue)]
    for _ in range(20):
        step(run)
        queues.append(waiting(run))
    other = restore_run(run.plan, dump(run))
    from agentnb.engine.core import time_travel

    for position in (20, 3, 11):
        time_travel.goto(other, position)
        assert waiting(other) == queues[position]


def test_an_interrupted_change_of_such_a_queue_is_undone(long_queue):
    from agentnb.engine.core.step import repair

    run = long_queue
    step(run)
    queue, rows = waiting(run), len(run.history.push_activations)
    event_queue._insert_before(run, run.history.row_after(run.queue_start), run.frontier()[:1])
    run.history.new_values.append("cut here")
    repair(run)
    assert (waiting(run), len(run.history.push_activations)) == (queue, rows)
    while waiting(run):
        step(run)
    assert len(path(run)) == 1 + 2 * 85 + 15
