"""printing: a log as lines of text, and the chain of causes behind an object or an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentnb.board.secrets import hidden
from agentnb.dialects.activegraph.events import Event, event_of
from agentnb.dialects.activegraph.status import BehaviorFailure, failures_of
from agentnb.trace.causes import chain_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentnb.dialects.activegraph.graph import Graph

WIDTH = 26


class Printed:
    """The log of a graph as text."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def events(self) -> list[Event]:
        """Return the events so far."""
        return self.graph.events

    def failures(self) -> list[BehaviorFailure]:
        """Return the failures so far."""
        return failures_of(self.graph.ledger.failures)

    def lines(self) -> list[str]:
        """Return one line for each event, without secrets."""
        return [hidden(f"{f'[{event.type}]':<{WIDTH}}{_said(event)}".rstrip()) for event in self.events()]

    def print(self) -> None:
        """Print the lines."""
        print("\n".join(self.lines()))  # noqa: T201  (that is what it is for)

    def causes(self, id_: str) -> list[Event]:
        """Return what led to an event, or to those that have made and changed an object: each, then its causes."""
        return [event for _, event in self._causes(id_)]

    def _causes(self, id_: str) -> Iterator[tuple[int, Event]]:
        """Yield each with how far it is from what was asked, from 1 on; a cause of several comes once."""
        kept = self.graph.ledger.events()
        known, seen = {event.id: event for event in kept}, set[str]()
        for link in chain_of(kept, id_):
            here, depth = (link.event if link.part == "self" else None), 1
            while here is not None and here.id not in seen:
                seen.add(here.id)
                yield depth, event_of(here)
                here, depth = known.get(here.cause or ""), depth + 1

    def causal_chain(self, object_id: str) -> str:
        """Return what led to an object, to its changes, or to an event, one cause a line; see `session.chain`."""
        found = self.graph.get_object(object_id)
        head = f"{object_id} ({found.type})" if found else object_id
        lines = (f"{'  ' * depth}← {event.actor} ({event.id}) {event.type}" for depth, event in self._causes(object_id))
        return hidden("\n".join([head, *lines]))

    def export(self, path: Any) -> None:
        """Write the events to a file, one JSON object a line, without secrets."""
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  (a path of any sort)
            file.writelines(hidden(json.dumps(event.to_dict())) + "\n" for event in self.events())

    def __repr__(self) -> str:
        """Return the lines."""
        return "\n".join(self.lines())


def _said(event: Event) -> str:
    """Return what an event tells, in a few words."""
    said = event.payload
    match event.type:
        case "goal.created":
            return f"{event.actor}: {json.dumps(said.get('goal'))}"
        case "object.created" | "object.removed" | "relation.removed":
            return str(said.get("id"))
        case "relation.created":
            return f"{said.get('source')} -> {said.get('target')} ({said['relation'].get('type')})"
        case "behavior.failed":
            return f"{said['behavior']}: {said['exception_type']}: {said['message'].splitlines()[0]}"
        case "patch.applied":
            return f"{said['target']}: {', '.join(said.get('diff', ()))}"
        case "runtime.idle":
            return "nothing is left to do"
        case "runtime.budget_exhausted":
            return str(said.get("exhausted_by"))
    if "behavior" in said:
        return str(said["behavior"])
    return " ".join([str(event.actor or ""), *(f"{name}={value!r}" for name, value in said.items())])


__all__ = ["Printed"]
