"""places: where a run stands, what comes next and where it is to stop, as plain values for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import hidden, short
from agentnb.draw.text import clean

if TYPE_CHECKING:
    from agentnb.session import Session

SOON: Final = 30  # activations to come that are shown
_WATCH_WIDTH: Final = 200


def places(session: Session) -> dict[str, Any]:
    """Return the open frames, the frontier, the breakpoints and the watches."""
    frontier = session.frontier
    return {
        "frames": [
            {"node": frame.node, "region": clean(frame.region), "round": frame.iteration, "branch": frame.branch}
            for frame in session.frames
        ],
        "next": [
            {"node": one.node, "why": clean(hidden(one.why)), "turn": one.turn, "branch": one.branch}
            for one in frontier[:SOON]
        ],
        "later": max(len(frontier) - SOON, 0),
        "breakpoints": [_stop(session, row) for row in session.breakpoints],
        "watches": [[text, _value(text, session)] for text in session.watches],
    }


def _stop(session: Session, row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "text": clean(hidden(str(row))),
        "node": row.node,
        "enabled": row.enabled,
        "hits": row.hits,
        "met": session.stopped_by is row,
        "failed": clean(hidden(row.failed)),
    }


def _value(text: str, session: Session) -> str:
    try:
        return clean(short(session.watches[text], text, _WATCH_WIDTH))
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        return f"cannot be shown: {type(error).__name__}"
