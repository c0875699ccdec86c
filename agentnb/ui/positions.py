"""The current step, the next nodes and the breakpoints, as plain values for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.label_text import clean
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.session import Session

SOON: Final = 30  # scheduled activations shown
MESSAGES: Final = 20  # messages of logpoints shown
_WATCH_WIDTH: Final = 200


def describe_positions(session: Session) -> dict[str, Any]:
    """Return the open frames, the frontier, the breakpoints, their messages and the watches."""
    frontier = session.frontier
    return {
        "frames": [
            {"node": frame.node, "region": clean(frame.region), "round": frame.iteration, "branch": frame.branch}
            for frame in session.stack
        ],
        "next": [
            {"node": one.node, "why": clean(one.why), "turn": one.turn, "branch": one.branch} for one in frontier[:SOON]
        ],
        "later": max(len(frontier) - SOON, 0),
        "breakpoints": [_stop(session, row) for row in session.breakpoints],
        "messages": [clean(text)[:_WATCH_WIDTH] for _, text in [*session.breakpoints.messages][-MESSAGES:]],
        "watches": [[text, _format_watch_value(text, session)] for text in session.watches],
    }


def _stop(session: Session, row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "text": clean(safe_str(row) if row.log is None else f"log {safe_repr(row.log, _WATCH_WIDTH)} {row}"),
        "log": row.log is not None,
        "node": row.node,
        "enabled": row.enabled,
        "hits": row.hits,
        "met": session.stopped_by is row,
        "failed": clean(row.failed),
    }


def _format_watch_value(text: str, session: Session) -> str:
    try:
        return clean(safe_repr(session.watches[text], key=text, limit=_WATCH_WIDTH))
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        return f"cannot be shown: {type(error).__name__}"
