from __future__ import annotations

import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.engine.persistence.journal import to_json_text

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(documents)
def test_a_document_survives_a_round_trip(document):
    assert json.loads(to_json_text(document)) == document


@pytest.mark.parametrize(
    "document",
    [["half of a pair \ud800"], {"\udc00": 1}, reduce(lambda inner, _: [inner], range(400), 1), [2**80, -(2**70)]],
    ids=["text", "name", "deep", "large"],
)
def test_rare_fields_are_written_too(document):
    assert json.loads(to_json_text(document)) == document


def test_documents_are_compact_and_not_ascii_escaped():
    assert to_json_text({"a": [1, "é"], "b": None}) == '{"a":[1,"é"],"b":null}'
