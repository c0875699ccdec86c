"""An AI agent: answered by a bound callable, otherwise by the session's model, otherwise simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from agentnb.board.values import FrozenDict, freeze
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.kinds.context import Text, compile_text
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import (
    check_signature,
    compile_arguments,
    find_options,
    get_options,
    make_settings,
    takes_board,
    to_writes,
)
from agentnb.world.effect import Effect
from agentnb.world.llm.base import SIMULATED
from agentnb.world.llm.simulated import SimulatedClient, make_mock_answer
from agentnb.world.llm.structured import find_json
from agentnb.world.llm.text import to_text
from agentnb.world.world import count_earlier_calls

# Kinds answered by a bound callable, otherwise by a model, otherwise by simulated data.
ASKING: Final = frozenset({"agent", "evaluator", "generative", "llm"})
MODEL_KINDS: Final = ASKING | {"chat"}


def bind(node: Node, world: Any) -> Perform:
    """Return the function that runs the agent named by `params["ref"]`.

    A mapping in the answer is merged into the board; anything else is written under `params["output"]`. A model
    receives `params["prompt"]` first, a text or a template; `params["model"]` is its name, or a mapping of the
    request's settings. A model answers in text: if that is one JSON object, it counts as a mapping.

    Raises:
        RecipeError: the bound callable cannot be called with the node's inputs.
    """
    ref, key = str(node.params.get("ref", node.id)), str(node.params.get("output", node.id))
    arguments, options = compile_arguments(node.inputs or {}), get_options(node)
    if world.tools.get(ref) is not None:
        own = _make_bound_effect(node, ref, world.tool(ref, node), options)
    else:
        own = _simulate(ref, key, node.params.get("simulated"), options)
    asking = _make_asking_effect(
        node, ref, find_options(world, options), compile_text(node.params.get("prompt"), world.strict)
    )
    usual = needs_model(node, world)

    async def perform(work: Work) -> Outcome:
        inputs = arguments(work)
        by_model = work.asks_model(usual)
        answer = await work.call((asking if by_model else own)(work, inputs))
        if type(answer) is FrozenDict:
            return Outcome(answer, inputs=inputs, observation=answer)
        answer = getattr(answer, "content", answer)
        if by_model and isinstance(answer, str) and answer.lstrip().startswith(_JSON_STARTS):
            answer = _parse_object(answer)
        writes = to_writes(key, answer)
        return Outcome(writes, inputs=inputs, observation=dict(writes))

    return perform


def is_simulated(node: Node, world: Any) -> bool:
    """Return True if a node's answers are simulated: it has neither a bound callable nor a model."""
    return node.kind in ASKING and world.llm is None and not _is_bound(node, world)


def needs_model(node: Node, world: Any) -> bool:
    """Return True if a node of ASKING is answered by the session's model: there is one and no bound callable."""
    return world.llm is not None and not _is_bound(node, world)


def _is_bound(node: Node, world: Any) -> bool:
    return node.kind != "llm" and world.tools.get(str(node.params.get("ref", node.id))) is not None


def is_simulated_answer(work: Work) -> bool:
    """Return True if the last answer of a step was simulated, as its call states, because there was no model."""
    last = work.calls[-1]
    return last.kind == "agent" and last.provider == SIMULATED


def has_only_simulated_model(node: Node, world: Any) -> bool:
    """Return True if a node asks a model and there is only a simulated one, neither its own nor the session's."""
    if is_simulated(node, world):
        return True
    bound = node.kind == "agent" and world.tools.get(str(node.params.get("ref", node.id))) is not None
    model = world.model_of(node)
    simulated = isinstance(model, SimulatedClient) or (node.kind == "chat" and model is None)
    return simulated and node.kind in MODEL_KINDS and not bound


# How the text of a model begins that is one JSON object, perhaps in a code fence.
_JSON_STARTS: Final = ("{", "```")


def _parse_object(text: str) -> Any:
    """Return the JSON object in a model's text; the text unchanged if it holds none."""
    with suppress(ValueError):
        value = find_json(text)
        if isinstance(value, Mapping):
            return dict(value)
    return text


EffectOf = Callable[[Work, dict[str, Any]], Effect]
Options = Mapping[str, Any]


def _make_bound_effect(node: Node, ref: str, function: Callable[..., Any], options: Options) -> EffectOf:
    if node.inputs:
        check_signature(node, function)
    elif takes_board(function):  # without inputs it receives the board, if it accepts an argument
        return lambda work, _given: Effect(
            "agent", ref, {}, target=lambda: function(work.board), reads_board=True, **options
        )
    return lambda _work, inputs: Effect("agent", ref, inputs, target=function, **options)


def _make_asking_effect(node: Node, ref: str, options: Options, prompt: Text) -> EffectOf:
    settings = make_settings(node.params.get("model"))

    def effect(work: Work, inputs: dict[str, Any]) -> Effect:
        text = "\n".join(f"{name}: {to_text(value)}" for name, value in inputs.items())
        system = prompt(work.board)
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text or ref})
        return Effect("llm", ref, {**settings, "messages": messages}, **options)

    return effect


def find_simulated_answer(script: Sequence[Any], work: Work) -> Any:
    """Return the next simulated answer of a node: each call takes one, and the last one is repeated."""
    answer = script[min(count_earlier_calls(work, "agent", work.node.id), len(script) - 1)]
    return dict(answer) if isinstance(answer, Mapping) else answer


def _simulate(ref: str, key: str, script: Sequence[Any] | None, options: Options) -> EffectOf:
    """Answer with the recipe's simulated answers in order, repeating the last; without any, with a mock."""
    if not script:
        answer = freeze({key: make_mock_answer(ref)})

        def target(**_: Any) -> Any:
            return answer

        options = {**options, "target": target, "is_simulated": True}
        same = Effect("agent", ref, {}, **options)
        return lambda _work, inputs: Effect("agent", ref, inputs, **options) if inputs else same

    def effect(work: Work, inputs: dict[str, Any]) -> Effect:
        answer = find_simulated_answer(script, work)
        return Effect("agent", ref, inputs, target=lambda **_: answer, is_simulated=True, **options)

    return effect


KIND = Kind("agent", bind, step_type="TOOL_EXECUTION")
