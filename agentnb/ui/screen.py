"""screen: what a cockpit shows of a session, as plain values for its page. Reads the session, changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import hidden
from agentnb.draw.text import clean
from agentnb.errors import Problem
from agentnb.ui.asking import asked
from agentnb.ui.board import rows_of, text_of
from agentnb.ui.places import places

if TYPE_CHECKING:
    from agentnb.draw.drawing import Drawing
    from agentnb.session import Session

_SAID_WIDTH: Final = 48
_THOUGHT_WIDTH: Final = 200
RUNNING: Final = frozenset({"running", "pausing"})
_PHASES: Final = {"enter": "was entered", "again": "goes round again", "leave": "was left"}
_ENDS: Final = {
    "running": "Running.",
    "pausing": "Pausing: the node in flight comes to its end, no further one starts.",
    "finished": "The run has finished.",
    "exhausted": "The budget is used up.",
    "idle": "Idle: nothing is due.",
}


def screen(
    session: Session, drawing: Drawing, problems: tuple[Problem, ...] = (), *, at_work: bool = False
) -> dict[str, Any]:
    """Return everything that a page needs to show where the session stands. All of it is JSON, cut and masked.

    Args:
        drawing: the picture that stands on the page; `picture` is what the run changes in it.
        problems: those of the last command.
        at_work: whether one step is in flight by itself.
    """
    view, status = session.view(), "running" if at_work else str(session.status)
    rows, more = rows_of(session.recipe, view)
    return {
        "name": clean(session.recipe.name),
        "status": status,
        "chips": ["read-only"] if session.locked else [],
        "position": session.position,
        "length": len(session.trace),
        "current": session.current,
        "said": f"{session.current!r} is at work." if at_work else said(session),
        "picture": {part: marks for part, marks in drawing.patch(view).items() if part in {"nodes", "edges"}},
        "board": rows,
        "more": more,
        "pending": [asked(pending) for pending in session.pending],
        "problems": [asdict(problem) for problem in (*_failure(session), *problems)],
        "can": [verb for verb, able in abilities(session, at_work=at_work).items() if able],
        **places(session),
    }


def abilities(session: Session, *, at_work: bool = False) -> dict[str, bool]:
    """Return which commands make sense where the session stands."""
    status, position, length = session.status, session.position, len(session.trace)
    running, closed = status in RUNNING or at_work, session.locked is not None
    rests = not (running or closed)
    alone = len(session.frontier) < 2
    open_here = not closed or session.recorded
    onwards = not running and open_here and session.current is not None and not (status == "waiting" and alone)
    onwards = onwards and status != "exhausted"
    kinds = {pending.kind for pending in session.pending}
    return {
        "step": onwards,
        "into": onwards,
        "over": onwards,
        "out": onwards and len(session.frames) > 1,
        "back": position > 0,
        "goto": length > 0,
        "run": onwards,
        "run_back": position > 0 and not running,
        "pause": status == "running",
        "stop": running or (rests and status in {"waiting", "in_flight"}),
        "reset": at_work or (rests and (length > 0 or status != "ready")),
        "answer": rests and bool(kinds - {"call"}),
        "change": rests and bool(kinds - {"answer"}),
        "edit": rests,
    }


def said(session: Session) -> str:
    """Return the line that says what just happened, and what comes next."""
    status, position, current = session.status, session.position, session.current
    line = f"{_happened(session)} " if position else ""
    if status in _ENDS:
        leave = ", ".join(repr(clean(pending.name)) for pending in session.pending if pending.kind == "approval")
        return f"{line}{_ENDS[status]}" + (f" Leave is asked for: {leave}." if leave else "")
    if status == "waiting":
        nodes = ", ".join(repr(pending.node) for pending in session.pending)
        return f"{line}{nodes or repr(current)} waits for a person."
    if status == "failed":
        return f"{line}Step tries it again." if position else "What the recipe requires does not hold. Edit the board."
    later = len(session.trace) - position
    if later > 0:
        line += f"{later} later {'step is' if later == 1 else 'steps are'} kept. "
    if current is None:
        return f"{line}Nothing is next."
    if status == "in_flight":
        return f"{line}Held {clean(session.held_at)}." if session.held_at else f"{line}{_out(session)}"
    return f"{line}Next: {current!r}." if position else f"{line}At the start: {current!r} is first."


def _out(session: Session) -> str:
    """Say of a call that another process had made, or of the node that is at work, how it stands."""
    calls = [pending for pending in session.pending if pending.kind == "call"]
    told = ", ".join(f"{clean(call.name)!r} of {call.node!r}" for call in calls)
    return f"{told} went out, and its answer never came." if calls else f"{session.current!r} is in flight."


def _happened(session: Session) -> str:
    step = session.trace.steps[session.position - 1]
    named = f"Step {step.step}: {step.node_id!r}"
    if step.status == "error":
        return f"{named} failed."
    if step.status in {"cancelled", "skipped"}:
        return f"{named} was {step.status}."
    if step.thought:
        thought = clean(hidden(step.thought))[:_THOUGHT_WIDTH].rstrip(".")
        return f"{named}: {thought}."
    wrote = [f"{key} = {text_of(key, value, _SAID_WIDTH)}" for key, value in list(step.outputs.items())[:3]]
    wrote += [f"{len(step.outputs) - 3} more"] if len(step.outputs) > 3 else []
    did = f"wrote {', '.join(wrote)}" if wrote else _PHASES.get(step.phase, "wrote nothing")
    return f"{named} {did}."


def _failure(session: Session) -> Iterator[Problem]:
    """What failed where the run stands, and what broke off a run that went on by itself; no kernel shows that."""
    if session.error is not None:
        yield session.error
    if session.crash is not None:
        name = type(session.crash).__name__
        yield Problem(
            "U303",
            f"the run broke off: {name}",
            f"{session.recipe.name!r}, after step {session.position}",
            str(session.crash) or f"{name} was raised and said no more",
            "`await session.wait()` in a cell shows where it comes from",
        )
