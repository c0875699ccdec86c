import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.label_text import (
    clean,
    count_columns,
    cut,
    cut_columns,
    is_xml,
    measure_width,
    to_attribute,
    to_content,
    to_safe_text,
    wrap,
)

ANY = st.text() | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Lo", "Ll"]))


@given(ANY)
def test_an_attribute_is_read_back_as_the_safe_text(text):
    assert ET.fromstring(f'<a b="{to_attribute(text)}"/>').get("b") == to_safe_text(text)


@given(ANY)
def test_content_is_well_formed_and_cannot_change_the_text_direction(text):
    shown = ET.fromstring(f"<a>{to_content(text)}</a>").text or ""
    assert "\u202e" not in shown
    assert "<" not in to_content(text)


@given(ANY)
def test_clean_text_is_one_line_that_xml_allows(text):
    shown = clean(text)
    assert all(map(is_xml, shown))
    assert len(shown.splitlines()) <= 1
    assert clean(shown) == shown


def test_forbidden_characters_are_replaced_with_a_sign():
    assert clean("a\x00b\n c") == "a\ufffdb c"
    assert to_safe_text("\ud800\x1bok\n") == "\ufffd\ufffdok\n"


@given(ANY, st.integers(2, 40))
def test_cut_columns_never_gets_wider(text, limit):
    assert count_columns(cut_columns(text, limit)) <= limit


@given(st.text(), st.floats(20, 200))
def test_cut_never_gets_wider(text, width):
    assert measure_width(cut(text, width, 10.0), 10.0) <= width


@given(st.text(), st.integers(1, 4))
def test_wrapped_lines_fit_and_keep_their_order(text, most):
    lines = wrap(text, 90.0, 10.0, most)
    assert len(lines) <= most
    assert all(measure_width(line, 10.0) <= 90.0 for line in lines)
    assert clean(text).replace(" ", "").startswith("".join(lines).replace(" ", "").removesuffix("…"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ("short",)),
        ("", ()),
        ("two words that are long", ("two words that", "are long")),
        ("snake_case_that_is_long", ("snake_case_that_", "is_long")),
    ],
)
def test_wrap_breaks_at_word_boundaries(text, lines):
    assert wrap(text, 90.0, 10.0) == lines


def test_wide_characters_count_twice_and_marks_not_at_all():
    assert count_columns("漢字") == 4
    assert count_columns("e\u0301") == 1
    assert measure_width("漢", 10.0) > measure_width("a", 10.0)
