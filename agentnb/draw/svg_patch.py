"""Patches: what a run changes in an existing picture, as JSON: classes and texts. Nothing is laid out again.

A patch is relative to the picture without a run, so any patch can follow any other. It has five parts:

- `nodes`: node id -> {"classes": the marks that `g.node[data-node]` has beside its own, "count": text of `.count`}
- `edges`: the edge's place in the recipe (of behaviors: the line's in the picture), as text -> {"classes": marks of
  `g.edge[data-edge]`}
- `rows`: the row's place, as text -> {"key", "label", "value", "tip", "classes"} for `g.row[data-index]`: the texts of
  `.key`, `.value` and `title`, and `data-row` and `.value[data-key]`; all classes of the group
- `flows`: "read ID" or "write ID" -> {"node", "direction", "classes", "line", "heads", "tip"}: the `d` of the paths
  `.line` and `.heads` in `g.flow[data-node][data-direction]`, which is created inside `g.flows` if it is missing
- `board`: {"more": the text of `.board .more`}

The svg element has the class `has-run`. Anything that a part does not name is as without a run: a node has its own
classes, a row is empty and `spare`, a flow that the recipe does not draw is removed. Texts are set as text, never as
markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.draw.board_table import BoardTable, Flow, Row, make_board_table
from agentnb.draw.diagram import count_text, get_edge_marks, is_reactive
from agentnb.draw.label_text import to_safe_text
from agentnb.draw.reactive import make_reactive_patch
from agentnb.draw.svg_board import get_flow_classes, get_row_classes

if TYPE_CHECKING:
    from agentnb.draw.diagram import Picture
    from agentnb.draw.run_view import RunView
    from agentnb.draw.svg_board import FlowLines
    from agentnb.recipe.model import Recipe

Patch = dict[str, dict[str, Any]]
PARTS = ("nodes", "edges", "rows", "flows", "board")


def patch_of(recipe: Recipe, picture: Picture, lines: FlowLines, view: RunView) -> Patch:
    """Return what this state of a run changes in `picture`, as plain JSON; `lines` are those of its layout."""
    patch: Patch = {part: {} for part in PARTS} | make_marks(recipe, picture, view)
    table = make_table(recipe, picture, view)
    if picture.board and table:
        patch["rows"] = {str(index): _make_row(row) for index, row in enumerate(table.rows)}
        patch["flows"] = _make_flows(picture.board, table, lines)
        patch["board"] = {"more": table.last_line}
    return patch


def make_marks(recipe: Recipe, picture: Picture, view: RunView) -> Patch:
    """Return the parts `nodes` and `edges` of a patch, which need no layout."""
    if picture.folds:
        view = picture.folds.view(view)
    known = recipe.nodes if picture.folds is None else {**recipe.nodes, **picture.folds.regions}
    nodes = {
        to_safe_text(id): {"classes": list(marks), "count": count_text(view.visited.get(id, 0))}
        for id in _find_touched(view) if id in known and (marks := view.marks(id))
    }  # fmt: skip
    if is_reactive(recipe):
        events, edges = make_reactive_patch(recipe, picture, view)
        return {"nodes": nodes | events, "edges": edges}
    places = (index for index in sorted(view.taken) if 0 <= index < len(recipe.edges))
    return {"nodes": nodes, "edges": {str(index): {"classes": list(get_edge_marks(index, view))} for index in places}}


def make_table(recipe: Recipe, picture: Picture, view: RunView) -> BoardTable | None:
    """Return the board in this state of a run, with as many rows as the picture has; None if it has no board."""
    if picture.board is None:
        return None
    room = len(picture.board.rows) + picture.board.spare
    table = make_board_table(recipe, view, spare=picture.board.spare, room=room)
    return table if picture.folds is None else picture.folds.table(table)


def diff_patches(before: Patch, after: Patch) -> Patch:
    """Return the part of `after` that differs from `before`; None means as without a run.

    Example:
        >>> diff_patches({"nodes": {"a": 1, "b": 2}}, {"nodes": {"b": 3}})
        {'nodes': {'a': None, 'b': 3}}
    """
    parts = {}
    for part in dict.fromkeys([*before, *after]):
        old, new = before.get(part, {}), after.get(part, {})
        removed = dict.fromkeys(old.keys() - new.keys())
        parts[part] = removed | {key: item for key, item in new.items() if item is not old.get(key) != item}
    return {part: value for part, value in parts.items() if value}


def _find_touched(view: RunView) -> dict[str, None]:
    current = () if view.current is None else (view.current,)
    sets = (view.next, view.waiting, view.failed, view.breakpoints)
    return dict.fromkeys([*view.visited, *current, *(id for ids in sets for id in sorted(ids))])


def _make_row(row: Row) -> dict[str, Any]:
    return {
        "key": to_safe_text(row.key),
        "label": row.label,
        "value": row.value,
        "tip": to_safe_text(row.tip),
        "classes": get_row_classes(row),
    }


def _make_flows(drawn: BoardTable, table: BoardTable, lines: FlowLines) -> dict[str, Any]:
    """Return the flows that differ from the drawn ones: those of the current node, and those only observed."""
    known = {(flow.direction, flow.node): flow for flow in drawn.flows}
    news = (flow for flow in table.flows if known.get((flow.direction, flow.node)) != flow)
    return {f"{flow.direction} {to_safe_text(flow.node)}": _make_flow(flow, *lines.make(flow)) for flow in news}


def _make_flow(flow: Flow, line: str, heads: str) -> dict[str, Any]:
    return {
        "node": to_safe_text(flow.node),
        "direction": flow.direction,
        "classes": get_flow_classes(flow),
        "line": line,
        "heads": heads,
        "tip": to_safe_text(flow.tip),
    }
