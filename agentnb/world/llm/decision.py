"""The decision in a model's answer: call a tool, call none, or an answer that cannot be followed.

The protocol is symphony's: the whole answer is one JSON object, `{"tool_name": NAME, "parameters": {...}}` to call a
tool, `{"tool_name": "none", "response": TEXT}` to answer without one. A surrounding code fence is accepted, surrounding
text is not. A model that is offered tools natively calls any number of them, or answers in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from agentnb.world.llm.base import ToolCall, parse_tool_calls
from agentnb.world.llm.structured import BYTE_ORDER_MARK, parse_whole_json
from agentnb.world.llm.text import to_text

NONE: Final = "none"  # in place of a tool's name; any other spelling is the name of a tool
NO_TEXT: Final = "No tool was needed, and the model did not give an answer."
EMPTY: Final = "The model's answer was empty."
_FENCE: Final = re.compile(r"\s*```[ \t]*[\w-]*[ \t]*\r?\n(?P<inside>.*?)\r?\n?[ \t]*```\s*", re.DOTALL)

DecisionKind = Literal["tool", "none", "other"]


class UnreadableAnswer(ValueError):
    """An answer is not JSON, although one JSON object was required."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a model.

    `kind` is `tool` (call `tool_name` with `parameters`), `none` (`response` is the answer) or `other`: valid JSON that
    does not have the required form; `response` is then the original answer and `why` states what is missing. `fenced`
    is True if the answer was in a code fence.
    """

    kind: DecisionKind
    tool_name: str = ""
    parameters: Any = field(default_factory=dict)
    response: str = ""
    why: str = ""
    fenced: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as a mapping, as on the blackboard."""
        return asdict(self)


def parse_decision(content: Any) -> Decision:
    """Return the decision in an answer.

    Raises:
        UnreadableAnswer: it is empty or not JSON.

    Example:
        >>> parse_decision('{"tool_name": "search", "parameters": {"q": "rain"}}').tool_name
        'search'
        >>> parse_decision('{"tool_name": "none", "response": "Hello"}').response
        'Hello'
        >>> parse_decision('{"answer": 42}').why
        "it has no 'tool_name'"
    """
    if isinstance(content, Mapping | list):
        return _read(content, to_text(content), fenced=False)
    text = "" if content is None else str(content).removeprefix(BYTE_ORDER_MARK)
    if not text.strip():
        raise UnreadableAnswer("the model's answer is empty; one JSON object was requested")
    fence = _FENCE.fullmatch(text)
    inside = text if fence is None else fence["inside"]
    try:
        value = parse_whole_json(inside)
    except ValueError as error:
        raise UnreadableAnswer(
            f"the answer is not the one JSON object that was requested: {_describe(error)}"
        ) from None
    return _read(value, text, fenced=fence is not None)


def parse_native_decisions(answer: Any) -> list[Decision]:
    """Return the decisions in an answer with native tool calls: its calls in order, or its answer alone.

    Raises:
        UnreadableAnswer: there is neither text nor a call.

    Example:
        >>> calls = [{"id": "1", "name": "search", "arguments": {"q": "rain"}}]
        >>> [each.tool_name for each in parse_native_decisions({"content": "", "tool_calls": calls})]
        ['search']
        >>> parse_native_decisions("It rains.")[0].response
        'It rains.'
    """
    if calls := find_tool_calls(answer):
        return [Decision("tool", call.name, call.arguments) for call in calls]
    text = "" if answer is None else to_text(answer)
    if not text.strip():
        raise UnreadableAnswer("the model's answer is empty: there is neither text nor a tool call")
    return [Decision("none", NONE, response=text)]


def find_tool_calls(answer: Any) -> tuple[ToolCall, ...]:
    """Return the tool calls in an answer as recorded (see `LLMResponse.recorded_value`); empty if there are none."""
    return parse_tool_calls(answer.get("tool_calls")) if isinstance(answer, Mapping) else ()


def count_calls(conversation: Iterable[Mapping[str, Any]] | None) -> int:
    """Return the number of tool calls in a conversation: each has a message with its result, even if not made.

    The results are counted, because this does not copy any part of a message.
    """
    return sum(message["role"] == "tool" for message in conversation or ())


def _read(value: Any, text: str, *, fenced: bool) -> Decision:
    def make_other(why: str) -> Decision:
        return Decision("other", response=text, why=why, fenced=fenced)

    if not isinstance(value, Mapping):
        return make_other(f"it is {_sort(value)}, not a JSON object")
    name = value.get("tool_name")
    name = value.get("toolName") if name is None else name
    if name is None:
        return make_other("it has no 'tool_name'")
    if not isinstance(name, str) or not name:
        return make_other(f"its 'tool_name' is {_sort(name)}, not a name")
    if name == NONE:
        response = value.get("response")
        return Decision("none", NONE, response=NO_TEXT if response is None else to_text(response), fenced=fenced)
    if value.get("parameters") is None:
        return make_other(f"it names the tool {name!r} and has no 'parameters'")
    return Decision("tool", name, value["parameters"], fenced=fenced)


def _describe(error: Exception) -> str:
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


__all__ = [
    "EMPTY",
    "NONE",
    "NO_TEXT",
    "Decision",
    "UnreadableAnswer",
    "count_calls",
    "find_tool_calls",
    "parse_decision",
    "parse_native_decisions",
    "to_text",
]  # fmt: skip
