"""Adapters for the models of agentruntime's callers: functions of a node and its prompt; or no model at all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from agentnb.errors import AgentRuntimeError, Problem
from agentnb.kinds.context import get_own_id
from agentnb.recipe.model import Node, Recipe
from agentnb.world.llm.base import LLMRequest, LLMResponse

Asked = Callable[[Any, dict[str, str], float | None], Any]


class Caller:
    """A client that calls a function of (node, prompt, timeout in seconds)."""

    def __init__(self, recipe: Recipe, ask: Asked) -> None:
        self.recipe, self.ask = recipe, ask

    def complete(self, request: LLMRequest) -> Any:
        """Return the function's answer, awaited if necessary."""
        node = self.recipe.nodes[request.node]
        keys = [text.key for _, text in node.params.get("prompt", ())]
        texts = [message.content for message in request.messages]
        answer = self.ask(make_node_description(node), dict(zip(keys, texts, strict=False)), node.params.get("timeout"))
        return _await_response(answer) if inspect.isawaitable(answer) else LLMResponse(answer, model="callable")


async def _await_response(answer: Any) -> LLMResponse:
    return LLMResponse(await answer, model="callable")


def make_node_description(node: Node) -> SimpleNamespace:
    """Return the description of a node for a caller's function: its id, type, name and prompt."""
    prompt = node.params.get("template")
    own = get_own_id(node)
    name = None if node.label in ("", own) else node.label
    return SimpleNamespace(id=own, type=node.kind, name=name, prompt=prompt)


class NoModel:
    """The client if there is no model: a node that uses it ends the run. `why` is the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def complete(self, request: LLMRequest) -> Mapping[str, Any]:
        """Raise an error: there is no model.

        Raises:
            AgentRuntimeError: X417, always.
        """
        raise AgentRuntimeError(
            Problem("X417", f"node {request.node!r} needs a model, but there is none", f"node {request.node!r}",
                    f"neither llm_client nor llm_callable was passed, and {self.why}",
                    "pass one of them, or set meta.defaults.llm and its provider under meta.providers")
        )  # fmt: skip
