"""Graph stores: the index of a graph's objects, relations and patches; a protocol, and an implementation in memory.

The log is the source of truth and the board has the history; a store has the current state. It is filled from the log,
and cleared and refilled when a run goes back or is opened elsewhere, so that other stores can be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from agentnb.board.values import ABSENT

Kept = Any  # an object, a relation or a patch in the form of its event: a frozen mapping with its id


@runtime_checkable
class GraphStore(Protocol):
    """The current state of a graph. Iteration is in creation order; missing items are ABSENT."""

    def put_object(self, id_: str, value: Kept) -> None:
        """Store a new object, or a new state of an existing one, which keeps its position."""
        ...

    def get_object(self, id_: str) -> Kept:
        """Return an object."""
        ...

    def remove_object(self, id_: str) -> None:
        """Remove an object; a missing one is not an error."""
        ...

    def all_objects(self, type_: str | None = None) -> Iterator[Kept]:
        """Yield the objects, optionally of one type; changes during the iteration are allowed."""
        ...

    def put_relation(self, id_: str, value: Kept) -> None:
        """Store a relation; its ends may be missing."""
        ...

    def get_relation(self, id_: str) -> Kept:
        """Return a relation."""
        ...

    def remove_relation(self, id_: str) -> None:
        """Remove a relation; a missing one is not an error."""
        ...

    def all_relations(self) -> Iterator[Kept]:
        """Yield the relations; changes during the iteration are allowed."""
        ...

    def touching(self, id_: str) -> list[str]:
        """Return the ids of the relations that start or end at an object."""
        ...

    def put_patch(self, id_: str, value: Kept) -> None:
        """Store a patch, or a new state of an existing one."""
        ...

    def get_patch(self, id_: str) -> Kept:
        """Return a patch."""
        ...

    def all_patches(self) -> Iterator[Kept]:
        """Yield the patches."""
        ...

    def clear(self) -> None:
        """Remove everything."""
        ...


class InMemoryGraphStore:
    """A store of plain mappings; frozen values are shared with the board, not copied.

    Example:
        >>> store = InMemoryGraphStore()
        >>> store.put_object("task#1", {"id": "task#1", "type": "task", "data": {}, "version": 1})
        >>> [each["id"] for each in store.all_objects("task")], store.touching("task#1")
        (['task#1'], [])
    """

    def __init__(self) -> None:
        self._objects: dict[str, Kept] = {}
        self._types: dict[str, dict[str, None]] = {}
        self._relations: dict[str, Kept] = {}
        self._ends: dict[str, dict[str, None]] = {}
        self._patches: dict[str, Kept] = {}

    def put_object(self, id_: str, value: Kept) -> None:
        """Store a new object, or a new state of an existing one."""
        known, type_ = self._objects.get(id_), value["type"]
        if known is None or known["type"] != type_:
            if known is not None:
                del self._types[known["type"]][id_]
            self._types.setdefault(type_, {})[id_] = None
        self._objects[id_] = value

    def get_object(self, id_: str) -> Kept:
        """Return an object; ABSENT if there is none."""
        return self._objects.get(id_, ABSENT)

    def remove_object(self, id_: str) -> None:
        """Remove an object."""
        removed = self._objects.pop(id_, None)
        if removed is not None:
            del self._types[removed["type"]][id_]

    def all_objects(self, type_: str | None = None) -> Iterator[Kept]:
        """Yield the objects, optionally of one type."""
        if type_ is None:
            return iter(tuple(self._objects.values()))
        return iter([self._objects[id_] for id_ in self._types.get(type_, ())])

    def put_relation(self, id_: str, value: Kept) -> None:
        """Store a relation."""
        if id_ in self._relations:
            self.remove_relation(id_)
        for end in (value["source"], value["target"]):
            self._ends.setdefault(end, {})[id_] = None
        self._relations[id_] = value

    def get_relation(self, id_: str) -> Kept:
        """Return a relation; ABSENT if there is none."""
        return self._relations.get(id_, ABSENT)

    def remove_relation(self, id_: str) -> None:
        """Remove a relation."""
        removed = self._relations.pop(id_, None)
        if removed is not None:
            for end in {removed["source"], removed["target"]}:
                del self._ends[end][id_]

    def all_relations(self) -> Iterator[Kept]:
        """Yield the relations."""
        return iter(tuple(self._relations.values()))

    def touching(self, id_: str) -> list[str]:
        """Return the ids of the relations that start or end at an object."""
        return list(self._ends.get(id_, ()))

    def put_patch(self, id_: str, value: Kept) -> None:
        """Store a patch, or a new state of one."""
        self._patches[id_] = value

    def get_patch(self, id_: str) -> Kept:
        """Return a patch; ABSENT if there is none."""
        return self._patches.get(id_, ABSENT)

    def all_patches(self) -> Iterator[Kept]:
        """Yield the patches."""
        return iter(tuple(self._patches.values()))

    def clear(self) -> None:
        """Remove everything."""
        for table in (self._objects, self._types, self._relations, self._ends, self._patches):
            table.clear()


__all__ = ["GraphStore", "InMemoryGraphStore", "Kept"]
