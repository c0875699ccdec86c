"""caches: what models and tools have answered before, by the digest of what they were asked. Failures are not kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from agentnb.board.values import thaw


class _Cache:
    """Answers by digest."""

    def __init__(self, known: dict[str, dict[str, Any]] | None = None) -> None:
        self.known = dict(known or {})

    @classmethod
    def from_events(cls, events: Iterable[Any]) -> Self:
        """Return a cache of what a log tells of."""
        return cls().take(events)

    def take(self, events: Iterable[Any]) -> Self:
        """Take what a log tells of."""
        for event in events:
            if event.type == self.told_by and not event.payload.get("error"):
                self.known.setdefault(event.payload[self.key], thaw(event.payload))
        return self

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was answered; None where nothing is known."""
        return self.known.get(key)

    told_by = key = ""


class LLMCache(_Cache):
    """What models have answered, by the digest of the prompt."""

    told_by, key = "llm.responded", "prompt_hash"


class ToolCache(_Cache):
    """What tools have answered, by the digest of the call."""

    told_by, key = "tool.responded", "args_hash"


__all__ = ["LLMCache", "ToolCache"]
