"""Entries of LangGraph's caches: keys, and the results of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.plain_values import from_plain_write, to_plain_write


def hash_cache_key(result: str | bytes) -> str:
    """Return the key of an entry, computed from the result of a policy's key function."""
    return str(lg.xxh3_128_hexdigest(result.encode() if isinstance(result, str) else result))


class TaskCache:
    """The results of one task in a graph's cache."""

    def __init__(self, cache: Any, policy: Any, function: Callable[..., Any]) -> None:
        self.cache, self.policy = cache, policy
        self.namespace = (lg.keys.CACHE_NS_WRITES, lg.identifier(function) or "__dynamic__")

    def look_up(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Return the record of the cached result; None if there is none."""
        for writes in self.cache.get([(self.namespace, self._make_key(args, kwargs))]).values():
            result = next(value for channel, value in writes if channel == lg.keys.RETURN)
            others = [to_plain_write(*write) for write in writes if write[0] != lg.keys.RETURN]
            return {"value": result, "writes": others} if others else {"value": result}
        return None

    def store(self, args: tuple[Any, ...], kwargs: dict[str, Any], record: dict[str, Any]) -> None:
        """Store a task's result, and what it wrote to channels, from its record."""
        writes = [from_plain_write(*write) for write in record.get("writes", ())]
        entry = [*writes, (lg.keys.RETURN, record["value"])], self.policy.ttl
        self.cache.set({(self.namespace, self._make_key(args, kwargs)): entry})

    def _make_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return hash_cache_key(self.policy.key_func(*args, **kwargs))
