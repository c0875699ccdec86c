from __future__ import annotations

import json
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import agentnb as nb
from agentnb.board.values import FROZEN, freeze
from agentnb.secrets import hide
from agentnb.ui.board_view import PAGE, ROWS, get_type_name, make_rows, search_rows
from tests.ui import ticket_recipe


@dataclass
class Order:
    number: int
    lines: list


def rows(session):
    rows, more = make_rows(session, session._parts.pictures.view())
    return {row[0]: row[1:] for row in rows}, more


def test_a_row_has_value_type_and_writer():
    session = ticket_recipe.session()
    session.step()
    session.edit({"order": Order(1, [1])})
    actual, more = rows(session)
    assert actual["ticket"] == ["'money back'", ["read"], "str", [0, ""]]
    assert actual["category"] == ["'refund'", ["written", "read"], "str", [1, "classify"]]
    assert actual["decision"] == [None, [], "", None]
    assert actual["order"][2:] == ["Order[2]", [1, None]]
    assert more == 0


@pytest.mark.parametrize(
    ("old", "written", "change"),
    [
        (["a"], ["a", "b", {"c": 1}], [None, "'b', {'c': 1}"]),
        ([], [1], [None, "1"]),
        (["a"], ["a", *"12345"], [None, "'1', '2', '3'"]),
        (["a"], ["b", "c"], ["['a']"]),
        (["a", "b"], ["a"], ["['a', 'b']"]),
        (["a"], "a", ["['a']"]),
        ("a", ["a"], ["'a'"]),
    ],
)
def test_a_row_shows_what_was_appended_or_replaced(old, written, change):
    graph = nx.MultiDiGraph()
    graph.add_node("write", function=lambda board: {"key": written}, writes=["key"])
    session = nb.Session(nb.load(graph), {"key": old}, validate_inputs=False)
    session.step()
    assert rows(session)[0]["key"][4:] == change


def test_an_appended_secret_is_masked():
    hide("top secret words")
    graph = nx.MultiDiGraph()
    graph.add_node("write", function=lambda board: {"log": ["a", "top secret words"]}, writes=["log"])
    session = nb.Session(nb.load(graph), {"log": ["a"]}, validate_inputs=False)
    session.step()
    assert "secret" not in str(rows(session)[0]["log"])


def test_a_step_with_forks_has_its_marks():
    session = nb.Session(nb.samples("pipeline"))
    session.step(3)
    session.goto(2)
    before = rows(session)
    assert "written" in [mark for row in before[0].values() for mark in row[1]]
    session.step()  # another step 3: what was there is a fork
    session.goto(2)
    assert session.forks
    assert rows(session) == before
    fork = session.fork(at=2, edit={"note": "by hand"})
    assert fork._parts.pictures.view().written == {*session._parts.pictures.view().written, "note"}


def test_objects_of_a_reactive_run_are_rows():
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "why swifts fly"})
    session.run()
    actual, _ = rows(session)
    assert actual["task#1"][2] == "dict[5]"
    assert actual["task#1"][3][1] == "search"


@pytest.mark.parametrize(
    ("value", "key", "name"),
    [(None, "a", "None"), ([1, 2], "a", "list[2]"), ([], "a", "list"), ({"a": 1}, "a", "dict[1]"),
     ((1,), "a", "tuple[1]"), ({1}, "a", "set"), (Order(1, []), "a", "Order[2]"), ({"a": 1}, "api_key", "dict"),
     (2.5, "a", "float")],
)  # fmt: skip
def test_a_type_shows_the_number_of_its_parts(value, key, name):
    assert get_type_name(freeze(value), key) == name


@pytest.mark.filterwarnings("ignore:a builtins.object is on the board by reference")
@pytest.mark.parametrize("cls", sorted(FROZEN, key=lambda cls: cls.__name__))
def test_a_value_of_each_class_has_the_name_of_its_type(cls):
    values = ({"a": 1}, [1], {1}, Order(1, []), np.array([1]), pd.DataFrame({"a": [1]}), object())
    of_class = [value for value in values if type(freeze(value)) is cls]
    assert of_class
    graph = nx.DiGraph()
    graph.add_node("a", function=lambda board: None)
    for value in of_class:
        session = nb.Session(nb.load(graph), {"key": value}, validate_inputs=False)
        row = rows(session)[0]["key"]
        assert row[2].startswith(type(value).__name__)


def test_a_value_masked_later_is_masked_in_earlier_texts():
    session = ticket_recipe.session()
    session.edit({"note": "the word is s3same-4711"})
    assert "s3same-4711" in rows(session)[0]["note"][0]
    hide("s3same-4711")
    assert rows(session)[0]["note"][0] == "'the word is ********'"


def test_every_key_of_a_very_large_board_is_found_a_page_at_a_time():
    session = ticket_recipe.session()
    session.edit({f"key{number:05}": number for number in range(ROWS + 300)})
    sent, more = rows(session)
    total = len(sent) + more
    assert (len(sent), total) == (ROWS, ROWS + 300 + 5)
    last = search_rows(session, {"word": "", "start": total - 10})
    assert (len(last["rows"]), last["total"]) == (10, total)
    assert last["rows"][-1][0] == f"key{ROWS + 299:05}"
    actual = search_rows(session, {"word": "KEY02", "start": 0})
    assert (len(actual["rows"]), actual["total"]) == (PAGE, 300)
    assert [row[0] for row in search_rows(session, {"word": "refund"})["rows"]] == []
    assert json.loads(json.dumps(actual)) == actual


def test_a_query_without_arguments_returns_the_first_page():
    session = ticket_recipe.session()
    assert [row[0] for row in search_rows(session, None)["rows"]][:2] == ["ticket", "api_key"]
