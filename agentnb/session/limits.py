"""Limits: a session's budget against the usage of its run. Reaching a limit ends a run as `exhausted`.

The engine counts the steps. All other limits are checked after each step; limits on calls are also checked before each
attempt of a call, including the usage of the steps in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import freeze, thaw
from agentnb.engine.control.breakpoints import get_last_step
from agentnb.engine.control.interventions import record_intervention
from agentnb.engine.core.history import COUNTED
from agentnb.engine.core.run import MAX_FRAMES, NEVER
from agentnb.engine.effects.recorded_calls import ASKED
from agentnb.errors import warn_caller
from agentnb.session.usage import AttemptUsage, UsageTotals, get_depth, has_set_off, measure_usage

if TYPE_CHECKING:
    from agentnb.engine.control.budget import Budget
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.history import History, Intervention
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.world.effect import Effect

Number = int | float | Decimal
STOPPED: Final = "exhausted"  # the action recorded when a step was given up at a limit
CHANGES: Final = frozenset({"edit", "set_next", "skip", "emit"})  # after these interventions the step may begin again
ITSELF: Final = "runtime"  # events of the run itself, such as of its limit, change nothing
OF_CALLS: Final = ("max_llm_calls", "max_tool_calls", "max_seconds", "max_tokens", "max_cost_usd")
OF_EVENTS: Final = ("max_events", "max_behavior_calls", "max_patches", "max_depth")
_calls: Final = attrgetter(*OF_CALLS)
_events: Final = attrgetter(*OF_EVENTS)


@dataclass(slots=True)
class _PendingUsage:
    """The usage of a step in flight: its start, its attempts in progress, and the number that have ended."""

    started_at: int
    attempts: AttemptUsage = field(default_factory=AttemptUsage)
    attempts_in_flight: dict[tuple[int, int], str] = field(default_factory=dict)
    ended_count: int = 0

    def update(self, work: Work) -> None:
        """Record the attempts that have ended."""
        for call in work.calls[self.ended_count :]:
            self.attempts_in_flight.pop((call.call, call.attempt), None)
            waiting = round(call.seconds * 1e9) if call.kind in ASKED else 0
            self.attempts = self.attempts.with_attempt(call.kind, call, waiting)
            self.ended_count += 1

    def measure_usage(self, now: int) -> tuple[AttemptUsage, int]:
        """Return its usage so far, including attempts in progress."""
        paid = self.attempts
        for kind in self.attempts_in_flight.values():
            paid = paid.with_attempt(kind)
        return paid, max(now - self.started_at - paid.answer_ns, 0)


class Limits:
    """The budget of one run and its usage.

    If a limit blocks an attempt of a call, the step is abandoned and an intervention is recorded: it stays the next
    step, and does not begin again before an intervention or a change of the limit.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._set()
        self._in_flight: dict[Work, _PendingUsage] = {}
        self._has_warned_of_unpriced = False  # whether the warning for a model of unknown cost was issued
        # The history and number of interventions seen so far, and the result for them
        self._seen_interventions: tuple[History | None, int, Intervention | None] = (None, 0, None)

    def _set(self) -> None:
        self._of_calls = _calls(self.budget).count(None) < len(OF_CALLS)
        self._of_events = _events(self.budget).count(None) < len(OF_EVENTS)
        self.has_counted_limits = self._of_calls or self._of_events

    def apply(self, run: Run) -> None:
        """Set the limits that the engine counts itself, and install the check of calls."""
        budget = self.budget
        run.limit = NEVER if budget.max_steps is None else budget.max_steps
        deepest = max(MAX_FRAMES, run.plan.nesting)  # static nesting in the recipe is not endless recursion
        run.max_frames = deepest if budget.max_frames is None else budget.max_frames
        run.max_subgraph_depth = budget.max_subgraph_depth
        run.limiter = self if self._of_calls or budget.max_frames is not None else None
        self._in_flight.clear()
        run.set_next_due()

    def change(self, run: Run, budget: Budget) -> None:
        """Replace the budget; recorded if the run is at its tip."""
        old, new = asdict(self.budget), asdict(budget)
        for name in old:
            if old[name] != new[name] and run.current_history is run.history and not run.is_rewound:
                record_intervention(run, "budget", name, old[name], new[name])
        self.budget = budget
        self._set()
        self.apply(run)

    # -- current position ----------------------------------------------------------------------------------------

    def find_reached(self, run: Run) -> str | None:
        """Return the name of the limit that is reached at the current position; None if none is."""
        if run.is_exhausted():
            return "max_steps"
        if self.has_counted_limits:
            used = measure_usage(run.current_history, run.position)
            limit = next(self._iter_reached_event_limits(run, used), None) if self._of_events else None
            if limit is None and self._of_calls:
                limit = next(self._iter_reached_limits(used.attempts.plus(_compute_cut_usage(run)), used.ns), None)
            if limit is not None:
                return limit
        stop = None if run.limiter is None else self._find_stop(run)
        return None if stop is None else str(stop.new["limit"])

    def _iter_reached_event_limits(self, run: Run, used: UsageTotals) -> Iterator[str]:
        """Yield the limits on events that the next delivery would exceed."""
        budget, history, position = self.budget, run.current_history, run.position
        empty = run.queue_start >= history.push_ends[position - history.base]
        number = -1 if empty else run.tables.activations[history.push_activations[run.queue_start]].event
        if budget.max_events is not None and used.events >= budget.max_events:  # else the queue need not be counted
            waiting = _count_waiting(history, position, run.frontier()) if run.plan.reacts else 0
            half = number >= 0 and has_set_off(history, number, position)
            if used.events - waiting >= budget.max_events and not half:
                yield "max_events"
        if budget.max_behavior_calls is not None and number >= 0 and used.calls >= budget.max_behavior_calls:
            yield "max_behavior_calls"
        if budget.max_patches is not None and used.patches >= budget.max_patches:
            yield "max_patches"
        if budget.max_depth is not None and number >= 0 and get_depth(history, number, position) > budget.max_depth:
            yield "max_depth"

    def _iter_reached_limits(
        self, paid: AttemptUsage, ns: int, kinds: Iterable[str] = ("llm", "tool")
    ) -> Iterator[str]:
        """Yield the limits that are reached, for these kinds of calls."""
        budget = self.budget
        if "llm" in kinds and budget.max_llm_calls is not None and paid.llm >= budget.max_llm_calls:
            yield "max_llm_calls"
        if "tool" in kinds and budget.max_tool_calls is not None and paid.tool >= budget.max_tool_calls:
            yield "max_tool_calls"
        if budget.max_seconds is not None and ns / 1e9 >= budget.max_seconds:
            yield "max_seconds"
        if budget.max_tokens is not None and paid.tokens >= budget.max_tokens:
            yield "max_tokens"
        if budget.max_cost_usd is not None and paid.cost >= budget.max_cost_usd:
            yield "max_cost_usd"

    def measure_usage(self, run: Run) -> dict[str, Number]:
        """Return the usage up to here, by the names of all limits.

        If a step was abandoned at a limit, its usage by then is included.
        """
        return self.capture_usage(run)()

    def capture_usage(self, run: Run) -> Callable[[], dict[str, Number]]:
        """Return a function that returns the usage at the position of this moment, whenever it is called."""
        history, steps, listens, stop = run.current_history, run.counted_steps, run.plan.reacts, self._find_stop(run)
        cut = _compute_cut_usage(run)
        position, queue = max(min(run.position, history.tip), history.base), list[int]()
        with suppress(IndexError):  # another thread may move the run at this moment
            queue = run.frontier()

        def compute_usage() -> dict[str, Number]:
            up_to = measure_usage(history, position)
            paid = up_to.attempts.plus(cut)
            frames, subgraphs = _measure_nesting(history, queue)
            return {
                "max_steps": steps,
                "max_events": up_to.events - _count_waiting(history, position, queue) if listens else up_to.events,
                "max_behavior_calls": up_to.calls,
                "max_llm_calls": paid.llm,
                "max_tool_calls": paid.tool,
                "max_patches": up_to.patches,
                "max_depth": up_to.depth,
                "max_frames": frames,
                "max_subgraph_depth": subgraphs,
                "max_seconds": up_to.ns / 1e9,
                "max_tokens": paid.tokens,
                "max_cost_usd": paid.cost,
                **({} if stop is None else thaw(stop.new["used"])),
            }

        return compute_usage

    def has_reached_share(self, run: Run, share: float) -> bool:
        """Return True if the last step brought the use of a limit to a share of it; nesting depth does not count."""
        history, row = get_last_step(run)
        if not row:
            return False
        step, counted = history.base + row, history.step_flags[row] & COUNTED > 0
        old_amounts, new_amounts = (_to_amounts(measure_usage(history, at)) for at in (step - 1, step))
        old_amounts["max_steps"], new_amounts["max_steps"] = run.counted_steps - counted, run.counted_steps
        limits = ((name, getattr(self.budget, name)) for name in new_amounts)
        return any(
            limit is not None and float(old_amounts[name]) < share * float(limit) <= float(new_amounts[name])
            for name, limit in limits
        )

    # -- before a call -------------------------------------------------------------------------------------------

    def admit_call(self, run: Run, work: Work, effect: Effect, wait: float, which: tuple[int, int]) -> bool:
        """Return True and count it if one more attempt may begin after `wait` seconds; people cost nothing."""
        if effect.kind in ASKED or not self._of_calls:
            return True
        if self._find_stop(run) is not None:
            return False
        now = run.ns()
        usage = self._in_flight.setdefault(work, _PendingUsage(now))
        paid, ns = self._add_in_flight(run, now)
        limit = next(self._iter_reached_limits(paid, ns + round(wait * 1e9), (effect.kind,)), None)
        if limit is None:
            usage.attempts_in_flight[which] = effect.kind
            return True
        self._give_up(run, work.activation, limit, paid, ns)
        return False

    def limit_for(self, run: Run, kinds: Iterable[str]) -> str | None:
        """Return the name of the limit that blocks calls of these kinds; None if none does."""
        if not self._of_calls:
            return None
        return next(self._iter_reached_limits(*self._add_in_flight(run, run.ns()), kinds), None)

    def _add_in_flight(self, run: Run, now: int) -> tuple[AttemptUsage, int]:
        used = measure_usage(run.current_history, run.position)
        paid, ns = used.attempts.plus(_compute_cut_usage(run, self._in_flight)), used.ns
        for work, flying in list(self._in_flight.items()):
            if work.has_ended:
                del self._in_flight[work]
                continue
            flying.update(work)
            more, took = flying.measure_usage(now)
            paid, ns = paid.plus(more), ns + took
        return paid, ns

    def admit_frame(self, run: Run, activation: Activation) -> bool:
        """Return True if a node may open another nested frame under the budget."""
        if self.budget.max_frames is None:
            return True
        self._give_up(run, activation, "max_frames", None, 0)
        return False

    def _give_up(self, run: Run, activation: Activation, limit: str, paid: AttemptUsage | None, ns: int) -> None:
        """Record that a step is abandoned at a limit, with its usage by then."""
        used = {} if paid is None else {"max_llm_calls": paid.llm, "max_tool_calls": paid.tool, "max_seconds": ns / 1e9,
                                        "max_tokens": paid.tokens, "max_cost_usd": paid.cost}  # fmt: skip
        is_ = getattr(self.budget, limit)
        record_intervention(
            run, STOPPED, activation.node.id, new=freeze({"limit": limit, "is": is_, "used": used}), by="budget"
        )

    def commit(self, work: Work) -> None:
        """Move the usage of a step in flight to the committed steps."""
        self._in_flight.pop(work, None)
        if self.budget.max_cost_usd is not None and not self._has_warned_of_unpriced:
            self._warn_of_costs(work.run)

    def _warn_of_costs(self, run: Run) -> None:
        """Warn once if a model has answered and its cost is unknown: the cost limit is then not effective."""
        if getattr(run.world.llm, "is_simulated", False):
            return
        for call in takewhile(lambda call: call.step == run.position, reversed(run.history.calls)):
            if call.kind == "llm" and call.error is None and call.cost_usd is None:
                self._has_warned_of_unpriced = True
                warn_caller(
                    f"max_cost_usd (budget_cap_usd) is {self.budget.max_cost_usd}, but the cost of {call.name!r} is "
                    "not known, so its calls count as nothing; set `prices` in the provider's settings, or limit "
                    "max_tokens or max_llm_calls"
                )
                return

    def _find_stop(self, run: Run) -> Intervention | None:
        """Return the record that the next step was abandoned, if it still applies."""
        history, (known, looked, stop) = run.current_history, self._seen_interventions
        if known is not history:
            looked, stop = 0, None
        for intervention in history.interventions[looked:]:
            if intervention.action == STOPPED:
                stop = intervention
            elif intervention.action in CHANGES and intervention.actor != ITSELF:
                stop = None
            looked += 1
        self._seen_interventions = (history, looked, stop)
        if stop is None or run.position < stop.step or getattr(self.budget, stop.new["limit"]) != stop.new["is"]:
            return None
        rows = (run.tables.activations[number] for number in run.frontier())
        return stop if any(row.node >= 0 and run.plan.nodes[row.node].id == stop.target for row in rows) else None


def _compute_cut_usage(run: Run, flying: Iterable[Work] = ()) -> AttemptUsage:
    """Return the usage of interrupted steps, without the part that steps in flight have taken over."""
    paid = AttemptUsage()
    if run.current_history is run.history and not run.is_rewound:
        taken = {(call.activation, call.call, call.attempt) for work in flying for call in work.calls}
        for call in run.history.uncommitted_calls:
            if (call.activation, call.call, call.attempt) not in taken:
                paid = paid.with_attempt(call.kind, call)
    return paid


def _to_amounts(used: UsageTotals) -> dict[str, Number]:
    """Return the usage by the names of the limits, of what only grows."""
    paid = used.attempts
    return {"max_events": used.events, "max_behavior_calls": used.calls, "max_patches": used.patches,
            "max_llm_calls": paid.llm, "max_tool_calls": paid.tool, "max_seconds": used.ns / 1e9,
            "max_tokens": paid.tokens, "max_cost_usd": paid.cost}  # fmt: skip


def compute_remaining_budget(budget: Budget, used: Mapping[str, Number]) -> dict[str, Any]:
    """Return what is left of each limit that is set; negative if the last attempt exceeded it."""
    limits = ((name, getattr(budget, name)) for name in used)
    return {name: _subtract(limit, used[name]) for name, limit in limits if limit is not None}


def _subtract(limit: Number, used: Number) -> Number:
    if isinstance(limit, Decimal) or isinstance(used, Decimal):
        return Decimal(str(limit)) - Decimal(str(used))
    return limit - used


def _count_waiting(history: History, position: int, queue: list[int]) -> int:
    """Return how many events wait in the queue with no listener activated yet."""
    rows = [row for row in map(history.tables.activations.__getitem__, queue) if row.event >= 0]
    delivered = {row.event for row in rows if row.node >= 0}
    started = {event for event in delivered if has_set_off(history, event, position)}
    return len({row.event for row in rows} - started)


def _measure_nesting(history: History, queue: list[int]) -> tuple[int, int]:
    """Return the number of frames around the next node, and how many of them are subgraphs with inputs."""
    tables, frames, subgraphs = history.tables, 0, 0
    frame = tables.frames[tables.activations[queue[0]].frame if queue else 0]
    while frame.parent >= 0:
        frames, subgraphs, frame = frames + 1, subgraphs + (frame.inputs is not None), tables.frames[frame.parent]
    return frames, subgraphs


__all__ = ["Limits", "Number", "compute_remaining_budget"]
