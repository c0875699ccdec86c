"""The state of a graph: its channels as keys of the board, their first values and their reducers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from agentnb.dialects.langgraph.errors import make_unsupported_problem
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.schema import END
from agentnb.errors import Place, Problem

Reducer = Callable[[Any, Any], Any]
_OVERWRITE = lg.keys.OVERWRITE


class Channels:
    """The keys of one graph's state.

    `reducers` combine writes with the current value; `transient` keys last for one superstep, `untracked` keys until
    the run waits for a person; `managed` keys are computed when they are read; `messages` are the keys whose reducer
    assigns random ids to messages without one, `deltas` those of DeltaChannels. `earlier` contains the values from
    which a run continues. `by_key` is True if a dict returned by a node maps keys to their values.
    """

    def __init__(
        self, channels: Mapping[str, Any], managed: Mapping[str, Any], place: Place, problems: list[Problem]
    ) -> None:
        self.channels, self.managed = dict(channels), dict(managed)
        self.by_key = not channels.keys() & {"__root__", END}
        self.reducers: dict[str, Reducer] = {}
        self.transient: list[str] = []
        self.untracked: list[str] = []
        self.messages: set[str] = set()
        self.deltas: set[str] = set()
        self.earlier: Mapping[str, Any] = {}
        for key, channel in self.channels.items():
            problems += self._read(key, channel, place._replace(path=f"state.{key}"))

    def _read(self, key: str, channel: Any, place: Place) -> Iterator[Problem]:
        match channel:
            case lg.BinaryOperatorAggregate():
                self.reducers[key] = channel.operator
                if channel.operator is lg.add_messages:
                    self.messages.add(key)
            case lg.DeltaChannel():
                self.reducers[key] = Batched(channel.reducer)
                self.deltas.add(key)
            case lg.Topic():
                if not channel.accumulate:
                    yield make_unsupported_problem(
                        "a Topic that does not accumulate", place, "use Topic(..., accumulate=True)"
                    )
                self.reducers[key] = _extend
            case lg.EphemeralValue() | lg.AnyValue():
                self.transient.append(key)
                if isinstance(channel, lg.AnyValue) or not channel.guard:
                    self.reducers[key] = _keep_last
            case lg.UntrackedValue():
                self.untracked.append(key)
                if not channel.guard:
                    self.reducers[key] = _keep_last
            case lg.LastValue():
                pass
            case _:
                name = type(channel).__name__
                yield make_unsupported_problem(
                    f"a channel of class {name}", place, "use one of LangGraph's own channels for state"
                )

    def make_first_values(self, updates: list[tuple[str, Any]], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the first state of a graph, after the updates of its input.

        `earlier` contains the values from which the graph continues, if they differ from those of the whole run.
        """
        earlier = self.earlier if earlier is None else earlier
        values: dict[str, list[Any]] = {}
        lg.ensure_message_ids(self.channels, updates)
        for key, value in updates:
            if key in self.channels:
                values.setdefault(key, []).append(value)
        state = {}
        for key, channel in self.channels.items():
            fresh = channel.from_checkpoint(deepcopy(earlier[key]) if key in earlier else lg.MISSING)
            fresh.update(values.get(key, []))
            if fresh.is_available():
                state[key] = fresh.get()
        return state


class Batched:
    """Adapts the reducer of a DeltaChannel, which takes a list of writes, to single writes."""

    def __init__(self, reducer: Callable[[Any, list[Any]], Any]) -> None:
        self.reducer = reducer
        self.__code__ = getattr(reducer, "__code__", None)  # a recipe's fingerprint covers the code of its functions

    def __call__(self, old: Any, new: Any) -> Any:
        """Return the value after one write."""
        return self.reducer(old, [new])


def _keep_last(_old: Any, new: Any) -> Any:
    return new


def _extend(old: Any, new: Any) -> Any:
    return [*old, *(new if isinstance(new, list) else [new])]


def split_overwrite(value: Any) -> tuple[bool, Any]:
    """Return whether a value replaces the combined value (Overwrite), and the value itself."""
    if isinstance(value, lg.Overwrite):
        return True, value.value
    if isinstance(value, dict):
        if len(value) == 1 and _OVERWRITE in value:
            return True, value[_OVERWRITE]
        if value.get("type") == _OVERWRITE and "value" in value:
            return True, value["value"]
    return False, None
