"""llm: asks the session's model with a prompt of templates, and maps its answer onto the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.kinds.context import context_of, odd, strictly
from agentnb.kinds.directives import Directives
from agentnb.kinds.results import ResultError, answer_of, check_result
from agentnb.recipe.model import Node
from agentnb.world.calls import asked_of, options_of, settings_of
from agentnb.world.llm.env import with_env
from agentnb.world.llm.simulated import mocked


def bind(node: Node, world: Any) -> Perform:
    """Return the function that renders `params["prompt"]` (pairs of a role and a template), asks, and maps the answer.

    The node's result is a mapping: status, text, json, items, result, error. An answer with a truthy `error` is a
    failure; each attempt is looked at. Without a model the answer is simulated.
    """
    params = node.params
    prompt = [(role, _ready(strictly(text, world.strict))) for role, text in params.get("prompt", ())]
    name, places = str(params.get("template", node.id)), Directives(node, world)
    settings, options = settings_of(params.get("model")), asked_of(world, options_of(node))

    async def perform(work: Work) -> Outcome:
        context = context_of(work)
        messages = [{"role": role, "content": str(template.render(context))} for role, template in prompt]
        arguments = {"messages": messages or [{"role": "user", "content": ""}], **settings}
        if world.llm is not None:
            effect = Effect("llm", name, arguments, check=_check, **options)
        else:
            mock = mocked(node.id)
            effect = Effect("agent", name, arguments, check=_check, target=lambda **_: mock, made_up=True, **options)
        answer = await work.call(effect)
        result = answer_of(answer)
        writes = places(work, result)
        thought = odd(*(text for _, text in prompt), places)
        return Outcome(places=writes, thought=thought, observation=result, result=result)

    return perform


def _check(answer: Any) -> None:
    """Raise for an answer that is a failure, or no answer at all.

    Raises:
        ResultError: its `error` says so, or it is neither a text nor a mapping (or a list, of a model that was asked
            for JSON).
    """
    content = getattr(answer, "content", answer)
    if not isinstance(content, str | Mapping | list):
        raise ResultError(f"the model answered a {type(content).__name__}, where a text or a dict was expected", {})
    check_result(answer)


def _ready(text: Any) -> Any:
    """Return a prompt's text with the environment variables that it names; each is hidden from what is shown."""
    names = getattr(text, "needs", ())
    return text.with_env(with_env({name: f"{{{{env.{name}}}}}" for name in names}, "a prompt")) if names else text


KIND = Kind("llm", bind, step_type="TOOL_EXECUTION", shape="box")
