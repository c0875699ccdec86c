"""Asks the session's model with a prompt of templates, and maps the answer onto the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.errors import with_article
from agentnb.kinds.call_results import ResultError, check_result, to_answer
from agentnb.kinds.context import find_oddity, make_context, make_strict
from agentnb.kinds.directives import Directives
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import find_options, get_options, make_settings
from agentnb.world.effect import Effect
from agentnb.world.llm.env import Environment, substitute_env
from agentnb.world.llm.simulated import make_mock_answer


def bind(node: Node, world: Any) -> Perform:
    """Return the function that renders `params["prompt"]` (pairs of a role and a template), asks, and maps the answer.

    The node's result is a mapping: status, text, json, items, result, error. An answer with a truthy `error` is a
    failure; each attempt is checked. Without a model the answer is simulated. With `params["output"]` the answer is
    also written unchanged under this key.
    """
    params = node.params
    prompt = [
        (role, _prepare_text(make_strict(text, world.strict), world.environment))
        for role, text in params.get("prompt", ())
    ]
    name, directives = str(params.get("template", node.id)), Directives(node, world)
    key = params.get("output")
    settings, options = make_settings(params.get("model")), get_options(node)
    llm_options, mock, has_model = find_options(world, options), make_mock_answer(node.id), world.llm is not None

    async def perform(work: Work) -> Outcome:
        context = make_context(work)
        messages = [{"role": role, "content": str(template.render(context))} for role, template in prompt]
        arguments = {"messages": messages or [{"role": "user", "content": ""}], **settings}
        if work.asks_model(has_model):
            effect = Effect("llm", name, arguments, check=_check, **llm_options)
        else:
            effect = Effect(
                "agent", name, arguments, check=_check, target=lambda **_: mock, is_simulated=True, **options
            )
        answer = await work.call(effect)
        result = to_answer(answer)
        writes = directives(work, result)
        thought = find_oddity(*(text for _, text in prompt), directives)
        if key is not None:
            writes = [*writes, ((key,), getattr(answer, "content", answer))]
        return Outcome(nested_writes=writes, thought=thought, observation=result, result=result)

    return perform


def _check(answer: Any) -> None:
    """Raise for an answer that is a failure or not an answer at all.

    Raises:
        ResultError: its `error` is truthy, or it is neither a text nor a mapping (nor a list, if the model was asked
            for JSON).
    """
    content = getattr(answer, "content", answer)
    if not isinstance(content, str | Mapping | list):
        raise ResultError(
            f"the model answered with {with_article(type(content).__name__)}; expected a string or a dict", {}
        )
    check_result(answer)


def _prepare_text(text: Any, environment: Environment) -> Any:
    """Return a prompt's text with its environment variables substituted; their values are masked in all output."""
    names = getattr(text, "needs", ())
    if not names:
        return text
    where = str(text.place or "a prompt")
    return text.with_env(
        {name: substitute_env(f"{{{{env.{name}}}}}", where, allowed=environment.allowed) for name in names}
    )


KIND = Kind("llm", bind, step_type="TOOL_EXECUTION")
