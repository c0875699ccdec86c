from __future__ import annotations

import dataclasses

import pytest

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Append, split_op
from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge
from agentnb.world.effect import Effect
from tests.engine.small_runs import data, one, run_of


def looked(look, inputs):
    """Return what a function of the node's board gives."""
    results = []
    run = run_of(lambda work: results.append(look(work.board)), inputs=inputs)
    one(run)
    (value,) = results
    return value


def test_the_board_of_a_node_is_a_mapping():
    inputs = {"a": 1, "d": {"x": [1]}, "dotted.key": 2, "none": None}
    assert looked(list, inputs) == list(inputs)
    assert looked(len, inputs) == 4
    assert looked(lambda board: board["d.x.0"], inputs) == 1
    assert looked(lambda board: board["dotted.key"], inputs) == 2
    assert looked(lambda board: board.get("gone", 7), inputs) == 7
    assert looked(lambda board: board.get("none", 7), inputs) is None
    assert looked(lambda board: ("d.x.0" in board, "d.x.1" in board, "gone" in board, 5 in board), inputs) == (
        True,
        False,
        False,
        False,
    )
    assert looked(dict, inputs) == inputs
    assert looked(repr, inputs) == repr(inputs)
    assert looked(lambda board: f"{board.items()}", inputs) == f"ItemsView({inputs})"
    assert looked(lambda board: not hasattr(board, "__setitem__"), inputs)


def test_a_missing_key_is_a_key_error():
    run = run_of(lambda work: {"x": work.board["gone"]})
    one(run)
    assert run.history.errors[1].type == "KeyError"


def test_a_change_in_place_becomes_a_write():
    def grow(work):
        work.board["d"]["list"].append(2)

    run = run_of(grow, inputs={"d": {"list": [1]}})
    one(run)
    assert data(run) == {"d": {"list": [1, 2]}}
    (row,) = run.history.in_place
    assert run.tables.codes[run.history.write_codes[row] >> 2][1] == ("d",)


def test_a_change_in_place_below_a_read_path_is_detected():
    run = run_of(lambda work: work.board["d.list"].append(2), inputs={"d": {"list": [1]}})
    one(run)
    assert data(run) == {"d": {"list": [1, 2]}}


def test_a_change_of_an_object_in_place_is_detected():
    @dataclasses.dataclass
    class Point:
        x: int

    def move(work):
        work.board["point"].x = 2

    run = run_of(move, inputs={"point": Point(1)})
    one(run)
    assert data(run)["point"].x == 2


def test_an_explicit_write_takes_precedence_over_a_change_in_place():
    def both(work):
        work.board["a"].append(2)
        work.board["b"].append(2)
        work.write("b", [9])
        return {"a": [8]}

    run = run_of(both, inputs={"a": [1], "b": [1]})
    one(run)
    assert (data(run), run.history.in_place) == ({"a": [8], "b": [9]}, set())


def test_an_unchanged_copy_is_not_a_write():
    run = run_of(lambda work: {"n": len(work.board["a"])}, inputs={"a": [1]})
    one(run)
    assert len(run.history.write_codes) == 2


def test_a_written_value_cannot_be_changed_later():
    items = [1]
    run = run_of(lambda work: {"a": items}, lambda work: {"b": items.append(2)})
    one(run)
    one(run)
    assert data(run)["a"] == [1]


def test_events_are_numbered_and_visible_at_once():
    seen = []

    def emits(work):
        first = work.emit("x", {"n": 1})
        second = work.emit("x")
        seen.extend((first.id, second.id, [event.id for event in work.events]))

    run = run_of(emits)
    one(run)
    assert seen == ["evt_001", "evt_002", ["evt_001", "evt_002"]]
    assert [(event.step, event.actor, event.payload) for event in run.events()] == [
        (1, "n0", {"n": 1}),
        (1, "n0", None),
    ]


def test_a_finished_step_cannot_act():
    stored = []
    run = run_of(stored.append, lambda work: {})
    one(run)
    work = stored[0]
    work.has_ended = True
    for late in (lambda: work.write("a", 1), lambda: work.emit("x"), lambda: work.call(Effect("tool", "x", {}))):
        with pytest.raises(ExecutionError, match="X102"):
            late()


def test_a_leaf_has_phase_and_iteration():
    seen = []
    run = run_of(
        lambda work: seen.append((work.phase, work.iteration, work.frames, work.event)), edges=[Edge("n0", "n0")]
    )
    one(run)
    one(run)
    assert seen == [("start", 0, [], None)] * 2


def test_the_op_of_a_write_follows_from_the_value():
    assert split_op(5) == (0, 5)
    assert split_op(ABSENT) == (1, ABSENT)
    assert split_op(Append("x")) == (2, "x")
    assert repr(Append("x")) == "Append('x')"
