"""What a page asks of the history: where a condition holds, the values of a key, what led to a value, usage by node.

A mistake in an expression is part of the answer, as `wrong`: the page shows it at the field and keeps what was typed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.board.paths import OPS
from agentnb.board.values import ABSENT
from agentnb.draw.board_table import find_row
from agentnb.draw.label_text import clean
from agentnb.errors import AgentNbError, Problem
from agentnb.expressions.board_queries import compile_question
from agentnb.expressions.paths import format_path
from agentnb.session.state import get_state
from agentnb.ui.board_view import format_value

if TYPE_CHECKING:
    from agentnb.session import Session

_NODES: Final = 60  # nodes of the usage chart, those with the most time
_LATEST: Final = 8  # writes of a key shown
_ROWS: Final = 200  # rows of a slice shown
_HITS: Final = 2_000  # steps marked
_WIDTH: Final = 60  # characters of a value
_LONGEST: Final = 400
_FOUND: Final[WeakKeyDictionary[Session, tuple[tuple[object, ...], list[int]]]] = WeakKeyDictionary()


def describe_error(error: AgentNbError) -> str:
    """Return the problems of an expression as text for its field: what is wrong and what to do."""
    return " ".join(f"{_to_sentence(problem.what)} {_to_sentence(problem.do)}" for problem in error.problems)[:_LONGEST]


def _to_sentence(text: str) -> str:
    text = clean(text).strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


def describe_condition_error(session: Session, request: Any) -> str:
    """Return what is wrong with a condition or a path typed into a field; empty if it is valid here.

    `request` is {text, use}: `watch` for a watch, anything else for a condition.
    """
    query = request if isinstance(request, dict) else {}
    text = str(query.get("text") or "").strip()
    board = session.board if query.get("use") == "watch" else None
    try:
        problems: list[Problem] = [*get_state(session).check_paths(compile_question(text, board).reads, "the field")]
        if problems:
            raise AgentNbError(*problems)
    except AgentNbError as error:
        return describe_error(error)
    return ""


def query_find(session: Session, request: Any) -> dict[str, Any]:
    """Return where a condition holds: `total` steps, the nearest `before` and `after` the position, `hits` around it.

    `rank` is the number of hits up to the position. `request` is the condition.
    """
    text = str(request or "").strip()
    try:
        steps = _find(session, text)
    except AgentNbError as error:
        return {"wrong": describe_error(error), "total": 0, "before": None, "after": None, "rank": 0, "hits": []}
    position = session.position
    below, above = bisect_left(steps, position), bisect_right(steps, position)
    near = max(min(below - _HITS // 2, len(steps) - _HITS), 0)
    return {
        "wrong": "",
        "total": len(steps),
        "before": steps[below - 1] if below else None,
        "after": steps[above] if above < len(steps) else None,
        "rank": above,
        "hits": steps[near : near + _HITS],
    }


def _find(session: Session, text: str) -> list[int]:
    """Return the steps where a condition holds; the latest search is kept as long as the run stays the same."""
    reading = session.trace.reading()
    key = (text, session.run_id, reading.tip, tuple(map(id, reading.chain)))
    known = _FOUND.get(session)
    if known is None or known[0] != key:
        known = _FOUND[session] = (key, session.find(text))
    return known[1]


def query_history(session: Session, request: Any) -> dict[str, Any]:
    """Return the latest values of a key up to the position, newest first, and the nodes that read and write it.

    `rows` are [step, node, text, number or None]; step 0 means the inputs, and the node None a person.
    """
    key = str(request)
    rows: list[list[Any]] = []
    at = session.position
    while len(rows) < _LATEST and at >= 0:
        try:
            step = session.who_wrote(format_path((key,)), at)
        except AgentNbError:
            break
        if step is None:
            break
        rows.append(_describe_write(session, key, step))
        at = step - 1
    literal = dict.fromkeys([*session.recipe.inputs, *session.recipe.outputs, *session.board])
    nodes = session.recipe.nodes.values()
    return {
        "key": key,
        "rows": rows,
        "readers": [node.id for node in nodes if key in {find_row(path, literal) for path in node.reads}],
        "writers": [node.id for node in nodes if key in {find_row(path, literal) for path in node.writes}],
    }


def _describe_write(session: Session, key: str, step: int) -> list[Any]:
    """Return one write of a key: the step, its node, the value as text, and as a number if it is one."""
    reading = session.trace.reading()
    node = session.trace.steps[step - 1].node_id if step else ""
    text, number = "", None
    for _, path, op, _, new, _ in reading.writes(step) if step else ():
        if str(path[0]) != key:
            continue
        label = "" if len(path) == 1 else f"{format_path(path[1:])} = "
        sign = "+ " if OPS[op] == "append" else ""
        text = f"{sign}{label}{'deleted' if new is ABSENT else format_value(key, new, _WIDTH)}"
        plain = isinstance(new, int | float) and not isinstance(new, bool) and len(path) == 1
        number = float(new) if plain else None
    if not step:
        value = session.trace.state_at(0).get(key, ABSENT)
        text = "" if value is ABSENT else format_value(key, value, _WIDTH)
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return [step, node, text, number]


def query_slice(session: Session, request: Any) -> dict[str, Any]:
    """Return what led to the value of a key: rows of [step, node, key, via, distance, inferred], nearest first.

    `steps` and `nodes` are all those in it; `wrong` says why there is no slice.
    """
    key = str(request)
    try:
        value_slice = session.slice(format_path((key,)))
    except AgentNbError as error:
        return {"key": key, "wrong": describe_error(error), "rows": [], "more": 0, "steps": [], "nodes": {}}
    nodes: dict[str, bool] = {}
    for row in value_slice.rows:
        if row.node is not None:
            nodes[row.node] = nodes.get(row.node, False) or not row.inferred
    rows = [
        [row.step, row.node, clean(row.key), row.via, row.distance, row.inferred] for row in value_slice.rows[:_ROWS]
    ]
    return {
        "key": key,
        "at": value_slice.at,
        "wrong": "",
        "rows": rows,
        "more": max(len(value_slice.rows) - _ROWS, 0),
        "steps": value_slice.steps[-10 * _ROWS :],
        "nodes": {node: "in-slice" if sure else "maybe-in-slice" for node, sure in nodes.items()},
    }


def query_usage(session: Session, _: Any = None) -> dict[str, Any]:
    """Return rows of [node, steps, seconds, calls, tokens, cost in USD], the longest time first, and how many more.

    The steps of a composite node count for it; those inside count for their own nodes.
    """
    frames, position = session.trace.frames, session.position
    steps, calls = frames.steps, frames.calls
    steps, calls = steps[steps.step <= position], calls[calls.step <= position]
    usage = steps.groupby("node", observed=True).agg(steps=("step", "size"), seconds=("seconds", "sum"))
    sums = calls.groupby("node", observed=True).agg(
        calls=("call", "size"),
        tokens_in=("tokens_in", "sum"),
        tokens_out=("tokens_out", "sum"),
        cost=("cost_usd", "sum"),
    )
    table = usage.join(sums).fillna(0).sort_values("seconds", ascending=False)
    tokens = (table.tokens_in + table.tokens_out).astype(int)
    columns = (table.steps, table.seconds, table.calls.astype(int), tokens, table.cost)
    rows = [
        [clean(str(node)), *numbers]
        for node, *numbers in zip(table.index[:_NODES], *(column.tolist() for column in columns), strict=False)
    ]
    return {"rows": rows, "more": max(len(table) - _NODES, 0)}


__all__ = ["describe_condition_error", "describe_error", "query_find", "query_history", "query_slice", "query_usage"]
