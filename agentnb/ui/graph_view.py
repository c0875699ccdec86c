"""The drawing of a session as the page receives it: the picture once, then compact updates per step.

A picture is sent as {svg, closed, folds}: its text, its collapsed regions, and what their boxes represent. A large one
is laid out in a thread, and the page asks again until it is ready; the kernel's loop never waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.draw.dot import draw_recipe
from agentnb.draw.svg_patch import make_table
from agentnb.session.parts import get_parts
from agentnb.threadless import has_threads

if TYPE_CHECKING:
    from agentnb.draw.drawing import Drawing
    from agentnb.session import Session

SPARE: Final = 4  # rows of the drawn board for keys that the recipe does not name
MOST: Final = 150  # above this number of nodes, a drawing begins with its regions collapsed
AT_ONCE: Final = 150  # up to this number of lines a layout is fast enough to run without a thread
_KEPT: Final = 8
_numbers: Final = count(1)
_AGAIN: Final[dict[str, Any]] = {"again": True}
_drawings: Final[WeakKeyDictionary[Session, dict[tuple[str, ...], Drawing]]] = WeakKeyDictionary()
_jobs: Final[WeakKeyDictionary[Session, dict[str, Future[str]]]] = WeakKeyDictionary()


@cache
def _get_workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, thread_name_prefix="agentnb-layout")


def get_drawing(session: Session, closed: Iterable[str] = ()) -> Drawing:
    """Return the drawing of a session's recipe with these regions collapsed; cached.

    Raises:
        AgentNbError: U206, the region does not exist.
    """
    cached, key = _drawings.setdefault(session, {}), tuple(sorted(set(closed)))
    if key not in cached:
        drawing = draw_recipe(session.recipe, spare=SPARE, collapsed=key)
        while len(cached) >= _KEPT:
            cached.pop(next(iter(cached)))
        cached[key] = drawing
    return cached[key]


def find_collapsed(session: Session) -> tuple[str, ...]:
    """Return the regions collapsed when a page opens: wide fan-outs; of a large recipe, all."""
    areas = get_drawing(session).picture.areas
    return tuple(area.scope for area in areas if area.is_group or len(session.recipe.nodes) > MOST)


def draw_at_once(session: Session) -> str:
    """Return the picture that a page opens with; for a large one, a unique id by which the page requests it."""
    drawing = get_drawing(session)
    large = find_collapsed(session) or len(drawing.picture.links) > AT_ONCE
    return f"drawing {next(_numbers)}" if large else drawing.bare_svg


def query_drawing(session: Session, request: Any) -> dict[str, Any]:
    """Return a picture with the regions `request` collapsed; if it names none, with those collapsed at first.

    `folds` has the regions as {box: region}, the nodes as {node inside: box} and the edges as {edge: edge drawn for
    it}.
    """
    closed = find_collapsed(session) if request is None else [str(scope) for scope in request]
    drawing = get_drawing(session, closed)
    small = len(drawing.picture.links) <= AT_ONCE
    svg = drawing.bare_svg if small else _draw_in_thread(session, repr(sorted(closed)), lambda: drawing.bare_svg)
    if svg is None:
        return _AGAIN
    folds = drawing.picture.folds
    rows = {
        "regions": dict(folds.regions) if folds else {},
        "nodes": dict(folds.nodes) if folds else {},
        "edges": {str(index): end for index, end in folds.edges.items()} if folds else {},
    }
    return {"svg": svg, "closed": list(closed), "folds": rows}


def query_objects(session: Session, _: Any = None) -> dict[str, Any]:
    """Return the picture of the objects of a reactive run at the current step."""
    drawing = session.draw_objects()
    picture_id = f"objects {session.position} {len(session.trace)}"
    svg = (
        _draw_in_thread(session, picture_id, lambda: drawing.bare_svg)
        if len(drawing.picture.links) > AT_ONCE
        else drawing.bare_svg
    )
    return _AGAIN if svg is None else {"svg": svg}


def _draw_in_thread(session: Session, name: str, make: Callable[[], str]) -> str | None:
    """Return the result of `make`, which runs in a thread if there are any; None until it is ready."""
    if not has_threads():
        return make()
    jobs = _jobs.setdefault(session, {})
    if name not in jobs:
        while len(jobs) >= _KEPT:
            jobs.pop(next(iter(jobs)))
        jobs[name] = _get_workers().submit(make)
    return jobs.pop(name).result() if jobs[name].done() else None


def query_flows(session: Session, request: Any) -> dict[str, Any]:
    """Return the lines between nodes and board that differ from those drawn with the regions `request` collapsed.

    `flows` are those to draw, as in `agentnb.draw.svg_patch`; `missing` are drawn ones that no longer apply.
    """
    drawing = get_drawing(session, [str(scope) for scope in request or ()])
    view, board = get_parts(session).pictures.view(), drawing.picture.board
    table = make_table(drawing.recipe, drawing.picture, view)
    if board is None or table is None:
        return {"flows": {}, "removed": []}
    now = {(flow.direction, flow.node) for flow in table.flows}
    missing = [f"{flow.direction} {flow.node}" for flow in board.flows if (flow.direction, flow.node) not in now]
    return {"flows": drawing.patch(view)["flows"], "removed": missing}
