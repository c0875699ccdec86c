"""A recipe as DOT text for any tool that reads it. Nothing is laid out here."""

from __future__ import annotations

from collections.abc import Collection
from html import escape as html
from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.board_table import HEAD_HEIGHT, KEY_WIDTH, ROW_HEIGHT, VALUE_WIDTH, BoardTable, Row
from agentnb.draw.diagram import EDGE_SIZE, LABEL_SIZE, Box, Link, Picture, make_picture
from agentnb.draw.folding import fold
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.style import COLOURS, HEAT
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
    "error": {"style": "dashed", "color": COLOURS["failed"], "fontcolor": COLOURS["failed"]},
    "timeout": {"style": "dashed", "color": COLOURS["waiting"], "fontcolor": COLOURS["waiting"]},
    "event": {"style": "dashed", "color": COLOURS["react-line"]},
    "hears": {"color": COLOURS["event-line"]},
    "tells": {"color": COLOURS["event-line"]},
    "enter": {"color": COLOURS["area-line"], "weight": "3"},
    "leave": {"color": COLOURS["area-line"]},
    "start": {"weight": "3"},
}
# What each mark changes at an edge, and below at a node; later ones take precedence.
_EDGE_MARKS: Final[dict[str, dict[str, str]]] = {
    "may": {"style": "dotted"},
    "taken": {"penwidth": "2.2", "style": "solid"},
    "last": {"penwidth": "3", "color": COLOURS["accent"]},
    "new": {"penwidth": "2.4", "color": COLOURS["accent"]},
    "removed": {"style": "dashed", "color": COLOURS["failed"]},
    "only-a": {"penwidth": "2.4", "color": COLOURS["accent"]},
    "only-b": {"penwidth": "2.4", "color": COLOURS["written-bar"], "style": "dashed"},
    **{f"heat-{level}": {"penwidth": f"{1 + 0.6 * level:g}", "color": COLOURS["failed"]} for level in range(1, 6)},
}
_MARKS: Final[dict[str, dict[str, str]]] = {
    "visited": {"penwidth": "1.8"},
    "last": {"color": COLOURS["accent"], "penwidth": "2.2"},
    "new": {"color": COLOURS["accent"], "fillcolor": COLOURS["accent-fill"], "penwidth": "2.4"},
    "self": {"color": COLOURS["accent"], "fillcolor": COLOURS["accent-fill"], "penwidth": "2.4"},
    "changed": {"color": COLOURS["written-bar"], "fillcolor": COLOURS["written"], "penwidth": "2.4"},
    "removed": {"color": COLOURS["failed"], "fillcolor": COLOURS["paper"], "style": "filled,rounded,dashed"},
    "next": {"color": COLOURS["accent"], "penwidth": "2"},
    "waiting": {"color": COLOURS["waiting"], "fillcolor": COLOURS["waiting-fill"], "penwidth": "2.6"},
    "current": {"color": COLOURS["accent"], "fillcolor": COLOURS["accent-fill"], "penwidth": "3"},
    "failed": {"color": COLOURS["failed"], "fillcolor": COLOURS["failed-fill"], "penwidth": "2"},
    "in-slice": {"color": COLOURS["accent"], "penwidth": "2.4"},
    "maybe-in-slice": {"color": COLOURS["accent"], "penwidth": "1.6", "style": "filled,rounded,dashed"},
    "only-a": {"color": COLOURS["accent"], "penwidth": "2.4"},
    "only-b": {"color": COLOURS["written-bar"], "penwidth": "2.4", "style": "filled,rounded,dashed"},
    "differs": {"color": COLOURS["failed"], "penwidth": "2"},
    "parted": {"color": COLOURS["failed"], "fillcolor": COLOURS["failed-fill"], "penwidth": "3"},
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
    """Return the Drawing of a recipe, with a run on it if there is one; the run changes only colours and texts.

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
            "bgcolor": COLOURS["paper"], "pad": "0.15", "tooltip": quote_dot(picture.title),
        },
        node_attr={"fontname": _FONT, "fontsize": f"{LABEL_SIZE:g}", "fontcolor": COLOURS["ink"], "fixedsize": "true"},
        edge_attr={
            "fontname": _FONT, "fontsize": f"{EDGE_SIZE:g}", "arrowsize": "0.7", "color": COLOURS["edge"],
            "fontcolor": COLOURS["edge-text"],
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
                    style="rounded,filled", color=COLOURS["area-line"], fillcolor=COLOURS["area"],
                    fontcolor=COLOURS["faint"],
                )  # fmt: skip
                _nest(inner, picture, area.name)


def _format_box(box: Box) -> dict[str, Any]:
    look = {
        "width": f"{box.width / 72:.3f}", "height": f"{box.height / 72:.3f}", "tooltip": quote_dot(box.tip),
        "shape": "box" if box.shape == "pill" else box.shape, "penwidth": "1.2",
        "style": "filled,rounded" if box.shape in ("box", "pill") else "filled",
        "fillcolor": COLOURS[box.family], "color": COLOURS[f"{box.family}-line"],
    }  # fmt: skip
    if box.kind == "start" and not box.id:
        return {**look, "label": "", "shape": "circle", "fillcolor": COLOURS["edge"], "color": COLOURS["edge"]}
    for mark in box.marks:
        look |= _MARKS.get(mark, {})
    if "failed" in box.marks:
        look["style"] += ",dashed"
    return {**look, "label": f"<{_format_box_text(box)}>"}


def _format_box_text(box: Box) -> str:
    """Return the text of a box: its caption with the count, its lines, its notes."""
    caption = f"{box.caption} {box.count}".strip() + (" ●" if "breakpoint" in box.marks else "")
    small = f'<FONT POINT-SIZE="8" COLOR="{COLOURS[f"{box.family}-text"]}">{to_markup(caption)}</FONT>'
    lines = "<BR/>".join(map(to_markup, box.lines))
    note = f'<BR/><FONT POINT-SIZE="8" COLOR="{COLOURS["edge-text"]}">'
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
    head = f'{_format_room(table.width, HEAD_HEIGHT)} BGCOLOR="{COLOURS["board-head"]}"'
    rows = [
        f'<TR><TD COLSPAN="2" {head}><B>&#160;Blackboard</B></TD></TR>',
        *map(_format_row, table.rows),
    ]
    if table.last_line:
        rows.append(f'<TR><TD COLSPAN="2" {_format_room(table.width, ROW_HEIGHT)}>&#160;{table.last_line}</TD></TR>')
    style = f'BORDER="1" CELLBORDER="0" CELLSPACING="0" STYLE="ROUNDED" COLOR="{COLOURS["board-line"]}"'
    graph.node(
        "board", label=f"<<TABLE {style}>{''.join(rows)}</TABLE>>", shape="plain", fixedsize="false", fontsize="9.5",
        tooltip="the blackboard",
    )  # fmt: skip
    look = {"constraint": "false", "weight": "0", "penwidth": "0.8", "arrowsize": "0.5"}
    names = {box.id: box.name for box in picture.boxes if box.id or box.kind != "start"}
    for flow in table.flows:
        ends = ("board", names[flow.node]) if flow.direction == "read" else (names[flow.node], "board")
        colour = COLOURS["accent" if flow.active else "flow"]
        graph.edge(*ends, color=colour, tooltip=quote_dot(flow.tip), **look)


def _format_room(width: float, height: float) -> str:
    return f'FIXEDSIZE="TRUE" WIDTH="{width:g}" HEIGHT="{height:g}" ALIGN="LEFT"'


def _format_row(row: Row) -> str:
    colour = next((COLOURS[mark] for mark in row.marks), COLOURS["board"])
    key, value = (f"&#160;{to_markup(text)}" for text in (row.label, row.value))
    return (
        f'<TR><TD {_format_room(KEY_WIDTH, ROW_HEIGHT)} BGCOLOR="{colour}">{key}</TD>'
        f'<TD {_format_room(VALUE_WIDTH, ROW_HEIGHT)} BGCOLOR="{colour}">'
        f'<FONT FACE="DejaVu Sans Mono,Menlo,Courier" POINT-SIZE="9">{value}</FONT></TD></TR>'
    )
