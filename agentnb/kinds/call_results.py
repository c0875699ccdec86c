"""The result of a tool or model call as a mapping with a key `error`; a truthy error is the call's failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentnb.world.llm.structured import find_json
from agentnb.world.tools.invocation import find_failure

_EMPTY: Final = {"status": 200, "text": None, "json": None, "items": None, "result": None, "error": None}


class ResultError(Exception):
    """A call returned an error; `result` is the whole answer."""

    def __init__(self, message: str, result: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.result = dict(result)


def check_result(value: Any) -> None:
    """Raise if the `error` of an answer is truthy.

    Raises:
        ResultError: it is.
    """
    content = getattr(value, "content", value)
    message = find_failure(content)
    if message is not None:
        raise ResultError(message, content)


def to_answer(value: Any) -> dict[str, Any]:
    """Return a model's answer as a mapping: status, text, json, items, result and error."""
    content = getattr(value, "content", value)
    if isinstance(content, Mapping) and content.keys() & {"error", "text", "result"}:
        return {**_EMPTY, "result": content.get("text"), **content}
    text = content if isinstance(content, str) else None
    return {**_EMPTY, "text": text, "json": _parse_json(content), "result": content}


def _parse_json(content: Any) -> Any:
    """Return an answer parsed as JSON; None for any other text."""
    if not isinstance(content, str):
        return content
    if not content.lstrip().startswith(("{", "[", "```")):
        return None
    try:
        return find_json(content)
    except ValueError:
        return None
