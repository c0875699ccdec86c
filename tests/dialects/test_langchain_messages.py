"""What a LangChain program requires of a model is asked of the session's model."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from agentnb.dialects.langchain_messages import Exchange


@tool
def one(a: int) -> int:
    """One."""
    return a


@tool
def two(b: int) -> int:
    """Two."""
    return b


@pytest.mark.parametrize(
    ("tools", "choice", "required"),
    [
        ([one, two], "two", "two"),
        ([one, two], {"type": "function", "function": {"name": "two"}}, "two"),
        ([one, two], {"type": "tool", "name": "two"}, "two"),
        ([one, two], {"name": "none of them"}, None),
        ([one, two], {"type": "auto"}, None),
        ([one, two], "auto", None),
        ([one, two], "none", None),
        ([one, two], None, None),
        ([one, two], True, None),
        ([one, two], "any", None),
        ([two], True, "two"),
        ([two], "any", "two"),
        ([two], "required", "two"),
        ([two], {"type": "any"}, "two"),
        ([], "any", None),
    ],
)
def test_a_tool_is_required_if_it_is_named_or_the_only_one(tools: list[Any], choice: Any, required: str | None):
    exchange = Exchange([HumanMessage("go")], None, {"tools": tools, "tool_choice": choice})
    assert (exchange.required or {}).get("name") == required
    assert ("tools" in exchange.arguments) is (required is None and bool(tools))
    assert ("schema" in exchange.arguments) is (required is not None)
