"""The common events, objects and relations of two runs, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import thaw
from agentnb.dialects.activegraph.parts.events import Event, is_lifecycle, to_event
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.graph import Graph

# The fields that differ between two equal runs.
_OF_THE_RUN: Final = ("run_id", "timestamp")


@dataclass(frozen=True)
class _Divergent:
    """An item that differs: its state in each of the two runs, None if it does not exist."""

    id: str
    in_parent: dict[str, Any] | None
    in_fork: dict[str, Any] | None

    def summary(self) -> str:
        """Return one line: where it exists, or which fields of its data differ."""
        if self.in_parent is None or self.in_fork is None:
            return f"{self.id}: only in the {'fork' if self.in_parent is None else 'parent'}"
        parent_data, fork_data = self.in_parent.get("data") or {}, self.in_fork.get("data") or {}
        changed = [
            f"{name}: {safe_repr(parent_data.get(name))} -> {safe_repr(fork_data.get(name))}"
            for name in {**parent_data, **fork_data}
            if parent_data.get(name) != fork_data.get(name)
        ]
        return f"{self.id}: {', '.join(changed) or 'same data'}"


class DivergentObject(_Divergent):
    """An object that differs between two runs."""


class DivergentRelation(_Divergent):
    """A relation that differs between two runs."""


@dataclass
class Diff:
    """Two runs compared.

    `shared_events` is the longest common prefix of both logs; the others are the rest of each. Events of the run itself
    (`behavior.*`, `runtime.*` ...) are left out, and run ids and times are not compared: a fork that repeats its parent
    is identical.
    """

    parent_run_id: str
    fork_run_id: str
    shared_events: list[Event] = field(default_factory=list)
    parent_only_events: list[Event] = field(default_factory=list)
    fork_only_events: list[Event] = field(default_factory=list)
    divergent_objects: list[DivergentObject] = field(default_factory=list)
    divergent_relations: list[DivergentRelation] = field(default_factory=list)

    @property
    def is_identical(self) -> bool:
        """Whether there is no difference."""
        return not (
            self.parent_only_events or self.fork_only_events or self.divergent_objects or self.divergent_relations
        )

    def __str__(self) -> str:
        """Return the counts, and a line for each item that differs."""
        head = (f"{self.parent_run_id} and {self.fork_run_id}: {len(self.shared_events)} shared events, "
                f"{len(self.parent_only_events)} and {len(self.fork_only_events)} of their own")  # fmt: skip
        items: Sequence[_Divergent] = [*self.divergent_objects, *self.divergent_relations]
        return "\n".join([head, *(f"  {each.summary()}" for each in items)])


def diff_graphs(parent: Graph, fork: Graph) -> Diff:
    """Compare two runs."""
    logs = [[each for each in graph.ledger.events() if not is_lifecycle(each.type)] for graph in (parent, fork)]
    pairs = zip(*logs, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: _to_comparable(pair[0]) == _to_comparable(pair[1]), pairs))
    return Diff(
        parent.run_id,
        fork.run_id,
        [to_event(each) for each in logs[0][:shared]],
        [to_event(each) for each in logs[0][shared:]],
        [to_event(each) for each in logs[1][shared:]],
        [DivergentObject(*row) for row in _find_divergent(parent.ledger.all_objects(), fork.ledger.all_objects())],
        [
            DivergentRelation(*row)
            for row in _find_divergent(parent.ledger.all_relations(), fork.ledger.all_relations())
        ],
    )


def _to_comparable(event: Any) -> tuple[Any, ...]:
    return event.id, event.type, event.actor, event.cause, _strip(event.payload)


def _strip(value: Any) -> Any:
    """Return a value without the fields that differ between equal runs, which only provenances have."""
    plain = thaw(value)
    for part in (plain, *plain.values()) if isinstance(plain, dict) else ():
        provenance = part.get("provenance") if isinstance(part, dict) else None
        if isinstance(provenance, dict):
            for name in _OF_THE_RUN:
                provenance.pop(name, None)
    return plain


def _find_divergent(parent: Any, fork: Any) -> list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    parent_records: Mapping[str, Any] = {each["id"]: _strip(each) for each in parent}
    fork_records: Mapping[str, Any] = {each["id"]: _strip(each) for each in fork}
    return [
        (id_, parent_records.get(id_), fork_records.get(id_))
        for id_ in {**parent_records, **fork_records}
        if parent_records.get(id_) != fork_records.get(id_)
    ]


__all__ = ["Diff", "DivergentObject", "DivergentRelation", "diff_graphs"]
