"""A recipe's drawing with marks from an analysis instead of the state of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agentnb.draw.diagram import Picture, make_picture

if TYPE_CHECKING:
    from agentnb.draw.drawing import Drawing
    from agentnb.recipe.model import Recipe

Marks = tuple[str, ...]


def draw_overlay(
    recipe: Recipe,
    *,
    nodes: Mapping[str, Marks],
    edges: Mapping[int, Marks] | None = None,
    counts: Mapping[str, str] | None = None,
    tips: Mapping[str, str] | None = None,
    board: bool = False,
    direction: str = "TB",
    what: str = "recipe",
) -> Drawing:
    """Return the drawing of a recipe with these marks.

    Args:
        nodes: the marks of each node, by id; the style sheet defines them (`in-slice`, `only-a`, `heat-4` ...).
        edges: the marks of each edge, by its index in `recipe.edges`.
        counts: the text beside the kind of a node.
        tips: a line for the tooltip of a node.
        what: what the drawing shows, before the recipe's name, for screen readers.

    Raises:
        AgentNbError: U205, there is no such direction.
    """
    from agentnb.draw.dot import check_direction
    from agentnb.draw.drawing import Drawing

    check_direction(direction)
    edges, counts, tips = edges or {}, counts or {}, tips or {}
    picture = make_picture(recipe, board=board, direction=direction, run=None)
    boxes = tuple(
        replace(box, marks=nodes.get(box.id, ()), count=counts.get(box.id, ""),
                tip=f"{box.tip}\n{tips[box.id]}" if box.id in tips else box.tip)
        if box.id else box for box in picture.boxes
    )  # fmt: skip
    links = tuple(replace(link, marks=edges.get(link.index, ())) for link in picture.links)
    overlaid: Picture = replace(picture, boxes=boxes, links=links, with_run=True, what=what)
    return Drawing(recipe, overlaid)


__all__ = ["draw_overlay"]
