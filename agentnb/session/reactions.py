"""reactions: which types of events have come, whom they set off, and who told of them. Each row is read once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentnb.draw.view import Reactions
    from agentnb.engine.history import Event, History
    from agentnb.engine.run import Run

Way = tuple[str, str, str]  # who told of it ("" where it came from outside), its type, whom it set off


class _Rows:
    """What is known of one history: what each of its steps and events counts for, and how far they are counted."""

    def __init__(self) -> None:
        self.steps: list[Way | None] = [None]
        self.told: list[tuple[str, str]] = []
        self.last: Event | None = None
        self.at = (0, 0)
        self.counts: Counter[Any] = Counter()

    def fits(self, history: History) -> bool:
        """Say whether what was read is still there: the last step may have been taken back."""
        known = len(self.told)
        same = not known or (known <= len(history.events) and history.events[known - 1] is self.last)
        return same and len(self.steps) <= len(history.s_act)

    def look(self, run: Run, history: History, row: int, events: int) -> None:
        """Read the rows that came since the last time, up to a row of the steps and to so many events."""
        new = history.events[len(self.told) : events]
        for event in new:
            self.told.append((_teller(run, event), event.type))
        if new:
            self.last = new[-1]
        for number in range(len(self.steps), row + 1):
            act = run.tables.acts[history.s_act[number]]
            came = run.event(act.event)
            node = run.plan.nodes[act.node].id
            self.steps.append(None if came is None else (_teller(run, came), came.type, node))

    def count_to(self, row: int, events: int) -> Counter[Any]:
        """Return what has come up to a row of the steps and to so many events."""
        (row0, events0), self.at = self.at, (row, events)
        self.counts.update(_counted(self.steps[row0 + 1 : row + 1], self.told[events0:events]))
        self.counts.subtract(_counted(self.steps[row + 1 : row0 + 1], self.told[events:events0]))
        return self.counts


class Reacted:
    """What events have done in a session, for its picture."""

    def __init__(self) -> None:
        self._rows: dict[History, _Rows] = {}

    def up_to(self, run: Run) -> tuple[Reactions, set[Way]]:
        """Return what events have done up to where a run stands, and each way that one has gone from node to node."""
        from agentnb.draw.view import Reactions

        counts: Counter[Any] = Counter()
        for history, end in run.parts():
            rows = self._rows.get(history)
            if rows is None or not rows.fits(history):
                rows = self._rows[history] = _Rows()
            upto = (end - history.base, bisect_right(history.events, end, key=_at_of))
            rows.look(run, history, *upto)
            counts.update(rows.count_to(*upto))
        for flight in run.flights.values():
            counts.update(_counted((), [(flight.act.node.id, event.type) for event in flight.act.work.emitted]))
        came: dict[str, int] = {}
        heard: dict[tuple[str, str], int] = {}
        told: dict[tuple[str, str], int] = {}
        for (what, *words), number in counts.items():
            if number > 0 and what == "came":
                came[words[0]] = came.get(words[0], 0) + number
                if words[1]:
                    told[words[1], words[0]] = number
            elif number > 0:
                heard[words[1], words[2]] = heard.get((words[1], words[2]), 0) + number
        ways = {tuple(words) for (what, *words), number in counts.items() if what == "went" and number > 0}
        return Reactions(came, heard, told, *self._last(run)), ways

    def _last(self, run: Run) -> tuple[tuple[str, str] | None, frozenset[str]]:
        """Return what the last step was about: the type and the node of its delivery, and the types that it told."""
        at, row = run.at, run.position - run.at.base
        way = self._rows[at].steps[row] if row else None
        if way is None:
            return None, frozenset()
        first = bisect_right(at.events, run.position - 1, key=_at_of)
        end = bisect_right(at.events, run.position, key=_at_of)
        return way[1:], frozenset(event.type for event in at.events[first:end] if event.step == run.position)


def _counted(steps: Iterable[Way | None], told: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield what steps and events count for."""
    yield from (("went", *way) for way in steps if way is not None)
    yield from (("came", type_, teller) for teller, type_ in told)


def _teller(run: Run, event: Event) -> str:
    """Return the node in whose step an event was told; empty where in none."""
    if event.step is None:
        return ""
    history = next(history for history in reversed(run.chain) if history.base < event.step)
    return run.node_of(history.s_act[event.step - history.base])


def _at_of(event: Event) -> int:
    return event.at


__all__ = ["Reacted", "Way"]
