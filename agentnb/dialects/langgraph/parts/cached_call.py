"""Cached nodes: a node whose input the graph's cache knows is not called; its step makes the writes of that time."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from agentnb.board.values import thaw
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.caches import hashed
from agentnb.dialects.langgraph.parts.node_call import NodeCall, make_outcome_of_updates, read_input, to_updates
from agentnb.dialects.langgraph.parts.plain_values import from_plain_send, to_plain_send
from agentnb.engine.core.supersteps import iter_superstep_steps
from agentnb.engine.core.work import Outcome
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentnb.engine.core.work import Work

_GET, _SET = "get", "set"


class CachedCall:
    """The function of a node with a cache policy.

    The cache is part of the world: looking a key up and storing writes are effects, which a replay does not repeat.
    Entries are those of LangGraph, so both use the same cache.
    """

    def __init__(self, call: NodeCall, cache: Any, namespace: tuple[str, ...], policy: Any) -> None:
        self.call, self.cache, self.namespace, self.policy = call, cache, namespace, policy

    async def __call__(self, work: Work) -> Any:
        """Return the outcome that the cache knows; else call the node, and store its writes."""
        key = self._make_key(work)
        if work.phase == "start":
            known = await self._ask(work, _GET, key, self._look_up)
            if known is not None and not _is_stored_in_superstep(work, key):
                plan = self.call.plan
                past = [_decode_write(*write) for write in thaw(known)]
                updates = to_updates(plan, work, [write for write in past if write[0] in plan.channels.channels])
                static = list(plan.static)
                control = [write for write in past if write not in static and not _is_update(plan, write[0])]
                return make_outcome_of_updates(plan, work, updates, control)
        result = self.call(work)
        if isawaitable(result):
            result = await result
        if isinstance(result, Outcome) and result.error is None and result.result is not None:
            writes = [_encode_write(*write) for write in result.result]
            await self._ask(work, _SET, key, self._store, writes=writes)
        return result

    def _make_key(self, work: Work) -> str:
        found = self.policy.key_func(read_input(self.call.plan, work))
        work.copies.clear()
        return hashed(found)

    async def _ask(self, work: Work, operation: str, key: str, target: Callable[..., Any], **more: Any) -> Any:
        arguments = {"operation": operation, "key": key, **more}
        return await work.call(Effect("cache", work.node.id, arguments, repeatable=True, target=target))

    def _look_up(self, operation: str, key: str) -> Any:
        found = self.cache.get([(self.namespace, key)])
        return next(([_encode_write(*write) for write in writes] for writes in found.values()), None)

    def _store(self, operation: str, key: str, writes: list[Any]) -> None:
        entry = [_decode_write(*write) for write in writes]
        self.cache.set({(self.namespace, key): (entry, self.policy.ttl)})


def _encode_write(channel: str, value: Any) -> list[Any]:
    """Return one of LangGraph's writes in plain values, as an effect is recorded."""
    return [channel, to_plain_send(value) if channel == lg.keys.TASKS else value]


def _decode_write(channel: str, value: Any) -> tuple[str, Any]:
    return channel, from_plain_send(value) if channel == lg.keys.TASKS else value


def _is_update(plan: Any, channel: str) -> bool:
    return channel in plan.channels.channels


def _is_stored_in_superstep(work: Work, key: str) -> bool:
    """Return True if a node of this superstep has stored the key: LangGraph looks all of them up before."""
    steps = set(iter_superstep_steps(work.run, work.act))
    return any(call.kind == "cache" and call.name == work.node.id and call.step in steps
               and call.arguments["operation"] == _SET and call.arguments["key"] == key
               for history, _ in work.run.parts() for call in reversed(history.calls))  # fmt: skip


__all__ = ["CachedCall"]
