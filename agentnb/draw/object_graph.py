"""The drawing of a graph of objects: the objects, their relations, and what the last step changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.generic_diagram import GenericBox, GenericLink, Sketch, draw_sketch
from agentnb.draw.label_text import clean
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST: Final = 200  # maximum number of objects drawn
_FIELDS: Final = 3  # maximum number of data fields shown per object
_COLORS: Final = ("act", "think", "person", "choose", "frame", "react")
_SIGNS: Final = {"new": "+ new", "changed": "~ changed", "removed": "- removed"}
Board = Mapping[str, Any]


def draw_graph(title: str, now: Board, before: Board | None = None, *, most: int = MOST) -> Sketch:
    """Return the drawing of the objects and relations on a board; other values are left out.

    Args:
        now: the board, frozen values by id.
        before: the board before the last step: differences are marked; None marks nothing.
        most: the maximum number of objects drawn: changed ones first, then the newest.
    """
    objects, past = list_objects(now), {} if before is None else list_objects(before)
    removed = {id: each for id, each in past.items() if id not in objects}
    every = {**objects, **removed}
    changes = {} if before is None else dict(_iter_changes(objects, past))
    ties = dict(_iter_relations(now))
    lost = {} if before is None else {id: each for id, each in _iter_relations(before) if id not in ties}
    fresh = set() if before is None else set(ties) - dict(_iter_relations(before)).keys()
    ghosts = dict.fromkeys(
        end for each in (*ties.values(), *lost.values()) for end in (each["source"], each["target"]) if end not in every
    )
    names = _choose([*every, *ghosts], changes, most)
    colors = dict(zip(dict.fromkeys(str(each["type"]) for each in every.values()), cycle(_COLORS)))
    items = [_make_thing(id, every.get(id), past.get(id), changes.get(id, ""), colors) for id in names]
    lines = [
        _make_tie(id, each, "removed" if id in lost else "new" if id in fresh else "")
        for id, each in {**ties, **lost}.items()
        if each["source"] in names and each["target"] in names
    ]
    hidden = len(every) + len(ghosts) - len(names)
    rest = f"and {hidden} more objects; {len(names)} are drawn" if hidden else ""
    text_lines = [f"{title}: {len(objects)} objects, {len(ties)} relations", *_iter_words(items, lines)]
    return draw_sketch(title, items, lines, text_lines, rest=rest, what="graph of objects:")


def list_objects(board: Board) -> dict[str, Any]:
    """Return the objects on a board, by id: values with a type, data and a version."""
    return {
        id: each for id, each in board.items() if isinstance(each, Mapping) and {"type", "data", "version"} <= set(each)
    }


def _iter_relations(board: Board) -> Iterator[tuple[str, Any]]:
    for id, each in board.items():
        if isinstance(each, Mapping) and {"type", "source", "target"} <= set(each):
            yield id, each


def _iter_changes(now: Board, before: Board) -> Iterator[tuple[str, str]]:
    """Yield the kind of change for each object that differs."""
    for id, each in now.items():
        if id not in before:
            yield id, "new"
        elif each is not before[id] and each != before[id]:
            yield id, "changed"
    yield from ((id, "removed") for id in before if id not in now)


def _choose(names: list[str], changes: Mapping[str, str], limit: int) -> dict[str, None]:
    """Return the objects to draw, in the order of the board."""
    if len(names) <= limit:
        return dict.fromkeys(names)
    first = [name for name in names if name in changes] + [name for name in reversed(names) if name not in changes]
    chosen = set(first[:limit])
    return dict.fromkeys(name for name in names if name in chosen)


def _make_thing(id: str, item: Any, past: Any, change: str, colors: Mapping[str, str]) -> GenericBox:
    if item is None:
        return GenericBox(
            id, "not there", id, tip=f"{id}: a relation names it, and there is no such object", marks=("ghost",)
        )
    kind, version = str(item["type"]), item["version"]
    was = f"v{past['version']} → " if change == "changed" and past["version"] != version else ""
    data = item["data"] if isinstance(item["data"], Mapping) else {"data": item["data"]}
    fields = [f"{key}: {safe_repr(data[key], key=key)}" for key in data]
    old = past["data"] if change == "changed" and isinstance(past["data"], Mapping) else None
    if old is not None:
        fresh = {key for key in data if key not in old or old[key] != data[key]}
        fields = [f"~ {key}: {safe_repr(data[key], key=key)}" for key in data if key in fresh] + [
            f"{key}: {safe_repr(data[key], key=key)}" for key in data if key not in fresh
        ]
    notes = fields[:_FIELDS] + ([f"and {len(fields) - _FIELDS} more"] if len(fields) > _FIELDS else [])
    tip = "\n".join([f"{id} ({kind}), version {version}", *fields])
    marks = (change,) if change else ()
    return GenericBox(
        id, f"{kind} {was}v{version}", id, tuple(notes), tip, colors[kind], marks=marks, badge=_SIGNS.get(change, "")
    )


def _make_tie(id: str, relation: Any, change: str) -> GenericLink:
    sign = {"new": "+ ", "removed": "- "}.get(change, "")
    tip = f"{id}: {relation['source']} → {relation['target']} ({relation['type']}){f', {change}' if change else ''}"
    marks = (change,) if change else ()
    return GenericLink(relation["source"], relation["target"], "relation", f"{sign}{relation['type']}", tip, marks)


def _iter_words(items: Iterable[GenericBox], ties: Iterable[GenericLink]) -> Iterator[str]:
    ties_by_source: dict[str, list[str]] = {}
    for tie in ties:
        marks = f" <{', '.join(tie.marks)}>" if tie.marks else ""
        ties_by_source.setdefault(tie.source, []).append(f"      -[{clean(tie.label)}]-> {clean(tie.target)}{marks}")
    for item in items:
        marks = f"  <{', '.join(item.marks)}>" if item.marks else ""
        notes = f": {clean(', '.join(item.notes))}" if item.notes else ""
        yield f"  {clean(item.id)} ({clean(item.caption)}){notes}{marks}"
        yield from ties_by_source.get(item.id, ())


__all__ = ["MOST", "draw_graph", "list_objects"]
