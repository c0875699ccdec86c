"""seen: which nodes have run up to a step, and which keys each has touched. Each row is looked at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentnb.engine.history import CARRIED

if TYPE_CHECKING:
    from agentnb.engine.history import History
    from agentnb.engine.run import Run

Touched = dict[str, set[str]]


class _Rows:
    """What is known of one history: how far it was read, and the first step of each (node, key) and each way."""

    def __init__(self) -> None:
        self.row = self.read = 0
        self.wrote: dict[tuple[int, int], int] = {}
        self.reads: dict[tuple[int, int], int] = {}
        self.went: dict[tuple[int, int], int] = {}
        self.counts: Counter[int] = Counter()
        self.counted = 0  # the row up to which `counts` count

    def look(self, history: History) -> None:
        """Read the rows that came since the last time."""
        wrote, codes, before = self.wrote, history.w_code, history.s_wend[self.row]
        went, pushed, size = self.went, history.s_pend[self.row], len(history.s_act)
        for row in range(self.row + 1, size):
            end = history.s_wend[row]
            for number in range(before, end):
                pair = (history.s_act[row], codes[number] >> 2)
                if pair not in wrote:
                    wrote[pair] = row
            before = end
            for at in range(pushed, history.s_pend[row]):
                pair = (history.s_act[row], history.p_act[at])
                if pair not in went and history.p_val[at] is not CARRIED:
                    went[pair] = row
            pushed = history.s_pend[row]
        self.row = size - 1
        for number in range(self.read, len(history.r_code)):
            row = history.r_step[number] - history.base
            if row < size:
                self.reads.setdefault((history.s_act[row], history.r_code[number] >> 2), row)
        self.read = len(history.r_code)

    def count_to(self, history: History, row: int) -> Counter[int]:
        """Return how often each activation has run up to a row."""
        if row >= self.counted:
            self.counts.update(history.s_act[self.counted + 1 : row + 1])
        else:
            self.counts.subtract(history.s_act[row + 1 : self.counted + 1])
        self.counted = row
        return self.counts


class Seen:
    """What the nodes of a session have done, for its picture."""

    def __init__(self) -> None:
        self._rows: dict[History, _Rows] = {}

    def up_to(self, run: Run) -> tuple[dict[str, int], Touched, Touched, set[int]]:
        """Return what was done up to where the run stands: visits by node, keys written, keys read, edges taken.

        An edge is told by its place in `recipe.edges`.
        """
        ways: set[tuple[str, str]] = set()
        visited: Counter[str] = Counter()
        wrote: Touched = {}
        read: Touched = {}
        for history, end in run.parts():
            last = end - history.base
            rows = self._rows.setdefault(history, _Rows())
            rows.look(history)
            for act, times in rows.count_to(history, last).items():
                visited[run.node_of(act)] += times
            for into, pairs in ((wrote, rows.wrote), (read, rows.reads)):
                for (act, code), first in pairs.items():
                    if first <= last:
                        key = str(run.tables.codes[code][1][0])
                        into.setdefault(run.node_of(act), set()).add(key)
            ways |= {
                (run.node_of(source), run.node_of(target))
                for (source, target), first in rows.went.items()
                if first <= last and run.tables.acts[target].node >= 0
            }
        taken = {place for place, edge in enumerate(run.plan.recipe.edges) if (edge.source, edge.target) in ways}
        return dict(+visited), wrote, read, taken
