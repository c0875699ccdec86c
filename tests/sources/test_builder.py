from __future__ import annotations

import pytest

from agentnb.sources import read_text
from agentnb.sources.builder import MAX_DEPTH, MAX_NODES, Builder, StopReadingError


def list_problems(text):
    return [(problem.code, problem.where) for problem in read_text(text).problems]


def test_a_second_key_is_reported_with_both_places_and_dropped():
    source = read_text("a: 1\nb: 2\na: {c: 3}\n")
    (problem,) = source.problems
    assert (problem.code, problem.where) == ("R103", "<text>:3:1, a")
    assert "1:1" in problem.why
    assert source.content == {"a": 1, "b": 2}


def test_each_further_key_is_reported():
    assert list_problems("a: 1\na: 2\na: 3") == [("R103", "<text>:2:1, a"), ("R103", "<text>:3:1, a")]


@pytest.mark.parametrize(
    "form", ["[" * 200 + "]" * 200, "{a: " * 200 + "1" + "}" * 200, '{"a":' * 200 + "1" + "}" * 200]
)
def test_deep_nesting_is_refused(form):
    assert [code for code, _ in list_problems(form)] == ["R108"]


def test_the_maximum_depth_is_accepted():
    assert not list_problems("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_aliases_count_for_each_use():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
    )
    source = read_text(bomb)
    assert [problem.code for problem in source.problems] == ["R108"]
    assert source.content is None


def test_merges_count_too():
    bomb = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(1000))}}}\n" + "b:\n" + "  - {<<: *a}\n" * 200
    assert [code for code, _ in list_problems(bomb)] == ["R108"]


def test_recursive_aliases_are_limited():
    assert [code for code, _ in list_problems("a: &a [1, *a]")] == ["R108"]


def test_an_alias_without_an_anchor_has_a_suggestion():
    (problem,) = read_text("a: &reader 1\nb: *raeder\n").problems
    assert (problem.code, problem.where) == ("R102", "<text>:2:4, b")
    assert problem.do == "did you mean 'reader'?"


def test_existing_keys_override_merged_ones():
    source = read_text("base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\nit: {<<: [*base, *more], a: 9}\n")
    assert source.content["it"] == {"a": 9, "b": 2, "c": 4}
    assert not source.problems


def test_a_merge_of_a_value_that_is_not_a_mapping_is_reported():
    assert list_problems("it: {<<: 3}") == [("R102", "<text>:1:10, it['<<']")]


def test_an_alias_may_be_a_key():
    assert read_text("a: &k word\n*k : 1\n").content == {"a": "word", "word": 1}
    assert [code for code, _ in list_problems("a: &k [1]\n*k : 1\n")] == ["R114"]


def test_too_many_values_stop_parsing():
    builder = Builder("<test>")
    with pytest.raises(StopReadingError):
        builder.grow(MAX_NODES + 1, (1, 1))
    assert builder.problems[0].code == "R108"
