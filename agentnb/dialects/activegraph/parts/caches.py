"""Caches of model and tool answers, by the digest of the request. Failures are not cached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, Self, TypeVar

from agentnb.board.values import thaw
from agentnb.dialects.activegraph.parts.models import LLMResponse, ToolCall, to_response_dict

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class CachedToolResponse:
    """The answer of a tool: its output or its error, the time it took in seconds, and its cost in dollars."""

    output: Any = None
    error: dict[str, Any] | None = None
    latency_seconds: float = 0.0
    cost_usd: Decimal = Decimal(0)
    cache_hit: bool = False


class _Cache(ABC, Generic[Answer]):
    """Answers by digest, stored as the payloads of the events that record them."""

    event_type = key = ""

    def __init__(self) -> None:
        self._payloads: dict[str, dict[str, Any]] = {}

    @classmethod
    def from_events(cls, events: Iterable[Any]) -> Self:
        """Return a cache of the answers in a log."""
        return cls().add_events(events)

    def add_events(self, events: Iterable[Any]) -> Self:
        """Add the answers in a log; of several answers to the same request, the first is used."""
        for event in events:
            if event.type == self.event_type and not event.payload.get("error"):
                self._payloads.setdefault(event.payload[self.key], thaw(event.payload))
        return self

    def payload(self, digest: str) -> dict[str, Any] | None:
        """Return the payload of the event that recorded an answer; None if nothing is cached."""
        return self._payloads.get(digest)

    def has(self, digest: str) -> bool:
        """Return True if there is an answer."""
        return digest in self._payloads

    def get(self, digest: str) -> Answer | None:
        """Return an answer, marked as a cache hit; None if nothing is cached."""
        payload = self._payloads.get(digest)
        return None if payload is None else self._answer(payload)

    def record(self, digest: str, response: Answer) -> None:
        """Cache an answer, replacing an older one."""
        self._payloads[digest] = self._make_payload(response)

    def __len__(self) -> int:
        """Return the number of cached answers."""
        return len(self._payloads)

    @abstractmethod
    def _answer(self, payload: dict[str, Any]) -> Answer:
        """Return the answer that an event's payload records, as a cache hit."""

    @abstractmethod
    def _make_payload(self, response: Answer) -> dict[str, Any]:
        """Return an answer as the payload of the event that records it."""


class LLMCache(_Cache[LLMResponse]):
    """The answers of models, by the digest of the prompt."""

    event_type, key = "llm.responded", "prompt_hash"

    def _answer(self, payload: dict[str, Any]) -> LLMResponse:
        return parse_response(payload, cache_hit=True)

    def _make_payload(self, response: LLMResponse) -> dict[str, Any]:
        return to_response_dict(response)


class ToolCache(_Cache[CachedToolResponse]):
    """The answers of tools, by the digest of the call."""

    event_type, key = "tool.responded", "args_hash"

    def _answer(self, payload: dict[str, Any]) -> CachedToolResponse:
        return CachedToolResponse(payload.get("output"), None, float(payload.get("latency_seconds") or 0.0),
                                  Decimal(str(payload.get("cost_usd") or 0)), cache_hit=True)  # fmt: skip

    def _make_payload(self, response: CachedToolResponse) -> dict[str, Any]:
        return {"output": response.output, "error": response.error, "latency_seconds": response.latency_seconds,
                "cost_usd": str(response.cost_usd)}  # fmt: skip


def parse_response(fields: dict[str, Any], *, cache_hit: bool = False) -> LLMResponse:
    """Return a model's answer from its fields as JSON, as `LLMResponse.to_dict` writes them."""
    calls = [
        ToolCall(each["id"], each["name"], dict(each.get("args") or {})) for each in fields.get("tool_calls") or ()
    ]
    return LLMResponse(
        str(fields.get("raw_text", "")),
        fields.get("parsed"),
        int(fields.get("input_tokens") or 0),
        int(fields.get("output_tokens") or 0),
        Decimal(str(fields.get("cost_usd") or 0)),
        float(fields.get("latency_seconds") or 0.0),
        str(fields.get("model", "")),
        str(fields.get("finish_reason", "stop")),
        fields.get("seed"),
        cache_hit,
        dict(fields.get("provider_meta") or {}),
        calls or None,
    )


__all__ = ["CachedToolResponse", "LLMCache", "ToolCache", "parse_response"]
