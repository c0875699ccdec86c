from __future__ import annotations

import re
from datetime import date, datetime
from ipaddress import ip_address
from random import Random
from uuid import UUID

import pytest

from agentnb.world.sample_text import CannotError, generate_match, make_text


def make_sample(name="summary", seed=1, **schema):
    return make_text(schema, name, Random(seed))


def test_a_text_has_its_name_and_a_number():
    assert re.fullmatch(r"summary \d+", make_sample())
    assert re.fullmatch(r"key points \d+", make_sample("key_points"))
    assert re.fullmatch(r"text \d+", make_sample(""))
    assert make_sample() == make_sample()
    assert len({make_sample(seed=seed) for seed in range(20)}) > 5


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 3), (1, 1), (5, 5), (30, 31), (200, None), (9, 10), (3.0, 4.0)])
@pytest.mark.parametrize("format", [None, "email"])
def test_a_text_has_the_required_length(low, high, format):
    for seed in range(20):
        sample = make_sample(seed=seed, minLength=low, format=format, **({} if high is None else {"maxLength": high}))
        assert low <= len(sample) <= (high if high is not None else 1000)
        assert sample == sample.strip()


@pytest.mark.parametrize("lengths", [{"minLength": 3, "maxLength": 2}, {"minLength": 10**9}])
def test_impossible_lengths_are_reported(lengths):
    with pytest.raises(CannotError, match="'summary'"):
        make_sample(**lengths)


@pytest.mark.parametrize(
    ("format", "fits"),
    [
        ("date-time", datetime.fromisoformat),
        ("date", date.fromisoformat),
        ("time", re.compile(r"\d\d:\d\d:\d\dZ").fullmatch),
        ("uuid", UUID),
        ("email", re.compile(r"due-day\.\d+@example\.org").fullmatch),
        ("uri", re.compile(r"https://example\.org/due-day/\d+").fullmatch),
        ("ipv4", ip_address),
        ("ipv6", ip_address),
        ("hostname", re.compile(r"due-day-\d+\.example\.org").fullmatch),
        ("of-my-own", re.compile(r"Due day \d+").fullmatch),
    ],
)
def test_formats_are_supported(format, fits):
    for seed in range(10):
        assert fits(make_sample("Due day", seed, format=format)) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[A-Z]{2}-\d{4}$",
        r"^(draft|final)_v[0-9]+(\.[0-9]+)?$",
        r"\w+@\w+\.(com|org)",
        r"^[^a-z\s]+$",
        r"^.{3,8}$",
        r"^(ab)\1$",
        r"^\S+\s\S+$",
        r"^[\d.]{1,}$",
        r"[^x]",
        r"",
        r"^(?:a|b)*?c$",
        r"^\D\W$",
    ],
)
def test_a_pattern_is_generated(pattern):
    for seed in range(20):
        assert re.search(pattern, generate_match(pattern, Random(seed)))
    assert re.search(pattern, make_sample(pattern=pattern))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "no string was found"),
        (r"(?=x)y", "assert cannot be written out"),
        (r"a\bc", "no string was found"),
        ("[éè]", "unusual characters"),
        ("x{100000}", "too long"),
        ("((a{99}){99}){99}", "too long"),
        ("(" * 5000 + ")" * 5000, "no string was found"),
    ],
)
def test_a_pattern_that_cannot_be_generated_is_reported(pattern, why):
    with pytest.raises(CannotError, match=why):
        generate_match(pattern, Random(1))
