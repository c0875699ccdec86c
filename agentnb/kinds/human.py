"""Asks a person and writes the answer. Without a script the session waits for the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.expressions.json_schema import Schema
from agentnb.kinds.context import compile_text
from agentnb.recipe.model import Node
from agentnb.text import safe_repr
from agentnb.world.call_arguments import get_options
from agentnb.world.effect import Effect


def bind(node: Node, world: Any) -> Perform:
    """Return the function that asks `params["prompt"]`, a text or a template, and writes the answer to `output`.

    The person sees `options` to choose from, the `schema` (a JSON Schema) that the answer must match, the requested
    `role`, and the `timeout` in seconds. With `options`, only one of them, or its text, is a valid answer: surrounding
    spaces are ignored, case matters.
    """
    params = node.params
    key = str(params.get("output", "response"))
    prompt = compile_text(params.get("prompt") or node.label or node.id, world.strict)
    options, schema = tuple(params.get("options") or ()), params.get("schema")
    arguments: dict[str, Any] = {}
    if options:
        arguments["options"] = list(options)
    if schema is not None:
        arguments["schema"] = thaw(freeze(schema))
    if role := params.get("role"):
        arguments["role"] = str(role)
    timeout = get_options(node).get("timeout")
    if timeout is not None:
        arguments["timeout"] = timeout
    check = _answer_check(node.id, options, None if schema is None else Schema(schema))

    async def perform(work: Work) -> Outcome:
        question = Effect("human", node.id, {"prompt": prompt(work.board), **arguments}, timeout, check=check)
        response = await work.call(question)
        chosen = _find_option(response, options)
        answer = {key: response if chosen is ABSENT else chosen}
        return Outcome(answer, observation=answer)

    return perform


def _find_option(answer: Any, options: Sequence[Any]) -> Any:
    """Return the option that equals an answer or has its text; ABSENT if there is none."""
    value = answer.strip() if isinstance(answer, str) else thaw(answer)
    same = (option for option in options if option == value and isinstance(option, bool) is isinstance(value, bool))
    texts = (option for option in options if isinstance(value, str) and format_option(option) == value)
    return next(same, next(texts, ABSENT))


def _correct_case(answer: Any, texts: Sequence[str]) -> str:
    """Return the text that differs from an answer in case only, otherwise the answer."""
    shown = safe_repr(answer) if not isinstance(answer, str) else answer.strip()
    return next((text for text in texts if text.casefold() == shown.casefold()), shown)


def format_option(option: Any) -> str:
    """Return the text that a person types or clicks to choose an option."""
    return ("yes" if option else "no") if isinstance(option, bool) else str(option).strip()


def _answer_check(node: str, options: Sequence[Any], schema: Schema | None) -> Callable[[Any], None] | None:
    """Return the check that refuses an invalid answer; None if any answer is valid.

    X144: an answer does not match the node's schema
    X147: an answer is not one of the options
    """
    if not options and schema is None:
        return None

    def check(answer: Any) -> None:
        if options and _find_option(answer, options) is ABSENT:
            texts = [format_option(option) for option in options]
            raise ExecutionError(
                Problem("X147", f"{safe_repr(answer)} is not one of the options of {node!r}", f"node {node!r}",
                        f"its options are: {', '.join(texts)}; upper and lower case differ",
                        did_you_mean(_correct_case(answer, texts), texts, "answer one of them"))
            )  # fmt: skip
        fault = None if schema is None else next(schema.faults(thaw(answer)), None)
        if fault is not None:
            raise ExecutionError(
                Problem("X144", f"the answer to {node!r} does not match its schema", f"node {node!r}",
                        fault.rule or fault.message, "answer with a value that matches its `schema`")
            )  # fmt: skip

    return check


KIND = Kind("human", bind, step_type="INTERACTION")
