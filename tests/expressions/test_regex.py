from __future__ import annotations

import random
import re

import pytest

from agentnb.expressions.regex import LONGEST, EndlessError, Pattern, compile_pattern

MANY_WAYS = [
    r"^[a-z0-9]+(-[a-z0-9]+)*$", r"(a+)+$", r"^(a|aa)+$", r"\b\w+\b \bfoo\b.*x+y*$", r"(?i)^(ab+c?)+$",
    r"^\S+@\S+\.\S+$", r"(x*)*y", r"(a?){20}a{20}$", r"^(?:[A-Z][a-z]*\s?)+$", r"((?i:a)b*)+c$", r"^(\d+,)*\d+\Z",
    r"(a*b*)+c",
    r"^$|^(a+|b+)*$", r"(a|b|)+c", r"\A(.*,){12}x", r"\Ba+b*\B",
]  # fmt: skip
SIMPLE = [
    r"^#[0-9A-Fa-f]{6}$", r"^(?=.*[A-Z])(?=.*\d).{8,}$", r"(.)\1", r"^(?!-)[a-z-]{1,63}(?<!-)$", r"^.{1,5000}$", "",
]  # fmt: skip


@pytest.mark.parametrize("source", [*MANY_WAYS, *SIMPLE])
def test_matches_are_those_of_python(source):
    chance, pattern = random.Random(1), Pattern(source)
    texts = ["".join(chance.choices("aabAB-c1 ,.x@y\n_é", k=chance.randrange(10))) for _ in range(500)]
    assert [pattern.search(text) for text in texts] == [re.search(source, text) is not None for text in texts]


@pytest.mark.parametrize("source", MANY_WAYS)
def test_an_ambiguous_pattern_terminates(source):
    pattern = Pattern(source)
    assert not pattern.simple
    assert pattern.search("a" * (LONGEST - 1) + "!") in (True, False)


@pytest.mark.parametrize("source", SIMPLE)
def test_an_unambiguous_pattern_is_matched_by_python(source):
    assert Pattern(source).simple


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (r"^(a+)+(?=b)$", "lookarounds or backreferences"),
        (r"(a+)+(?(1)b|c)", "lookarounds or backreferences"),
        (r"(?m:^a+)+$", "lookarounds or backreferences"),
        (r"(?m)(a+)+$", "inline flags"),
        (r"(a{1,500}){1,500}", "too large"),
    ],
)
def test_a_pattern_that_could_run_forever_is_rejected(source, why):
    with pytest.raises(EndlessError, match=why):
        Pattern(source)


@pytest.mark.parametrize(
    ("source", "longest"),
    [(r"(a+)\1+$", 464), (r".*(?=.*x)y", 464), (r"^(?!.*\.\.)[\w.+-]+@[\w-]+\.[\w.-]+$", 100), (r"^\S+@\S+$", LONGEST)],
)
def test_an_ambiguous_pattern_with_lookaround_is_matched_on_short_texts_only(source, longest):
    pattern = Pattern(source)
    assert (pattern.simple, pattern.longest) == (False, longest)
    assert pattern.search("a" * longest) == (source == r"(a+)\1+$")


def test_an_invalid_pattern_is_reported_as_by_the_library():
    with pytest.raises(re.error, match="unterminated"):
        Pattern("[a")


def test_a_compiled_pattern_is_cached():
    assert compile_pattern("^a$") is compile_pattern("^a$")


@pytest.mark.parametrize(
    ("source", "simple"),
    [
        (r"a{1,16}", True),
        (r"(ab|cd)(ef|gh)(ij|kl)(mn|op)", True),
        (r"(ab|cd)(ef|gh)(ij|kl)(mn|op)(qr|st)", False),
        (r"a{0,8}", True),
        (r"a{0,8}b{0,8}", False),
        (r"a{0,9}", True),
        (r"a{0,9}b{0,9}", False),
        (r"a*b", True),
        (r"a*b*", False),
        (r"(?>a*b)c", True),
        (r"(?>a*b*)c", False),
        (r"a*+b", True),
        (r"(?=a*)b*", True),
        (r"a*(?=b*)", False),
        (r"(a)?(?(1)b|c)", False),
    ],
)
def test_unambiguous_patterns_are_recognized(source, simple):
    try:
        actual = Pattern(source).simple
    except EndlessError:
        actual = False
    assert actual is simple


def test_the_size_of_a_pattern_is_limited():
    assert Pattern("^(a*)*b{994}$").search("a" + "b" * 994)
    with pytest.raises(EndlessError, match="too large"):
        Pattern("^(a*)*b{995}$")


def test_exceeding_the_memory_limit_does_not_change_the_result():
    pattern, chance = Pattern(r"^(?:[a-z]+[0-9]?)+!$"), random.Random(3)
    for _ in range(30):
        text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789é", k=200))
        assert pattern.search(text) is False
    assert pattern.search("a1b22!") is False
    assert pattern.search("a1b2!") is True


ANCHORS = ["", "^", "$", r"\A", r"\Z", r"\b", r"\B"]


@pytest.mark.parametrize("last", ANCHORS)
@pytest.mark.parametrize("first", ANCHORS)
def test_anchors_around_unbounded_repeats_match_as_in_python(first, last):
    source = f"{first}(?:(?:a|b)*c?)*d{last}"
    pattern, expected = compile_pattern(source), re.compile(source)
    for text in ("", "d", "abd", "xd", " abcd", "abcd ", "dx", "d\n", "d\n\n", "\nd", "x d y", "ab"):
        assert bool(pattern.search(text)) == bool(expected.search(text)), text
