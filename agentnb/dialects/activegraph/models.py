"""models: what a model is asked and what it answers, and how anything that answers stands for a provider."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable

from agentnb.world.llm.base import LLMRequest, as_client
from agentnb.world.llm.decision import Decision, UnreadableAnswer, as_text, decision_of
from agentnb.world.llm.structured import json_in

# What an llm_behavior asks for where it says nothing.
_USUAL: Final = {"max_tokens": 4096, "temperature": 0.7, "top_p": 1.0}
_USUAL_TIMEOUT: Final = 60.0


@dataclass(frozen=True)
class ToolCall:
    """A tool that a model asks for."""

    id: str
    name: str
    args: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return its fields."""
        return {"id": self.id, "name": self.name, "args": self.args}


@dataclass(frozen=True)
class LLMMessage:
    """One message: of the user, of the model, or of a tool that it asked for."""

    role: str
    content: str
    tool_use_id: str | None = None
    tool_name: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that it has."""
        found: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_use_id:
            found["tool_use_id"] = self.tool_use_id
        if self.tool_calls:
            found["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        return found


@dataclass(frozen=True)
class LLMResponse:
    """What a model has answered: its text, what was read from it, what it asks tools for, and what it took."""

    raw_text: str
    parsed: Any = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    latency_seconds: float = 0.0
    model: str = ""
    finish_reason: str = "stop"
    seed: int | None = None
    cache_hit: bool = False
    provider_meta: dict[str, Any] = field(default_factory=dict)
    tool_calls: list[ToolCall] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return its fields as JSON says them."""
        return response_dict(self)


def response_of(said: Any, model: str) -> dict[str, Any]:
    """Return an answer as its event tells it: as it is, or what a person has answered in a model's place."""
    if isinstance(said, Mapping) and ("raw_text" in said or "failed" in said):
        return dict(said)
    return response_dict(LLMResponse(as_text(said), read(said), model=model))


def messages_from(sent: Sequence[Mapping[str, Any]]) -> list[LLMMessage]:
    """Return messages as `to_dict` says them."""
    found = []
    for each in sent:
        calls = tuple(ToolCall(call["id"], call["name"], dict(call["args"])) for call in each.get("tool_calls") or ())
        role, content = str(each.get("role", "user")), str(each.get("content", ""))
        found.append(LLMMessage(role, content, each.get("tool_use_id"), tool_calls=calls or None))
    return found


@runtime_checkable
class LLMProvider(Protocol):
    """Something that answers; `default_model` names the model that is asked where a behaviour names none."""

    def complete(self, *, system: str, messages: Sequence[LLMMessage], model: str, max_tokens: int, temperature: float,
                 top_p: float, output_schema: Any, timeout_seconds: float,
                 tools: Any = None) -> LLMResponse:  # fmt: skip
        """Answer."""
        ...


def response_dict(response: Any) -> dict[str, Any]:
    """Return an answer of any provider as its event tells it."""
    parsed, calls = response.parsed, getattr(response, "tool_calls", None)
    return {
        "raw_text": response.raw_text,
        "parsed": parsed.model_dump(mode="json") if hasattr(parsed, "model_dump") else parsed,
        "input_tokens": response.input_tokens,
        "output_tokens": response.output_tokens,
        "cost_usd": str(response.cost_usd),
        "latency_seconds": response.latency_seconds,
        "model": response.model,
        "finish_reason": response.finish_reason,
        "seed": response.seed,
        "cache_hit": response.cache_hit,
        "provider_meta": dict(response.provider_meta),
        "tool_calls": [{"id": call.id, "name": call.name, "args": dict(call.args)} for call in calls]
        if calls
        else None,
    }


def provider_of(given: Any) -> Any:
    """Return a provider for whatever answers: a provider as it is, else a client, a function, a script, a name."""
    complete = getattr(given, "complete", None)
    if complete is not None:
        takes = inspect.signature(complete).parameters.values()
        if any(each.name == "system" or each.kind is each.VAR_KEYWORD for each in takes):
            return given
    return Asked(given)


class Asked:
    """A client of agentnb as a provider: it is told the schema that is asked for, and its text is read as JSON then.

    It is told the tools that it may call, too; one JSON object of `tool_name` and `parameters` calls one.

    What a behaviour leaves as it is by default, the client decides: its own settings hold.
    """

    default_model = "default"

    def __init__(self, given: Any) -> None:
        self.client, self.count = as_client(given), 0

    def complete(self, *, system: str, messages: Sequence[LLMMessage], model: str, output_schema: Any = None,
                 asker: Mapping[str, Any] | None = None, **settings: Any) -> Any:  # fmt: skip
        """Answer as the client does: at once, or as an awaitable.

        Args:
            asker: who asks, and how often it was asked before: node, number, of_node, tell; see LLMRequest.
        """
        tools = settings.get("tools") or ()
        asked = [{"role": "system", "content": system + _offered(tools)}, *map(_said, messages)]
        arguments: dict[str, Any] = {"messages": asked}
        if model != self.default_model:
            arguments["model"] = model
        if output_schema is not None and not tools:  # held to it, the model could call none
            arguments["schema"] = output_schema.model_json_schema()
        arguments |= {word: settings[word] for word, usual in _USUAL.items() if settings.get(word, usual) != usual}
        request = LLMRequest.of(arguments, number=self.count, of_node=self.count)
        self.count += 1
        limit = settings.get("timeout_seconds", _USUAL_TIMEOUT)
        request = replace(request, timeout=None if limit == _USUAL_TIMEOUT else limit, **(asker or {}))
        answer: Any = self.client.complete(request)
        number = 1 + sum(each.role == "tool" for each in messages)
        read_of = partial(_answered, model=model, schema=output_schema, call=f"call_{number}" if tools else "")
        return _later(answer, read_of, request.timeout) if inspect.isawaitable(answer) else read_of(answer)


async def _later(answer: Awaitable[Any], read_of: Callable[[Any], LLMResponse], limit: float | None) -> LLMResponse:
    try:
        return read_of(await asyncio.wait_for(answer, limit))
    except TimeoutError as error:
        if limit is None:
            raise
        raise TimeoutError(f"the model has not answered within {limit:g} s") from error


def _answered(answer: Any, model: str, schema: Any, call: str) -> LLMResponse:
    """Return a client's answer as a provider's; `call` is the id of a tool's call, where it may ask for one."""
    content, usage = answer.content, answer.usage
    wanted = _wanted(content) if call else None
    calls = None if wanted is None else [ToolCall(call, wanted.tool_name, dict(wanted.parameters))]
    parsed = read(content) if schema is not None and calls is None else None
    return LLMResponse(as_text(content), parsed, usage.tokens_in or 0, usage.tokens_out or 0,
                       usage.cost_usd or Decimal(0), 0.0, answer.model or model, tool_calls=calls)  # fmt: skip


def _wanted(content: Any) -> Decision | None:
    """Return the call of a tool that an answer is; None where it is something else."""
    try:
        found = decision_of(content)
    except UnreadableAnswer:
        return None
    return found if found.kind == "tool" and isinstance(found.parameters, Mapping) else None


def _offered(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return what a client's model is told of the tools that it may call."""
    if not tools:
        return ""
    lines = [
        f"- {each['name']}: {each['description']}\n  parameters: {json.dumps(each['input_schema'])}" for each in tools
    ]
    return ("\n\nYou may call a tool first: then answer with nothing but one JSON object, "
            '{"tool_name": NAME, "parameters": {...}}. You are told what it gave, and asked again. The tools:\n'
            + "\n".join(lines))  # fmt: skip


def _said(message: LLMMessage) -> dict[str, Any]:
    """Return a message as any client takes it: what a tool gave is said to the model."""
    if message.role != "tool":
        return {"role": message.role, "content": message.content}
    name = f" {message.tool_name!r}" if message.tool_name else ""
    return {"role": "user", "content": f"The tool{name} gave: {message.content}"}


def read(content: Any) -> Any:
    """Return the JSON value of an answer, also from a fence or from among words; None where there is none."""
    if isinstance(content, Mapping):
        return dict(content)
    try:
        return json_in(str(content))
    except ValueError:
        return None


__all__ = ["Asked", "LLMMessage", "LLMProvider", "LLMResponse", "ToolCall", "messages_from", "provider_of", "read",
           "response_dict", "response_of"]  # fmt: skip
