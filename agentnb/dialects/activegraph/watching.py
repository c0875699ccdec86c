"""watching: what a runtime says of itself: where it stands, what it has used, what went wrong, what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentnb.dialects.activegraph.given import wrong
from agentnb.dialects.activegraph.status import (
    KNOWN_LIMITS,
    BehaviorFailure,
    EventSummary,
    FrameSnapshot,
    RuntimeStatus,
    State,
    Timer,
    failures_of,
    info_of,
    snapshot,
)
from agentnb.dialects.activegraph.times import text_of
from agentnb.engine.history import LATE

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.budgets import Budget
    from agentnb.dialects.activegraph.graph import Graph
    from agentnb.dialects.activegraph.party import Party


class Watching:
    """The part of a Runtime that only looks."""

    graph: Graph
    party: Party
    budget: Budget
    behaviors: Any

    def _used(self) -> Mapping[str, Any]:
        used = dict(self.graph.session.status.used)
        calls = self.graph.ledger.started
        own = {"max_events": self._turns_taken(), "max_behavior_calls": calls}
        return {**{name: used.get(name, 0) for name in KNOWN_LIMITS}, **own}

    def _counted(self) -> Mapping[str, Any]:
        """Return what the log tells of use: that of time, patches and depth only where they are limited."""
        left_out = {"max_patches", "max_depth", "max_seconds"} - self.budget.limits.keys()
        return {name: used for name, used in self._used().items() if name not in left_out}

    def _turns_taken(self) -> int:
        """Return how many events have had their turn; where a limit has ended the run, none behind the last one."""
        taken = self._turns_over()
        stands = self.graph.session.status if self.budget.limits else ""
        run = self.graph.session.engine
        if stands != "exhausted" or run.position <= run.at.base:
            return taken
        last = run.tables.acts[run.at.s_act[run.position - run.at.base]]
        if last.about <= LATE:
            return taken
        over, most = self.graph.ledger.tick(last.event), self.budget.limits.get("max_events")
        return min(taken, over if most is None else max(over, int(most)))

    def _turns_over(self) -> int:
        """Return how many events have had their turn or are heard by nobody, before the first that waits."""
        ledger, run = self.graph.ledger, self.graph.session.engine
        queue, position = run.frontier(), run.position
        if not queue:
            return len(ledger.turns)
        first = run.tables.acts[queue[0]]
        if first.about <= LATE:
            waiting = next((row.event for row in map(run.tables.acts.__getitem__, queue) if row.about > LATE), None)
            return len(ledger.turns) if waiting is None else ledger.tick(waiting) - 1
        begun = position > run.at.base and run.tables.acts[run.at.s_act[position - run.at.base]].event == first.event
        return ledger.tick(first.event) - (not begun)

    def _queue_depth(self) -> int:
        """Return how many events wait for their turn, that which is being delivered not among them."""
        return len(self.graph.ledger.turns) - self._turns_taken()

    @property
    def timers(self) -> tuple[Timer, ...]:
        """The behaviours that are put off and whose time has not come: they wait for more events."""
        ledger = self.graph.ledger
        now = self._turns_taken()
        found = ((ledger.tick(seq) + said["activate_after"], said) for seq, said in ledger.scheduled)
        return tuple(Timer(said["behavior"], said["event_id"], due, now) for due, said in found if due > now)

    @property
    def errors(self) -> list[BehaviorFailure]:
        """The failures of behaviours so far, as the log tells them."""
        return failures_of(self.graph.ledger.failures)

    def status(self, recent: int = 20) -> RuntimeStatus:
        """Return where the runtime stands, and the last `recent` events. Nothing of it changes afterwards.

        Raises:
            InvalidArgumentType: X519, `recent` is no number of events.
        """
        if type(recent) is not int or recent < 0:
            raise wrong(recent, "runtime.status(recent=...)", "a number of events, 0 or more")
        ledger, session = self.graph.ledger, self.graph.session
        stands, frame = session.status, self.party.frame
        last = ledger.last_events(recent) if recent > 0 else []
        return RuntimeStatus(
            self.graph.run_id,
            self._state(str(stands)),
            self._queue_depth(),
            ledger.count(),
            snapshot(self._used(), self.budget.limits, stands.limit),
            None if frame is None else FrameSnapshot(frame.id),
            tuple(map(info_of, self.behaviors)),
            tuple(EventSummary(event.id, event.type, event.actor or None, text_of(event.time)) for event in last),
            self.timers,
        )

    def _state(self, word: str) -> State:
        if word == "exhausted":
            return "exhausted"
        if word in ("running", "pausing"):
            return "running"
        if word in ("idle", "finished"):
            said = (event.type for event in reversed(self.graph.ledger.last_events(20)))
            return "idle" if any(type_ == "runtime.idle" for type_ in said) else "stopped"
        return "stopped"


__all__ = ["Watching"]
