"""Model requests and responses, and the adapters that make any client a provider."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable

from agentnb.dialects.activegraph.parts.events import to_plain
from agentnb.world.llm import base
from agentnb.world.llm.base import LLMRequest, prepare_client, to_client
from agentnb.world.llm.decision import Decision, UnreadableAnswer, parse_decision, to_text
from agentnb.world.llm.structured import find_json

# The defaults of an llm_behavior's request.
_USUAL: Final = {"max_tokens": 4096, "temperature": 0.7, "top_p": 1.0}
_USUAL_TIMEOUT: Final = 60.0
DEFAULT_MODEL: Final = "claude-sonnet-4-5"  # the package's own default, if neither behavior nor provider names a model
# The JSON Schema keywords that common providers do not accept in native structured output.
_UNSUPPORTED: Final = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "patternProperties", "default",
})  # fmt: skip


@dataclass(frozen=True)
class ToolCall:
    """A tool call requested by a model."""

    id: str
    name: str
    args: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return its fields."""
        return {"id": self.id, "name": self.name, "args": self.args}


@dataclass(frozen=True)
class LLMMessage:
    """One message: of the user, of the model, or of a tool that it called."""

    role: str
    content: str
    tool_use_id: str | None = None
    tool_name: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that it has."""
        message: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_use_id:
            message["tool_use_id"] = self.tool_use_id
        if self.tool_calls:
            message["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        return message


@dataclass(frozen=True)
class LLMResponse:
    """A model's response: its text, the parsed value, the tool calls that it requests, and its usage."""

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
        """Return its fields as JSON values."""
        return to_response_dict(self)


def to_prompt_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as JSON, without its timeout; its digest is the prompt's hash."""
    schema = request.get("output_schema")
    return {
        **{name: value for name, value in request.items() if name != "timeout_seconds"},
        "messages": [each.to_dict() for each in request["messages"]],
        "output_schema": None if schema is None else schema.model_json_schema(),
    }


def make_prompt_payload(request: Mapping[str, Any], *, deterministic: bool) -> dict[str, Any]:
    """Return the fields of `llm.requested` for a request: the prompt, the settings and the schema of the answer."""
    fields, schema = to_prompt_fields(request), request.get("output_schema")
    settings = ("model", "system", "messages", "max_tokens", "temperature", "top_p", "structured_output_mode")
    return {
        **{name: fields[name] for name in settings if name in fields},
        "output_schema_name": None if schema is None else schema.__name__,
        "output_schema_json": fields["output_schema"],
        "deterministic": deterministic,
    }


def is_native_schema(schema: Mapping[str, Any]) -> bool:
    """Return True if native structured output accepts a JSON schema.

    It accepts an object whose fields are all required, without constraints and without recursion.

    Example:
        >>> is_native_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
        True
        >>> is_native_schema({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}})
        False
    """
    definitions = schema.get("$defs", {})

    def fits(part: Any, open_refs: tuple[str, ...]) -> bool:
        if isinstance(part, list):
            return all(fits(each, open_refs) for each in part)
        if not isinstance(part, Mapping):
            return True
        properties, reference = part.get("properties", {}), part.get("$ref")
        if set(properties) - set(part.get("required", ())) or (part.get("type") == "object" and not properties):
            return False
        if reference is not None:
            name = str(reference).rpartition("/")[2]
            return name not in open_refs and fits(definitions.get(name, {}), (*open_refs, name))
        others = {word: value for word, value in part.items() if word not in ("properties", "$defs")}
        return (_UNSUPPORTED.isdisjoint(others) and all(fits(each, open_refs) for each in properties.values())
                and all(fits(each, open_refs) for each in others.values()))  # fmt: skip

    return "properties" in schema and fits(schema, ())


def to_response(answer: Any, model: str) -> dict[str, Any]:
    """Return a recorded response: unchanged, or made from a person's answer in place of the model's."""
    if isinstance(answer, Mapping) and ("raw_text" in answer or "failed" in answer):
        return dict(answer)
    return to_response_dict(LLMResponse(to_text(answer), read(answer), model=model))


def parse_messages(sent: Sequence[Mapping[str, Any]]) -> list[LLMMessage]:
    """Return messages in the form of `to_dict`."""
    messages = []
    for each in sent:
        calls = tuple(ToolCall(call["id"], call["name"], dict(call["args"])) for call in each.get("tool_calls") or ())
        role, content = str(each.get("role", "user")), str(each.get("content", ""))
        messages.append(LLMMessage(role, content, each.get("tool_use_id"), tool_calls=calls or None))
    return messages


@runtime_checkable
class LLMProvider(Protocol):
    """The protocol of a provider. `default_model` is the model for behaviors that name none."""

    def complete(self, *, system: str, messages: Sequence[LLMMessage], model: str, max_tokens: int, temperature: float,
                 top_p: float, output_schema: Any, timeout_seconds: float,
                 tools: Any = None) -> LLMResponse:  # fmt: skip
        """Return the response to a request."""
        ...


def to_response_dict(response: Any) -> dict[str, Any]:
    """Return the response of any provider as recorded in its event."""
    parsed, calls = response.parsed, getattr(response, "tool_calls", None)
    return {
        "raw_text": response.raw_text,
        "parsed": to_plain(parsed) if hasattr(parsed, "model_dump") else parsed,
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


def to_provider(provider: Any) -> Any:
    """Return a provider for any supported value: a provider as it is, else a client, a function, a script or a name."""
    complete = getattr(provider, "complete", None)
    if complete is not None:
        takes = inspect.signature(complete).parameters.values()
        if any(each.name == "system" or each.kind is each.VAR_KEYWORD for each in takes):
            return provider
    return ClientProvider(provider)


class ClientProvider:
    """A client of agentnb as a provider: it gets the requested schema, and its text is then parsed as JSON.

    If the client takes `plain_calls`, it is offered the tools for native calls. Any other client gets them described in
    the prompt and calls one with a JSON object of `tool_name` and `parameters`.

    Settings that the behavior leaves at their defaults are the client's to choose.
    """

    default_model = "default"

    def __init__(self, client: Any) -> None:
        self.client, self.count = to_client(client), 0

    def preparing(self) -> Awaitable[None] | None:
        """Return an awaitable to run before the first request; None if the client has nothing to prepare."""
        return prepare_client(self.client, lambda: LLMRequest(()))

    def complete(self, *, system: str, messages: Sequence[LLMMessage], model: str, output_schema: Any = None,
                 asker: Mapping[str, Any] | None = None, **settings: Any) -> Any:  # fmt: skip
        """Return the client's response: at once, or as an awaitable.

        Args:
            asker: the fields of LLMRequest that identify the request: node, number, of_node, on_token.
        """
        tools = settings.get("tools") or ()
        native = bool(tools) and bool(getattr(self.client, "plain_calls", False))
        system_text = system if native else system + _describe_tools(tools)
        request_messages = [
            {"role": "system", "content": system_text},
            *map(_to_native_message if native else _to_plain_message, messages),
        ]
        arguments: dict[str, Any] = {"messages": request_messages}
        if native:
            named = (base.ToolDefinition(each["name"], each["description"], each["input_schema"]) for each in tools)
            arguments["tools"] = [each.to_dict() for each in named]
        if model != self.default_model:
            arguments["model"] = model
        if output_schema is not None and not tools:  # constrained to the schema, the model could call no tools
            arguments["schema"] = output_schema.model_json_schema()
        arguments |= {word: settings[word] for word, usual in _USUAL.items() if settings.get(word, usual) != usual}
        request = LLMRequest.of(arguments, number=self.count, of_node=self.count)
        self.count += 1
        limit = settings.get("timeout_seconds", _USUAL_TIMEOUT)
        request = replace(request, timeout=None if limit == _USUAL_TIMEOUT else limit, **(asker or {}))
        answer: Any = self.client.complete(request)
        number = 1 + sum(each.role == "tool" for each in messages)
        read_of = partial(_to_response, model=model, native=native, call=f"call_{number}" if tools else "")
        return _await_response(answer, read_of, request.timeout) if inspect.isawaitable(answer) else read_of(answer)


async def _await_response(
    answer: Awaitable[Any], read_of: Callable[[Any], LLMResponse], limit: float | None
) -> LLMResponse:
    try:
        return read_of(await asyncio.wait_for(answer, limit))
    except TimeoutError as error:
        if limit is None:
            raise
        raise TimeoutError(f"the model has not answered within {limit:g} s") from error


def _to_response(answer: Any, model: str, call: str, *, native: bool) -> LLMResponse:
    """Return a client's response as a provider's, not parsed; `call` is the id for a tool call, if tools are allowed.

    Raises:
        LLMError: X363, it requests a tool although none are allowed.
    """
    content, usage = answer.content, answer.usage
    base.check_calls(answer, {"tools": call}, "llm_behavior")
    calls = [ToolCall(each.id, each.name, dict(each.arguments)) for each in answer.tool_calls] or None
    tool_call = _parse_call(content) if call and not native and calls is None else None
    if tool_call is not None:
        calls = [ToolCall(call, tool_call.tool_name, dict(tool_call.parameters))]
    return LLMResponse(to_text(content), None, usage.tokens_in or 0, usage.tokens_out or 0,
                       usage.cost_usd or Decimal(0), 0.0, answer.model or model, tool_calls=calls)  # fmt: skip


def _parse_call(content: Any) -> Decision | None:
    """Return the tool call that an answer represents; None if it is something else."""
    try:
        decision = parse_decision(content)
    except UnreadableAnswer:
        return None
    return decision if decision.kind == "tool" and isinstance(decision.parameters, Mapping) else None


def _describe_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the description of the callable tools for a client's model."""
    if not tools:
        return ""
    lines = [
        f"- {each['name']}: {each['description']}\n  parameters: {json.dumps(each['input_schema'])}" for each in tools
    ]
    return ("\n\nYou may call a tool first: then answer with nothing but one JSON object, "
            '{"tool_name": NAME, "parameters": {...}}. You are told what it gave, and asked again. The tools:\n'
            + "\n".join(lines))  # fmt: skip


def _to_native_message(message: LLMMessage) -> dict[str, Any]:
    """Return a message in the form of clients with native tool calls."""
    calls = tuple(base.ToolCall(each.id, each.name, each.args) for each in message.tool_calls or ())
    return base.LLMMessage(message.role, message.content, calls, message.tool_use_id or "").to_dict()


def _to_plain_message(message: LLMMessage) -> dict[str, Any]:
    """Return a message in the form of any client; a tool's result becomes a user message."""
    if message.role != "tool":
        return {"role": message.role, "content": message.content}
    name = f" {message.tool_name!r}" if message.tool_name else ""
    return {"role": "user", "content": f"The tool{name} gave: {message.content}"}


def read(content: Any) -> Any:
    """Return the JSON value of an answer, also inside a code fence or surrounding text; None if there is none."""
    if isinstance(content, Mapping):
        return dict(content)
    try:
        return find_json(str(content))
    except ValueError:
        return None


__all__ = [
    "DEFAULT_MODEL",
    "ClientProvider",
    "LLMMessage",
    "LLMProvider",
    "LLMResponse",
    "ToolCall",
    "is_native_schema",
    "make_prompt_payload",
    "parse_messages",
    "read",
    "to_prompt_fields",
    "to_provider",
    "to_response",
    "to_response_dict",
]  # fmt: skip
