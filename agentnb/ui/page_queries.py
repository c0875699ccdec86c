"""The read-only queries of the page: one row each. A query changes nothing and does not wait for a step in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.ui.actions import query_events
from agentnb.ui.board_view import search_rows
from agentnb.ui.breakpoint_form import describe_form_error, list_clauses
from agentnb.ui.details import pane
from agentnb.ui.details.node import explain_not_run
from agentnb.ui.fork_tree import list_forks
from agentnb.ui.graph_view import query_drawing, query_flows, query_objects
from agentnb.ui.history_queries import describe_condition_error, query_find, query_history, query_slice, query_usage
from agentnb.ui.second_run import query_second
from agentnb.ui.timeline import make_timeline
from agentnb.ui.value_editor import describe_value, describe_value_error, list_branch

if TYPE_CHECKING:
    from agentnb.session import Session

QUERIES: Final[dict[str, Callable[[Session, Any], Any]]] = {
    "key": describe_value,
    "branch": list_branch,
    "rows": search_rows,
    "typed": describe_value_error,
    "timeline": make_timeline,
    "forks": list_forks,
    "events": query_events,
    "drawing": query_drawing,
    "flows": query_flows,
    "objects": query_objects,
    "node": pane.describe_node_pane,
    "step": pane.describe_step_pane,
    "whole": pane.get_whole_cell,
    "why_not": explain_not_run,
    "condition": describe_condition_error,
    "breakpoint": describe_form_error,
    "clauses": lambda _, __: list_clauses(),
    "find": query_find,
    "history": query_history,
    "slice": query_slice,
    "second": query_second,
    "usage": query_usage,
}


def run_query(session: Session, what: Any, request: Any) -> Any:
    """Return the result of a query as plain values, truncated and masked; `request` selects the object.

    Raises:
        AgentNbError: U308, the query does not exist; otherwise what the session raises.
    """
    query = QUERIES.get(what)
    if query is None:
        raise AgentNbError(
            Problem("U308", f"there is no query {what!r}", "a message from the page",
                    f"its queries are: {', '.join(QUERIES)}",
                    did_you_mean(str(what), QUERIES, "reload the page so that it matches this version"))
        )  # fmt: skip
    return query(session, request)
