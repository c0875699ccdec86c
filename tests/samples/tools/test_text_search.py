from __future__ import annotations

import pytest

from agentnb.samples.tools.text_search import search, stems


@pytest.mark.parametrize(("query", "source"), [
    ("Why is the sky blue?", "sky"),
    ("What raises a high tide?", "tides"),
    ("Where does magma come from?", "volcanoes"),
])  # fmt: skip
def test_the_best_paragraph_matches_the_query(query, source):
    result = search(query)
    assert (result["items"][0]["source"], result["error"]) == (source, None)
    assert result["text"].startswith(result["items"][0]["text"])


def test_the_best_results_come_first_up_to_the_limit():
    items = search("sun moon earth light", k=2)["items"]
    assert len(items) == 2
    assert items[0]["score"] >= items[1]["score"]


def test_a_query_without_results_is_an_error():
    result = search("quantum chromodynamics")
    assert (result["items"], result["error"]["type"]) == ([], "nothing_found")


def test_common_words_and_plurals_are_ignored():
    assert stems("What are the tides?") == ["tide"]
