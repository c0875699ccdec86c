"""Recipe snapshots: the recipe as saved with a run or a trace, and what has changed since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from agentnb.board.codec import encode
from agentnb.board.masking import mask_value
from agentnb.engine.core.run import Run
from agentnb.engine.core.work import Kind, Perform
from agentnb.engine.persistence.snapshot import encode_randomness
from agentnb.errors import ExecutionError, Place, Problem
from agentnb.kinds import KINDS
from agentnb.recipe.call_settings import RECORDED, get_call_settings
from agentnb.recipe.model import EDGE_KINDS, ROOT, Edge, Node, Path, Recipe, Region, to_plain
from agentnb.text import safe_repr, safe_str

Json = dict[str, Any]
ORIGIN: Final = ("recipe", "given", "seed", "salt")  # what `describe_origin` returns
_NODE: Final = ("kind", "label", "scope", "inputs", "reads", "writes", "bodies", "on", "counted")
_RUNS: Final = ("kind", "scope", "inputs", "bodies", "on", "params", "rescue")  # the fields that decide how a node runs


def to_snapshot(recipe: Recipe) -> Json:
    """Return a recipe as masked JSON. Functions and conditions are represented by names, texts and digests."""
    nodes = {}
    for node in recipe.nodes.values():
        row = {name: to_plain(getattr(node, name)) for name in _NODE if getattr(node, name)}
        if node.rescue is not None:
            row["rescue"] = [to_plain(node.rescue.writes), to_plain(node.rescue.route)]
        nodes[node.id] = {**row, "counted": node.counted, "place": _encode_place(node.place),
                          **({"params": to_plain(node.params)} if node.params else {})}  # fmt: skip
    document = {
        "name": recipe.name,
        "dialect": recipe.dialect,
        "file": recipe.file,
        "text": recipe.text,
        "fingerprint": recipe.fingerprint,
        "nodes": nodes,
        "edges": [
            [edge.source, edge.target, edge.kind, edge.condition, to_plain(edge.when), _encode_place(edge.place)]
            for edge in recipe.outgoing_edges
        ],
        "regions": [
            [region.id, list(region.entry), region.title, region.owner, region.isolated]
            for region in recipe.regions.values()
        ],
        **_encode_areas(recipe),
        **({"events": to_plain(recipe.meta["events"])} if "events" in recipe.meta else {}),
        **{
            name: to_plain(getattr(recipe, name))
            for name in ("entry", "inputs", "outputs", "routing", "timeouts", "init", "limits")
        },
        RECORDED: get_call_settings(recipe),
    }
    return json.loads(json.dumps(mask_value(document)))  # type: ignore[no-any-return]  # a mapping, as it was


def describe_origin(run: Run) -> Json:
    """Return what a run began with, as masked JSON: its recipe, its inputs, and what its random numbers depend on.

    Files are written by name only: their folder is private to this machine.
    """
    snapshot = to_snapshot(run.plan.recipe)
    snapshot["file"] = None if snapshot["file"] is None else PurePath(snapshot["file"]).name
    nodes, edges = snapshot["nodes"].values(), snapshot["edges"]
    for place in (*(row["place"] for row in nodes), *(edge[5] for edge in edges)):
        if place is not None:
            place[0] = PurePath(place[0]).name
    return {
        "recipe": snapshot,
        "given": encode(run.inputs, lenient=True),
        **encode_randomness(run),
    }


def check_snapshot(snapshot: Any) -> None:
    """Raise for a snapshot from an untrusted file that cannot be drawn or inspected.

    Raises:
        ValueError: a part is missing, of another type, or refers to a node or region that is not there.
    """
    _check(isinstance(snapshot, dict), "the recipe")
    texts = [snapshot["name"], snapshot["dialect"], snapshot["fingerprint"], *snapshot["entry"], *snapshot["outputs"]]
    _check(all(isinstance(text, str) for text in texts), "the names of the recipe")
    _check(all(isinstance(snapshot[name], str | None) for name in ("text", "file")), "the source of the recipe")
    _check(all(isinstance(snapshot[name], dict) for name in ("nodes", "inputs", "init")), "the nodes of the recipe")
    regions = {id: owner for id, _entry, _title, owner, _isolated in snapshot["regions"]}
    for id, entry, title, owner, _isolated in snapshot["regions"]:
        _check(all(isinstance(text, str) for text in (id, title, owner, *entry)), "a region")
        _check(not owner or owner in snapshot["nodes"], f"the owner of region {id!r}")
    for id, row in snapshot["nodes"].items():
        texts = [row["kind"], row.get("label", ""), row.get("scope", ROOT), *row.get("on", ()), *row.get("bodies", ()),
                 *row.get("reads", ()), *row.get("writes", ())]  # fmt: skip
        _check(all(isinstance(text, str) for text in texts), f"node {id!r}")
        _check(row.get("scope", ROOT) in {ROOT, *regions}, f"the region of node {id!r}")
        paths = row["inputs"].values() if row.get("inputs") else ()
        _check(
            all(path and all(isinstance(part, str | int) for part in path) for path in paths),
            f"the inputs of node {id!r}",
        )
        _check(isinstance(row.get("params", {}), dict), f"the parameters of node {id!r}")
        _check_place(row["place"])
    for source, target, kind, text, _when, place in snapshot["edges"]:
        _check(source in snapshot["nodes"] and target in snapshot["nodes"], "the ends of an edge")
        _check(kind in EDGE_KINDS and isinstance(text, str), "an edge")
        _check_place(place)
    settings = snapshot.get(RECORDED, {})
    _check(isinstance(settings, dict) and isinstance(settings.get("tools", {}), dict), "the settings of calls")
    for id in regions:  # the walk outward from a region must end
        seen = {id}
        while regions.get(id):
            id = snapshot["nodes"][regions[id]].get("scope", ROOT)  # noqa: PLW2901  (a walk)
            _check(id not in seen, f"the nesting of region {id!r}")
            seen.add(id)


def _check_place(place: Any) -> None:
    if place is not None:
        file, line, column, path = place
        _check(isinstance(file, str) and isinstance(path, str), "a place in the source")
        _check(type(line) is int and type(column) is int, "a place in the source")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what}: invalid value")


def _encode_areas(recipe: Recipe) -> Json:
    """Return the areas of a drawing that are not regions, if the recipe has any."""
    areas = recipe.meta.get("areas")
    if not areas:
        return {}
    rows = [[area.id, list(area.entry), area.title, area.owner] for area in areas.values()]
    return {"areas": rows, "area_of": dict(recipe.meta["area_of"])}


@dataclass(slots=True)
class _SavedCondition:
    """A condition of which only the text is saved: its results are recorded in the run; it cannot be evaluated."""

    text: str
    reads: tuple[Path, ...] = ()

    def __call__(self, _board: Mapping[str, Any]) -> Any:
        raise ExecutionError(read_only(self.text))


def rebuild_recipe(snapshot: Mapping[str, Any]) -> Recipe:
    """Return a recipe that can be drawn and inspected, but not run. It has the fingerprint of the recorded recipe."""
    nodes = {}
    for name, row in snapshot["nodes"].items():
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
            params=row.get("params", {}) if on else {},  # event clauses; else the edges have them
            on=on,
            counted=row["counted"],
            place=_to_place(row["place"]),
        )
    recipe = Recipe(
        snapshot["name"],
        snapshot["dialect"],
        nodes,
        tuple(
            Edge(source, target, kind, None if when is None else _SavedCondition(text), text, _to_place(place))
            for source, target, kind, text, when, place in snapshot["edges"]
        ),
        tuple(snapshot["entry"]),
        inputs=snapshot["inputs"],
        outputs=tuple(snapshot["outputs"]),
        regions={id: Region(id, tuple(entry), *rest) for id, entry, *rest in snapshot["regions"]},
        routing=snapshot["routing"],
        timeouts=snapshot["timeouts"],
        init=snapshot["init"],
        meta={**_load_drawing_data(snapshot), RECORDED: snapshot.get(RECORDED, {})},
        text=snapshot["text"],
        file=snapshot["file"],
    )
    vars(recipe)["fingerprint"] = snapshot["fingerprint"]  # cached: what was recorded is not enough to compute it
    return recipe


def _load_drawing_data(snapshot: Mapping[str, Any]) -> Json:
    """Return what only drawings use, as the recipe's own loader makes it: its areas, the events of behaviors."""
    areas = {id: Region(id, tuple(entry), *rest) for id, entry, *rest in snapshot.get("areas", ())}
    data = {"areas": areas, "area_of": snapshot.get("area_of", {})}
    if "events" in snapshot:
        events = snapshot["events"]
        may = {node: tuple(types) for node, types in events["may"].items()}
        data["events"] = {"own": tuple(events["own"]), "tells": events["tells"], "may": may}
    return data


def _encode_place(place: Place | None) -> list[Any] | None:
    return None if place is None else list(place[:4])


def _to_place(row: list[Any] | None) -> Place | None:
    return None if row is None else Place(*row)


def make_readable_kinds(recipe: Recipe) -> dict[str, Kind]:
    """Return a table of kinds without implementations, for a read-only recipe."""
    return {node.kind: replace(KINDS.get(node.kind) or Kind(node.kind, _bind), bind=_bind)
            for node in recipe.nodes.values()}  # fmt: skip


def _bind(node: Node, _world: Any) -> Perform:
    def perform(_work: Any) -> Any:
        raise ExecutionError(read_only(node.id))

    return perform


def read_only(where: str) -> Problem:
    """Return the problem of continuing a run without its recipe."""
    return Problem(
        "L450",
        "this run is read-only: it was opened without its recipe",
        where,
        "a store contains a record; the code of the nodes is in the recipe",
        "open it with the recipe: nb.open(WHERE, RUN_ID, recipe=nb.load(...))",
    )


# -- changes --------------------------------------------------------------------------------------------------------


def describe_changes(snapshot: Mapping[str, Any], recipe: Recipe) -> list[str]:
    """Return the differences between a recipe and the stored one, one line each; empty if they run in the same way."""
    now = to_snapshot(recipe)
    return list(_iter_changes(snapshot, now)) if now["fingerprint"] != snapshot["fingerprint"] else []


def _iter_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in then["nodes"]:
        if name not in now["nodes"]:
            yield f"node {name!r} is gone"
    for name, row in now["nodes"].items():
        old_node = then["nodes"].get(name)
        if old_node is None:
            yield f"node {name!r} is new"
        else:
            for word in _RUNS:
                yield from _iter_differences(f"node {name!r}, {word}", old_node.get(word), row.get(word))
    for sign, edges, others in (("gone", then["edges"], now["edges"]), ("new", now["edges"], then["edges"])):
        for edge in edges:
            if not any(edge[:5] == other[:5] for other in others):
                condition = f" when {edge[3]}" if edge[3] else ""
                yield f"edge {edge[0]!r} -> {edge[1]!r} ({edge[2]}{condition}) is {sign}"
    for word in ("name", "dialect", "entry", "routing", "timeouts", "init", "limits", "regions"):
        yield from _iter_differences(word, then[word], now[word])
    if RECORDED in then:  # agentnb 0.2 did not record them
        for word in ("tools", "model"):
            yield from _iter_differences(word, then[RECORDED].get(word, {}), now[RECORDED].get(word, {}))


def _iter_differences(what: str, then: Any, now: Any) -> Iterator[str]:
    """Yield where two JSON values differ, each with the old and the new value."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            yield from _iter_differences(f"{what}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield safe_str(f"{what}: was {safe_repr(then)}, is {safe_repr(now)}")


__all__ = [
    "ORIGIN",
    "check_snapshot",
    "describe_changes",
    "describe_origin",
    "make_readable_kinds",
    "read_only",
    "rebuild_recipe",
    "to_snapshot",
]
