"""Cached nodes: if the graph's cache has an entry for a node's input, its writes apply and the node is not called."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT, thaw
from agentnb.dialects.langgraph.parts.caches import hash_cache_key
from agentnb.dialects.langgraph.parts.node_call import (
    NodeCall,
    make_input,
    make_outcome_of_updates,
    read_target,
    to_updates,
)
from agentnb.dialects.langgraph.parts.plain_values import from_plain_write, to_plain_write
from agentnb.engine.core.supersteps import get_stage, iter_superstep_steps, list_events_of_node
from agentnb.engine.core.work import Outcome
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentnb.engine.core.work import Target, Work

_GET, _SET = "get", "set"


class CachedCall:
    """The function of a node with a cache policy.

    The cache is part of the world: looking a key up and storing writes are effects, which a replay does not repeat.
    Entries are those of LangGraph, so both use the same cache.
    """

    def __init__(self, call: NodeCall, cache: Any, namespace: tuple[str, ...], policy: Any) -> None:
        self.call, self.cache, self.namespace, self.policy = call, cache, namespace, policy
        self._chosen: tuple[Any, dict[str, int]] = None, {}  # a superstep; key -> event of the only lookup

    def choose_after_skip(self, work: Work) -> Sequence[Target]:
        """Return the targets that the node's conditional edges choose if the node is skipped."""
        return self.call.choose_after_skip(work)

    async def __call__(self, work: Work) -> Any:
        """Return the cached outcome; without one, call the node and store its writes."""
        row = work.activation.row if work.phase == "start" else work.run.get_opening_activation(work.frames[0])
        key = self._make_key(work, row.event)
        if work.phase == "start":
            known = _find_look_up(work, key)
            if known is ABSENT:
                known = await self._ask(work, _GET, key, self._look_up)
            if known is not None and self._may_use_entry(work, key):
                plan = self.call.plan
                past = [from_plain_write(*write) for write in thaw(known)]
                updates = to_updates(plan, work, [write for write in past if write[0] in plan.channels.channels])
                static = list(plan.static)
                control = [write for write in past if write not in static and not _is_update(plan, write[0])]
                return make_outcome_of_updates(plan, work, updates, [*map(read_target, control)])
        result = self.call(work)
        if isawaitable(result):
            result = await result
        if isinstance(result, Outcome) and result.error is None and result.result is not None:
            writes = [to_plain_write(*write) for write in result.result]
            await self._ask(work, _SET, key, self._store, writes=writes)
        return result

    def _make_key(self, work: Work, event: int) -> str:
        key = self.policy.key_func(make_input(self.call.plan, work, work.run.get_event(event)))
        work.copies.clear()
        return hash_cache_key(key)

    def _may_use_entry(self, work: Work, key: str) -> bool:
        """Return True if the cache may answer this step.

        If several activations of a node in a superstep have the same key, LangGraph uses the entry for only one of
        them: the one scheduled by an edge, else the last Send. The others are called.
        """
        stage = get_stage(work.run, work.activation)
        if self._chosen[0] is not stage:
            events = list_events_of_node(work.run, work.activation)
            in_order = sorted(events, key=lambda each: (each < 0, each))
            self._chosen = stage, {self._make_key(work, each): each for each in in_order}
        return self._chosen[1][key] == work.activation.row.event

    async def _ask(self, work: Work, operation: str, key: str, target: Callable[..., Any], **more: Any) -> Any:
        arguments = {"operation": operation, "key": key, **more}
        return await work.call(Effect("cache", work.node.id, arguments, repeatable=True, target=target))

    def _look_up(self, operation: str, key: str) -> Any:
        entries = self.cache.get([(self.namespace, key)])
        return next(([to_plain_write(*write) for write in writes] for writes in entries.values()), None)

    def _store(self, operation: str, key: str, writes: list[Any]) -> None:
        entry = [from_plain_write(*write) for write in writes]
        self.cache.set({(self.namespace, key): (entry, self.policy.ttl)})


def _is_update(plan: Any, channel: str) -> bool:
    return channel in plan.channels.channels


def _find_look_up(work: Work, key: str) -> Any:
    """Return the cache's answer for a key in this superstep; ABSENT if the key was not looked up.

    LangGraph looks up each key once, when the superstep begins.
    """
    steps = set(iter_superstep_steps(work.run, work.activation))
    return next((call.result for history, _ in work.run.parts() for call in history.calls
                 if call.kind == "cache" and call.name == work.node.id and call.step in steps and call.error is None
                 and call.arguments["operation"] == _GET and call.arguments["key"] == key), ABSENT)  # fmt: skip


__all__ = ["CachedCall"]
