from __future__ import annotations

import pytest

from agentnb import ABSENT
from agentnb.engine.core.work import Append, Outcome
from agentnb.engine.replay.divergence import Divergence, Sides, compare_steps, iter_inner_differences
from agentnb.engine.replay.step_record import Record
from agentnb.recipe.model import Edge
from agentnb.secrets import MASK, hide
from tests.engine.graph_shapes import begun, leaf, step
from tests.engine.small_runs import one, run_of

INPUTS = {"n": 1, "list": [0], "deep": {"x": {"y": 1}}}


def make_plan(function):
    nodes = [leaf("left", lambda work: {}), leaf("right", lambda work: {})]
    run = run_of(
        function, nodes=nodes, edges=[Edge("n0", "left", "route"), Edge("n0", "right", "route")], inputs=INPUTS
    )
    one(run)
    return run


def differ(function, other, level="values", **words):
    """Return what differs where a node was one function and is another: (what, path, recorded, replayed, ends)."""
    then, now = make_plan(function), make_plan(other)
    sides = Sides(Record(then), now)
    rows = list(compare_steps(Record(then).read_step(1), Record(now).read_step(1), sides, level, **words))
    assert all((row.step, row.node) == (1, "n0") for row in rows)
    return rows


def to_rows(rows):
    return [(row.what, row.path, row.recorded, row.replayed, row.ends) for row in rows]


def fails(error):
    def node(work):
        raise error

    return node


def emits(*events):
    def node(work):
        for type_, payload in events:
            work.emit(type_, payload)
        return {}

    return node


def goes(*targets, value=None):
    return lambda work: Outcome({}, route=list(targets), value=value)


@pytest.mark.parametrize(
    ("then", "now", "row", "sentence"),
    [
        ({"a": 1}, {"a": 2}, ("write", "a", 1, 2), "step 1, 'n0': it wrote 1 to 'a', and the replay writes 2"),
        ({"a": 1}, {}, ("write", "a", 1, ABSENT), "step 1, 'n0': it wrote 1 to 'a', and the replay writes nothing"),
        ({}, {"a": 1}, ("write", "a", ABSENT, 1), "step 1, 'n0': it wrote nothing to 'a', and the replay writes 1"),
        (
            {"deep": {"x": {"y": 1}}},
            {"deep": {"x": {"y": 2}}},
            ("write", "deep.x.y", 1, 2),
            "step 1, 'n0': it wrote 1 to 'deep.x.y', and the replay writes 2",
        ),
        (
            {"n": ABSENT},
            {"n": 1},
            ("write", "n", ABSENT, 1),
            "step 1, 'n0': 'n': delete in the record, set in the replay",
        ),
        ({"n": ABSENT}, {}, ("write", "n", ABSENT, ABSENT), "'n': delete in the record, no write in the replay"),
        (
            {"list": Append(1)},
            {"list": [0, 1]},
            ("write", "list", 1, [0, 1]),
            "'list': append in the record, set in the replay",
        ),
        ({"list": Append(1)}, {"list": Append(2)}, ("write", "list.1", 1, 2), "it wrote 1 to 'list.1', and the replay"),
    ],
)
def test_writes_are_compared(then, now, row, sentence):
    (divergence,) = differ(lambda work: then, lambda work: now)
    assert to_rows([divergence]) == [(*row, False)]
    assert sentence in str(divergence)
    assert differ(lambda work: then, lambda work: now, "path") == []


def test_the_order_of_a_dict_is_not_a_difference():
    assert differ(lambda work: {"a": 1, "b": 2}, lambda work: {"b": 2, "a": 1}) == []


def test_writes_of_a_path_are_compared_in_order():
    def twice(*values):
        def node(work):
            for value in values:
                work.write("a", value)

        return node

    assert to_rows(differ(twice(1, 2), twice(1, 3))) == [("write", "a", 2, 3, False)]
    assert to_rows(differ(twice(1, 2), twice(1))) == [("write", "a", 2, ABSENT, False)]


def test_a_failure_differs_from_success():
    (row,) = differ(fails(ValueError("no")), lambda work: {})
    assert to_rows([row]) == [("error", "", "ValueError: no", ABSENT, True)]
    assert "it failed with ValueError: no, and the replay does not fail" in str(row)
    (row,) = differ(lambda work: {}, fails(ValueError("no")), "path")
    assert "it did not fail, and the replay fails with ValueError: no" in str(row)


def test_messages_of_failures_are_compared():
    rows = differ(fails(ValueError("one")), fails(ValueError("two")))
    assert to_rows(rows) == [("error", "", "ValueError: one", "ValueError: two", False)]
    assert differ(fails(ValueError("one")), fails(TypeError("one")), "path") == []
    assert differ(fails(ValueError("at 0x7f00aa")), fails(ValueError("at 0x7f00bb"))) == []


def test_events_are_compared_by_type_payload_and_number():
    (row,) = differ(emits(("a", {"n": 1})), emits(("a", {"n": 2})))
    assert to_rows([row]) == [("event", "a.n", 1, 2, False)]
    assert "it emitted 1 as 'a.n', and the replay emits 2" in str(row)
    (row,) = differ(emits(("a", 1)), emits(("b", 1)))
    assert (to_rows([row]), "it emitted 'a', and the replay emits 'b'" in str(row)) == (
        [("event", "type", "a", "b", False)],
        True,
    )
    (row,) = differ(emits(("a", 1), ("b", 2)), emits(("a", 1)))
    assert "it emitted 'b', and the replay emits no event" in str(row)
    assert differ(emits(("a", 1)), emits(("b", 2)), "path") == []
    for more in range(1, 4):
        rows = differ(emits(("a", 1)), emits(("a", 1), *[("b", 2)] * more))
        assert ["it emitted no event, and the replay emits 'b'" in str(row) for row in rows] == [True] * more


def test_edges_are_compared_by_target_and_by_the_value_of_their_condition():
    (row,) = differ(goes("left"), goes("right"), "path")
    assert to_rows([row]) == [("edge", "n0", "left", "right", True)]
    assert "'n0' led to 'left', and in the replay to 'right'" in str(row)
    assert to_rows(differ(goes("left", "right"), goes("left"))) == [("edge", "n0", "left, right", "left", True)]
    assert to_rows(differ(goes("left"), goes())) == [("edge", "n0", "left", ABSENT, True)]
    (row,) = differ(goes("left", value=1), goes("left", value=2))
    assert to_rows([row]) == [("edge", "n0 -> left", 1, 2, False)]
    assert "the condition of edge n0 -> left was 1, and in the replay it is 2" in str(row)
    assert differ(goes("left", value=1), goes("left", value=2), "path") == []


def reads(*keys):
    def node(work):
        for key in keys:
            work.board[key]

    return node


def test_reads_are_compared_only_at_the_level_reads():
    assert differ(reads("n"), reads("list")) == []
    rows = differ(reads("n"), reads("list"), "reads")
    assert to_rows(rows) == [("read", "list", False, True, False), ("read", "n", True, False, False)]
    assert "it did not read 'list', and the replay does" in str(rows[0])
    assert str(rows[1]).endswith("it read 'n', and the replay does not")


def test_possible_reads_of_a_callable_are_not_missing():
    assert differ(reads("n"), reads(), "reads", own_reads=False) == []
    assert to_rows(differ(reads(), reads("n"), "reads", own_reads=False)) == [("read", "n", False, True, False)]


def test_differences_are_reported_in_causal_order():
    def node(key, value):
        def act(work):
            work.board[key]
            work.emit("e", value)
            return Outcome({"a": value}, route=["left"] if value == 1 else ["right"])

        return act

    assert [row.what for row in differ(node("n", 1), node("list", 2), "reads")] == [
        "read",
        "read",
        "write",
        "event",
        "edge",
    ]


def test_frames_and_phases_are_compared():
    then, now = begun("nested"), begun("nested")
    for run in (then, now):
        step(run)
        step(run)
    sides = Sides(Record(then), now)
    done = Record(then).read_step(2)
    assert list(compare_steps(done, Record(now).read_step(2), sides, "values")) == []
    assert sides.frames == {0: 0, 1: 1}
    (row, *_) = compare_steps(done, Record(now).read_step(1), sides, "path")
    assert (row.what, row.recorded, row.replayed, row.ends) == ("phase", "enter", "run", True)
    (row, *_) = compare_steps(done, Record(now).read_step(2)._replace(opened_frames=()), sides, "path")
    assert (row.what, row.recorded, row.replayed, row.ends) == ("frame", ["in"], [], True)


def test_a_cause_is_compared_as_the_replay_numbers_it():
    then, now = begun("reactive"), begun("reactive")
    for run in (then, now):
        step(run)
    done, other = Record(then).read_step(1), Record(now).read_step(1)
    sides = Sides(Record(then), now)
    assert list(compare_steps(done, other, sides, "values")) == []
    moved = tuple(event._replace(cause="evt_009") for event in other.events)
    (row,) = compare_steps(done, other._replace(events=moved), sides, "values")
    assert (row.what, row.recorded, row.replayed) == ("event", "evt_001", "evt_009")
    sides.ids["evt_001"] = "evt_009"
    assert list(compare_steps(done, other._replace(events=moved), sides, "values")) == []


def test_a_recorded_node_that_is_missing_in_the_replay_is_not_next_there():
    then, now = run_of(lambda work: {}, lambda work: {}), run_of(lambda work: {})
    one(then)
    sides = Sides(Record(then), now)
    first, second = then.tables.activations[:2]
    assert (sides.map_activation(first), sides.map_activation(second)) == (first, None)
    assert sides.map_activation(first._replace(frame=7)) is None


def test_no_secret_is_reported():
    hide("s3cret-of-divergence")
    rows = [
        *iter_inner_differences((1, "n0", "write"), ("api_key",), "one-key", "other-key"),
        *iter_inner_differences((1, "n0", "call"), ("look",), {"token": "abcd"}, {"token": "efgh"}),
        *iter_inner_differences((1, "n0", "write"), ("a",), "the s3cret-of-divergence", "x"),
    ]
    assert [row.key for row in rows] == ["api_key", "token", None]
    for row in rows:
        for text in (str(row), repr(row)):
            assert MASK in text
            assert not any(word in text for word in ("one-key", "other-key", "abcd", "efgh", "s3cret-of-divergence"))


def test_only_the_first_places_of_a_value_are_reported():
    rows = list(iter_inner_differences((1, "n0", "write"), ("a",), list(range(100)), list(range(1, 101))))
    assert (len(rows), rows[0].path) == (20, "a.0")


def test_at_the_start_there_is_no_step():
    assert str(Divergence(0, None, "write", "n", 1, 2)) == "at the start: it wrote 1 to 'n', and the replay writes 2"


@pytest.mark.parametrize("length", [199, 200, 201])
def test_a_long_message_is_cut(length):
    shown = "x" * length if length <= 200 else "x" * 199 + "…"
    text = str(Divergence(1, "a", "error", "", "x" * length, "y\n" * length))
    assert text.startswith(f"step 1, 'a': it failed with {shown}, and the replay fails with y y")
    assert len(str(Divergence(1, "n" * 300, "write"))) == 200 + len(
        "step 1, : it wrote nothing to '', and the replay writes nothing"
    )


def test_a_different_end_or_next_node_is_a_divergence():
    assert str(Divergence(3, "a", "node", "", "a", "b")).endswith("the replay runs 'b' instead")
    assert str(Divergence(3, "a", "node", "", "a", ABSENT)).endswith("the replay has ended")
    assert str(Divergence(3, "a", "masked", "k", 1, 2)) == "step 3, 'a': masked k: 1 in the record, 2 in the replay"
