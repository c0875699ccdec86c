"""A recipe as DOT text for any tool that reads it. Nothing is laid out here."""

from __future__ import annotations

from collections.abc import Collection
from html import escape as html
from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.board_table import HEAD_HEIGHT, KEY_WIDTH, ROW_HEIGHT, VALUE_WIDTH, BoardTable, Row
from agentnb.draw.diagram import EDGE_SIZE, LABEL_SIZE, Box, Link, Picture, make_picture
from agentnb.draw.folding import fold
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.style import COLORS, HEAT
from agentnb.errors import AgentNbError, Problem, did_you_mean

if TYPE_CHECKING:
    import graphviz

    from agentnb.draw.drawing import Drawing
    from agentnb.draw.run_view import RunView
    from agentnb.recipe.model import Recipe

DIRECTIONS: Final = ("TB", "LR", "BT", "RL")
_FONT: Final = "Helvetica,Arial,DejaVu Sans"
_EDGE_LOOK: Final[dict[str, dict[str, str]]] = {
    "parallel": {"penwidth": "2.4"},
    "loop_back": {"style": "dotted", "penwidth": "1.6", "constraint": "false"},
    "error": {"style": "dashed", "color": COLORS["failed"], "fontcolor": COLORS["failed"]},
    "timeout": {"style": "dashed", "color": COLORS["waiting"], "fontcolor": COLORS["waiting"]},
    "event": {"style": "dashed", "color": COLORS["react-line"]},
    "hears": {"color": COLORS["event-line"]},
    "tells": {"color": COLORS["event-line"]},
    "enter": {"color": COLORS["area-line"], "weight": "3"},
    "leave": {"color": COLORS["area-line"]},
    "start": {"weight": "3"},
}
# What each mark changes at an edge, and below at a node; later ones take precedence.
_EDGE_MARKS: Final[dict[str, dict[str, str]]] = {
    "may": {"style": "dotted"},
    "taken": {"penwidth": "2.2", "style": "solid"},
    "last": {"penwidth": "3", "color": COLORS["accent"]},
    "new": {"penwidth": "2.4", "color": COLORS["accent"]},
    "removed": {"style": "dashed", "color": COLORS["failed"]},
    "only-a": {"penwidth": "2.4", "color": COLORS["accent"]},
    "only-b": {"penwidth": "2.4", "color": COLORS["written-bar"], "style": "dashed"},
    **{f"heat-{level}": {"penwidth": f"{1 + 0.6 * level:g}", "color": COLORS["failed"]} for level in range(1, 6)},
}
_MARKS: Final[dict[str, dict[str, str]]] = {
    "visited": {"penwidth": "1.8"},
    "last": {"color": COLORS["accent"], "penwidth": "2.2"},
    "new": {"color": COLORS["accent"], "fillcolor": COLORS["accent-fill"], "penwidth": "2.4"},
    "self": {"color": COLORS["accent"], "fillcolor": COLORS["accent-fill"], "penwidth": "2.4"},
    "changed": {"color": COLORS["written-bar"], "fillcolor": COLORS["written"], "penwidth": "2.4"},
    "removed": {"color": COLORS["failed"], "fillcolor": COLORS["paper"], "style": "filled,rounded,dashed"},
    "next": {"color": COLORS["accent"], "penwidth": "2"},
    "waiting": {"color": COLORS["waiting"], "fillcolor": COLORS["waiting-fill"], "penwidth": "2.6"},
    "current": {"color": COLORS["accent"], "fillcolor": COLORS["accent-fill"], "penwidth": "3"},
    "failed": {"color": COLORS["failed"], "fillcolor": COLORS["failed-fill"], "penwidth": "2"},
    "in-slice": {"color": COLORS["accent"], "penwidth": "2.4"},
    "maybe-in-slice": {"color": COLORS["accent"], "penwidth": "1.6", "style": "filled,rounded,dashed"},
    "only-a": {"color": COLORS["accent"], "penwidth": "2.4"},
    "only-b": {"color": COLORS["written-bar"], "penwidth": "2.4", "style": "filled,rounded,dashed"},
    "differs": {"color": COLORS["failed"], "penwidth": "2"},
    "parted": {"color": COLORS["failed"], "fillcolor": COLORS["failed-fill"], "penwidth": "3"},
    **{f"heat-{level}": {"fillcolor": heat} for level, heat in enumerate(HEAT, 1)},
}


def draw_recipe(
    recipe: Recipe,
    *,
    board: bool = True,
    direction: str = "TB",
    run: RunView | None = None,
    spare: int = 0,
    collapsed: Collection[str] = (),
) -> Drawing:
    """Return the Drawing of a recipe, with a run on it if there is one; the run changes only colors and texts.

    Args:
        board: whether to draw the blackboard's table beside the graph.
        direction: the direction of the graph: TB, LR, BT or RL.
        run: the state of a run.
        spare: the number of rows reserved for future keys, for a view that is not redrawn.
        collapsed: the ids of regions drawn as one box each, which summarizes its content.

    Raises:
        AgentNbError: U205, the direction does not exist; U206, the region does not exist.
    """
    from agentnb.draw.drawing import Drawing

    check_direction(direction)
    picture = make_picture(recipe, board=board, direction=direction, run=run, spare=spare)
    return Drawing(recipe, fold(picture, collapsed, run))


def check_direction(direction: str) -> None:
    """Check the direction of a drawing.

    Raises:
        AgentNbError: U205, there is no such direction.
    """
    if direction not in DIRECTIONS:
        raise AgentNbError(
            Problem(
                code="U205",
                what=f"unknown direction {direction!r}",
                where="draw(direction=...)",
                why="a drawing grows from top to bottom (TB), left to right (LR), or in reverse (BT, RL)",
                do=did_you_mean(str(direction).upper(), DIRECTIONS, "use one of them"),
            )
        )


def to_dot(picture: Picture) -> str:
    """Return a picture as DOT text. Texts of the recipe are quoted and escaped: never HTML, never an escape."""
    from graphviz import Digraph

    graph = Digraph(
        name="recipe",
        graph_attr={
            "rankdir": picture.direction, "nodesep": "0.3", "ranksep": "0.42", "fontname": _FONT, "fontsize": "9",
            "bgcolor": COLORS["paper"], "pad": "0.15", "tooltip": quote_dot(picture.title),
        },
        node_attr={"fontname": _FONT, "fontsize": f"{LABEL_SIZE:g}", "fontcolor": COLORS["ink"], "fixedsize": "true"},
        edge_attr={
            "fontname": _FONT, "fontsize": f"{EDGE_SIZE:g}", "arrowsize": "0.7", "color": COLORS["edge"],
            "fontcolor": COLORS["edge-text"],
        },
    )  # fmt: skip
    _nest(graph, picture, "")
    for link in picture.links:
        _add_link(graph, link)
    for above, below in picture.order:
        graph.edge(above, below, style="invis")
    if picture.board:
        _add_board(graph, picture)
    return str(graph.source)


def quote_dot(text: str) -> str:
    """Return text as a DOT value that displays exactly this: no escapes, no entities, and no HTML-like label."""
    from graphviz import escape, nohtml

    plain = escape(to_safe_text(text).replace("\r", "").replace("\t", " ").replace("&", "&amp;"))
    quoted: str = nohtml(plain.replace("\n", "\\n"))
    return quoted


def to_markup(text: str) -> str:
    """Return text for use within an HTML-like label; Graphviz interprets backslashes there too."""
    return html(text, quote=True).replace("\\", "\\\\")


def _nest(graph: graphviz.Digraph, picture: Picture, parent: str) -> None:
    for box in picture.boxes:
        if box.area == parent:
            graph.node(box.name, **_format_box(box))
    for area in picture.areas:
        if area.parent == parent:
            with graph.subgraph(name=f"cluster_{area.name}") as inner:
                inner.attr(
                    label=quote_dot(area.title), tooltip=quote_dot(area.tip), labeljust="l", margin="12",
                    style="rounded,filled", color=COLORS["area-line"], fillcolor=COLORS["area"],
                    fontcolor=COLORS["faint"],
                )  # fmt: skip
                _nest(inner, picture, area.name)


def _format_box(box: Box) -> dict[str, Any]:
    look = {
        "width": f"{box.width / 72:.3f}", "height": f"{box.height / 72:.3f}", "tooltip": quote_dot(box.tip),
        "shape": "box" if box.shape == "pill" else box.shape, "penwidth": "1.2",
        "style": "filled,rounded" if box.shape in ("box", "pill") else "filled",
        "fillcolor": COLORS[box.family], "color": COLORS[f"{box.family}-line"],
    }  # fmt: skip
    if box.kind == "start" and not box.id:
        return {**look, "label": "", "shape": "circle", "fillcolor": COLORS["edge"], "color": COLORS["edge"]}
    for mark in box.marks:
        look |= _MARKS.get(mark, {})
    if "failed" in box.marks:
        look["style"] += ",dashed"
    return {**look, "label": f"<{_format_box_text(box)}>"}


def _format_box_text(box: Box) -> str:
    """Return the text of a box: its caption with the count, its lines, its notes."""
    caption = f"{box.caption} {box.count}".strip() + (" ●" if "breakpoint" in box.marks else "")
    small = f'<FONT POINT-SIZE="8" COLOR="{COLORS[f"{box.family}-text"]}">{to_markup(caption)}</FONT>'
    lines = "<BR/>".join(map(to_markup, box.lines))
    note = f'<BR/><FONT POINT-SIZE="8" COLOR="{COLORS["edge-text"]}">'
    notes = "".join(f"{note}{to_markup(each)}</FONT>" for each in box.notes)
    if box.caption:
        return f"{small}<BR/>{lines}{notes}"
    return f"{lines} {small}{notes}" if caption else f"{lines}{notes}"


def _add_link(graph: graphviz.Digraph, link: Link) -> None:
    attributes = (
        {"tooltip": quote_dot(link.tip), "label": quote_dot(f" {link.label} " if link.label else "")}
        if link.index >= 0
        else {}
    )
    look = _EDGE_LOOK.get(link.kind, {})
    for mark in link.marks:
        look = look | _EDGE_MARKS.get(mark, {})
    graph.edge(link.source, link.target, **look, **attributes)


def _add_board(graph: graphviz.Digraph, picture: Picture) -> None:
    """Add the board as a table node. Cells have fixed sizes, so values move nothing; its lines do not affect layout."""
    table = picture.board or BoardTable((), ())
    head = f'{_format_room(table.width, HEAD_HEIGHT)} BGCOLOR="{COLORS["board-head"]}"'
    rows = [
        f'<TR><TD COLSPAN="2" {head}><B>&#160;Blackboard</B></TD></TR>',
        *map(_format_row, table.rows),
    ]
    if table.last_line:
        rows.append(f'<TR><TD COLSPAN="2" {_format_room(table.width, ROW_HEIGHT)}>&#160;{table.last_line}</TD></TR>')
    style = f'BORDER="1" CELLBORDER="0" CELLSPACING="0" STYLE="ROUNDED" COLOR="{COLORS["board-line"]}"'
    graph.node(
        "board", label=f"<<TABLE {style}>{''.join(rows)}</TABLE>>", shape="plain", fixedsize="false", fontsize="9.5",
        tooltip="the blackboard",
    )  # fmt: skip
    look = {"constraint": "false", "weight": "0", "penwidth": "0.8", "arrowsize": "0.5"}
    names = {box.id: box.name for box in picture.boxes if box.id or box.kind != "start"}
    for flow in table.flows:
        ends = ("board", names[flow.node]) if flow.direction == "read" else (names[flow.node], "board")
        color = COLORS["accent" if flow.active else "flow"]
        graph.edge(*ends, color=color, tooltip=quote_dot(flow.tip), **look)


def _format_room(width: float, height: float) -> str:
    return f'FIXEDSIZE="TRUE" WIDTH="{width:g}" HEIGHT="{height:g}" ALIGN="LEFT"'


def _format_row(row: Row) -> str:
    color = next((COLORS[mark] for mark in row.marks), COLORS["board"])
    key, value = (f"&#160;{to_markup(text)}" for text in (row.label, row.value))
    return (
        f'<TR><TD {_format_room(KEY_WIDTH, ROW_HEIGHT)} BGCOLOR="{color}">{key}</TD>'
        f'<TD {_format_room(VALUE_WIDTH, ROW_HEIGHT)} BGCOLOR="{color}">'
        f'<FONT FACE="DejaVu Sans Mono,Menlo,Courier" POINT-SIZE="9">{value}</FONT></TD></TR>'
    )
