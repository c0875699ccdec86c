"""Vertical order where no line of the recipe implies one, for the readability of long recipes.

A node that follows a composite node is placed below the regions inside it, because it runs after them, and unconnected
nodes form a block instead of one endless row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentnb.draw.diagram import Area, Box, Link
    from agentnb.recipe.model import Recipe

_BACKWARDS: Final = frozenset({"loop_back", "event", "start", "enter", "leave"})
_LONE: Final = 4
_MOST: Final = 400


def compute_order(
    recipe: Recipe, boxes: Mapping[str, Box], links: Sequence[Link], areas: Mapping[str, Area]
) -> tuple[tuple[str, str], ...]:
    """Return pairs of box names: the second is below the first. `boxes` maps nodes, `areas` regions."""
    return tuple([*_iter_after_bodies(recipe, boxes, links, areas), *_iter_blocks(boxes, links)][:_MOST])


def _iter_after_bodies(
    recipe: Recipe, boxes: Mapping[str, Box], links: Sequence[Link], areas: Mapping[str, Area]
) -> Iterator[tuple[str, str]]:
    """Yield pairs from the last boxes of each region to the successors of its owner."""
    forward = [link for link in links if link.kind not in _BACKWARDS and link.source != link.target]
    leads = {link.source for link in forward}
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
    for link in forward:
        if homes[link.source] == homes[link.target]:
            yield from dict.fromkeys((name, link.target) for body in bodies[link.source] for name in last[body])


def _iter_blocks(boxes: Mapping[str, Box], links: Sequence[Link]) -> Iterator[tuple[str, str]]:
    """Yield pairs that arrange unconnected nodes in rows, with as many nodes in a row as there are rows."""
    bound = {end for link in links if link.kind != "start" for end in (link.source, link.target)}
    lone: dict[str, list[str]] = defaultdict(list)
    for box in boxes.values():
        if box.name not in bound:
            lone[box.area].append(box.name)
    for names in lone.values():
        if len(names) > _LONE:
            wide = ceil(sqrt(len(names)))
            yield from zip(names, names[wide:], strict=False)
