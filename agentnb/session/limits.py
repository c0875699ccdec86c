"""limits: a session's budget against what its run has used. Reaching a limit ends a run as `exhausted`.

The engine counts the steps and the frames itself. The rest is asked after each step, and what calls use also at the
door, before each attempt goes out: there, what the steps in flight have used by then counts too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from agentnb.engine.run import MAX_FRAMES, NEVER

if TYPE_CHECKING:
    from agentnb.engine.budget import Budget
    from agentnb.engine.history import Call, History
    from agentnb.engine.run import Run
    from agentnb.engine.work import Effect, Work


@dataclass(slots=True)
class _Used:
    """What some steps have used. Each attempt of a call that went out counts."""

    llm: int = 0
    tool: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    ns: int = 0

    def went_out(self, kind: str) -> None:
        """Count an attempt."""
        if kind == "llm":
            self.llm += 1
        elif kind == "tool":
            self.tool += 1

    def paid(self, call: Call) -> None:
        """Add what an attempt has taken."""
        self.tokens += (call.tokens_in or 0) + (call.tokens_out or 0)
        if call.cost_usd is not None:
            self.cost += Decimal(str(call.cost_usd))

    def add(self, other: _Used) -> None:
        """Add what others have used."""
        self.llm += other.llm
        self.tool += other.tool
        self.tokens += other.tokens
        self.cost += other.cost
        self.ns += other.ns


@dataclass(slots=True)
class _Flying:
    """What a step in flight has used: since when, and how many of its attempts have come back."""

    began: int
    used: _Used = field(default_factory=_Used)
    back: int = 0


@dataclass(slots=True)
class _Committed:
    """What the committed steps have used up to a position of a history, and how many of its calls are in it."""

    history: History | None = None
    position: int = -1
    calls: int = 0
    used: _Used = field(default_factory=_Used)

    def upto(self, history: History, position: int) -> None:
        """Add the steps of a history from where this stands on."""
        after = self.position if history is self.history else history.base
        calls = self.calls if history is self.history else 0
        rows = slice(after - history.base + 1, position - history.base + 1)
        self.used.ns += sum(history.s_t1[rows]) - sum(history.s_t0[rows])
        while calls < len(history.calls) and history.calls[calls].step <= position:
            self.used.went_out(history.calls[calls].kind)
            self.used.paid(history.calls[calls])
            calls += 1
        self.history, self.position, self.calls = history, position, calls


@dataclass(frozen=True, slots=True)
class _Stop:
    """Where a limit let no further attempt of a step out: the step is given up, and stays the next one."""

    history: History
    position: int
    act: int
    limit: str

    def holds(self, run: Run) -> bool:
        """Say whether the run still stands before that step."""
        return run.at is self.history and run.position >= self.position and self.act in run.frontier()


class Limits:
    """The budget of one run. `max_steps` and `max_frames` the engine counts itself; the others are asked each step."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        of_calls = (
            budget.max_llm_calls,
            budget.max_tool_calls,
            budget.max_tokens,
            budget.max_seconds,
            budget.max_cost_usd,
        )
        self._of_calls = of_calls != (None,) * len(of_calls)
        self.asked = self._of_calls or budget.max_events is not None
        self._cost = None if budget.max_cost_usd is None else Decimal(str(budget.max_cost_usd))
        self._committed = _Committed()
        self._flying: dict[Work, _Flying] = {}
        self._stop: _Stop | None = None

    def apply(self, run: Run) -> None:
        """Give the engine the limits that it counts itself, and ask for those of the calls at its door."""
        budget = self.budget
        run.limit = NEVER if budget.max_steps is None else budget.max_steps
        run.max_frames = MAX_FRAMES if budget.max_frames is None else budget.max_frames
        run.max_subgraph_depth = budget.max_subgraph_depth
        run.spending = self if self._of_calls else None
        self._committed, self._stop = _Committed(), None
        self._flying.clear()
        run.set_mark()

    def reached(self, run: Run) -> str | None:
        """Return the name of the limit that is reached where the run stands; None where there is none."""
        if run.spent():
            return "max_steps"
        if not self.asked:
            return None
        if self.budget.max_events is not None and run.last_event() >= self.budget.max_events:
            return "max_events"
        if not self._of_calls:
            return None
        return next(self._over(self._up_to(run)), None) or self._stopped(run)

    def _over(self, used: _Used, kinds: Iterable[str] = ("llm", "tool")) -> Iterator[str]:
        """Yield the limits that are reached, those of these kinds of calls among them."""
        budget = self.budget
        if "llm" in kinds and budget.max_llm_calls is not None and used.llm >= budget.max_llm_calls:
            yield "max_llm_calls"
        if "tool" in kinds and budget.max_tool_calls is not None and used.tool >= budget.max_tool_calls:
            yield "max_tool_calls"
        if budget.max_tokens is not None and used.tokens >= budget.max_tokens:
            yield "max_tokens"
        if budget.max_seconds is not None and used.ns / 1e9 >= budget.max_seconds:
            yield "max_seconds"
        if self._cost is not None and used.cost >= self._cost:
            yield "max_cost_usd"

    def _up_to(self, run: Run) -> _Used:
        """Return what the steps up to here have used, added up step by step while the run goes on."""
        known = self._committed
        if known.history is run.at and run.at.base <= known.position <= run.position:
            if known.position < run.position:
                known.upto(run.at, run.position)
        else:
            known = self._committed = _Committed()
            for history, end in run.parts():
                known.upto(history, end)
        return known.used

    def seconds(self, run: Run) -> float:
        """Return how many seconds the steps up to here have taken."""
        return self._up_to(run).ns / 1e9

    # -- at the door -------------------------------------------------------------------------------------------------

    def lets_out(self, run: Run, work: Work, effect: Effect, wait: float) -> bool:
        """Say whether one more attempt may go out after a wait of some seconds, and count it; people cost nothing."""
        if effect.kind == "human":
            return True
        if self._stopped(run) is not None:
            return False
        now = run.ns()
        mine = self._flying.setdefault(work, _Flying(now))
        used = _Used(ns=round(wait * 1e9))
        used.add(self._up_to(run))
        for other, flying in list(self._flying.items()):
            if other.dead:
                del self._flying[other]
                continue
            for call in other.calls[flying.back :]:
                flying.used.paid(call)
            flying.back, flying.used.ns = len(other.calls), now - flying.began
            used.add(flying.used)
        limit = next(self._over(used, (effect.kind,)), None)
        if limit is None:
            mine.used.went_out(effect.kind)
            return True
        self._stop = _Stop(run.at, run.position, work.act.id, limit)
        return False

    def committed(self, work: Work) -> None:
        """Take note that a step is over: what it used counts with the committed steps from now on."""
        self._flying.pop(work, None)

    def lift(self) -> None:
        """Let a step that was given up begin once more: a person has changed something."""
        self._stop = None

    def _stopped(self, run: Run) -> str | None:
        stop = self._stop
        return stop.limit if stop is not None and stop.holds(run) else None
