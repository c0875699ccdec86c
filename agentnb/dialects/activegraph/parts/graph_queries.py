"""Graph queries along relations; results are in creation order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.errors import GraphError
from agentnb.dialects.activegraph.parts.graph_stores import InMemoryGraphStore
from agentnb.dialects.activegraph.parts.objects import Object, Relation, to_object, to_relation
from agentnb.errors import Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.ledger import Ledger


@dataclass(frozen=True)
class Chain:
    """Objects, each joined to the next by the relation between them."""

    objects: list[Object]
    relations: list[Relation]


class EarlierGraph(InMemoryGraphStore):
    """A graph as it was on an earlier board; see `Ledger`."""

    def __init__(self, board: Mapping[str, Any]) -> None:
        super().__init__()
        for key, value in board.items():
            if isinstance(value, Mapping) and "version" in value:
                self.put_object(key, value)
            elif isinstance(value, Mapping) and "source" in value:
                self.put_relation(key, value)

    object, relation = InMemoryGraphStore.get_object, InMemoryGraphStore.get_relation


def find_near(ledger: Ledger | EarlierGraph, object_id: str, depth: int) -> tuple[list[Any], list[Any]]:
    """Return the objects and relations within a distance of an object, frozen, in creation order."""
    if ledger.object(object_id) is ABSENT:
        return [], []
    reached, border, relation_ids = {object_id}, [object_id], set[str]()
    for _ in range(depth):
        following = []
        for current_id in border:
            for id_ in ledger.touching(current_id):
                relation = ledger.relation(id_)
                other = relation["target"] if relation["source"] == current_id else relation["source"]
                relation_ids.add(id_)  # one whose other end is missing, too: it exists, and others may share that end
                if other not in reached:
                    reached.add(other)
                    following.append(other)
        border = following
    objects = [record for record in ledger.all_objects() if record["id"] in reached]
    return objects, [record for record in ledger.all_relations() if record["id"] in relation_ids]


def find_chains(ledger: Ledger, types: Sequence[str | None], hops: Sequence[tuple[str | None, str]]) -> list[Chain]:
    """Return each chain of objects of these types, joined by relations of (type, "right" or "left").

    Raises:
        GraphError: X517, a direction is neither right nor left.
    """
    hops = [(type_, parse_direction(direction, "right", "left")) for type_, direction in hops]
    if not types:
        return []
    return [
        Chain([to_object(ledger.object(id_)) for id_ in objects], [to_relation(ledger.relation(id_)) for id_ in found])
        for first in ledger.all_objects(types[0])
        for objects, found in _from(ledger, [first["id"]], [], types, hops)
    ]


def parse_direction(direction: str, *known: str) -> str:
    """Return a direction in its standard form; "out" and "in" are accepted, too.

    X517: a query names an unknown direction.

    Raises:
        GraphError: X517, there is no such direction.
    """
    parsed = {"out": known[0], "in": known[1]}.get(direction, direction)
    if parsed not in known:
        raise GraphError(
            Problem("X517", f"there is no direction {direction!r}", "direction",
                    f"the directions are: {', '.join(known)}",
                    did_you_mean(str(direction), known, "use one of them"))
        )  # fmt: skip
    return parsed


def _from(ledger: Ledger, objects: list[str], relations: list[str], types: Sequence[str | None],
          hops: Sequence[tuple[str | None, str]]) -> Iterator[tuple[list[str], list[str]]]:  # fmt: skip
    index = len(relations)
    if index == len(hops):
        yield objects, relations
        return
    type_, direction = hops[index]
    own, other = ("target", "source") if direction == "left" else ("source", "target")
    for id_ in ledger.touching(objects[-1]):
        relation = ledger.relation(id_)
        neighbor = ledger.object(relation[other])
        if relation[own] != objects[-1] or neighbor is ABSENT or type_ not in (None, relation["type"]):
            continue
        if types[index + 1] in (None, neighbor["type"]):
            yield from _from(ledger, [*objects, neighbor["id"]], [*relations, id_], types, hops)


__all__ = ["Chain", "EarlierGraph", "find_chains", "find_near", "parse_direction"]
