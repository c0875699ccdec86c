"""reading: what can be found in a graph by going along its relations; always in the order in which things were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.objects import Object, Relation, object_of, relation_of

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.ledger import Ledger


@dataclass(frozen=True)
class Chain:
    """Objects, each joined to the next by the relation between them."""

    objects: list[Object]
    relations: list[Relation]


class Then:
    """A graph as a board told it at another moment; see `Ledger`."""

    def __init__(self, board: Mapping[str, Any]) -> None:
        held = {key: value for key, value in board.items() if isinstance(value, Mapping)}
        self.objects = {key: value for key, value in held.items() if "version" in value}
        self.relations = {key: value for key, value in held.items() if "source" in value}
        self._ends: dict[str, dict[str, None]] = {}
        for key, value in self.relations.items():
            for end in (value["source"], value["target"]):
                self._ends.setdefault(end, {})[key] = None

    def object(self, key: str) -> Any:
        """Return an object; ABSENT where there was none."""
        return self.objects.get(key, ABSENT)

    def relation(self, key: str) -> Any:
        """Return a relation."""
        return self.relations[key]

    def all_objects(self, type_: str | None = None) -> Iterator[Any]:
        """Yield the objects of a type."""
        return (value for value in self.objects.values() if type_ in (None, value["type"]))

    def all_relations(self) -> Iterator[Any]:
        """Yield the relations."""
        return iter(self.relations.values())

    def touching(self, key: str) -> list[str]:
        """Return the ids of the relations of an object."""
        return list(self._ends.get(key, ()))


def near(ledger: Ledger | Then, object_id: str, depth: int) -> tuple[list[Any], list[Any]]:
    """Return the objects and relations that lie so near to an object, frozen, in the order in which they were made."""
    if ledger.object(object_id) is ABSENT:
        return [], []
    reached, border, ways = {object_id}, [object_id], set[str]()
    for _ in range(depth):
        following = []
        for here in border:
            for id_ in ledger.touching(here):
                relation = ledger.relation(id_)
                other = relation["target"] if relation["source"] == here else relation["source"]
                if ledger.object(other) is ABSENT:
                    continue
                ways.add(id_)
                if other not in reached:
                    reached.add(other)
                    following.append(other)
        border = following
    objects = [ledger.object(id_) for id_ in ledger.objects if id_ in reached]
    return objects, [ledger.relation(id_) for id_ in ledger.relations if id_ in ways]


def chains(ledger: Ledger, types: Sequence[str | None], ways: Sequence[tuple[str | None, str]]) -> list[Chain]:
    """Return each chain of objects of these types, joined by relations of (type, "out" or "in")."""
    return [
        Chain([object_of(ledger.object(id_)) for id_ in objects], [relation_of(ledger.relation(id_)) for id_ in found])
        for first in ledger.all_objects(types[0])
        for objects, found in _from(ledger, [first["id"]], [], types, ways)
    ]


def _from(ledger: Ledger, objects: list[str], relations: list[str], types: Sequence[str | None],
          ways: Sequence[tuple[str | None, str]]) -> Iterator[tuple[list[str], list[str]]]:  # fmt: skip
    place = len(relations)
    if place == len(ways):
        yield objects, relations
        return
    type_, direction = ways[place]
    own, other = ("target", "source") if direction == "in" else ("source", "target")
    for id_ in ledger.touching(objects[-1]):
        relation = ledger.relation(id_)
        there = ledger.object(relation[other])
        if relation[own] != objects[-1] or there is ABSENT or type_ not in (None, relation["type"]):
            continue
        if types[place + 1] in (None, there["type"]):
            yield from _from(ledger, [*objects, there["id"]], [*relations, id_], types, ways)


__all__ = ["Chain", "Then", "chains", "near"]
