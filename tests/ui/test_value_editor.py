from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

import agentnb as nb
from agentnb.errors import AgentNbError
from agentnb.secrets import hide
from agentnb.ui.board_view import search_rows
from agentnb.ui.value_editor import PAGE, delete, describe_value, describe_value_error, edit, list_branch
from tests.ui import ticket_recipe


@dataclass
class Line:
    name: str
    count: int


@pytest.fixture
def session():
    session = ticket_recipe.session("money " * 500 + "back")
    session.step()
    session.edit({"order": {"a.b": {"lines": [{"n": 1}, {"n": None}]}, "line": Line("nut", 3), "pair": (1, [2])}})
    return session


def parts(session, *path, start=0):
    return [(name, text) for name, text, _, _ in list_branch(session, {"path": list(path), "start": start})["rows"]]


# -- looking -----------------------------------------------------------------------------------------------------------


def test_a_value_is_shown_with_its_type_and_writer(session):
    assert describe_value(session, "category") == {
        "path": ["category"],
        "type": "str",
        "by": [1, "classify"],
        "field": {"path": ["category"], "label": "category", "text": "refund", "as": "text", "note": ""},
    }
    ticket = describe_value(session, ["ticket"])
    assert (ticket["by"], len(ticket["field"]["text"])) == ([0, ""], 3004)
    assert (describe_value(session, "decision")["by"], describe_value(session, "decision")["field"]["as"]) == (
        None,
        "json",
    )
    assert describe_value(session, ["order"])["by"] == [1, None]


def test_a_value_opens_to_its_parts_at_any_depth(session):
    assert [name for name, _ in parts(session, "order")] == ["a.b", "line", "pair"]
    assert parts(session, "order", "a.b", "lines") == [("0", "{'n': 1}"), ("1", "{'n': None}")]
    assert parts(session, "order", "line") == [("name", "'nut'"), ("count", "3")]
    assert parts(session, "order", "nothing") == parts(session, "category", "0") == []
    assert describe_value(session, ["order", "a.b", "lines", "1", "n"])["field"]["as"] == "none"


def test_many_parts_are_sent_in_pages(session):
    session.edit({"many": list(range(PAGE + 5))})
    branch = list_branch(session, {"path": ["many"], "start": 0})
    assert (len(branch["rows"]), branch["total"]) == (PAGE, PAGE + 5)
    assert parts(session, "many", start=PAGE) == [(str(number), str(number)) for number in range(PAGE, PAGE + 5)]


def test_a_nested_write_has_its_own_writer(session):
    session.edit({"order.line.count": 4})
    session.run()
    assert describe_value(session, ["order", "line", "count"])["by"] == [1, None]
    assert describe_value(session, ["order", "a.b"])["by"] == [1, None]


def test_a_value_that_cannot_be_formatted_is_marked(session):
    class Shy:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.warns(UserWarning, match="opaque|reference"):
        session.edit({"shy": Shy()})
    actual = describe_value(session, "shy")["field"]
    assert (actual["as"], "Shy" in actual["text"]) == ("fixed", True)


@pytest.mark.parametrize("target", [None, 3, [], [1]])
def test_an_invalid_path_is_reported(session, target):
    with pytest.raises(AgentNbError, match="U321"):
        describe_value(session, target)


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_a_secret_is_filled_and_never_read(session):
    value = describe_value(session, "api_key")
    assert (value["field"]["as"], value["field"]["text"]) == ("secret", "")
    edit(session, {"text": "sk-another-4712", "as": "secret"}, ["api_key"])
    assert session.board["api_key"] == "sk-another-4712"
    session.edit({"echo": "it is sk-another-4712"})
    text = json.dumps(
        [describe_value(session, "api_key"), describe_value(session, "echo"), list_branch(session, {"path": ["echo"]})]
    )
    assert "4712" not in text
    with pytest.raises(AgentNbError, match="U306"):
        edit(session, {"text": "********", "as": "secret"}, ["api_key"])


def test_values_below_a_secret_name_cannot_be_opened(session):
    session.edit({"credentials": {"user": "ada", "word": "open-4711"}})
    assert parts(session, "credentials") == []
    actual = describe_value(session, ["credentials", "word"])["field"]
    assert (actual["as"], actual["text"]) == ("fixed", "")
    with pytest.raises(AgentNbError, match="U306"):
        edit(session, "x", ["credentials", "word"])


def test_a_key_that_is_a_secret_is_masked_and_read_only(session):
    hide("ada-lovelace-1815")
    session.edit({"ada-lovelace-1815": 1})
    rows = search_rows(session, {"word": "********"})["rows"]
    assert [row[0] for row in rows if row[1] == "1"] == ["********"]
    with pytest.raises(AgentNbError, match="U306"):
        edit(session, "x", ["********"])


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_nested_path_is_edited_and_deleted(session):
    edit(session, {"text": "5", "as": "number"}, ["order", "a.b", "lines", "1", "n"])
    delete(session, None, ["order", "a.b", "lines", "0"])
    edit(session, "bolt", ["order", "line", "name"])
    assert session.board["order"]["a.b"] == {"lines": [{"n": 5}]}
    assert session.board["order"]["line"] == Line("bolt", 3)
    delete(session, None, "category")
    assert "category" not in session.board
    assert describe_value(session, "category")["type"] == ""


def test_a_new_key_may_be_a_path(session):
    edit(session, {"text": "x", "as": "text"}, "deep.er")
    assert session.board["deep"] == {"er": "x"}


def test_a_part_without_a_path_is_edited_through_its_container(session):
    session.edit({"odd": {"a": {"b": 1}, "a.b": 2}, "numbers": {1: "one"}})
    assert describe_value(session, ["odd", "a", "b"])["field"]["as"] == "fixed"
    edit(session, {"text": "3", "as": "number"}, ["odd", "a.b"])
    assert session.board["odd"] == {"a": {"b": 1}, "a.b": 3}
    for place in (["odd", "a", "b"], ["order", "pair", "0"]):
        for operation in (edit, delete):
            with pytest.raises(AgentNbError, match="U306"):
                operation(session, "9", place)


def declared():
    return nb.Session(nb.samples("document"))


def test_typed_values_are_validated_against_the_declared_input():
    session = declared()
    with pytest.raises(AgentNbError, match="U320"):
        edit(session, {"text": "3", "as": "number"}, "topic")
    with pytest.raises(AgentNbError, match="U320"):
        edit(session, "x", "topic")
    assert "'topic' is 'x'" in describe_value_error(session, {"path": "topic", "typed": "x"})
    assert describe_value_error(session, {"path": "topic", "typed": "Why grass is green"}) == ""
    edit(session, "Why grass is green", "topic")
    edit(session, {"text": "3", "as": "number"}, "anything")
    assert (session.board["topic"], session.board["anything"]) == ("Why grass is green", 3)


def test_an_existing_invalid_value_does_not_prevent_other_edits():
    session = nb.Session(nb.samples("document"), {"topic": 3}, validate_inputs=False)
    assert describe_value_error(session, {"path": "audience", "typed": "experts"}) == ""
    assert describe_value_error(session, {"path": "audience", "typed": "dogs"}) != ""


def test_errors_in_typed_values_are_described(session):
    assert "is not a number" in describe_value_error(session, {"path": ["new"], "typed": {"text": "x", "as": "number"}})
    assert describe_value_error(session, {"path": ["new"], "typed": {"text": "1", "as": "number"}}) == ""
    assert "is not a path on the board" in describe_value_error(session, None)
