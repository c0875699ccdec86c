"""agent: an AI agent: bound to a callable, else answered by the session's model, else simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node
from agentnb.world.calls import arguments_of, check_signature, positional
from agentnb.world.llm.simulated import mocked
from agentnb.world.world import asked_before


def bind(node: Node, world: Any) -> Perform:
    """Return the function that runs the agent named by `params["ref"]`.

    A mapping that it answers is merged into the board; anything else is written under `params["output"]`.

    Raises:
        RecipeError: the bound callable could never be called with the node's inputs.
    """
    ref, key = str(node.params.get("ref", node.id)), str(node.params.get("output", node.id))
    arguments = arguments_of(node.inputs or {})
    if is_simulated(node, world):
        effect_of = _simulated(ref, key, node.params.get("simulated"))
    elif world.tools.get(ref) is not None:
        effect_of = _bound(node, ref, world.tool(ref, node))
    else:
        effect_of = _asking(node, ref)

    async def perform(work: Work) -> Outcome:
        given = arguments(work)
        answer = await work.call(effect_of(work, given))
        answer = getattr(answer, "content", answer)
        writes = {} if answer is None else answer if isinstance(answer, Mapping) else {key: answer}
        return Outcome(writes, inputs=given, observation=dict(writes))

    return perform


def is_simulated(node: Node, world: Any) -> bool:
    """Say whether an agent's answers are made up: nothing is bound to it, and there is no model to ask."""
    return world.llm is None and world.tools.get(str(node.params.get("ref", node.id))) is None


EffectOf = Callable[[Work, dict[str, Any]], Effect]


def _bound(node: Node, ref: str, function: Callable[..., Any]) -> EffectOf:
    if node.inputs:
        check_signature(node, function)
    elif positional(function):  # without inputs it is given the board, where it takes one
        return lambda work, _given: Effect("agent", ref, {}, target=lambda: function(work.board))
    return lambda _work, given: Effect("agent", ref, given, target=function)


def _asking(node: Node, ref: str) -> EffectOf:
    system = node.params.get("prompt")

    def effect(_work: Work, given: dict[str, Any]) -> Effect:
        text = "\n".join(
            f"{name}: {value if isinstance(value, str) else _json(value)}" for name, value in given.items()
        )
        messages = [{"role": "system", "content": str(system)}] if system else []
        return Effect("llm", ref, {"messages": [*messages, {"role": "user", "content": text or ref}]})

    return effect


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _simulated(ref: str, key: str, script: Sequence[Mapping[str, Any]] | None) -> EffectOf:
    """Answer what the recipe says that a simulated agent answers, in turn and then the last again; else a mock."""
    if not script:
        return lambda _work, given: Effect("agent", ref, given, target=lambda **_: {key: mocked(ref)})

    def effect(work: Work, given: dict[str, Any]) -> Effect:
        turn = min(asked_before(work, "agent", work.node.id), len(script) - 1)
        return Effect("agent", ref, given, target=lambda **_: dict(script[turn]))

    return effect


KIND = Kind("agent", bind, step_type="TOOL_EXECUTION", shape="box")
