from __future__ import annotations

from typing import NamedTuple

from agentnb.recipe.listing import Listing


class Row(NamedTuple):
    name: str
    number: int


def test_a_listing_equals_its_list():
    assert list(Listing([Row("a", 1), Row("b", 2)])) == [("a", 1), ("b", 2)]


def test_it_has_a_column_for_each_field():
    assert repr(Listing([Row("a", 1), Row("longer", 22)])) == "name    number\na       1\nlonger  22"


def test_it_shows_as_a_table_whose_text_is_escaped():
    shown = Listing([Row("<script>", 1)])._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert shown.startswith("<table>")


def test_an_empty_listing_has_a_repr():
    assert repr(Listing([])) == ""
    assert Listing([])._repr_html_().count("<td") == 0


def test_a_notebook_prints_it_as_a_table():
    class Printer:
        said = ""

        def text(self, words):
            self.said += words

    printer = Printer()
    Listing([Row("a", 1)])._repr_pretty_(printer, cycle=False)
    assert printer.said == "name  number\na     1"
