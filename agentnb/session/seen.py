"""seen: which nodes have run up to a step, and which keys each has touched. Each row is looked at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agentnb.engine.history import CARRIED, ERROR, STATUS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentnb.engine.history import History
    from agentnb.engine.run import Run
    from agentnb.recipe.model import Edge

Touched = dict[str, set[str]]
_OF_FAILURES: Final = frozenset({"error", "timeout"})


class _Rows:
    """What is known of one history: how far it was read, and the first step of each (node, key) and each way."""

    def __init__(self) -> None:
        self.row = self.read = 0
        self.wrote: dict[tuple[int, int], int] = {}
        self.reads: dict[tuple[int, int], int] = {}
        self.went: dict[tuple[int, int, bool], int] = {}  # from, to, and whether the step failed
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
            failed = history.s_flag[row] & STATUS == ERROR
            for at in range(pushed, history.s_pend[row]):
                way = (history.s_act[row], history.p_act[at], failed)
                if way not in went and history.p_val[at] is not CARRIED:
                    went[way] = row
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
        ways: set[tuple[str, str, bool]] = set()
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
                        scope, path = run.tables.codes[code]
                        if scope != run.tables.frames[run.tables.acts[act].frame].scope:
                            continue  # what a node puts on the board of its inside is that board's
                        key = str(path[0])
                        into.setdefault(run.node_of(act), set()).add(key)
            ways |= {
                (run.node_of(source), run.node_of(target), failed)
                for (source, target, failed), first in rows.went.items()
                if first <= last and run.tables.acts[target].node >= 0
            }
        return dict(+visited), wrote, read, set(_taken(run.plan.recipe.edges, ways))


def _taken(edges: tuple[Edge, ...], ways: set[tuple[str, str, bool]]) -> Iterator[int]:
    """Yield the places of the edges that were gone along; a failed step takes an ordinary one where it has no other."""
    handlers = {(edge.source, edge.target) for edge in edges if edge.kind in _OF_FAILURES}
    for place, edge in enumerate(edges):
        way = (edge.source, edge.target)
        if edge.kind in _OF_FAILURES:
            if (*way, True) in ways:
                yield place
        elif (*way, False) in ways or ((*way, True) in ways and way not in handlers):
            yield place
