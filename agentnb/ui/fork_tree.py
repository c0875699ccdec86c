"""The tree of sessions that a cockpit can show: where each was forked, its length, and which one is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.label_text import clean
from agentnb.errors import AgentNbError, Problem
from agentnb.session.forks import find_parting
from agentnb.session.state import get_state
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.session import Session

ROWS: Final = 200  # maximum number of sessions sent at once
_WIDTH: Final = 80
_SHORT: Final = 6  # the last characters of a run id; the first ones are its time


def run_of(session: Session) -> dict[str, Any]:
    """Return the run shown in a cockpit: the session's name, the end of the run id, and its parent run."""
    above = session.parent
    return {
        "name": _display_name(session),
        "id": session.run_id[-_SHORT:],
        "of": None if above is None else _display_name(above),
    }


def list_forks(session: Session, _: Any = None) -> dict[str, Any]:
    """Return the tree of sessions as rows, each below its parent; `more` is the number of rows left out.

    A row has `id` (the run's), `name`, `depth`, `from` (the last step that it shares with its parent, None if it shares
    none), `position`, `length`, `status`, `shown` (True for the session in the cockpit), `note`, `expected` (a
    condition, or empty) and `holds` (whether it is satisfied; None if nothing is expected).
    """
    entries = list(_iter_tree(session))
    rows = [_make_row(fork, depth, session) for fork, depth in entries]
    position = next(number for number, row in enumerate(rows) if row["shown"])
    start = max(min(position - ROWS // 2, len(rows) - ROWS), 0)
    return {"rows": rows[start : start + ROWS], "more": max(len(rows) - ROWS, 0)}


def find_session(session: Session, run: Any) -> Session:
    """Return the session of a run in the tree around this one.

    Raises:
        AgentNbError: U310, the tree has no such run.
    """
    found = next((fork for fork, _ in _iter_tree(session) if fork.run_id == run), None)
    if found is None:
        raise AgentNbError(
            Problem("U310", f"there is no run {run!r} here", "the forks of this cockpit",
                    "a run that was reset has a new id, and a stored run is not open here",
                    "choose another run of the tree; open a stored run with agentnb.open(path, run_id)")
        )  # fmt: skip
    return found


def _iter_tree(session: Session) -> Iterator[tuple[Session, int]]:
    """Yield every session of the tree around a session with its depth, each before its forks."""
    while session.parent is not None:
        session = session.parent
    open_ = [(session, 0)]
    while open_:
        fork, depth = open_.pop()
        yield fork, depth
        open_ += [(fork, depth + 1) for fork in reversed(fork.forks)]


def _make_row(session: Session, depth: int, shown: Session) -> dict[str, Any]:
    expectation = get_state(session).expectation
    return {
        "id": session.run_id,
        "name": _display_name(session),
        "depth": depth,
        "from": None if session.parent is None else find_parting(session.parent, session),
        "position": session.position,
        "length": len(session.trace),
        "status": str(session.status),
        "shown": session is shown,
        "note": clean(session.note)[:_WIDTH],
        "expected": "" if expectation is None else clean(safe_str(expectation.text, _WIDTH)),
        "holds": session.expectation_holds,
    }


def _display_name(session: Session) -> str:
    name = clean(session.name)
    return name if len(name) <= _WIDTH else f"{name[: _WIDTH - 1]}…"
