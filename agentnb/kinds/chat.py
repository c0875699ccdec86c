"""Sends the request on the board to an agent's model and writes the answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agentnb.board.masking import register_secrets
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import recording_failure
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import options_of
from agentnb.world.effect import Effect
from agentnb.world.llm.base import LLMResponse
from agentnb.world.llm.decision import UnreadableAnswer, decision_of
from agentnb.world.llm.simulated import mocked

_COUNTS = ("tokens_in", "tokens_out", "cost_usd")


def bind(node: Node, world: Any) -> Perform:
    """Return the function that sends the `request` on the board (messages and the settings of the request).

    It writes `answer` (the response, a text or mapping), `model` (the requested model), and `usage`, summed over the
    agent's requests. Without a model the answer is simulated in the requested form. If the request offers tools and the
    answer calls some, `answer` is a mapping of `content` and `tool_calls`.
    """
    name, options = str(node.params.get("name", node.id)), options_of(node)
    client = world.model_of(node)
    json = bool(node.params.get("json"))
    mock, has_model = _mock(name, json=json), client is not None
    asked = {**options, "made_up": True} if getattr(client, "made_up", False) else options

    async def perform(work: Work) -> Outcome:
        with recording_failure(work):
            request = dict(work.board["request"])
            if work.asks_model(has_model):
                hides = _hide_in_calls if request.get("tools") else _hide_secrets if json else None
                effect = Effect("llm", name, request, check=hides, **asked)
            else:
                effect = Effect("agent", name, request, target=lambda **_: mock, made_up=True, **options)
            answer = await work.call(effect)
        content = answer.said if isinstance(answer, LLMResponse) else getattr(answer, "content", answer)
        writes: dict[str, Any] = {"answer": content, "model": request.get("model")}
        writes["usage"] = _added(work.board.get("usage"), getattr(answer, "usage", None))
        return Outcome(writes, inputs=request, observation=content)

    return perform


def _hide_secrets(answer: Any) -> None:
    """Mask the values of secrets among the parameters in an answer, before any of it is recorded."""
    with suppress(UnreadableAnswer):
        register_secrets({"parameters": decision_of(getattr(answer, "content", answer)).parameters})


def _hide_in_calls(answer: Any) -> None:
    """Mask the values of secrets among the arguments of an answer's calls, before any of it is recorded."""
    register_secrets([{"parameters": call.arguments} for call in getattr(answer, "tool_calls", None) or ()])


def _added(before: Any, usage: Any) -> dict[str, Any]:
    """Return the total usage of the agent's requests; None if no model has reported any."""
    known = before if isinstance(before, Mapping) else {}
    found: dict[str, Any] = {"requests": known.get("requests", 0) + 1}
    for word in _COUNTS:
        parts = [part for part in (known.get(word), getattr(usage, word, None)) if part is not None]
        found[word] = sum(parts) if parts else None
    return found


def _mock(name: str, *, json: bool) -> Any:
    text = mocked(name)
    return {"tool_name": "none", "response": text} if json else text


KIND = Kind("chat", bind, step_type="REASONING", keeps=True)
