"""agent: an AI agent: bound to a callable, else answered by the session's model, else simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentnb.board.values import FrozenDict, freeze
from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.recipe.model import Node
from agentnb.world.calls import arguments_of, asked_of, check_signature, options_of, positional, settings_of
from agentnb.world.llm.simulated import mocked
from agentnb.world.llm.wording import in_words
from agentnb.world.world import asked_before

# Kinds that ask somebody: who is bound to them, else a model, else they make up what they answer.
ASKING: Final = frozenset({"agent", "evaluator", "generative", "llm"})


def bind(node: Node, world: Any) -> Perform:
    """Return the function that runs the agent named by `params["ref"]`.

    A mapping that it answers is merged into the board; anything else is written under `params["output"]`. A model is
    told `params["prompt"]` first; `params["model"]` names it, or is a mapping of the request's settings.

    Raises:
        RecipeError: the bound callable could never be called with the node's inputs.
    """
    ref, key = str(node.params.get("ref", node.id)), str(node.params.get("output", node.id))
    arguments, options = arguments_of(node.inputs or {}), options_of(node)
    if is_simulated(node, world):
        effect_of = _simulated(ref, key, node.params.get("simulated"), options)
    elif world.tools.get(ref) is not None:
        effect_of = _bound(node, ref, world.tool(ref, node), options)
    else:
        effect_of = _asking(node, ref, asked_of(world, options))

    async def perform(work: Work) -> Outcome:
        given = arguments(work)
        answer = await work.call(effect_of(work, given))
        if answer.__class__ is FrozenDict:
            return Outcome(answer, inputs=given, observation=answer)
        answer = getattr(answer, "content", answer)
        writes = {} if answer is None else answer if isinstance(answer, Mapping) else {key: answer}
        return Outcome(writes, inputs=given, observation=writes if writes.__class__ is dict else dict(writes))

    return perform


def is_simulated(node: Node, world: Any) -> bool:
    """Say whether what a node answers is made up: it asks somebody, nobody is bound to it, and there is no model."""
    bound = node.kind != "llm" and world.tools.get(str(node.params.get("ref", node.id))) is not None
    return node.kind in ASKING and world.llm is None and not bound


EffectOf = Callable[[Work, dict[str, Any]], Effect]
Options = Mapping[str, Any]


def _bound(node: Node, ref: str, function: Callable[..., Any], options: Options) -> EffectOf:
    if node.inputs:
        check_signature(node, function)
    elif positional(function):  # without inputs it is given the board, where it takes one
        return lambda work, _given: Effect("agent", ref, {}, target=lambda: function(work.board), **options)
    return lambda _work, given: Effect("agent", ref, given, target=function, **options)


def _asking(node: Node, ref: str, options: Options) -> EffectOf:
    system, settings = node.params.get("prompt"), settings_of(node.params.get("model"))

    def effect(_work: Work, given: dict[str, Any]) -> Effect:
        text = "\n".join(f"{name}: {in_words(value)}" for name, value in given.items())
        messages = [{"role": "system", "content": str(system)}] if system else []
        messages.append({"role": "user", "content": text or ref})
        return Effect("llm", ref, {**settings, "messages": messages}, **options)

    return effect


def _simulated(ref: str, key: str, script: Sequence[Mapping[str, Any]] | None, options: Options) -> EffectOf:
    """Answer what the recipe says that a simulated agent answers, in turn and then the last again; else a mock."""
    if not script:
        answer = freeze({key: mocked(ref)})

        def target(**_: Any) -> Any:
            return answer

        options = {**options, "target": target, "made_up": True}
        same = Effect("agent", ref, {}, **options)
        return lambda _work, given: Effect("agent", ref, given, **options) if given else same

    def effect(work: Work, given: dict[str, Any]) -> Effect:
        turn = min(asked_before(work, "agent", work.node.id), len(script) - 1)
        return Effect("agent", ref, given, target=lambda **_: dict(script[turn]), made_up=True, **options)

    return effect


KIND = Kind("agent", bind, step_type="TOOL_EXECUTION", shape="box")
