"""A recipe as Mermaid flowchart text, for Markdown pages that render it themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from agentnb.draw.diagram import Area, Box, Link, Picture, make_picture
from agentnb.draw.label_text import clean, cut_columns
from agentnb.draw.style import COLORS, FAMILIES

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe

_LIMIT: Final = 60
_SAFE: Final = frozenset(" _-,:.=+/!?'*…→×◷")
_SHAPES: Final = {
    "diamond": ("{", "}"),
    "hexagon": ("{{", "}}"),
    "ellipse": ("([", "])"),
    "parallelogram": ("[/", "/]"),
    "trapezium": ("[/", "\\]"),
    "invtrapezium": ("[\\", "/]"),
    "cylinder": ("[(", ")]"),
    "component": ("[[", "]]"),
    "tab": ("[[", "]]"),
    "folder": ("[[", "]]"),
    "octagon": ("([", "])"),
    "pill": ("([", "])"),
}
_ARROWS: Final = {
    "parallel": "==>",
    "loop_back": "-.->",
    "error": "-.->",
    "timeout": "-.->",
    "event": "-.->",
    "enter": "-.-",
    "leave": "-.-",
}
_LINE_COLORS: Final = {
    "error": "failed",
    "timeout": "waiting",
    "event": "react-line",
    "hears": "event-line",
    "tells": "event-line",
    "enter": "area-line",
    "leave": "area-line",
}


def to_mermaid(recipe: Recipe, *, direction: str = "TB") -> str:
    """Return a recipe as a Mermaid flowchart. Ids are generated and labels quoted, so no text of a recipe is syntax."""
    return format_mermaid(make_picture(recipe, board=False, direction=direction, run=None))


def format_mermaid(picture: Picture) -> str:
    """Return a picture's graph as Mermaid text, without the blackboard and the run."""
    families = sorted({box.family for box in picture.boxes if box.id or box.kind != "start"}, key=FAMILIES.index)
    return "\n".join(
        [
            f"flowchart {picture.direction}",
            *_nest(picture, "", 1),
            *(f"  {_format_link(link)}" for link in picture.links),
            *(f"  classDef {f} fill:{COLORS[f]},stroke:{COLORS[f'{f}-line']},color:{COLORS['ink']}" for f in families),
            *_iter_line_styles(picture),
            "",
        ]
    )


def quote_label(text: str) -> str:
    """Return text for a Mermaid string: letters, digits and spaces unchanged, everything else as `#NN;`."""
    short = cut_columns(clean(text), _LIMIT)
    return "".join(char if char.isalnum() or char in _SAFE else f"#{ord(char)};" for char in short) or " "


def _nest(picture: Picture, parent: str, depth: int) -> Iterator[str]:
    space = "  " * depth
    for box in picture.boxes:
        if box.area == parent:
            yield space + _format_box(box)
    for area in picture.areas:
        if area.parent == parent:
            yield from _iter_area_lines(picture, area, depth)


def _iter_area_lines(picture: Picture, area: Area, depth: int) -> Iterator[str]:
    yield f'{"  " * depth}subgraph {area.name}["{quote_label(area.tip)}"]'
    yield from _nest(picture, area.name, depth + 1)
    yield f"{'  ' * depth}end"


def _format_box(box: Box) -> str:
    if box.kind == "start" and not box.id:
        return f'{box.name}(("●"))'
    left, right = _SHAPES.get(box.shape, ("(", ")"))
    return f'{box.name}{left}"{quote_label(" ".join(box.lines))}"{right}:::{box.family}'


def _format_link(link: Link) -> str:
    arrow = _ARROWS.get(link.kind, "-->")
    label = f'|"{quote_label(link.label)}"|' if link.label else ""
    return f"{link.source} {arrow}{label} {link.target}"


def _iter_line_styles(picture: Picture) -> Iterator[str]:
    for kind, color in _LINE_COLORS.items():
        numbers = ",".join(str(number) for number, link in enumerate(picture.links) if link.kind == kind)
        if numbers:
            yield f"  linkStyle {numbers} stroke:{COLORS[color]}"
