from dataclasses import replace

import pytest

from agentnb.draw.board_table import ROWS, VALUE_COLUMNS, find_row, format_value, make_board_table
from agentnb.draw.label_text import count_columns
from agentnb.draw.run_view import RunView
from agentnb.recipe.model import Node
from agentnb.secrets import MASK
from tests.draw.drawn_recipes import diamond, long, recipe, support, support_run


class Rude:
    def __repr__(self):
        raise RuntimeError


def keys(table):
    return [row.key for row in table.rows]


def test_every_key_named_by_the_recipe_has_one_row():
    assert keys(make_board_table(diamond(), None)) == ["ticket", "answer", "customer", "draft", "orders"]


def test_a_path_highlights_the_row_of_its_key():
    table = make_board_table(
        diamond(), RunView(board={"ticket": {"text": "hi"}}, read={"ticket.text"}, written={"ticket.x"})
    )
    assert {row.key: row.marks for row in table.rows}["ticket"] == ("written", "read")


def test_a_key_with_a_dot_has_its_own_row():
    assert find_row("a.b", {"a.b": 1, "a": 2}) == "a.b"
    assert find_row("a.b", {}) == "a"


def test_flows_connect_keys_with_their_readers_and_writers():
    table = make_board_table(diamond(), None)
    actual = {(flow.node, flow.direction, tuple(table.rows[row].key for row in flow.rows)) for flow in table.flows}
    assert ("merge", "read", ("draft", "orders")) in actual
    assert ("load", "write", ("ticket", "customer")) in actual
    assert not any(flow.seen or flow.active for flow in table.flows)


def test_accesses_observed_in_the_run_are_drawn_and_marked_as_observed():
    table = make_board_table(support(), support_run())
    flow = next(flow for flow in table.flows if (flow.node, flow.direction) == ("critic", "write"))
    assert [table.rows[row].key for row in flow.rows] == ["critique", "late"]
    assert flow.seen
    assert flow.active
    read = next(flow for flow in table.flows if (flow.node, flow.direction) == ("critic", "read"))
    assert not read.seen


def test_values_are_those_of_the_current_step():
    table = make_board_table(support(), support_run())
    rows = {row.key: row for row in table.rows}
    assert rows["amount"].value == "12.5"
    assert rows["critique"].value == ""
    assert rows["critique"].marks == ("written",)
    assert rows["draft"].marks == ("read",)
    assert MASK in rows["api_key"].value
    assert "sk-abc" not in rows["api_key"].tip


def test_without_a_run_the_initial_values_are_shown():
    rows = make_board_table(replace(diamond(), init={"draft": "none yet"}), None).rows
    assert {row.key: row.value for row in rows}["draft"] == "'none yet'"


def test_keys_that_nodes_use_come_before_keys_with_only_an_initial_value():
    plain = make_board_table(diamond(), None).rows
    rows = make_board_table(replace(diamond(), init={f"unused{number}": 0 for number in range(200)}), None).rows
    assert [row.key for row in rows][: len(plain)] == [row.key for row in plain]


def test_if_there_is_no_room_for_all_keys_those_that_were_written_or_used_are_drawn_in_their_order():
    board = {f"key{number}": number for number in range(200)}
    view = RunView(board=board, written={"key150"}, read={"key20"}, seen_reads={"start": {"key20", "key160"}})
    drawn = keys(make_board_table(replace(diamond(), nodes={}, inputs={}, outputs=()), view, room=4))
    assert drawn == ["key0", "key1", "key20", "key150"]
    first = next(iter(diamond().nodes))
    view = RunView(board=board, seen_reads={first: {"key20", "key160"}}, seen_writes={first: {"key170"}})
    assert keys(make_board_table(diamond(), view, room=8))[-3:] == ["key20", "key160", "key170"]


@pytest.mark.parametrize("value", ["x" * 9999, "漢字" * 99, {"a": ["b"] * 99}, "a\nb\x00", Rude(), [Rude()]])
def test_every_value_is_one_line_of_a_fixed_width(value):
    text = format_value("key", value)
    assert 0 < count_columns(text) <= VALUE_COLUMNS
    assert text == " ".join(text.split())


def test_a_value_whose_repr_fails_shows_its_type():
    assert format_value("key", Rude()).startswith("<Rude that cannot be")


def test_no_value_changes_the_size():
    small, large = (make_board_table(diamond(), RunView(board={"draft": value})) for value in ("", "x" * 9999))
    assert (small.width, small.height) == (large.width, large.height)


def test_too_many_keys_are_counted():
    table = make_board_table(long(60), None)
    assert len(table.rows) == ROWS
    assert table.last_line == f"and {61 - ROWS} more"
    assert all(row < ROWS for flow in table.flows for row in flow.rows)


def test_spare_rows_depend_on_the_recipe_alone():
    empty = make_board_table(diamond(), None, spare=4)
    full = make_board_table(diamond(), RunView(board={f"new{i}": i for i in range(3)}), spare=4)
    over = make_board_table(diamond(), RunView(board={f"new{i}": i for i in range(9)}), spare=4)
    assert empty.height == full.height == over.height
    assert (len(empty.rows), empty.spare) == (5, 4)
    assert (len(full.rows), full.spare) == (8, 1)
    assert (len(over.rows), over.spare, over.hidden_count) == (9, 0, 5)


def test_rows_keep_their_position_when_keys_are_added():
    before = keys(make_board_table(diamond(), RunView(board={"x": 1}), spare=4))
    after = keys(make_board_table(diamond(), RunView(board={"x": 1, "y": 2}), spare=4))
    assert after[: len(before)] == before


def test_an_empty_board_is_labeled():
    assert make_board_table(recipe([Node("a", "tool")]), None).last_line == "nothing on it yet"
