"""Drawings of things other than recipes: boxes and lines in the same style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentnb.draw.diagram import (
    EDGE_SIZE,
    EDGE_WIDTH,
    KIND_LINE,
    KIND_SIZE,
    LABEL_SIZE,
    LINE,
    NOTE_LINE,
    NOTE_SIZE,
    Box,
    Link,
    Picture,
)
from agentnb.draw.drawing import Drawing
from agentnb.draw.label_text import clean, cut, measure_width, wrap
from agentnb.draw.ordering import compute_order
from agentnb.draw.shapes import measure_around
from agentnb.recipe.model import Recipe
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.draw.run_view import RunView
    from agentnb.draw.svg_patch import Patch

WIDTH: Final = 170.0  # maximum width of a box's texts in points


@dataclass(frozen=True, slots=True)
class GenericBox:
    """A box: a small caption above, a name, small notes below; `badge` is a word beside the caption."""

    id: str
    caption: str
    name: str
    notes: tuple[str, ...] = ()
    tip: str = ""
    family: str = "plain"
    shape: str = "box"
    marks: tuple[str, ...] = ()
    badge: str = ""


@dataclass(frozen=True, slots=True)
class GenericLink:
    """A line from one thing to another."""

    source: str
    target: str
    kind: str
    label: str = ""
    tip: str = ""
    marks: tuple[str, ...] = ()


class Sketch(Drawing):
    """A Drawing that does not show a recipe. It is saved and displayed like any other; no run changes it."""

    def __init__(self, picture: Picture, lines: Sequence[str]) -> None:
        super().__init__(Recipe(picture.title, picture.dialect, {}, (), ()), picture)
        self._lines = tuple(lines)

    @property
    def text(self) -> str:
        """The drawing as text."""
        return "\n".join(self._lines)

    def patch(self, view: RunView) -> Patch:
        """Return a patch that changes nothing."""
        return {}

    def __repr__(self) -> str:
        """Return one line: what is drawn and its size."""
        picture = self.picture
        return f"<Drawing of {safe_repr(picture.title, 200)}: {len(picture.boxes)} boxes, {len(picture.links)} lines>"


def draw_sketch(
    title: str, items: Iterable[GenericBox], ties: Iterable[GenericLink], lines: Sequence[str], *, rest: str = "",
    what: str = "picture of",
) -> Sketch:  # fmt: skip
    """Return the drawing of things and the lines between them.

    Args:
        lines: the same as text.
        rest: what is not shown, as text; it has a box of its own.
        what: what it is, for screen readers; the title follows.
    """
    boxes = {item.id: _make_box(f"n{number}", item) for number, item in enumerate(items)}
    links = tuple(
        Link(
            f"e{number}", boxes[tie.source].name, boxes[tie.target].name, tie.kind, (tie.source, tie.target), number,
            cut(clean(tie.label), EDGE_WIDTH, EDGE_SIZE), tie.tip, tie.marks,
        )
        for number, tie in enumerate(ties)
    )  # fmt: skip
    more = (
        (_make_box("more", GenericBox("", "not shown", rest, tip=rest, shape="note", marks=("rest",))),) if rest else ()
    )
    order = compute_order(Recipe(title, "", {}, (), ()), boxes, links, {})
    picture = Picture(clean(title), "", "TB", (*boxes.values(), *more), links, (), None, order=order, what=what)
    return Sketch(picture, [*lines, *([rest] if rest else [])])


def _make_box(name: str, item: GenericBox) -> Box:
    lines = wrap(item.name, WIDTH, LABEL_SIZE) or ("(no name)",)
    caption = cut(clean(item.caption), WIDTH, KIND_SIZE) or "–"
    notes = tuple(filter(None, (cut(clean(note), WIDTH, NOTE_SIZE) for note in item.notes)))
    badge = clean(item.badge)
    widths = [measure_width(f"{caption} {badge}", KIND_SIZE) + 6, 40.0]
    widths += [measure_width(line, LABEL_SIZE) for line in lines] + [measure_width(note, NOTE_SIZE) for note in notes]
    high = KIND_LINE + LINE * len(lines) + NOTE_LINE * len(notes)
    width, height = measure_around(item.shape, max(widths), high)
    return Box(
        name, item.id, "thing", item.shape, item.family, lines, caption, item.tip or item.id, width, height, "",
        item.marks, badge, notes,
    )  # fmt: skip


__all__ = ["GenericBox", "GenericLink", "Sketch", "draw_sketch"]
