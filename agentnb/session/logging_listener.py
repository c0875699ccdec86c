"""A listener that writes the progress of a session to Python's logging; see `logs`."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import find_secret_word, mask_value
from agentnb.board.values import ABSENT
from agentnb.engine.core.history import FAIL, PHASES, STATUS, STATUSES
from agentnb.expressions.paths import format_path
from agentnb.kinds.context import ODD
from agentnb.session.logs import CALL, RUN, get_error_fields, is_heard, log_line
from agentnb.session.pending import get_pending
from agentnb.session.run_queries import get_status

if TYPE_CHECKING:
    from agentnb.engine.core.history import ActivationRow, Call, History
    from agentnb.engine.core.run import Run
    from agentnb.session.state import State

_ENDS: Final = {"finished": "has finished", "idle": "is idle", "exhausted": "is exhausted", "waiting": "waits"}


def attach_listener(state: State) -> None:
    """Subscribe before a session steps, if a handler accepts errors; to each step only if one accepts more."""
    reporter, on = state.reporter, is_heard(RUN, logging.ERROR) or is_heard(CALL, logging.ERROR)
    every_step = on and (is_heard(RUN, logging.INFO) or is_heard(CALL, logging.INFO))
    if reporter is not None and not (on and reporter.every_step == every_step):
        reporter.end()
        reporter = state.reporter = None
    if reporter is None and on:
        reporter = state.reporter = LoggingListener(state, every_step=every_step)
    if reporter is not None:
        reporter.report_begin()


class LoggingListener:
    """Writes the progress of a session to the log, as a listener.

    Args:
        every_step: subscribe to each step. Otherwise only warnings and errors are written, a few times per second
            during a run: a step without listeners costs a third of one with them.
    """

    def __init__(self, state: State, *, every_step: bool) -> None:
        self._state, self.every_step = state, every_step
        self._started_run: Run | None = None
        self._logged_end: tuple[Any, ...] | None = None
        self._lock = threading.RLock()  # a run advances in one thread, and may be paused from another
        self._go_to(state.run.history, state.run.history.tip)
        if not self._step:
            self._events = 0  # number of events emitted before the first step, reported with it
        moments = ("step", "change") if every_step else ("change",)
        self._removals = [state.hooks.add(moment, self._report) for moment in moments]

    def end(self) -> None:
        """Unsubscribe."""
        for remove in self._removals:
            remove()

    def _go_to(self, history: History, step: int) -> None:
        """Continue with a history after one of its steps."""
        self._history, self._step = history, step
        self._calls = bisect_right(history.calls, step, key=attrgetter("step"))
        self._events = bisect_right(history.events, step, key=attrgetter("at"))

    def _log(self, logger: logging.Logger, level: int, message: str, **known: Any) -> None:
        state = self._state
        log_line(logger, level, message, run_id=state.run_id, dialect=state.recipe.dialect, **known)

    def report_begin(self) -> None:
        """Report that a run begins, or continues from the position of the last report."""
        state, run = self._state, self._state.run
        if self._started_run is run:
            return
        self._started_run, name = run, f"run of {state.recipe.name!r}"
        if run.position:
            self._log(RUN, logging.INFO, f"{name} resumes after step {run.position}", step=run.position)
        else:
            self._log(RUN, logging.INFO, f"{name} begins", step=0, payload={"inputs": state.inputs})

    def _report(self, _what: Any) -> None:
        """Report what is new."""
        with self._lock:
            run = self._state.run
            if run.current_history is run.history:
                self._log_steps(run)
            if not self._state.moves:
                self._report_status(run)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _log_steps(self, run: Run) -> None:
        history = run.history
        if history is not self._history:
            self._go_to(history, history.base)
            self._events = 0
        if not self.every_step:
            self._log_faults(run, history)
        while self._step < run.position:
            self._step += 1  # first: a failure below must not repeat the report
            self._log_step(run, history, self._step)
        self._log_events(history, run.position)

    def _log_faults(self, run: Run, history: History) -> None:
        """Report the steps that failed or have warnings; skip all others."""
        rows = (reversed(history.errors), reversed(history.notes))  # their newest steps come last
        steps = {step for row in rows for step in takewhile(lambda step: step > self._step, row)}
        steps |= {call.step for call in history.calls[self._calls :] if call.error is not None}
        for step in sorted(step for step in steps if self._step < step <= run.position):
            self._log_step(run, history, step)
        self._go_to(history, max(self._step, run.position))

    def _log_step(self, run: Run, history: History, step: int) -> None:
        while self._calls < len(history.calls) and history.calls[self._calls].step <= step:
            self._calls += 1
            self._log_call(run, history.calls[self._calls - 1])
        self._log_events(history, step)
        row = step - history.base
        activation, flag = run.tables.activations[history.step_activations[row]], history.step_flags[row]
        known, seconds = self._describe_node(run, activation), history.working_time(row) / 1e9
        failure, status = history.errors.get(step), STATUSES[(flag & STATUS) >> 2]
        named = f"step {step}: node {known['node']!r}"
        # A failure that propagates to an outer node was reported already
        if failure is not None and activation.purpose != FAIL:
            reason = get_error_fields(failure.error).get("reason") or ("timeout" if failure.timeout else None)
            known |= {"error_type": failure.type, "error_message": failure.message, "reason": reason}
            text = f"{named} failed: {failure.type}: {failure.message}"
            self._log(RUN, logging.ERROR, text, step=step, latency_seconds=seconds, **known)
        note = history.notes.get(step)
        if note is not None and str(note.thought or "").startswith(ODD):
            self._log(RUN, logging.WARNING, f"{named}, {note.thought}", step=step, **known)
        if RUN.isEnabledFor(logging.DEBUG):
            text = f"{named}, {PHASES[flag & 3]}, {status}"
            self._log(
                RUN, logging.DEBUG, text, step=step, latency_seconds=seconds, payload=_get_written(run, step), **known
            )

    def _describe_node(self, run: Run, activation: ActivationRow) -> dict[str, Any]:
        """Return the fields that name a node, and the event it handles."""
        name = run.plan.nodes[activation.node].id
        event = run.get_event(activation.event)
        return {"node": name} if event is None else {"node": name, "behavior": name, "event_id": event.id}

    def _log_call(self, run: Run, call: Call) -> None:
        known = self._describe_node(run, run.tables.activations[call.activation])
        model = (call.arguments or {}).get("model") or call.name if call.kind == "llm" else None
        failed = call.error is not None
        kind, _, message = (call.error or "").partition(": ")
        suffix = f", attempt {call.attempt}" if call.attempt > 1 else ""
        text = f"step {call.step}: {call.kind} {call.name!r} of node {known['node']!r}{suffix}"
        self._log(
            CALL,
            logging.WARNING if failed else logging.INFO,
            f"{text} failed: {call.error}" if failed else f"{text} was answered",
            step=call.step,
            tool=call.name if call.kind == "tool" else None,
            model=model,
            cost_usd=call.cost_usd,
            latency_seconds=call.seconds,
            error_type=kind or None,
            error_message=message or None,
            payload={"arguments": call.arguments, "answer": call.result},
            **known,
        )

    def _log_events(self, history: History, step: int) -> None:
        while self._events < len(history.events) and history.events[self._events].at <= step:
            event = history.events[self._events]
            self._events += 1
            text, payload = f"event {event.id} of type {event.type!r} by {event.actor}", {"event": event.payload}
            self._log(RUN, logging.DEBUG, text, step=event.step, event_id=event.id, payload=payload)

    # -- status --------------------------------------------------------------------------------------------------

    def _report_status(self, run: Run) -> None:
        state = self._state
        word = get_status(run, state.limits)
        limit = state.limits.find_reached(run) if word == "exhausted" else None
        waits = list(dict.fromkeys(pending.node for pending in get_pending(run))) if word == "waiting" else []
        history = (run, run.current_history, run.position, word, limit, *waits)
        if word not in _ENDS or history == self._logged_end:
            self._logged_end = history if word in _ENDS else None
            return
        self._logged_end = history
        text = f"run of {state.recipe.name!r} {_ENDS[word]} after step {run.position}"
        text += f": {limit} is used up" if limit else ""
        text += f": {', '.join(map(repr, waits))} waits for a person" if waits else ""
        self._log(RUN, logging.INFO, text, step=run.position, reason=limit, node=waits[0] if waits else None)


def _get_written(run: Run, step: int) -> dict[str, Any]:
    """Return what a step has written, by path, as a payload, without deletions."""
    history = run.find_history_of_step(step)
    row, codes = step - history.base, run.tables.codes
    rows = range(history.write_ends[row - 1], history.write_ends[row])
    written = ((codes[history.write_codes[at] >> 2][1], history.new_values[at]) for at in rows)
    values = {format_path(path): mask_value(value, find_secret_word(path)) for path, value in written
             if value is not ABSENT}  # fmt: skip
    return {"writes": values} if values else {}


__all__ = ["LoggingListener", "attach_listener"]
