"""Samples of symphony: agents with their tools, built in Python."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from agentnb.dialects.symphony import AgentConfig, AgentExecutor, ToolRegistry, tool

_RULES: Final = {
    "insult": "Hide the comment, and tell its author why. After the third time a person decides.",
    "advertising": "Hide the comment.",
    "question": "Leave the comment where it is.",
}


@tool
def find_rule(topic: str) -> str:
    """Look up what the house rules say about a sort of comment.

    Args:
        topic: one of insult, advertising, question.
    """
    if topic not in _RULES:
        raise LookupError(f"there is no rule about {topic!r}; there are rules about {', '.join(_RULES)}")
    return _RULES[topic]


@tool
def hide_comment(comment_id: int, reason: str) -> dict[str, Any]:
    """Hide a comment from everybody but its author.

    Args:
        comment_id: the number of the comment.
        reason: what its author is told.
    """
    return {"hidden": comment_id, "told": reason}


@tool
def call_moderator(comment_id: int) -> dict[str, Any]:
    """Leave the decision about a comment to a person.

    Args:
        comment_id: the number of the comment.
    """
    return {"waits_for": "a moderator", "comment": comment_id}


def moderation() -> AgentExecutor:
    """Return a moderator of comments: it looks up the rules, then acts on them by one of its tools."""
    registry = ToolRegistry()
    for each in (find_rule, hide_comment, call_moderator):
        registry.register_tool(each.__name__, each)
    config = AgentConfig(
        name="Moderation",
        description="keeps the comments of a small newspaper friendly",
        task="Decide what happens to a comment, by the house rules",
        tools=["find_rule", "hide_comment", "call_moderator"],
        directives="Look up the rule before you act. Never argue with readers.",
        max_calls=3,
    )
    simulated = [
        {"tool_name": "find_rule", "parameters": {"topic": "insult"}},
        {"tool_name": "hide_comment", "parameters": {"comment_id": 7, "reason": "It insults another reader."}},
        {"tool_name": "none", "response": "Comment 7 is hidden, and Kim was told why."},
    ]
    executor = AgentExecutor(config, tools=registry, simulated=simulated)
    executor.recipe = replace(executor.recipe, init=MappingProxyType({"task": "Comment 7 by Kim: You are a fool."}))
    return executor


_ORDERS: Final = {
    1001: {"item": "a lamp", "price": 40, "paid": True},
    1002: {"item": "a desk", "price": 260, "paid": False},
}


@tool
def find_order(number: int) -> dict[str, Any]:
    """Look up an order.

    Args:
        number: the number on the invoice.
    """
    if number not in _ORDERS:
        raise LookupError(f"there is no order {number}")
    return dict(_ORDERS[number])


@tool
def refund(number: int, amount: float) -> dict[str, Any]:
    """Pay money back for an order.

    Args:
        number: the number on the invoice.
        amount: in euros, at most the price.
    """
    order = find_order(number)
    if not order["paid"] or amount > order["price"]:
        raise ValueError(f"order {number} cannot be refunded with {amount} euros")
    return {"refunded": amount, "order": number}


def support() -> AgentExecutor:
    """Return a clerk of a shop: it looks up an order, and pays money back by its other tool."""
    registry = ToolRegistry()
    for each in (find_order, refund):
        registry.register_tool(each.__name__, each)
    config = AgentConfig(
        name="Support",
        description="a patient clerk of a small shop",
        task="Help customers with their orders",
        tools=["find_order", "refund"],
        directives="Look an order up before you pay money back.",
        max_calls=3,
    )
    simulated = [
        {"tool_name": "find_order", "parameters": {"number": 1001}},
        {"tool_name": "refund", "parameters": {"number": 1001, "amount": 40}},
        {"tool_name": "none", "response": "I am sorry about the lamp. The 40 euros are on their way to you."},
    ]
    executor = AgentExecutor(config, tools=registry, simulated=simulated)
    task = "My lamp (order 1001) arrived broken. I want my 40 euros back."
    executor.recipe = replace(executor.recipe, init=MappingProxyType({"task": task}))
    return executor
