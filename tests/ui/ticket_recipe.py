"""A small recipe for the tests of the screen: sort a ticket, ask a person, refund or refuse, tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.session import Session

KEY = "sk-very-secret"


class When:
    """A condition of a test: whether a key has a value."""

    def __init__(self, key: str, value: Any) -> None:
        self.key, self.value, self.text = key, value, f"{key} == {value!r}"
        self.reads = ((key,),)

    def __call__(self, board: Mapping[str, Any], /) -> bool:
        return bool(board.get(self.key) == self.value)


def classify(ticket):
    return {"category": "refund" if "back" in ticket else "other"}


def refund(decision):
    return {"reply": f"refund: {decision}"}


def refuse():
    return {"reply": "no"}


def tell(board):
    if board["reply"] == "refund: explode":
        raise ValueError("<b>the till is empty</b>")
    return {"sent": True}


def recipe():
    ask = {"prompt": "Refund <i>this</i>?", "output": "decision", "options": ["yes", "no", "explode"]}
    nodes = [
        Node("classify", "function", inputs={"ticket": ("ticket",)}, reads=("ticket",), writes=("category",),
             params={"function": classify}),
        Node("ask", "human", label="Ask the owner", reads=("ticket",), writes=("decision",), params=ask),
        Node("refund", "function", inputs={"decision": ("decision",)}, reads=("decision",), writes=("reply",),
             params={"function": refund}),
        Node("refuse", "function", writes=("reply",), params={"function": refuse}),
        Node("tell", "function", params={"function": tell}),
    ]  # fmt: skip
    edges = (
        Edge("classify", "ask", "conditional", When("category", "refund"), "category == 'refund'"),
        Edge("classify", "refuse"),
        Edge("ask", "refund"),
        Edge("refund", "tell"),
        Edge("refuse", "tell"),
    )
    inputs = {"ticket": str, "api_key": str}
    return Recipe("triage", "test", {node.id: node for node in nodes}, edges, ("classify",), inputs, ("reply",))


def session(ticket="money back", **options):
    """Return a session that asks a person where the ticket wants money back."""
    return Session(recipe(), {"ticket": ticket, "api_key": KEY}, validate_inputs=False, **options)
