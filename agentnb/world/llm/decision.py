"""decision: what a model has decided, read from its answer: call a tool, call none, or nothing that can be followed.

The protocol is symphony's: the whole answer is one JSON object, `{"tool_name": NAME, "parameters": {...}}` to call a
tool, `{"tool_name": "none", "response": TEXT}` to answer without one. A fence around it is tolerated, words are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from agentnb.world.llm.structured import whole_json
from agentnb.world.llm.wording import in_words

NONE: Final = "none"  # in place of a tool's name; written otherwise it is a tool's name
NO_TEXT: Final = "No tool was needed, and the model gave no answer of its own."
EMPTY: Final = "The model's answer was empty."
_FENCE: Final = re.compile(r"\s*```[ \t]*[\w-]*[ \t]*\r?\n(?P<inside>.*?)\r?\n?[ \t]*```\s*", re.DOTALL)

DecisionKind = Literal["tool", "none", "other"]


class UnreadableAnswer(ValueError):
    """An answer that is no JSON at all, where one JSON object was asked for."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model has decided.

    `kind` is `tool` (call `tool_name` with `parameters`), `none` (`response` is the answer) or `other`: it is JSON, and
    not what was asked for; then `response` is the answer as it came and `why` says what is missing. `fenced` says that
    a fence stood around it.
    """

    kind: DecisionKind
    tool_name: str = ""
    parameters: Any = field(default_factory=dict)
    response: str = ""
    why: str = ""
    fenced: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as a mapping, as it stands on the blackboard."""
        return asdict(self)


def decision_of(content: Any) -> Decision:
    """Return what an answer decides.

    Raises:
        UnreadableAnswer: it is empty, or no JSON.

    Example:
        >>> decision_of('{"tool_name": "search", "parameters": {"q": "rain"}}').tool_name
        'search'
        >>> decision_of('{"tool_name": "none", "response": "Hello"}').response
        'Hello'
        >>> decision_of('{"answer": 42}').why
        "it has no 'tool_name'"
    """
    if isinstance(content, Mapping | list):
        return _read(content, in_words(content), fenced=False)
    text = "" if content is None else str(content)
    if not text.strip():
        raise UnreadableAnswer("the model's answer is empty, where one JSON object was asked for")
    fence = _FENCE.fullmatch(text)
    inside = text if fence is None else fence["inside"]
    try:
        value = whole_json(inside)
    except ValueError as error:
        raise UnreadableAnswer(f"the answer is not the one JSON object that was asked for: {_told(error)}") from None
    return _read(value, text, fenced=fence is not None)


def _read(value: Any, text: str, *, fenced: bool) -> Decision:
    def other(why: str) -> Decision:
        return Decision("other", response=text, why=why, fenced=fenced)

    if not isinstance(value, Mapping):
        return other(f"it is {_sort(value)}, no JSON object")
    name = value.get("tool_name")
    name = value.get("toolName") if name is None else name
    if name is None:
        return other("it has no 'tool_name'")
    if not isinstance(name, str) or not name:
        return other(f"its 'tool_name' is {_sort(name)}, no name")
    if name == NONE:
        response = value.get("response")
        return Decision("none", NONE, response=NO_TEXT if response is None else as_text(response), fenced=fenced)
    if value.get("parameters") is None:
        return other(f"it names the tool {name!r} and has no 'parameters'")
    return Decision("tool", name, value["parameters"], fenced=fenced)


def as_text(value: Any) -> str:
    """Return a value as a person reads it: a text as it is, anything else as JSON."""
    return in_words(value)


def _told(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return str(error)


def _sort(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text" if value else "an empty text"
        case list():
            return "a list"
    return "an object"


__all__ = ["EMPTY", "NONE", "NO_TEXT", "Decision", "UnreadableAnswer", "as_text", "decision_of"]
