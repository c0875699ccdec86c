"""The view model: what a cockpit shows of a session, as plain values for its page. Read-only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.diagram import is_reactive
from agentnb.draw.label_text import clean
from agentnb.errors import Problem
from agentnb.session.parts import get_parts
from agentnb.session.run_queries import AFTER_FAILURE
from agentnb.session.state import get_state
from agentnb.text import safe_repr, safe_str
from agentnb.ui.actions import describe_limit, list_available_actions
from agentnb.ui.board_view import make_rows
from agentnb.ui.details.source import find_raise
from agentnb.ui.fork_tree import run_of
from agentnb.ui.picture_marks import mark_picture
from agentnb.ui.prompts import describe_pending, describe_request
from agentnb.ui.second_run import describe_second_run
from agentnb.ui.status_line import format_status_line
from agentnb.ui.timeline import list_branches

if TYPE_CHECKING:
    from agentnb.draw.drawing import Drawing
    from agentnb.session import Session

SOON: Final = 30  # scheduled activations shown
MESSAGES: Final = 20  # messages of logpoints shown
_WATCH_WIDTH: Final = 200
RUNNING: Final = frozenset({"running", "pausing"})


def make_screen(
    session: Session, drawing: Drawing, problems: tuple[Problem, ...] = (), *, at_work: bool = False
) -> dict[str, Any]:
    """Return everything that a page needs to show the current step, as JSON, truncated and masked.

    Args:
        drawing: the drawing shown on the page; `picture` is what the run changes in it.
        problems: those of the last command.
        at_work: whether a single step is in flight.
    """
    state = get_state(session)
    view, status, locked = get_parts(session).pictures.view(), state.status, state.read_only_reason
    at_work = at_work and status != "pausing"
    status = "running" if at_work else status
    rows, more = make_rows(session, view)
    return {
        "name": clean(session.recipe.name),
        "status": status,
        "chips": [*(["read-only"] if locked else []), *(["simulated model"] if session.simulated else [])],
        "run": run_of(session),
        "line": list_branches(session),
        "beside": describe_second_run(session),
        "forks": len(session.forks),
        "speed": session.speed,
        "position": session.position,
        "length": len(session.trace),
        "current": session.current,
        "sentence": f"{session.current!r} is at work." if at_work else format_status_line(session),
        "picture": mark_picture(drawing, view),
        "reactive": is_reactive(session.recipe),
        "board": rows,
        "more": more,
        "pending": [
            {
                **describe_pending(pending),
                **({} if pending.kind == "call" else {"about": describe_request(session, pending)}),
                "recorded": state.recorded,
            }
            for pending in session.pending
        ],
        "limit": describe_limit(session),
        "problems": [*_iter_failures(session), *(asdict(problem) for problem in problems)],
        "can": [verb for verb, able in list_abilities(session, at_work=at_work).items() if able],
        **describe_positions(session),
    }


def list_abilities(session: Session, *, at_work: bool = False) -> dict[str, bool]:
    """Return which commands are available at the current step."""
    state = get_state(session)
    status, position, length = state.status, session.position, len(session.trace)
    running, closed = status in RUNNING or at_work, state.read_only_reason is not None
    rests = not (running or closed)
    open_here = not closed or state.recorded
    onwards = not running and open_here and session.current is not None
    onwards = onwards and not (status == "waiting" and len(session.frontier) < 2)
    onwards = onwards and status != "exhausted"
    kinds = {pending.kind for pending in session.pending}
    return {
        "step": onwards,
        "into": onwards,
        "over": onwards,
        "out": onwards and len(session.stack) > 1,
        "back": position > 0,
        "goto": length > 0,
        "run": onwards,
        "run_to": onwards,
        "run_back": position > 0 and not running,
        "pause": status == "running",
        "stop": running or (rests and status in {"waiting", "in_flight"}),
        "reset": at_work or (rests and (length > 0 or status != "ready")),
        "answer": rests and bool(kinds - {"call"}),
        "change": rests and bool(kinds - {"answer"}),
        "edit": rests,
        **{verb: rests and able for verb, able in list_available_actions(session).items()},
        "fork": rests,
        "switch": True,
    }


def _iter_failures(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the failure of the current step and what stopped a background run; the kernel does not show them.

    Where the user's own code raised, `source` says where: see `find_raise`.
    """
    if session.error is not None:
        failure = session.trace.reading().failure(session.position) if get_state(session).status == "failed" else None
        source = None if failure is None else find_raise(failure.error)
        problem = asdict(session.error)
        if problem["do"] == AFTER_FAILURE and list_available_actions(session)["retry"]:
            # On the page these are buttons beside the text.
            problem["do"] = "fix the node or edit the board, then press Try again; or press Skip or Back"
        yield {**problem, **({} if source is None else {"source": source})}
    crash = get_state(session).background_error
    if crash is not None:
        name = type(crash).__name__
        crashed = Problem(
            "U303",
            f"the run was aborted: {name}",
            f"{session.recipe.name!r}, after step {session.position}",
            str(crash) or f"{name} was raised without a message",
            "`await session.wait()` in a cell shows the traceback",
        )
        yield asdict(crashed)


def describe_positions(session: Session) -> dict[str, Any]:
    """Return the open frames, the frontier, the breakpoints, their messages and the watches."""
    frontier = session.frontier
    return {
        "frames": [
            {"node": frame.node, "region": clean(frame.region), "round": frame.iteration, "branch": frame.branch}
            for frame in session.stack
        ],
        "next": [
            {"node": entry.node, "why": clean(entry.why), "turn": entry.phase, "branch": entry.branch}
            for entry in frontier[:SOON]
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
        "stopped_here": session.stopped_by is row,
        "failed": clean(row.failed),
    }


def _format_watch_value(text: str, session: Session) -> str:
    try:
        return clean(safe_repr(session.watches[text], key=text, limit=_WATCH_WIDTH))
    except Exception as error:  # noqa: BLE001  (a value's own repr may raise anything)
        return f"cannot be shown: {type(error).__name__}"


__all__ = ["RUNNING", "describe_positions", "format_status_line", "list_abilities", "make_screen"]
