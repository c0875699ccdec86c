"""Extraction of the JSON value from a model's answer, with or without surrounding text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from agentnb.errors import with_article
from agentnb.text import safe_repr

LONGEST: Final = 1_000_000  # characters of an answer, and values in it
DEEPEST: Final = 100  # nesting depth; the blackboard allows 200, and an answer is nested in something
MOST_STARTS: Final = 1000  # places in a text where JSON is searched for
BYTE_ORDER_MARK: Final = "\ufeff"  # some servers send one before the answer; it is not part of the text
_START: Final = re.compile(r"[{\[]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def find_json(answer: Any) -> Any:
    """Return the JSON value in an answer: of an LLMResponse, a value unchanged, or the JSON in a text.

    A text may be JSON as a whole, in a fenced block (the first that is JSON), or with words around it (then the longest
    object or array). Incomplete or invalid JSON is an error; parts of it are not used.

    Raises:
        ValueError: there is no JSON, or it is broken, has NaN or Infinity, is too long or nested too deeply.

    Example:
        >>> find_json('Here it is: {"title": "Rain"}')
        {'title': 'Rain'}
    """
    value = getattr(answer, "content", answer)
    if isinstance(value, str):
        value = _parse(value.removeprefix(BYTE_ORDER_MARK))
    elif value is None:
        raise ValueError("the answer is empty")
    _check(value)
    return value


def parse_whole_json(text: str) -> Any:
    """Return the JSON value of a text without a fence or surrounding words.

    Raises:
        ValueError: it is something else, has NaN or Infinity, is too long or nested too deeply.
    """
    if len(text) > LONGEST:
        raise ValueError(f"the answer is longer than {LONGEST:,} characters")
    value = _parse_json(text)
    _check(value)
    return value


def _parse(text: str) -> Any:
    if len(text) > LONGEST:
        raise ValueError(f"the answer is longer than {LONGEST:,} characters")
    if not text.strip():
        raise ValueError("the answer is empty")
    for part in (text, *_iter_fenced(text)):
        try:
            return _parse_json(part)
        except json.JSONDecodeError:
            continue
    return _find_longest_json(text)


def _iter_fenced(text: str) -> Iterator[str]:
    """Yield the content between lines of three backticks; the last block may be unterminated."""
    block: list[str] | None = None
    for line in text.splitlines():
        if not line.lstrip().startswith("```"):
            if block is not None:
                block.append(line)
        elif block is None:
            block = []
        else:
            yield "\n".join(block)
            block = None
    if block:
        yield "\n".join(block)


def _find_longest_json(text: str) -> Any:
    """Return the longest object or array in a text. After an error, the search continues behind it, never inside."""
    longest: tuple[int, Any] | None = None
    broken: json.JSONDecodeError | None = None
    start, tries = _START.search(text), 0
    while start and tries < MOST_STARTS:
        tries += 1
        try:
            value, end = _decode(text, start.start())
            if longest is None or end - start.start() > longest[0]:
                longest = (end - start.start(), value)
        except json.JSONDecodeError as error:
            end = max(error.pos, start.end())
            if error.pos > start.start() + 1 or start[0] == "{":  # text such as `[see below]` was not meant to be JSON
                broken = broken or error
        start = _START.search(text, end)
    if longest is not None:
        return longest[1]
    if broken is None:
        raise ValueError("the answer is not JSON")
    if broken.pos >= len(text.rstrip()) or broken.msg.startswith("Unterminated"):
        raise ValueError("the JSON in the answer breaks off")
    raise ValueError(f"the JSON in the answer has a mistake at character {broken.pos + 1}: {broken.msg}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def _parse_json(text: str) -> Any:
    stripped = text.strip()
    value, end = _decode(stripped, 0)
    if end < len(stripped):
        raise json.JSONDecodeError("Extra data", stripped, end)
    return value


def _decode(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:  # the parser's own depth limit
        raise ValueError(_make_depth_message()) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # a number with thousands of digits, or one of the rejected numbers
        raise ValueError(str(error) if "JSON" in str(error) else "a number in the answer is too long") from None


def _make_depth_message() -> str:
    return f"the answer is nested deeper than {DEEPEST} levels"


def _check(value: Any) -> None:
    """Raise an error for values that JSON does not have, including values other than text that contain themselves."""
    waiting, seen = [(value, 1)], 0
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if seen > LONGEST:
            raise ValueError(f"the answer has more than {LONGEST:,} values")
        if isinstance(item, Mapping | list | tuple):
            if depth > DEEPEST:
                raise ValueError(_make_depth_message())
            if isinstance(item, Mapping):
                non_text = [key for key in item if not isinstance(key, str)]
                if non_text:
                    raise ValueError(f"the key {safe_repr(non_text[0])} is not a string")
                waiting += [(key, depth) for key in item]
                item = item.values()
            waiting += [(part, depth + 1) for part in item]
        elif isinstance(item, str):
            if _SURROGATE.search(item):
                raise ValueError("the answer has half of a surrogate pair")
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise ValueError(f"{item} is not a JSON number")
        elif item is not None and not isinstance(item, int):
            raise ValueError(f"{with_article(type(item).__name__)} is not a JSON value")
