"""The stages of an agent that talks to a model and calls tools: prompt, chat, parse, pick and use.

The symphony dialect makes an agent of them, and an agent that is a node of any other recipe has them inside. Recipes
do not name them, so they are not public kinds. Each stage that fails writes to the agent's board why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from agentnb.board.masking import register_secrets
from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Append, Kind, Outcome, Perform, Work
from agentnb.errors import AgentRuntimeError, ExecutionError, Problem, format_advice, format_error
from agentnb.kinds.agent import find_simulated_answer
from agentnb.kinds.context import ODD, get_own_id
from agentnb.recipe.model import Node
from agentnb.world.call_arguments import get_options
from agentnb.world.effect import Effect
from agentnb.world.llm.base import LLMResponse, ToolDefinition
from agentnb.world.llm.decision import (
    UnreadableAnswer,
    count_calls,
    find_tool_calls,
    parse_decision,
    parse_native_decisions,
    to_text,
)
from agentnb.world.llm.simulated import make_mock_answer

# Keys that the steps of an agent write to its board.
_WRITTEN = ("tools", "answer", "model", "usage", "decision", "calls", "calls_on", "tools_executed", "goes_on",
            "conversation", "failure", "result")  # fmt: skip
_FAILURE = "failure"  # the key for the last failure: node, type, message


@contextmanager
def _recording_failure(work: Work) -> Iterator[None]:
    """Write a failure to the board for the node that assembles the result, and re-raise it.

    A failure that would end the whole run (no model is available) and a timeout are handled like all others: they are
    raised as an ExecutionError.
    """
    try:
        yield
    except Exception as error:
        _write_failure(work, error)
        if isinstance(error, AgentRuntimeError | TimeoutError):
            raise ExecutionError(*getattr(error, "problems", (format_error(error),))) from error
        raise


def _clear_attempt(work: Work) -> None:
    """Delete from the board what an earlier attempt of the agent has written."""
    for key in _WRITTEN:
        if work.scope.get_at((key,)) is not ABSENT:
            work.write(key, ABSENT)


def _append_result(work: Work, decision: Mapping[str, Any], parameters: Any, result: Mapping[str, Any]) -> None:
    """Append the result of a tool to `tools_executed`; a native call is identified there by its number, `call`."""
    named = {"call": decision["call"]} if "call" in decision else {}
    work.write("tools_executed", Append({"name": decision["tool_name"], "parameters": parameters, **named, **result}))


def _write_failure(work: Work, error: BaseException) -> None:
    """Write to the board what failed, why, and the remedy."""
    why = {"node": get_own_id(work.node), "type": type(error).__name__, "message": format_advice(error)}
    work.write(_FAILURE, why)


# -- prompt: the system prompt ---------------------------------------------------------------------------------------


def bind_prompt(node: Node, world: Any) -> Perform:
    """Return the function that calls `params["compose"]` with `params["config"]` and descriptions of the agent's tools.

    The text is written to `system_prompt`. `params["tools"]` are the names of the tools that the agent may call. With
    `params["native"]` they are written to `tools`, in the form of a request.
    """
    native = bool(node.params.get("native"))
    compose, config, names = node.params["compose"], node.params["config"], tuple(node.params.get("tools", ()))

    def perform(work: Work) -> Outcome:
        _clear_attempt(work)
        with _recording_failure(work):
            described = world.toolbox(node).describe(names)
            text = compose(config, described)
        writes: dict[str, Any] = {"system_prompt": text}
        if native:
            writes["tools"] = [_make_definition(each).to_dict() for each in described]
        return Outcome(writes, thought=_describe_missing_tools(names, described), observation=text)

    return perform


def _make_definition(tool: Any) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, *(() if tool.schema is None else (tool.schema,)))


def _describe_missing_tools(names: tuple[str, ...], described: Any) -> str | None:
    """Return a warning about unregistered tools: only their names are sent to the model."""
    known = {each.name for each in described if each.known}
    missing = [name for name in names if name not in known]
    return f"{ODD}no tool is registered as {', '.join(map(repr, missing))}" if missing else None


# -- chat: the request to the model ----------------------------------------------------------------------------------


_USAGE = ("tokens_in", "tokens_out", "cost_usd")


def bind_chat(node: Node, world: Any) -> Perform:
    """Return the function that sends the `request` on the board (messages and the settings of the request).

    It writes `answer` (the response, a text or mapping), `model` (the requested model), and `usage`, summed over the
    agent's requests. Without a model the answer is the next of `params["simulated"]`, else a mock in the requested
    form. If the request offers tools and the answer calls some, `answer` is a mapping of `content` and `tool_calls`.
    """
    name, options = str(node.params.get("name", node.id)), get_options(node)
    client = world.model_of(node)
    json = bool(node.params.get("json"))
    script = node.params.get("simulated") or (_make_simulated_answer(name, json=json),)
    has_model = client is not None
    call_options = {**options, "is_simulated": True} if getattr(client, "is_simulated", False) else options

    async def perform(work: Work) -> Outcome:
        with _recording_failure(work):
            request = dict(work.board["request"])
            if work.asks_model(has_model):
                hides = _hide_in_calls if request.get("tools") else _hide_secrets if json else None
                effect = Effect("llm", name, request, check=hides, **call_options)
            else:
                mock = find_simulated_answer(script, work)
                effect = Effect("agent", name, request, target=lambda **_: mock, is_simulated=True, **options)
            answer = await work.call(effect)
        content = answer.recorded_value if isinstance(answer, LLMResponse) else getattr(answer, "content", answer)
        writes: dict[str, Any] = {"answer": content, "model": request.get("model")}
        writes["usage"] = _add_usage(work.board.get("usage"), getattr(answer, "usage", None))
        return Outcome(writes, inputs=request, observation=content)

    return perform


def _hide_secrets(answer: Any) -> None:
    """Mask the values of secrets among the parameters in an answer, before any of it is recorded."""
    with suppress(UnreadableAnswer):
        register_secrets({"parameters": parse_decision(getattr(answer, "content", answer)).parameters})


def _hide_in_calls(answer: Any) -> None:
    """Mask the values of secrets among the arguments of an answer's calls, before any of it is recorded."""
    register_secrets([{"parameters": call.arguments} for call in getattr(answer, "tool_calls", None) or ()])


def _add_usage(before: Any, usage: Any) -> dict[str, Any]:
    """Return the total usage of the agent's requests; None if no model has reported any."""
    known = before if isinstance(before, Mapping) else {}
    total: dict[str, Any] = {"requests": known.get("requests", 0) + 1}
    for word in _USAGE:
        parts = [part for part in (known.get(word), getattr(usage, word, None)) if part is not None]
        total[word] = sum(parts) if parts else None
    return total


def _make_simulated_answer(name: str, *, json: bool) -> Any:
    text = make_mock_answer(name)
    return {"tool_name": "none", "response": text} if json else text


# -- parse: the model's decision -------------------------------------------------------------------------------------


def bind_parse(node: Node, world: Any) -> Perform:
    """Return the function that reads `answer` and writes `decision`.

    JSON in an unexpected form is a warning: the step's thought states what is odd. No JSON at all is a failure. With
    `params["native"]` the answer is a text or tool calls: see `_parse_native`.
    """
    if node.params.get("native"):
        return _parse_native

    def perform(work: Work) -> Outcome:
        with _recording_failure(work):
            decision = parse_decision(work.board.get("answer"))
        register_secrets({"parameters": decision.parameters})  # it may be a person's answer rather than a model's
        thought = None
        if decision.kind == "other":
            thought = f"{ODD}unexpected JSON: {decision.why}"
        elif decision.fenced:
            thought = "the JSON was in a code fence"
        return Outcome({"decision": decision.to_dict()}, thought=thought, observation=decision.to_dict())

    return perform


def _parse_native(work: Work) -> Outcome:
    """Write the first call of an answer as `decision` and the others as `calls`; or the answer itself, if it is text.

    `call` numbers them over all answers of the agent. Text that accompanies the calls is the step's thought.
    """
    board = work.board
    with _recording_failure(work):
        answer = board.get("answer")
        calls = [each.to_dict() for each in parse_native_decisions(answer)]
    register_secrets([{"parameters": each["parameters"]} for each in calls])
    if not find_tool_calls(answer):
        return Outcome({"decision": calls[0]}, observation=calls[0])
    calls_before = count_calls(board.get("conversation"))
    first, *rest = [{**each, "call": calls_before + number} for number, each in enumerate(calls)]
    comment = to_text(answer.get("content") or "").strip() or None
    return Outcome({"decision": first, "calls": rest}, thought=comment, observation=calls)


# -- pick: the check of a tool call ----------------------------------------------------------------------------------


class CallRefused(ExecutionError):
    """A tool call was refused; the message explains why."""


def bind_pick(node: Node, world: Any) -> Perform:
    """Return the function that checks `decision`: its tool must be one of `params["tools"]`, its parameters valid.

    With `params["approval"]` the call requires a person's approval. A refusal is the step's failure, and is listed in
    `tools_executed` as a failed result.
    """
    toolbox, allowed = world.toolbox(node), tuple(node.params.get("tools", ()))
    asks, options = bool(node.params.get("approval")), get_options(node)

    async def perform(work: Work) -> Outcome:
        decision = work.board["decision"]
        name, parameters = decision["tool_name"], decision["parameters"]
        result = toolbox.find_refusal(name, parameters, allowed)
        why = None if result is None else str(result.error)
        # Without its times: they belong to the step, and a replay would read others.
        fields = None if result is None else {**result.to_dict(), "metrics": None}
        if why is None and asks:
            verdict = await work.call(Effect("approval", name, dict(parameters or {}), **options))
            if not verdict["approved"]:
                why = f"the call of {name!r} was denied" + (f": {verdict['reason']}" if verdict["reason"] else "")
                fields = {"success": False, "result": None, "error": why, "details": None, "metrics": None}
            elif "arguments" in verdict:  # a person has edited and approved these
                parameters = verdict["arguments"]
                result = toolbox.find_refusal(name, parameters, allowed)
                why = None if result is None else str(result.error)
                fields = None if result is None else {**result.to_dict(), "metrics": None}
                work.write("decision", {**decision, "parameters": parameters})
        if why is not None:
            _append_result(work, decision, parameters, fields or {})
            error = CallRefused(_make_refusal_problem(node, name, why))
            _write_failure(work, error)
            raise error
        return Outcome({}, observation={"tool": name, "parameters": parameters})

    return perform


def _make_refusal_problem(node: Node, name: str, why: str) -> Problem:
    """X440: an agent's model requested a tool call that cannot be made."""
    return Problem("X440", f"tool {name!r} was not called", f"node {node.id!r}", why,
                   "improve the tools' descriptions, or add the tool to the agent")  # fmt: skip


# -- use: the tool call ----------------------------------------------------------------------------------------------


class ToolFailed(Exception):
    """A tool reported a failure; `result` is its whole result."""

    def __init__(self, message: str, result: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.result = dict(result)


def bind_use(node: Node, world: Any) -> Perform:
    """Return the function that calls `decision`'s tool and appends its result to `tools_executed`.

    Timeout, attempts and back-off are the tool's own. A tool's failure is the step's failure; its result is listed in
    `tools_executed` all the same.
    """
    toolbox, options = world.toolbox(node), get_options(node)

    async def perform(work: Work) -> Outcome:
        decision = work.board["decision"]
        name, parameters = decision["tool_name"], decision["parameters"] or {}
        config = toolbox.config(name)
        own = {} if config is None else {"timeout": config.timeout, "attempts": config.retry_count + 1,
                                         "backoff": config.backoff, "repeatable": config.repeatable}  # fmt: skip
        effect = Effect(
            "tool",
            name,
            parameters,
            target=toolbox.attempt(name, work.run.ns),
            check=_check_result,
            **{**own, **options},
        )
        failure: Exception | None = None
        try:
            result = toolbox.to_result(name, await work.call(effect))
        except Exception as error:  # noqa: BLE001  (the tool's failure is a result of its own)
            failure = error
            known = getattr(error, "result", None)
            result = (
                dict(known) if isinstance(known, Mapping) and known else toolbox.make_failure(name, error).to_dict()
            )
        _append_result(work, decision, parameters, result)
        if toolbox.has_learning_context:  # an effect of its own: a replay does not repeat it
            outcome = {"success": result["success"]}
            await work.call(
                Effect("context", name, outcome, target=lambda **_: toolbox.learn(name, parameters, result))
            )
        if failure is not None:
            _write_failure(work, failure)
            # A timeout is handled by the agent as well, like every failed tool.
            raise ToolFailed(str(result["error"]), result) from failure
        return Outcome({}, inputs=parameters, observation=result)

    return perform


def _check_result(result: Mapping[str, Any]) -> None:
    """Raise for a result that is a failure; mask its secrets before it is recorded and sent to the model.

    Raises:
        ToolFailed: it is.
    """
    register_secrets({"result": result["result"], "details": result["details"]})
    if not result["success"]:
        raise ToolFailed(str(result.get("error") or "the tool reported a failure"), result)


STAGES: Final = (
    Kind("chat", bind_chat, step_type="REASONING", keeps_writes=True, is_public=False),
    Kind("parse", bind_parse, step_type="REASONING", keeps_writes=True, is_public=False),
    Kind("pick", bind_pick, step_type="SYSTEM_EVENT", keeps_writes=True, is_public=False),
    Kind("prompt", bind_prompt, step_type="SYSTEM_EVENT", keeps_writes=True, is_public=False),
    Kind("use", bind_use, step_type="TOOL_EXECUTION", keeps_writes=True, is_public=False),
)

__all__ = ["STAGES"]
