"""Readable sample text for a string's JSON Schema: its format, its pattern, its length."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from random import Random
from typing import Any, Final
from uuid import UUID

from agentnb.expressions.regex import EndlessError, compile_pattern

LONGEST: Final = 10_000  # characters; a schema that requires more is not filled
_DAY: Final = datetime(2024, 1, 1, 9, tzinfo=UTC)
_REPEATS: Final = 3  # how many more repetitions than the minimum an open repeat of a pattern gets
# Characters used for patterns, readable ones first; a class without any of them is not filled.
_SIGNS: Final = [*map(chr, range(97, 123)), *map(chr, range(65, 91)), *map(chr, range(48, 58)),
                 *(sign for sign in map(chr, range(32, 127)) if not sign.isalnum())]  # fmt: skip


class CannotError(Exception):
    """This part of a schema cannot be filled; the message states why."""


def make_text(schema: Mapping[str, Any], name: str, random: Random) -> str:
    """Return a string for a schema of type string; `name` is the word to use in it.

    Raises:
        CannotError: its lengths contradict each other or are too large, or its pattern cannot be generated.
    """
    low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
    if low > LONGEST or (high is not None and high < low):
        raise CannotError(f"no string is as long as {name!r} requires")
    if "pattern" in schema:
        return generate_match(str(schema["pattern"]), random)
    text = _FORMATS.get(str(schema.get("format")), _make_words)(random, name)
    if len(text) < low:
        text = (text + f" {text}" * (low // (len(text) + 1) + 1))[:low]
    text = text if high is None else text[: int(high)]
    return f"{text[:-1]}." if text.endswith(" ") else text


def _make_words(random: Random, name: str) -> str:
    return f"{name.replace('_', ' ').strip() or 'text'} {random.randint(1, 99)}"


def _render_word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "text"


def _make_moment(random: Random) -> datetime:
    return _DAY + timedelta(minutes=random.randrange(365 * 24 * 60))


# Names and addresses that are reserved and unused
_FORMATS: Final[Mapping[str, Callable[[Random, str], str]]] = {
    "date-time": lambda random, _name: f"{_make_moment(random):%Y-%m-%dT%H:%M:%SZ}",
    "date": lambda random, _name: f"{_make_moment(random):%Y-%m-%d}",
    "time": lambda random, _name: f"{_make_moment(random):%H:%M:%SZ}",
    "duration": lambda random, _name: f"PT{random.randint(1, 59)}M",
    "uuid": lambda random, _name: str(UUID(int=random.getrandbits(128), version=4)),
    "email": lambda random, name: f"{_render_word(name)}.{random.randint(1, 99)}@example.org",
    "idn-email": lambda random, name: f"{_render_word(name)}.{random.randint(1, 99)}@example.org",
    "uri": lambda random, name: f"https://example.org/{_render_word(name)}/{random.randint(1, 99)}",
    "url": lambda random, name: f"https://example.org/{_render_word(name)}/{random.randint(1, 99)}",
    "iri": lambda random, name: f"https://example.org/{_render_word(name)}/{random.randint(1, 99)}",
    "uri-reference": lambda random, name: f"/{_render_word(name)}/{random.randint(1, 99)}",
    "hostname": lambda random, name: f"{_render_word(name)}-{random.randint(1, 99)}.example.org",
    "ipv4": lambda random, _name: f"192.0.2.{random.randint(1, 254)}",
    "ipv6": lambda random, _name: f"2001:db8::{random.randint(1, 9999)}",
}


def generate_match(pattern: str, random: Random) -> str:
    """Return a readable string that a regular expression matches.

    Raises:
        CannotError: the expression is invalid, has lookarounds, or requires too much.
    """
    try:
        text = _TextGenerator(random).all(_get_parser().parse(pattern))
        known = compile_pattern(pattern)
        fits = len(text) <= known.longest and known.search(text)
    except (re.error, EndlessError, ImportError, RecursionError, OverflowError):
        fits = False
    if not fits:
        raise CannotError(f"no string was found for the pattern {pattern[:80]!r}")
    return text


def _get_parser() -> Any:
    # The standard library's own pattern parser, which has no public name.
    return import_module("re._parser")


class _TextGenerator:
    """Generates text for a parsed pattern, one part after the other."""

    def __init__(self, random: Random) -> None:
        self.random, self.size = random, 0
        self.groups: dict[int, str] = {}

    def all(self, parts: Any) -> str:
        return "".join(self.part(str(op), argument) for op, argument in parts)

    def part(self, op: str, argument: Any) -> str:
        self.size += 1
        if self.size > LONGEST:
            raise CannotError("a pattern requires a string that is too long")
        match op:
            case "LITERAL":
                return chr(argument)
            case "NOT_LITERAL" | "ANY":
                return self.sign(lambda sign: op == "ANY" or ord(sign) != argument)
            case "IN":
                classes = [(str(kind), what) for kind, what in argument]
                negated = classes[0][0] == "NEGATE"
                return self.sign(lambda sign: _is_in_class(sign, classes) != negated)
            case "AT":  # an anchor; it is checked at the end
                return ""
            case "BRANCH":
                return self.all(self.random.choice(argument[1]))
            case "SUBPATTERN":
                text = self.groups[argument[0]] = self.all(argument[-1])
                return text
            case "GROUPREF":
                return self.groups.get(argument, "")
            case "ATOMIC_GROUP":
                return self.all(argument)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = argument
                return "".join(
                    self.all(inner) for _ in range(self.random.randint(least, min(int(most), least + _REPEATS)))
                )
        raise CannotError(f"a pattern's {op.lower()} cannot be written out")

    def sign(self, fits: Any) -> str:
        signs = [sign for sign in _SIGNS if fits(sign)]
        if not signs:
            raise CannotError("a pattern requires unusual characters")
        letters = [sign for sign in signs if sign.islower()]
        return self.random.choice(letters or signs)


def _is_in_class(sign: str, classes: list[tuple[str, Any]]) -> bool:
    """Return True if a character is in a class; categories are tested by the regex engine itself."""
    for kind, what in classes:
        if kind == "LITERAL" and ord(sign) == what:
            return True
        if kind == "RANGE" and what[0] <= ord(sign) <= what[1]:
            return True
        if kind == "CATEGORY" and re.match(_CATEGORIES.get(str(what), r"[^\s\S]"), sign):
            return True
    return False


_CATEGORIES: Final = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
