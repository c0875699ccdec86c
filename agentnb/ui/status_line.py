"""The status line: what just happened in a run, and what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentnb.draw.label_text import clean
from agentnb.errors import pluralize
from agentnb.session.forks import find_parting
from agentnb.session.state import get_state
from agentnb.ui.board_view import format_value
from agentnb.ui.intervention_texts import describe_intervention, is_shown

if TYPE_CHECKING:
    from agentnb.engine.core.history import Intervention
    from agentnb.session import Session
    from agentnb.trace.steps import SimulationStep

_VALUE: Final = 48  # characters
_THOUGHT: Final = 200
_NAME: Final = 80
_PHASES: Final = {"enter": "was entered", "again": "repeats", "leave": "was left"}
_NOT_RUN: Final = {"cancelled": "was cancelled", "skipped": "was skipped manually"}
# interventions that end a step
_GIVEN: Final = {"answer": "was answered", "approve": "was approved", "deny": "was denied"}
_ENDS: Final = {
    "running": "Running.",
    "pausing": "Pausing: the node in flight finishes, and no further node starts.",
    "finished": "The run has finished.",
    "exhausted": "The budget is used up.",
    "idle": "Idle: nothing is scheduled.",
}


def format_status_line(session: Session) -> str:
    """Return the line that states what just happened and what comes next."""
    return " ".join(part for part in (_format_last_step(session), _fork_text(session), _format_status(session)) if part)


def _format_status(session: Session) -> str:
    """Return the status of the run and what comes next."""
    status, position, current = get_state(session).status, session.position, session.current
    if status in _ENDS:
        approvals = ", ".join(repr(clean(pending.name)) for pending in session.pending if pending.kind == "approval")
        emits = " Emit an event to continue." if status == "idle" and not get_state(session).read_only_reason else ""
        return _ENDS[status] + (f" Approval is requested for: {approvals}." if approvals else emits)
    if status == "waiting":
        nodes = [repr(pending.node) for pending in session.pending] or [repr(current)]
        return f"Now {', '.join(nodes)} {'waits' if len(nodes) == 1 else 'wait'} for a person."
    if status == "failed":
        return "Step tries it again." if position else "A requirement of the recipe is not met. Edit the board."
    later = 0 if get_state(session).recorded else len(session.trace) - position  # a record has all of its steps
    line = f"{later} later {'step is' if later == 1 else 'steps are'} kept. " if later > 0 else ""
    if current is None:
        return f"{line}Nothing is next."
    if status == "in_flight":
        return f"{line}Held {clean(session.held_at)}." if session.held_at else f"{line}{_format_in_flight(session)}"
    return f"{line}Next: {current!r}." if position else f"{line}At the start: {current!r} is first."


def _format_in_flight(session: Session) -> str:
    """Return the status of a call started by another process, or of the node that is running."""
    calls = [pending for pending in session.pending if pending.kind == "call"]
    named = ", ".join(f"{clean(call.name)!r} of {call.node!r}" for call in calls)
    return f"{named} went out, and its answer never came." if calls else f"{session.current!r} is in flight."


def _fork_text(session: Session) -> str:
    """Return the parent run of a fork at its first step."""
    above = session.parent
    if above is None or find_parting(above, session) != session.position:
        return ""
    return f"From here on this is a fork of {clean(above.name)[:_NAME]!r}."


def _format_last_step(session: Session) -> str:
    """Return what the last step did and the interventions after it."""
    position = session.position
    interventions = [
        intervention
        for intervention in session.trace.reading().interventions()
        if intervention.step == position and is_shown(intervention)
    ]
    interventions = [
        intervention for intervention in interventions if intervention.action != "skip"
    ]  # the step created by a skip reports it
    if not position:
        return _format_interventions(interventions, "")
    step = session.trace.steps[position - 1]
    cause = next(
        (
            intervention
            for intervention in interventions
            if intervention.action in _GIVEN and intervention.target == step.node_id
        ),
        None,
    )
    done = _format_failure(session, step) if step.status == "error" else _describe_step(session, step, cause)
    interventions_text = _format_interventions(
        [intervention for intervention in interventions if intervention is not cause], "Then "
    )
    return " ".join([done, *_list_blocking(session), interventions_text]).strip()


def _list_blocking(session: Session) -> list[str]:
    """Return a sentence if the last step was async code that blocked the kernel's event loop, else none."""
    run = get_state(session).run
    activation, took = run.blocked
    activations = run.history.step_activations
    if activation < 0 or not activations or activations[-1] != activation or run.is_rewound:
        return []
    return [
        f"It blocked the kernel for {took / 1e9:.1f} s without awaiting; a function without 'async' runs in a thread."
    ]


def _format_interventions(interventions: list[Intervention], begins: str) -> str:
    """Return the interventions at the current step: the last one, and the number of others."""
    emitted = [intervention for intervention in interventions if intervention.action == "emit"]
    shown = (emitted or interventions)[-2:]  # what an event changes on the board is shown with the event
    more = len(emitted or interventions) - len(shown)
    text = "; ".join([*([pluralize(more, "more intervention")] if more else []), *map(describe_intervention, shown)])
    return _to_sentence(f"{begins}{text}") if text else ""


def _format_failure(session: Session, step: SimulationStep) -> str:
    """Return that a step failed, with the error only if the recipe handled it; otherwise a card shows it."""
    failure = session.trace.reading().failure(step.step) if session.error is None else None
    text = "" if failure is None else clean(failure.text)[:_THOUGHT].rstrip(".")
    return f"Step {step.step}: {step.node_id!r} failed{f': {text}' if text else ''}."


def _describe_step(session: Session, step: SimulationStep, intervention: Intervention | None) -> str:
    named = f"Step {step.step}: {step.node_id!r}"
    if step.status in _NOT_RUN:
        return f"{named} {_NOT_RUN[step.status]}."
    if step.thought:
        thought = clean(step.thought)[:_THOUGHT].rstrip(".")
        return f"{named}: {thought}."
    in_place = dict.fromkeys(str(write[1][0]) for write in session.trace.reading().writes(step.step) if write[-1])
    written = {key: value for key, value in step.outputs.items() if key not in in_place}
    changes = [f"{key} = {format_value(key, value, _VALUE)}" for key, value in list(written.items())[:3]]
    changes += [f"{len(written) - 3} more"] if len(written) > 3 else []
    did = [_GIVEN.get(intervention.action if intervention else "", ""), _PHASES.get(step.phase, "")]
    did += [f"changed {', '.join(clean(key)[:_NAME] for key in list(in_place)[:3])} in place"] if in_place else []
    did += [f"wrote {', '.join(changes)}"] if changes else [] if any(did) else ["wrote nothing"]
    return _to_sentence(f"{named} {' and '.join(filter(None, did))}")


def _to_sentence(text: str) -> str:
    """Return a text with a full stop, unless a quoted value at its end has one."""
    return text if text.rstrip("'\"").endswith((".", "!", "?", "…")) else f"{text}."


def describe_step(session: Session, number: int) -> str:
    """Return what one step did, for a run that is shown beside another."""
    step = session.trace.steps[number - 1]
    return _format_failure(session, step) if step.status == "error" else _describe_step(session, step, None)


__all__ = ["describe_step", "format_status_line"]
