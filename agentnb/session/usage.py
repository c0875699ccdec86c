"""Usage: what the steps of a history have used, as running totals with lookup by step.

All of it is computed from the history's own columns, so a reopened run has the same usage as before.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from decimal import Decimal
from itertools import accumulate
from operator import attrgetter, sub
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from agentnb.engine.core.history import LATE, ActivationRow, Call, Event, History
from agentnb.engine.effects.recorded_calls import ASKED

PATCH: Final = "patch.applied"
_STEP: Final = attrgetter("step")
_AT: Final = attrgetter("at")


class AttemptUsage(NamedTuple):
    """Usage of some attempts of calls; `answer_ns` are the nanoseconds that people took to answer."""

    llm: int = 0
    tool: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    answer_ns: int = 0

    def with_attempt(self, kind: str, call: Call | None = None, answer_ns: int = 0) -> AttemptUsage:
        """Return this plus one more attempt; its duration is known after it has ended. Attempt 0 was never sent."""
        if call is not None and call.attempt == 0:
            return self
        tokens, cost = self.tokens, self.cost
        if call is not None:
            tokens += (call.tokens_in or 0) + (call.tokens_out or 0)
            cost += 0 if call.cost_usd is None else Decimal(str(call.cost_usd))
        return AttemptUsage(
            self.llm + (kind == "llm"), self.tool + (kind == "tool"), tokens, cost, self.answer_ns + answer_ns
        )

    def plus(self, more: AttemptUsage) -> AttemptUsage:
        """Return the sum of this and another usage."""
        return AttemptUsage(
            self.llm + more.llm,
            self.tool + more.tool,
            self.tokens + more.tokens,
            self.cost + more.cost,
            self.answer_ns + more.answer_ns,
        )


class UsageTotals(NamedTuple):
    """The usage of the steps up to one of them."""

    attempts: AttemptUsage
    ns: int  # duration of the steps, less the time people took to answer
    calls: int  # of listening nodes
    depth: int  # of the deepest event that has activated a node
    events: int  # number of events
    patches: int


class Account:
    """Running totals of the rows of one history, including its parents; each list has an entry for its start."""

    __slots__ = (
        *(
            "__weakref__",
            "usage_before",
            "started",
            "calls",
            "max_depths",
            "depths",
            "events",
            "first_steps",
            "activated_steps",
            "ns",
            "index_by_id",
        ),
        *("rows", "delivered"),
    )

    def __init__(self, before: UsageTotals) -> None:
        self.usage_before = before
        self.ns: array[int] = array("q", [0])
        self.calls: list[AttemptUsage] = [before.attempts]
        self.events: array[int] = array("I", [before.patches])  # how many of them are patches
        self.delivered: array[int] = array("I", [before.events])  # events with a delivery, past or future
        self.depths: array[int] = array("I")  # of each event
        self.index_by_id: dict[str, int] = {}  # id of an event -> its index; filled on the first lookup by id
        self.rows = 1  # number of rows searched for deliveries
        self.activated_steps: array[int] = array("I")  # the steps of nodes that an event has activated
        self.max_depths: array[int] = array("I", [before.depth])
        self.started: array[int] = array("I", [before.calls])  # how many of them were more than a deferral
        self.first_steps: dict[int, int] = {}  # event -> the first step that it has activated

    def ns_up_to(self, history: History, step: int) -> int:
        """Return the total duration in ns of the steps of this history up to one of them."""
        row = step - history.base
        if row >= len(self.ns):
            rows = slice(len(self.ns), row + 1)
            taken = map(sub, history.end_times[rows], history.start_times[rows])
            self.ns.extend(list(accumulate(taken, initial=self.ns[-1]))[1:])
        return self.ns[row]

    def attempts_up_to(self, history: History, step: int) -> AttemptUsage:
        """Return the usage of the calls up to a step."""
        end = bisect_right(history.calls, step, key=_STEP)
        while len(self.calls) <= end:
            at = len(self.calls) - 1
            call = history.calls[at]
            answer_ns = self._measure_waiting(history, at) if call.kind in ASKED else 0
            self.calls.append(self.calls[-1].with_attempt(call.kind, call, answer_ns))
        return self.calls[end]

    def _measure_waiting(self, history: History, at: int) -> int:
        """Return how long people took to answer within the step; concurrent questions may overlap."""
        call, same = history.calls[at], at
        row = call.step - history.base
        while same and history.calls[same - 1].step == call.step:
            same -= 1
        waiting = (
            history.end_times[row] - history.start_times[row] - (self.calls[at].answer_ns - self.calls[same].answer_ns)
        )
        return max(min(round(call.seconds * 1e9), waiting), 0)

    # -- events ----------------------------------------------------------------------------------------------------

    def events_up_to(self, history: History, step: int) -> int:
        """Return the number of events of this history up to a step."""
        events = history.events
        end = len(events) if not events or events[-1].at <= step else bisect_right(events, step, key=_AT)
        if len(self.depths) < end:
            reactive = None if history.plan is None else history.plan.recipe.reactive
            del self.events[len(self.depths) + 1 :], self.delivered[len(self.depths) + 1 :]  # after an interrupt
            last, index = -1, -1  # the step of the event before, and the place of the event that its node handles
            for event in events[len(self.depths) : end]:
                self.events.append(self.events[-1] + (event.type == PATCH))
                self.delivered.append(self.delivered[-1] + (reactive is None or reactive.has_listeners(event)))
                if event.step is None or event.step != last:
                    last, index = -1 if event.step is None else event.step, _find_handled_event(history, event)
                if 0 <= index < len(self.depths) and event.cause in (None, events[index].id):
                    self.depths.append(self.depths[index] + 1)
                else:
                    self.depths.append(_compute_depth(history, event))
        return end

    def depth_of(self, history: History, event: str | int, step: int) -> int | None:
        """Return the causal depth of an event of this history, as known up to a step; None if it is not there."""
        end = self.events_up_to(history, step)
        if isinstance(event, int):
            index = history.find_event_index(event)
            if index < 0 and event > history.last_inherited_event:  # of steps that were in flight together
                index = next((at for at in range(end) if history.events[at].seq == event), -1)
        else:
            for at in range(len(self.index_by_id), end):
                self.index_by_id[history.events[at].id] = at
            index = self.index_by_id.get(event, -1)
        return self.depths[index] if 0 <= index < end else None

    def count_deliveries_up_to(self, history: History, step: int) -> int:
        """Return how many steps of this history, up to one of them, were activated by an event."""
        activations, end = history.tables.activations, step - history.base + 1
        known = self.events_up_to(history, step) if self.rows < end else 0
        for row in range(self.rows, end):
            event = activations[history.step_activations[row]].event
            if event >= 0:
                position = history.base + row
                while self.activated_steps and self.activated_steps[-1] >= position:  # after an interrupt
                    self.activated_steps.pop()
                del self.max_depths[len(self.activated_steps) + 1 :], self.started[len(self.activated_steps) + 1 :]
                self.first_steps.setdefault(event, position)
                self.activated_steps.append(position)
                self.started.append(
                    self.started[-1] + (not _defers(history, activations[history.step_activations[row]]))
                )
                index = history.find_event_index(event)
                depth = self.depths[index] if 0 <= index < known else get_depth(history, event, step)
                self.max_depths.append(max(self.max_depths[-1], depth))
            self.rows = row + 1
        return bisect_right(self.activated_steps, step)


def _find_handled_event(history: History, event: Event) -> int:
    """Return the index of the event of this history that the node of another one handles; -1 if there is none."""
    if event.step is None or event.step <= history.base:
        return -1
    return history.find_event_index(
        history.tables.activations[history.step_activations[event.step - history.base]].event
    )


def _defers(history: History, activation: ActivationRow) -> bool:
    """Return True if a step only defers its node, which runs later."""
    plan = history.plan
    if plan is None or plan.recipe.reactive is None or activation.about <= LATE:
        return False
    return bool(plan.nodes[activation.node].node.params.get("activate_after"))


_accounts: Final[WeakKeyDictionary[History, Account]] = WeakKeyDictionary()
_lock: Final = threading.RLock()  # a run advances in one thread, and is read in others
_NOTHING: Final = UsageTotals(AttemptUsage(), 0, 0, 0, 0, 0)


def _get_account(history: History) -> Account:
    """Return the totals of a history; creates those of its parents first."""
    missing, current = [], history
    while current not in _accounts:
        missing.append(current)
        if current.parent is None:
            break
        current = current.parent
    for account in reversed(missing):
        base_totals = _NOTHING if account.parent is None else measure_usage(account.parent, account.base)
        _accounts[account] = Account(base_totals)
    return _accounts[history]


def measure_usage(history: History, step: int) -> UsageTotals:
    """Return the usage of the steps up to a step of a history."""
    with _lock:
        account = _get_account(history)
        totals, paid = account.usage_before, account.attempts_up_to(history, step)
        deliveries = account.count_deliveries_up_to(history, step)
        events = account.events_up_to(history, step)
        ns = account.ns_up_to(history, step) - (paid.answer_ns - totals.attempts.answer_ns)
        return UsageTotals(
            paid,
            totals.ns + ns,
            account.started[deliveries],
            account.max_depths[deliveries],
            account.delivered[events],
            account.events[events],
        )


def has_set_off(history: History, event: int, step: int) -> bool:
    """Return True if an event has activated a node, up to a step."""
    with _lock:
        current: History | None = history
        while current is not None:
            account = _get_account(current)
            account.count_deliveries_up_to(current, min(step, current.tip))
            if account.first_steps.get(event, step + 1) <= step:
                return True
            step, current = min(step, current.base), current.parent
        return False


def get_depth(history: History, event: str | int, step: int) -> int:
    """Return the causal depth of an event (by id or number), as known up to a step; 0 for none."""
    with _lock:
        current: History | None = history
        while current is not None:
            depth = _get_account(current).depth_of(current, event, step)
            if depth is not None:
                return depth
            step, current = min(step, current.base), current.parent
        return 0


def _compute_depth(history: History, event: Event) -> int:
    """Return the causal depth of an event: one more than that of the event its node handles or is inside of."""
    if event.cause is not None:
        return get_depth(history, event.cause, event.at - 1) + 1
    if event.step is None:
        return 1
    tables = history.tables
    row = tables.activations[_get_activation(history, event.step)]
    while row.event < 0:
        frame = tables.frames[row.frame]
        if frame.parent < 0:
            return 1
        row = tables.activations[_get_activation(history, frame.opened_at)]
    return get_depth(history, row.event, event.at - 1) + 1


def _get_activation(history: History, step: int) -> int:
    """Return the activation of a step of a history or its parents."""
    while step <= history.base and history.parent is not None:
        history = history.parent
    return history.step_activations[step - history.base]


__all__ = ["PATCH", "Account", "AttemptUsage", "UsageTotals", "get_depth", "has_set_off", "measure_usage"]
