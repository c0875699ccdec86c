"""A JSON reader that records the position of every key and item and reports errors in the terms of JSON."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from agentnb.errors import Place
from agentnb.sources import problems
from agentnb.sources.builder import Builder
from agentnb.sources.source import Lines, Position

_BLANK = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?\d+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(text: str, builder: Builder) -> None:
    """Feed the builder with what is in a JSON text."""
    reader = _Reader(text, builder)
    try:
        reader.value()
        if reader.at < len(text):
            reader.fail("Extra data")
    except json.JSONDecodeError as error:
        lines, (line, column) = text.splitlines(), reader.lines.get_position(error.pos)
        shown = lines[line - 1] if line <= len(lines) else ""
        place = Place(builder.file, line, column)
        builder.stop(
            problems.make_syntax_problem(place, shown, f"the JSON parser says: {error.msg}", _suggest_cure(error.msg))
        )


def _suggest_cure(message: str) -> str:
    if "double quotes" in message:
        return "write keys in double quotes, without a comma after the last item"
    if "delimiter" in message:
        return "add what is missing between the two values"
    if "Extra data" in message:
        return "remove everything after the closing brace"
    return "fix the value: strings require double quotes, and true, false and null are lower case"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


class _Reader:
    """A recursive-descent parser. The builder limits its depth."""

    def __init__(self, text: str, builder: Builder) -> None:
        self.text, self.builder, self.lines = text, builder, Lines(text)
        self.decode = json.JSONDecoder(parse_constant=_refuse).raw_decode
        self.at = 0
        self.skip()

    def skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at

    @property
    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def fail(self, message: str) -> NoReturn:
        raise json.JSONDecodeError(message, self.text, self.at)

    def skip_if(self, character: str) -> bool:
        """Return True and advance if this is the next character."""
        if self.next != character:
            return False
        self.at += 1
        self.skip()
        return True

    def value(self) -> None:
        position = self.lines.get_position(self.at)
        if self.next == "{":
            self.builder.open({}, position)
            self.items("{", "}", self.entry)
        elif self.next == "[":
            self.builder.open([], position)
            self.items("[", "]", self.value)
        else:
            self.builder.scalar(self.scalar(position), position)

    def items(self, begin: str, end: str, item: Any) -> None:
        self.skip_if(begin)
        if not self.skip_if(end):
            item()
            while self.skip_if(","):
                item()
            if not self.skip_if(end):
                self.fail("Expecting ',' delimiter")
        self.builder.close()

    def entry(self) -> None:
        if self.next != '"':
            self.fail("Expecting property name enclosed in double quotes")
        position = self.lines.get_position(self.at)
        self.builder.key(self.scalar(position), position)
        if not self.skip_if(":"):
            self.fail("Expecting ':' delimiter")
        self.value()

    def scalar(self, position: Position) -> Any:
        """Return the next string, number, boolean or null."""
        try:
            value, end = self.decode(self.text, self.at)
        except json.JSONDecodeError:
            raise
        except ValueError:  # NaN and Infinity, and numbers with too many digits
            number = _NUMBER.match(self.text, self.at)
            if number is None or len(number[0]) <= 4300:
                self.fail("Expecting value")
            self.builder.problems.append(
                problems.make_long_number_problem(self.builder.locate(position), len(number[0]))
            )
            value, end = number[0], number.end()
        if isinstance(value, str) and _SURROGATE.search(value):
            self.fail("Half of a surrogate pair")
        self.at = end
        self.skip()
        return value
