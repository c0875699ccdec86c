"""kept: a recipe as it is kept with a run: its text, and what decides how it runs. And what has changed since then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agentnb.board.secrets import hidden, masked, short
from agentnb.engine.work import Kind, Perform
from agentnb.errors import ExecutionError, Place, Problem
from agentnb.kinds import KINDS
from agentnb.recipe.model import Edge, Node, Path, Recipe, Region, plain

Json = dict[str, Any]
_NODE: Final = ("kind", "label", "scope", "inputs", "reads", "writes", "bodies", "on", "counted")
_RUNS: Final = ("kind", "scope", "inputs", "bodies", "on", "params", "rescue")  # what decides how a node runs


def to_kept(recipe: Recipe) -> Json:
    """Return a recipe as JSON, masked. Functions and conditions are kept as names, texts and digests."""
    nodes = {}
    for node in recipe.nodes.values():
        row = {name: plain(getattr(node, name)) for name in _NODE if getattr(node, name)}
        if node.rescue is not None:
            row["rescue"] = [plain(node.rescue.writes), plain(node.rescue.route)]
        nodes[node.id] = {**row, "counted": node.counted, "place": _place(node.place),
                          **({"params": plain(node.params)} if node.params else {})}  # fmt: skip
    document = {
        "name": recipe.name,
        "dialect": recipe.dialect,
        "file": recipe.file,
        "text": recipe.text,
        "fingerprint": recipe.fingerprint,
        "nodes": nodes,
        "edges": [[edge.source, edge.target, edge.kind, edge.condition, plain(edge.when), _place(edge.place)]
                  for edge in recipe.edges],
        "regions": [
            [region.id, list(region.entry), region.title, region.owner, region.isolated]
            for region in recipe.regions.values()
        ],
        **_areas(recipe),
        **({"events": plain(recipe.meta["events"])} if "events" in recipe.meta else {}),
        **{name: plain(getattr(recipe, name)) for name in ("entry", "inputs", "outputs", "routing", "timeouts", "init",
                                                           "limits")},
    }  # fmt: skip
    return json.loads(json.dumps(masked(document)))  # type: ignore[no-any-return]  # a mapping, as it was


def _areas(recipe: Recipe) -> Json:
    """Return the areas of a drawing that are no regions, where a recipe has some."""
    areas = recipe.meta.get("areas")
    if not areas:
        return {}
    rows = [[area.id, list(area.entry), area.title, area.owner] for area in areas.values()]
    return {"areas": rows, "area_of": dict(recipe.meta["area_of"])}


@dataclass(slots=True)
class _KeptCondition:
    """A condition of which only its text is kept: what it was answered stands in the run, and it cannot be asked."""

    text: str
    reads: tuple[Path, ...] = ()

    def __call__(self, _board: Mapping[str, Any]) -> Any:
        raise ExecutionError(read_only(self.text))


def recipe_of(kept: Mapping[str, Any]) -> Recipe:
    """Return a recipe that can be drawn and looked at; nothing of it can run."""
    nodes = {}
    for name, row in kept["nodes"].items():
        reads, writes, bodies, on = (tuple(row.get(word, ())) for word in ("reads", "writes", "bodies", "on"))
        inputs = None if row.get("inputs") is None else {key: tuple(path) for key, path in row["inputs"].items()}
        nodes[name] = Node(
            name,
            row["kind"],
            row.get("label", ""),
            row.get("scope", "root"),
            inputs,
            reads,
            writes,
            bodies=bodies,
            params=row.get("params", {}) if on else {},  # what a behaviour asks of events; else the edges say it
            on=on,
            counted=row["counted"],
            place=_placed(row["place"]),
        )
    return Recipe(
        kept["name"],
        kept["dialect"],
        nodes,
        tuple(
            Edge(source, target, kind, None if when is None else _KeptCondition(text), text, _placed(place))
            for source, target, kind, text, when, place in kept["edges"]
        ),
        tuple(kept["entry"]),
        inputs=kept["inputs"],
        outputs=tuple(kept["outputs"]),
        regions={id: Region(id, tuple(entry), *rest) for id, entry, *rest in kept["regions"]},
        routing=kept["routing"],
        timeouts=kept["timeouts"],
        init=kept["init"],
        meta=_drawn(kept),
        text=kept["text"],
        file=kept["file"],
    )


def _drawn(kept: Mapping[str, Any]) -> Json:
    """Return what only a drawing is told, as the recipe's own loader gives it: its areas, the events of behaviours."""
    areas = {id: Region(id, tuple(entry), *rest) for id, entry, *rest in kept.get("areas", ())}
    found = {"areas": areas, "area_of": kept.get("area_of", {})}
    if "events" in kept:
        events = kept["events"]
        may = {node: tuple(types) for node, types in events["may"].items()}
        found["events"] = {"own": tuple(events["own"]), "tells": events["tells"], "may": may}
    return found


def _place(place: Place | None) -> list[Any] | None:
    return None if place is None else list(place)


def _placed(row: list[Any] | None) -> Place | None:
    return None if row is None else Place(*row)


def kinds_to_read(recipe: Recipe) -> dict[str, Kind]:
    """Return a table of kinds in which nothing runs, for a recipe that is only looked at."""
    return {node.kind: replace(KINDS.get(node.kind) or Kind(node.kind, _bind), bind=_bind)
            for node in recipe.nodes.values()}  # fmt: skip


def _bind(node: Node, _world: Any) -> Perform:
    def perform(_work: Any) -> Any:
        raise ExecutionError(read_only(node.id))

    return perform


def read_only(where: str) -> Problem:
    """Return the problem of a run that is asked to go on without its recipe."""
    return Problem(
        "L450",
        "this run can only be read: it was opened without its recipe",
        where,
        "what is kept of a run is what has happened; what its nodes do stands in the recipe, and nothing kept can run",
        "open it with the recipe: nb.open(WHERE, RUN_ID, recipe=nb.load(...))",
    )


# -- what has changed ------------------------------------------------------------------------------------------------


def changes(kept: Mapping[str, Any], recipe: Recipe) -> list[str]:
    """Return what is other in a recipe than in the one that was kept, one line each; empty where it runs alike."""
    now = to_kept(recipe)
    return list(_changes(kept, now)) if now["fingerprint"] != kept["fingerprint"] else []


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in then["nodes"]:
        if name not in now["nodes"]:
            yield f"node {name!r} is gone"
    for name, row in now["nodes"].items():
        before = then["nodes"].get(name)
        if before is None:
            yield f"node {name!r} is new"
        else:
            for word in _RUNS:
                yield from _other(f"node {name!r}, {word}", before.get(word), row.get(word))
    for sign, edges, others in (("gone", then["edges"], now["edges"]), ("new", now["edges"], then["edges"])):
        for edge in edges:
            if not any(edge[:5] == other[:5] for other in others):
                told = f" when {edge[3]}" if edge[3] else ""
                yield f"edge {edge[0]!r} -> {edge[1]!r} ({edge[2]}{told}) is {sign}"
    for word in ("name", "dialect", "entry", "routing", "timeouts", "init", "limits", "regions"):
        yield from _other(word, then[word], now[word])


def _other(what: str, then: Any, now: Any) -> Iterator[str]:
    """Yield where two JSON values differ, each with what stood and stands there."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            yield from _other(f"{what}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield hidden(f"{what}: was {short(then)}, is {short(now)}")


__all__ = ["changes", "kinds_to_read", "read_only", "recipe_of", "to_kept"]
