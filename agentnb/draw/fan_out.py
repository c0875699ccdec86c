"""Wide fan-outs as a group: many similar successors of one node, in rows, which can be collapsed to a box with a count.

Sixty boxes in one row are several screens wide, and the labels of their edges drift away from them. As a group they
have a frame, are arranged in rows, and each has the label of its edge inside its box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentnb.draw.label_text import cut, measure_width

if TYPE_CHECKING:
    from agentnb.draw.diagram import Area, Box, Link, Picture

WIDE: Final = 12  # up to this number of similar successors are drawn without a group
COLUMNS: Final = 5
_NOTE_SIZE, _NOTE_LINE, _NOTE_WIDTH = 8.5, 11.0, 130.0
_ROOM: Final = 16.0  # points beside a note
_SKIPPED: Final = frozenset({"start"})
Group = tuple[str, tuple[str, ...]]  # the box that they follow, and the names of the boxes or areas


def add_groups(picture: Picture) -> Picture:
    """Return a picture in which each wide fan-out is an area of its own; the same picture if there is none."""
    if len(picture.links) <= WIDE:
        return picture
    groups = _find_groups(picture)
    if not groups:
        return picture
    names = {box.name: box for box in picture.boxes}
    new_areas: dict[str, Area] = {}
    for number, (source, items) in enumerate(groups):
        area = _make_area(number, names[source], len(items), {each.scope for each in picture.areas})
        new_areas |= dict.fromkeys(items, area)
    labels = {link.target: link.label for link in picture.links if link.label and link.target in new_areas}
    boxes = tuple(_make_member(box, new_areas[box.name], labels.get(box.name, "")) if box.name in new_areas else box
                  for box in picture.boxes)  # fmt: skip
    links = tuple(replace(link, label="") if link.target in new_areas else link for link in picture.links)
    order = (*picture.order, *(pair for _, items in groups for pair in _arrange_rows(items, picture)))
    return replace(picture, boxes=boxes, links=links, areas=_nest(picture.areas, new_areas), order=order)


def _find_groups(picture: Picture) -> list[Group]:
    """Return the groups: more than WIDE items of one kind, entered from one box only, that lead to the same places."""
    parents = {box.name: box.area for box in picture.boxes} | {area.name: area.parent for area in picture.areas}
    kinds = {box.name: box.kind for box in picture.boxes} | {area.name: "area" for area in picture.areas}
    entered: dict[str, set[str]] = defaultdict(set)
    leads: dict[str, set[str]] = defaultdict(set)
    for link in picture.links:
        source, target = _find_siblings(link, parents)
        if source != target and link.kind not in _SKIPPED:
            entered[target].add(link.source)
            leads[source].add(target)
    groups: dict[tuple[str, str, frozenset[str]], list[str]] = defaultdict(list)
    for item, sources in entered.items():
        if len(sources) == 1 and kinds[item] != "start":
            (source,) = sources
            if parents[source] == parents[item]:
                groups[source, kinds[item], frozenset(leads[item] - {source})].append(item)
    return [(source, tuple(items)) for (source, _, _), items in groups.items() if len(items) > WIDE]


def _find_siblings(link: Link, parents: Mapping[str, str]) -> tuple[str, str]:
    """Return the two items of one area that the ends of a link belong to."""
    chains = [_list_ancestors(end, parents) for end in (link.source, link.target)]
    shared = next(
        area for area in map(parents.__getitem__, chains[0]) if area in {parents[node_id] for node_id in chains[1]}
    )
    source, target = (next(node_id for node_id in chain if parents[node_id] == shared) for chain in chains)
    return source, target


def _list_ancestors(name: str, parents: Mapping[str, str]) -> list[str]:
    ancestors = [name]
    while parents[ancestors[-1]]:
        ancestors.append(parents[ancestors[-1]])
    return ancestors


def _make_area(number: int, source: Box, count: int, taken: set[str]) -> Area:
    from agentnb.draw.diagram import Area

    scope = f"fan-out of {source.id}"
    while scope in taken:
        scope = f"{scope}, {number + 1}"
    title = f"{count} after {source.id}"
    return Area(f"g{number}", scope, cut(title, 220.0, 9.0), title, source.area, is_group=True)


def _make_member(box: Box, area: Area, label: str) -> Box:
    if not label:
        return replace(box, area=area.name)
    note = cut(label, _NOTE_WIDTH, _NOTE_SIZE)
    return replace(box, area=area.name, notes=(*box.notes, note), height=box.height + _NOTE_LINE,
                   width=max(box.width, measure_width(note, _NOTE_SIZE) + _ROOM))  # fmt: skip


def _arrange_rows(items: Sequence[str], picture: Picture) -> list[tuple[str, str]]:
    """Return pairs that arrange the items in rows; a region is represented by its first box."""
    first: dict[str, str] = {}
    homes = {area.name: area.parent for area in picture.areas}
    for box in picture.boxes:
        area = box.area
        while area and area not in first:
            first[area] = box.name
            area = homes[area]
    names = [first.get(item, item) for item in items]
    return list(zip(names, names[COLUMNS:], strict=False))


def _nest(areas: Sequence[Area], groups: Mapping[str, Area]) -> tuple[Area, ...]:
    """Return the areas with the groups, each after its parent and before the areas in it."""
    nested: list[Area] = []
    for area in areas:
        if area.name in groups and groups[area.name] not in nested:
            nested.append(groups[area.name])
        nested.append(replace(area, parent=groups[area.name].name) if area.name in groups else area)
    return (*nested, *dict.fromkeys(group for group in groups.values() if group not in nested))


def thin_out(picture: Picture) -> Picture:
    """Return a picture for layout: of a group, only the first row is entered and only the last row is left.

    The other lines are `later`, marked `thin`: hidden until a run takes them. Laid out, they would push the rows apart.
    """
    groups = {area.name for area in picture.areas if area.is_group}
    if not groups:
        return picture
    members = _map_members(picture, groups)
    below = {upper for upper, lower in picture.order if members.get(upper) and members.get(upper) == members.get(lower)}
    above = {lower for upper, lower in picture.order if members.get(upper) and members.get(upper) == members.get(lower)}
    thin = [
        link for link in picture.links
        if members.get(link.source) != members.get(link.target)
        and (link.target in above or link.source in below)
    ]  # fmt: skip
    names = {link.name for link in thin}
    later = tuple(replace(link, marks=(*link.marks, "thin")) for link in thin if link.index >= 0)
    links = tuple(link for link in picture.links if link.name not in names)
    return replace(picture, links=links, later=(*picture.later, *later))


def _map_members(picture: Picture, groups: set[str]) -> dict[str, str]:
    """Return the group that each box inside one belongs to, by the names of both."""
    parents = {area.name: area.parent for area in picture.areas}
    members = {}
    for box in picture.boxes:
        area = box.area
        while area and area not in groups:
            area = parents[area]
        if area:
            members[box.name] = area
    return members
