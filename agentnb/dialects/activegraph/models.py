"""models: what a model is asked and what it answers, and how anything that answers stands for a provider."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from agentnb.world.llm.base import LLMRequest, as_client
from agentnb.world.llm.decision import as_text


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
    return response_dict(LLMResponse(as_text(said), _read(said), model=model))


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
    """A client of agentnb as a provider: its text is read as JSON, where a schema is asked for."""

    default_model = "default"

    def __init__(self, given: Any) -> None:
        self.client, self.count = as_client(given), 0

    def complete(self, *, system: str, messages: Sequence[LLMMessage], model: str, output_schema: Any = None,
                 **settings: Any) -> LLMResponse:  # fmt: skip
        """Answer as the client does."""
        asked = [{"role": "system", "content": system}, *({"role": each.role, "content": each.content}
                                                          for each in messages)]  # fmt: skip
        arguments = {"messages": asked, **({} if model == self.default_model else {"model": model})}
        request = LLMRequest.of(arguments, node="", number=self.count, of_node=self.count)
        self.count += 1
        answer: Any = self.client.complete(request)
        if inspect.isawaitable(answer):
            raise TypeError("a client that answers later cannot stand for a provider; give one that answers at once")
        content, usage = answer.content, answer.usage
        parsed = _read(content) if output_schema is not None else None
        return LLMResponse(as_text(content), parsed, usage.tokens_in or 0, usage.tokens_out or 0,
                           usage.cost_usd or Decimal(0), 0.0, answer.model or model)  # fmt: skip


def _read(content: Any) -> Any:
    if isinstance(content, Mapping):
        return dict(content)
    try:
        return json.loads(str(content))
    except ValueError:
        return None


__all__ = ["LLMMessage", "LLMProvider", "LLMResponse", "ToolCall", "messages_from", "provider_of", "response_dict",
           "response_of"]  # fmt: skip
