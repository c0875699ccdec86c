from __future__ import annotations

import pytest

from agentnb.samples.tools.text_search import search, stems


@pytest.mark.parametrize(("query", "source"), [
    ("Why is the sky blue?", "sky"),
    ("What raises a high tide?", "tides"),
    ("Where does magma come from?", "volcanoes"),
])  # fmt: skip
def test_the_best_paragraph_is_about_what_is_asked(query, source):
    result = search(query)
    assert (result["items"][0]["source"], result["error"]) == (source, None)
    assert result["text"].startswith(result["items"][0]["text"])


def test_the_best_come_first_and_no_more_than_asked_for():
    items = search("sun moon earth light", k=2)["items"]
    assert len(items) == 2
    assert items[0]["score"] >= items[1]["score"]


def test_what_no_text_knows_is_an_error():
    result = search("quantum chromodynamics")
    assert (result["items"], result["error"]["type"]) == ([], "nothing_found")


def test_common_words_and_plurals_make_no_difference():
    assert stems("What are the tides?") == ["tide"]
