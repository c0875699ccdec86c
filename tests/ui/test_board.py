from __future__ import annotations

import json

import pytest

from agentnb.ui.board import looked
from tests.ui import runs


def test_a_value_is_looked_at_with_its_type_and_who_wrote_it():
    session = runs.session("money " * 500 + "back")
    session.step()
    assert looked(session, "category") == {
        "key": "category",
        "type": "str",
        "writer": 1,
        "by": "classify",
        "field": {"path": [], "label": "category", "text": "refund", "as": "text", "note": ""},
    }
    ticket = looked(session, "ticket")
    assert (ticket["writer"], ticket["by"], len(ticket["field"]["text"])) == (0, "", 3004)
    assert (looked(session, "decision")["writer"], looked(session, "decision")["field"]["as"]) == (None, "json")
    assert runs.KEY not in json.dumps(looked(session, "api_key"))


def test_a_value_that_cannot_be_shown_says_so():
    class Shy:
        def __repr__(self):
            raise RuntimeError("no")

    session = runs.session()
    with pytest.warns(UserWarning, match="opaque|reference"):
        session.edit({"shy": Shy()})
    found = looked(session, "shy")["field"]
    assert (found["as"], "Shy" in found["text"]) == ("fixed", True)
