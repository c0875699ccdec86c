from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from agentnb.board.values import ABSENT, Opaque, freeze
from agentnb.secrets import MASK, hide
from agentnb.ui.details.cells import (
    CUT,
    LINES,
    ROWS,
    TOTAL,
    WHOLE,
    Cells,
    display_text,
    get_type_name,
    to_line,
    to_sendable,
)


@dataclass
class Place:
    name: str
    key: bool


class Color(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        ("a\ntext", "a\ntext", "str"),
        (4, "4", "int"),
        (None, "None", "NoneType"),
        (True, "True", "bool"),
        (Decimal("1.50"), "1.50", "Decimal"),
        (date(2026, 1, 2), "2026-01-02", "date"),
        ([1, "a"], "[1, 'a']", "list, 2"),
        ((1,), "(1,)", "tuple, 1"),
        (set(), "set()", "set, 0"),
        ({"a": {"b": [None]}}, "{'a': {'b': [None]}}", "dict, 1"),
        (Place("shelf", key=True), "Place(name='shelf', key=True)", "Place"),
        (Color.RED, "<Color.RED: 'red'>", "Color"),
        (ABSENT, "nothing", "Absent"),
    ],
)
def test_a_value_is_formatted_like_python_and_a_text_unchanged(value, text, kind):
    frozen = freeze(value)
    assert (display_text(frozen), get_type_name(frozen)) == (text, kind)


def test_long_values_are_split_into_lines():
    text = display_text(freeze({"first": ["x" * 40, "y" * 40], "second": Place("z" * 80, key=False)}))
    assert text.split("\n") == [
        "{",
        "  'first': [",
        f"    '{'x' * 40}',",
        f"    '{'y' * 40}',",
        "  ],",
        "  'second': Place(",
        f"    name='{'z' * 80}',",
        "    key=False,",
        "  ),",
        "}",
    ]


def test_arrays_and_references_are_reported():
    class Shy:
        def __repr__(self):
            raise RuntimeError("no")

    assert get_type_name(freeze(np.zeros((2, 3)))) == "ndarray 2×3"
    assert display_text(freeze(np.array([1, 2]))) == "[1 2]"
    assert get_type_name(Opaque(Shy())).endswith("Shy, by reference")
    assert display_text(Opaque(Shy())) == "<Shy that cannot be shown: RuntimeError>"


def test_a_secret_is_masked_by_its_name_at_any_depth_and_by_its_value():
    hide("c0rrect-horse")
    value = freeze({"user": {"api_key": "abc"}, "said": "a c0rrect-horse", "token": None})
    assert display_text(value) == f"{{'user': {{'api_key': '{MASK}'}}, 'said': 'a {MASK}', 'token': None}}"
    assert display_text("abc", "password") == MASK
    assert Cells().of("at", "user.api_key", "abc")["text"] == MASK
    assert Cells().text("at", "said", "say c0rrect-horse")["text"] == f"say {MASK}"


def test_truncation_does_not_reveal_a_secret():
    hide("0123456789-secret")
    cell = Cells().of("at", "key", "x" * (CUT - 5) + "0123456789-secret")
    assert "01234" not in cell["text"]


def test_a_truncated_cell_is_marked():
    many = Cells().of("a", "lines", "\n".join("abc"[at % 3] for at in range(100)))
    assert (many["text"].count("\n"), many["cut"]) == (LINES - 1, True)
    wide = Cells().of("a", "text", "x" * 5000)
    assert (len(wide["text"]), wide["cut"]) == (CUT, True)
    short = Cells().of("a", "text", "x")
    assert (short["text"], short["cut"]) == ("x", False)


def test_one_cell_is_complete_and_the_others_stay_truncated():
    cells = Cells("b")
    assert cells.of("a", "text", "x" * 5000)["cut"]
    assert not cells.of("b", "text", "y\n" * 2500)["cut"]
    assert (len(cells.wanted_cell["text"]), cells.wanted_cell["at"]) == (5000, "b")
    assert Cells("c").wanted_cell == {}
    huge = Cells("a")
    assert huge.of("a", "text", "x" * (WHOLE * 3))["cut"]
    assert len(huge.wanted_cell["text"]) == WHOLE


def test_the_total_size_of_cells_is_bounded():
    cells = Cells()
    told_in_all = sum(len(cells.of(str(at), "text", "x" * 1000)["text"]) for at in range(300))
    assert told_in_all < TOTAL + CUT + 300 * 100


def test_rows_report_how_many_more_there_are():
    rows = Cells().rows("inputs", {f"k{at}": at for at in range(ROWS + 3)})
    assert (len(rows), rows[-1]["text"], rows[0]["at"]) == (ROWS + 1, "and 3 more", "inputs/0")


def test_the_cost_of_a_cell_does_not_depend_on_the_value():
    reads = []

    class Item:
        def __repr__(self):
            reads.append(1)
            return "item"

    text = display_text([Item() for _ in range(100_000)])
    assert len(text) < 2 * CUT
    assert len(reads) < 1000


def test_deep_values_are_truncated():
    value: list = []
    for _ in range(150):
        value = [value, "x" * 30]
    assert display_text(freeze(value), None, WHOLE)


def test_characters_that_cannot_be_sent_or_mislead_are_removed():
    assert to_sendable("a\u202egnp\u2066b\x00\ud800\n") == "agnpb\ufffd\ufffd\n"
    assert to_line("two\nlines \u202e here") == "two lines here"
