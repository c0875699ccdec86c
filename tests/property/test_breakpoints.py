"""Breakpoints stop a run where its trace, read row by row, says that all their clauses hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.paths import OPS
from agentnb.board.values import ABSENT, thaw
from agentnb.errors import BoardError, ExecutionError
from tests.property.modelled_sessions import session_of
from tests.property.node_programs import BrokenError
from tests.property.strategies import TEXTS, Drawn, asks, drawn

STEPS = 25
FAILURES = {error.__name__: error for error in (BrokenError, TimeoutError, BoardError, ExecutionError)}


@dataclass
class Place:
    """A position of a run: the board and what is next, and what the step before it was, wrote and led to."""

    step: int
    board: dict[str, Any]
    starting: str | None
    node: str | None = None
    phase: str = ""
    failure: str | None = None
    writes: tuple[tuple[str, bool, Any, Any], ...] = ()  # the path, whether in place, the values before and after
    targets: tuple[str, ...] = ()


def places_of(what: Drawn) -> list[Place]:
    """Return the places of a run that is stepped."""
    session, places = session_of(what.recipe, what.inputs, what.limit), list[Place]()
    while True:
        head = session.frontier[0] if session.frontier else None
        starts = head is not None and head.phase == "start"
        places.append(Place(session.position, dict(session.board), head.node if starts else None))
        if session.position == STEPS or session.status == "failed" or session.step() is None:
            break
    reading, edges = session.trace.reading(), session.trace.frames.edges
    for place, step in zip(places[1:], session.trace.steps, strict=True):
        place.node, place.phase = step.node_id, step.phase
        if step.status == "error":
            place.failure = reading.failure(place.step).type
        rows = reading.writes(place.step)
        place.writes = tuple(
            (".".join(map(str, path)), in_place, *find_values(op, thaw(old), thaw(new)))
            for _, path, op, old, new, in_place in rows
        )
    for step, target in zip(edges.step, edges.target, strict=True):
        places[step].targets += (target,)
    return places


def find_values(op: int, old: Any, new: Any) -> tuple[Any, Any]:
    """Return the values at the path of a write before and after it."""
    return (old, [*(old if isinstance(old, list) else []), new]) if OPS[op] == "append" else (old, new)


def changes(path: str, old: Any, new: Any, key: str) -> bool:
    """Return True if a write at a path changed the value at a key, which may be above or below the path."""
    if not f"{key}.".startswith(f"{path}."):
        return path.startswith(f"{key}.") and repr(old) != repr(new)
    for name in key.split(".")[path.count(".") + 1 :]:
        old, new = get_part(old, name), get_part(new, name)
    return repr(old) != repr(new)


def get_part(value: Any, name: str) -> Any:
    """Return an item or a key of a value; ABSENT if there is none."""
    if isinstance(value, list):
        return value[int(name)] if name.isdecimal() and int(name) < len(value) else ABSENT
    return value.get(name, ABSENT) if isinstance(value, dict) else ABSENT


def is_met(clauses: dict[str, Any], place: Place) -> bool:
    """Return True if all clauses of a breakpoint hold at a place."""
    needs_step = clauses.keys() & {"edge", "key", "error", "in_place"}
    return not (needs_step and place.node is None) and all(
        holds(name, value, clauses, place) for name, value in clauses.items()
    )


def holds(name: str, value: Any, clauses: dict[str, Any], place: Place) -> bool:
    match name:
        case "node" if clauses.get("side") == "after":
            return place.node == value and place.phase not in ("enter", "again")
        case "node":
            return place.starting == value
        case "edge":
            return place.node == value[0] and value[1] in place.targets
        case "key":
            own = [row for row in place.writes if row[1] or not clauses.get("in_place")]
            return any(changes(path, old, new, value) for path, _, old, new in own)
        case "in_place":
            return any(in_place for _, in_place, _, _ in place.writes)
        case "error" if isinstance(value, bool):
            return value == (place.failure is not None)
        case "error":
            return place.failure is not None and value in [cls.__name__ for cls in FAILURES[place.failure].__mro__]
        case "step":
            return place.step == value
        case "when":
            try:
                return value(place.board)
            except BrokenError:
                return False
    return True


@st.composite
def breakpoints(draw: Any, recipe: Any, places: list[Place]) -> dict[str, Any]:
    """Draw the clauses of a breakpoint; most of them hold somewhere."""
    known = {(edge.source, edge.target) for edge in recipe.edges}  # a rescue leads elsewhere, too
    edges = [pair for place in places for target in place.targets if (pair := (place.node, target)) in known]
    keys = [path for place in places for path, *_ in place.writes]
    clauses = {
        "node": st.sampled_from(list(recipe.nodes)),
        "key": st.sampled_from([*keys, *TEXTS]),
        "when": asks.filter(lambda ask: "." not in ask.at),
        "error": st.sampled_from([True, False, "BrokenError", "TimeoutError", "OSError", "Exception", "KeyError"]),
        "step": st.integers(0, len(places)),
        "in_place": st.sampled_from([True]),
    }
    if edges:
        clauses["edge"] = st.sampled_from(edges)
    chosen = draw(st.lists(st.sampled_from(sorted(clauses)), min_size=1, max_size=2, unique=True))
    drawn_clauses = {name: draw(clauses[name]) for name in chosen}
    side = draw(st.sampled_from(["before", "after"]))
    return {**drawn_clauses, "side": side, "on_hit": draw(st.sampled_from([1, 1, 2])), "once": draw(st.booleans())}


def stops_of(places: list[Place], points: dict[int, dict[str, Any]], hits: dict[int, int]) -> list[tuple[int, int]]:
    """Return where a run stops, and by which breakpoint; count the hits, and remove what is to stop it once."""
    stops = []
    for place in places:
        met = [number for number, clauses in points.items() if is_met(clauses, place)]
        for number in met:
            hits[number] += 1
        stopping = [number for number in met if hits[number] >= points[number]["on_hit"]]
        stops += [(place.step, number) for number in stopping[:1]]
        for number in stopping:
            if points[number]["once"]:
                del points[number]
    return stops


@given(drawn(lanes=False), st.data())
def test_a_run_stops_where_all_clauses_of_a_breakpoint_hold(what, data):
    places = places_of(what)
    chosen = data.draw(st.lists(breakpoints(what.recipe, places), min_size=1, max_size=4))
    session = session_of(what.recipe, what.inputs, what.limit)
    rows = [session.breakpoints.add(**clauses) for clauses in chosen]
    points = {row.id: clauses for row, clauses in zip(rows, chosen, strict=True)}
    hits = dict.fromkeys(points, 0)
    stops = []
    while True:
        session.run(max_steps=STEPS - session.position)
        if session.stopped_by is not None:
            stops.append((session.position, session.stopped_by.id))
        if session.status not in ("ready", "paused") or session.position == STEPS:
            break
    assert stops == stops_of(places, points, hits)
    assert {row.id: row.hits for row in rows} == hits
    assert [row.id for row in session.breakpoints] == list(points)
    back = []
    while session.position:
        session.run_back()
        back.append((session.position, session.stopped_by and session.stopped_by.id))
    met = [(place.step, [number for number in points if is_met(points[number], place)]) for place in places[-2::-1]]
    assert back == [(step, numbers[0] if numbers else None) for step, numbers in met if numbers or not step]
    assert {row.id: row.hits for row in rows} == hits  # going back counts none
