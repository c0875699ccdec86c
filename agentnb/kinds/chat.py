"""chat: asks an agent's model with the request that stands on the board, and writes what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agentnb.board.secrets import hide_found
from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.kinds.agent_parts import told_why
from agentnb.recipe.model import Node
from agentnb.world.calls import asked_of, options_of
from agentnb.world.llm.decision import UnreadableAnswer, decision_of
from agentnb.world.llm.simulated import mocked

_COUNTS = ("tokens_in", "tokens_out", "cost_usd")


def bind(node: Node, world: Any) -> Perform:
    """Return the function that sends what stands at `request` (messages, and the settings of the request).

    It writes `answer` (what came, text or a mapping), `model` (which one was asked for), and `usage`, which adds up
    over the agent's requests. Without a model the answer is made up, in the form that was asked for.
    """
    name, options = str(node.params.get("name", node.id)), options_of(node)
    client = world.model_of(node)
    made_up = client is None or bool(getattr(client, "made_up", False))
    json = bool(node.params.get("json"))
    mock = _mock(name, json=json)
    asked = {**asked_of(world, options), "made_up": True} if made_up else options

    async def perform(work: Work) -> Outcome:
        with told_why(work):
            request = dict(work.board["request"])
            if client is None:
                effect = Effect("agent", name, request, target=lambda **_: mock, **asked)
            else:
                effect = Effect("llm", name, request, check=_hide_secrets if json else None, **asked)
            answer = await work.call(effect)
        content = getattr(answer, "content", answer)
        writes: dict[str, Any] = {"answer": content, "model": request.get("model")}
        writes["usage"] = _added(work.board.get("usage"), getattr(answer, "usage", None))
        return Outcome(writes, inputs=request, observation=content)

    return perform


def _hide_secrets(answer: Any) -> None:
    """Hide what stands under a secret's name among the parameters in an answer, before anything of it is kept."""
    with suppress(UnreadableAnswer):
        hide_found({"parameters": decision_of(getattr(answer, "content", answer)).parameters})


def _added(before: Any, usage: Any) -> dict[str, Any]:
    """Return what all requests of the agent took so far; None where no model has said."""
    known = before if isinstance(before, Mapping) else {}
    found: dict[str, Any] = {"requests": known.get("requests", 0) + 1}
    for word in _COUNTS:
        parts = [part for part in (known.get(word), getattr(usage, word, None)) if part is not None]
        found[word] = sum(parts) if parts else None
    return found


def _mock(name: str, *, json: bool) -> Any:
    text = mocked(name)
    return {"tool_name": "none", "response": text} if json else text


KIND = Kind("chat", bind, step_type="REASONING", shape="box", keeps=True)
