"""The drawing of a recipe in every form in which it can be displayed or saved."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentnb.arguments import plain_arguments
from agentnb.draw.diagram import Picture, format_edge, is_reactive
from agentnb.draw.dot import to_dot
from agentnb.draw.fan_out import thin_out
from agentnb.draw.label_text import clean
from agentnb.draw.mermaid import format_mermaid
from agentnb.draw.reactive import iter_reactive_lines
from agentnb.draw.svg import write_svg
from agentnb.draw.svg_board import FlowLines
from agentnb.draw.svg_patch import Patch, patch_of
from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.secrets import masks_by, remember_masking
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.draw.diagram import Box
    from agentnb.draw.geometry import Geometry
    from agentnb.draw.run_view import RunView
    from agentnb.recipe.model import Node, Recipe

SUFFIXES: Final = (".svg", ".png", ".dot", ".mmd")
_MOST_NODES: Final = 60
_MOST_BOXES, _MOST_BYTES = 50, 400_000


@masks_by(lambda drawing: drawing.masking())
class Drawing:
    """The drawing of a recipe, optionally with a run. Displays itself as SVG in a notebook.

    Example:
        >>> drawing = recipe.draw()             # doctest: +SKIP
        >>> drawing.save("triage.svg")          # doctest: +SKIP
        PosixPath('triage.svg')
    """

    def __init__(self, recipe: Recipe, picture: Picture) -> None:
        self.recipe = recipe
        self.picture = picture
        self.masking = remember_masking()

    @cached_property
    def dot(self) -> str:
        """The drawing as DOT text, blackboard included, for Graphviz and other tools."""
        return to_dot(self.picture)

    @cached_property
    def svg(self) -> str:
        """The drawing as self-contained SVG text; it follows the viewer's light or dark setting."""
        return write_svg(thin_out(self.picture), self.geometry)

    @cached_property
    def bare_svg(self) -> str:
        """The drawing as SVG text without a style sheet, for a page that already includes `style.make_stylesheet()`."""
        return write_svg(thin_out(self.picture), self.geometry, styled=False)

    @cached_property
    def geometry(self) -> Geometry:
        """The layout, computed on first use."""
        from agentnb.draw.render import lay_out

        return lay_out(thin_out(self.picture))

    def patch(self, view: RunView) -> Patch:
        """Return what this state of a run changes in the recipe's drawing; `svg_patch.py` defines the format."""
        return patch_of(self.recipe, self.picture, self._flow_lines, view)

    @cached_property
    def _flow_lines(self) -> FlowLines:
        """The lines between nodes and board; kept, because every step of a run needs some of them."""
        return FlowLines(self.picture, self.geometry)

    @cached_property
    def mermaid(self) -> str:
        """The graph as Mermaid text."""
        return format_mermaid(self.picture)

    @property
    def text(self) -> str:
        """The drawing as text: the nodes in order, the targets of each, and the current node of the run."""
        return "\n".join((iter_reactive_lines if is_reactive(self.recipe) else _iter_lines)(self.recipe, self.picture))

    @property
    def keys(self) -> tuple[str, ...]:
        """The blackboard's keys that have a row, in order."""
        return tuple(row.key for row in self.picture.board.rows) if self.picture.board else ()

    @plain_arguments
    def save(self, path: str | Path) -> Path:
        """Write the drawing to a file; its suffix selects the format: .svg, .png, .dot or .mmd. Return the path.

        Raises:
            AgentNbError: U201, the suffix is unsupported; U204, a PNG needs Graphviz, which is not installed.
        """
        path = Path(path)
        match path.suffix.lower():
            case ".svg":
                path.write_text(self.svg, encoding="utf-8")
            case ".png":
                from agentnb.draw.render import render_png

                path.write_bytes(render_png(self.dot))
            case ".dot":
                path.write_text(self.dot, encoding="utf-8")
            case ".mmd":
                path.write_text(self.mermaid, encoding="utf-8")
            case suffix:
                raise AgentNbError(_make_suffix_problem(path, suffix))
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the drawing in every form that a page may display, so that each viewer finds a usable one.

        SVG comes first in notebooks. The PNG is for viewers without SVG: a notebook not yet trusted, a PDF.
        """
        forms: dict[str, Callable[[], Any]] = {
            "image/svg+xml": lambda: self.svg,
            "image/png": self._render_small_png,
            "text/plain": lambda: self.text,
        }
        requested = [form for form in forms if (not include or form in include) and form not in (exclude or ())]
        bundle = {form: forms[form]() for form in requested}
        return {form: shown for form, shown in bundle.items() if shown is not None}

    def _render_small_png(self) -> str | None:
        """Return the PNG in base64; None if Graphviz would take long or the result is too large for the notebook."""
        from agentnb.draw.render import render_png

        if len(self.picture.boxes) > _MOST_BOXES:
            return None
        try:
            png = render_png(self.dot, seconds=2.0)
        except AgentNbError:
            return None
        return b64encode(png).decode() if len(png) <= _MOST_BYTES else None

    def __repr__(self) -> str:
        """Return one line: the drawn recipe and its size."""
        recipe = self.recipe
        return f"<Drawing of {safe_repr(recipe.name, 200)}: {len(recipe.nodes)} nodes, {len(recipe.edges)} edges>"


def _make_suffix_problem(path: Path, suffix: str) -> Problem:
    return Problem(
        code="U201",
        what=f"cannot save a drawing as {path.name!r}",
        where=str(path),
        why=f"the suffix {suffix!r} is not supported; supported: {', '.join(SUFFIXES)}",
        do=did_you_mean(suffix.lower(), SUFFIXES, "end the name with .svg, .png, .dot or .mmd"),
    )


def _iter_lines(recipe: Recipe, picture: Picture) -> Iterator[str]:
    """Yield the lines of the text form. Names are cleaned as in the picture: a label cannot break a line."""
    entry = ", ".join(clean(id) for id in recipe.entry) or "nothing"
    size = f"{len(recipe.nodes)} nodes, {len(recipe.edges)} edges"
    yield f"{clean(recipe.name)} ({clean(recipe.dialect)}): {size}; starts at {entry}"
    shown = {box.id: box for box in picture.boxes if box.id or box.kind != "start"}
    edge_lines: dict[str, list[str]] = {}
    for edge in recipe.edges:
        label = clean(format_edge(edge))
        kind = "" if edge.kind in ("sequential", "conditional", "route") else f" ({edge.kind})"
        edge_lines.setdefault(edge.source, []).append(f"-> {clean(edge.target)}{f' [{label}]' if label else ''}{kind}")
    nodes = [node for node in recipe.nodes.values() if node.id in shown]
    for node in nodes[:_MOST_NODES]:
        yield _format_box_line(shown[node.id], _format_node_line(node))
        yield from (f"      {line}" for line in edge_lines.get(node.id, ()))
    if len(nodes) > _MOST_NODES:
        yield f"  and {len(nodes) - _MOST_NODES} more nodes"
    for id in picture.folds.regions if picture.folds else ():
        yield _format_box_line(shown[id], f"{clean(id)} ({shown[id].caption})")


def _format_box_line(box: Box, text: str) -> str:
    marks = ", ".join((*(mark for mark in box.marks if mark != "visited"), *([box.count] if box.count else [])))
    return f"{'> ' if 'current' in box.marks else '  '}{text}{f'  <{marks}>' if marks else ''}"


def _format_node_line(node: Node) -> str:
    text = f"{clean(node.id)} ({clean(node.kind)})"
    if node.label and node.label != node.id:
        text += f" {clean(node.label)!r}"
    for word, keys in (("reads", node.reads), ("writes", node.writes)):
        if keys:
            text += f" {word} {', '.join(map(clean, keys))}"
    return text
