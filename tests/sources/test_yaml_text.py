from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentnb.sources import read_text
from agentnb.sources.builder import Builder, StopReadingError
from agentnb.sources.yaml_text import read_yaml

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_dumped_yaml_is_parsed(content):
    source = read_text(yaml.safe_dump(content))
    assert not source.problems
    assert source.content == content


@given(st.text(alphabet="ab:-{}[],&*!<|>'\"#%@` \n\t0.~?", max_size=60))
def test_no_text_breaks_the_parser(text):
    for loader in (yaml.SafeLoader, None):
        builder = Builder("<test>", text)
        try:
            read_yaml(text, builder, loader)
        except StopReadingError:
            assert builder.problems


def test_dates_and_times_remain_strings():
    content = read_text("day: 2024-02-30\nnoon: 12:30\nnumber: 1_000\nhalf: 0.5\nnone: ~\nyes: 'yes'").content
    assert content["day"] == "2024-02-30"
    assert content["noon"] == "12:30"
    assert (content["number"], content["half"], content["none"]) == (1000, 0.5, None)


def test_the_original_text_is_preserved_if_yaml_converts_it():
    source = read_text("a: yes\nb: 012\nc: text\n")
    assert source.texts == {("a",): "yes", ("b",): "012"}


def test_unquoted_words_as_keys_are_recorded():
    source = read_text("yes: 1\non: 2\n'no': 3\ntrue: 4\nnull: 5")
    assert set(source.odd_keys.values()) == {"yes", "on", "null"}
    assert list(source.content) == ["yes", "on", "no", "true", "null"]


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("a: !!python/object/apply:os.system [echo]", "R110", "<text>:1:4, a"),
        ("a: !thing 1", "R110", "<text>:1:4, a"),
        ("a: !!int x", "R110", "<text>:1:4, a"),
        ("a: !!bool x", "R110", "<text>:1:4, a"),
        ("!!set {a, b}", "R110", "<text>:1:1"),
        ("a: 1\n---\nb: 2", "R102", "<text>:2:1"),
        (f"a: {'9' * 5000}", "R114", "<text>:1:4, a"),
        ("? [a, b]\n: 1", "R114", "<text>:1:3"),
    ],
)
def test_values_that_a_recipe_cannot_contain_are_reported(text, code, where):
    (problem,) = read_text(text).problems
    assert (problem.code, problem.where) == (code, where)


@pytest.mark.parametrize(
    ("text", "line", "do"),
    [
        ("a:\n\t- b", 2, "indent with spaces"),
        ("a: b: c", 1, "quote the value"),
        ("a: @x", 1, "quote the value"),
        ("a: 'x", 1, "close the quote"),
        ("a: [1, 2", 1, "close"),
        ('a: "\\q"', 1, "single quotes"),
        ("a: 1\n  b: 2\n c: 3", 2, ""),
    ],
)
def test_broken_yaml_is_reported_with_place_and_remedy(text, line, do):
    (problem,) = read_text(text).problems
    assert problem.code == "R102"
    assert problem.where.startswith(f"<text>:{line}:")
    assert do in problem.do


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("a:\n  b: |\n    one\n    two\n", (3, 5)),
        ("a:\n  b: |+ # why\n\n    two\n", (3, 5)),
        ("a:\n  b: &q !!str |-\n    one\n", (3, 5)),
        ("a:\n  b: &q\n   |\n    one\n", (4, 5)),
        ("é: 😀\na:\n  b: |\r\n    one\r\n", (4, 5)),
        ("a:\n  b: >\n    one\n", None),
        ('a:\n  b: "one|\\n two"\n', None),
        ("a:\n  b: one\n", None),
        ("c: &q |\n  one\na:\n  b: *q\n", None),
        ('{"a": {"b": "|\\n one"}}', None),
    ],
)
def test_a_text_in_a_block_has_the_place_of_its_first_line(text, block):
    place = read_text(text).locate(("a", "b"))
    assert place.block == block
    assert place.of_line(2)[1:3] == ((block[0] + 1, block[1]) if block else place[1:3])
