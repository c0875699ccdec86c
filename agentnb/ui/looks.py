"""looks: what a page may ask to be told: one row a thing. To look changes nothing, and waits for no step in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.ui import details
from agentnb.ui.board import found_rows
from agentnb.ui.details_node import why_not
from agentnb.ui.drawn import look_drawing, look_flows, look_objects
from agentnb.ui.editing import branch, looked, wrong_with
from agentnb.ui.forks import forks
from agentnb.ui.means import look_events
from agentnb.ui.timeline import timeline

if TYPE_CHECKING:
    from agentnb.session import Session

LOOKS: Final[dict[str, Callable[[Session, Any], Any]]] = {
    "key": looked,
    "branch": branch,
    "rows": found_rows,
    "typed": wrong_with,
    "timeline": timeline,
    "forks": forks,
    "events": look_events,
    "drawing": look_drawing,
    "flows": look_flows,
    "objects": look_objects,
    "node": details.of_node,
    "step": details.of_step,
    "whole": details.whole,
    "why_not": why_not,
}


def look(session: Session, what: Any, which: Any) -> Any:
    """Return what a page asks for, as plain values, cut and masked; `which` names the one that is meant.

    Raises:
        AgentNbError: U308, there is nothing of this name to look at; else what the session itself raises.
    """
    found = LOOKS.get(what)
    if found is None:
        raise AgentNbError(
            Problem("U308", f"there is nothing called {what!r} to look at", "a message from the page",
                    f"there is: {', '.join(LOOKS)}",
                    did_you_mean(str(what), LOOKS, "reload the page, so that it fits this version"))
        )  # fmt: skip
    return found(session, which)
