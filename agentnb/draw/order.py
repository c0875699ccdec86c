"""order: what should stand below what although no line of the recipe says so. It keeps long recipes readable.

A node that follows a composite node stands below the regions inside that one, as it runs after them; and nodes that
nothing leads to stand in a block, not in one endless row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentnb.draw.picture import Area, Box, Link
    from agentnb.recipe.model import Recipe

_BACKWARDS: Final = frozenset({"loop_back", "event", "start", "enter", "leave"})
_LONE: Final = 4
_MOST: Final = 400


def order_of(
    recipe: Recipe, boxes: Mapping[str, Box], links: Sequence[Link], areas: Mapping[str, Area]
) -> tuple[tuple[str, str], ...]:
    """Return pairs of box names: the second stands below the first. `boxes` go by node, `areas` by region."""
    return tuple([*_after_bodies(recipe, boxes, links, areas), *_blocks(boxes, links)][:_MOST])


def _after_bodies(
    recipe: Recipe, boxes: Mapping[str, Box], links: Sequence[Link], areas: Mapping[str, Area]
) -> Iterator[tuple[str, str]]:
    """From the last boxes of each region to whatever its owner leads to."""
    ways = [link for link in links if link.kind not in _BACKWARDS and link.source != link.target]
    leads = {link.source for link in ways}
    last: dict[str, list[str]] = defaultdict(list)
    parents = {area.name: area.parent for area in areas.values()}
    for box in boxes.values():
        if box.name not in leads:
            area = box.area
            while area:
                last[area].append(box.name)
                area = parents[area]
    bodies: dict[str, list[str]] = defaultdict(list)
    homes = {box.name: box.area for box in boxes.values()}
    for region in recipe.regions.values():
        if region.id in areas and region.owner in boxes:
            bodies[boxes[region.owner].name].append(areas[region.id].name)
    for link in ways:
        if homes[link.source] == homes[link.target]:
            yield from dict.fromkeys((name, link.target) for body in bodies[link.source] for name in last[body])


def _blocks(boxes: Mapping[str, Box], links: Sequence[Link]) -> Iterator[tuple[str, str]]:
    """Nodes that hang on nothing, row below row, as many to a row as there are rows."""
    bound = {end for link in links if link.kind != "start" for end in (link.source, link.target)}
    lone: dict[str, list[str]] = defaultdict(list)
    for box in boxes.values():
        if box.name not in bound:
            lone[box.area].append(box.name)
    for names in lone.values():
        if len(names) > _LONE:
            wide = ceil(sqrt(len(names)))
            yield from zip(names, names[wide:], strict=False)
