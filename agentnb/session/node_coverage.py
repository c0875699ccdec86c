"""Node coverage: which nodes have run up to a step, and which keys each has touched. Reads each row once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Final

from agentnb.engine.core.history import CARRIED, ERROR, STATUS, is_inner_way
from agentnb.session.event_reactions import EventReactions
from agentnb.session.history_fold import MANY, HistoryFold, ints, rows_of, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentnb.draw.run_view import Reactions
    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Edge
    from agentnb.session.event_reactions import Way

Touched = dict[str, set[str]]
_OF_FAILURES: Final = frozenset({"error", "timeout"})


class _Rows:
    """What is known of one history: how far it was read, and the first step of each (node, key) and each edge."""

    def __init__(self) -> None:
        self._row = self._reads = 0
        self.wrote: dict[tuple[int, int], int] = {}
        self.reads: dict[tuple[int, int], int] = {}
        self.went: dict[tuple[int, int, bool], int] = {}  # from, to, and whether the step failed
        self.counts: Counter[int] = Counter()
        self.counted = 0  # the row up to which `counts` is complete

    def read(self, _run: Run, history: History, _end: int) -> None:
        """Read the rows added since the last call."""
        if len(history.s_act) - self._row > MANY:
            self._read_many(history)
            return
        wrote, codes, before = self.wrote, history.w_code, history.s_wend[self._row]
        went, pushed, size = self.went, history.s_pend[self._row], len(history.s_act)
        for row in range(self._row + 1, size):
            end = history.s_wend[row]
            for number in range(before, end):
                pair = (history.s_act[row], codes[number] >> 2)
                if pair not in wrote:
                    wrote[pair] = row
            before = end
            failed = history.s_flag[row] & STATUS == ERROR
            for at in range(pushed, history.s_pend[row]):
                way = (history.s_act[row], history.p_act[at], failed)
                if way not in went and _is_way(history, at, way[0]):
                    went[way] = row
            pushed = history.s_pend[row]
        self._row = size - 1
        for number in range(self._reads, len(history.r_code)):
            row = history.r_step[number] - history.base
            if row < size:
                self.reads.setdefault((history.s_act[row], history.r_code[number] >> 2), row)
        self._reads = len(history.r_code)

    def _read_many(self, history: History) -> None:
        """Read many rows. Few of them are new, and only these are processed one by one."""
        begin, size = self._row + 1, len(history.s_act)
        act = ints(history.s_act, begin, size)
        rows, start, end = rows_of(history.s_wend, begin, size)
        for place, *pair in unknown(act[rows - begin], ints(history.w_code, start, end) >> 2, self.wrote):
            self.wrote.setdefault((pair[0], pair[1]), int(rows[place]))
        rows, start, end = rows_of(history.s_pend, begin, size)
        failed = (ints(history.s_flag, begin, size) & STATUS) == ERROR
        sources = act[rows - begin] * 2 + failed[rows - begin]
        known = [(source * 2 + fails, target) for source, target, fails in self.went]
        for place, source, target in unknown(sources, ints(history.p_act, start, end), known):
            if _is_way(history, start + place, source // 2):
                self.went.setdefault((source // 2, target, bool(source % 2)), int(rows[place]))
        self._row = size - 1
        begin = bisect_left(history.r_step, history.base + begin, self._reads)
        end = bisect_left(history.r_step, history.base + size, begin)
        steps = ints(history.r_step, begin, end) - history.base
        codes = ints(history.r_code, begin, end) >> 2
        for place, *pair in unknown(act[steps - size + len(act)], codes, self.reads):
            self.reads.setdefault((pair[0], pair[1]), int(steps[place]))
        self._reads = end

    def count_to(self, history: History, row: int) -> Counter[int]:
        """Return how often each activation has run up to a row."""
        if row >= self.counted:
            self.counts.update(history.s_act[self.counted + 1 : row + 1])
        else:
            self.counts.subtract(history.s_act[row + 1 : self.counted + 1])
        self.counted = row
        return self.counts


class NodeCoverage:
    """The visits, reads, writes and edges of a session's nodes, for its drawing."""

    def __init__(self) -> None:
        self._fold = HistoryFold(_Rows)
        self._reactions = EventReactions()

    def up_to(self, run: Run) -> tuple[dict[str, int], Touched, Touched, set[int], Reactions | None]:
        """Return visits by node, keys written, keys read, edges taken and reactions, up to the current position.

        An edge is identified by its index in `recipe.edges`. Reactions are the effects of events; None if no node
        listens.
        """
        ways: set[tuple[str, str, bool]] = set()
        visited: Counter[str] = Counter()
        wrote: Touched = {}
        read: Touched = {}
        for history, last, rows in self._fold.parts(run):
            for act, times in rows.count_to(history, last).items():
                visited[run.node_of(act)] += times
            for into, pairs in ((wrote, rows.wrote), (read, rows.reads)):
                for (act, code), first in pairs.items():
                    if first <= last:
                        scope, path = run.tables.codes[code]
                        if scope != run.tables.frames[run.tables.acts[act].frame].scope:
                            continue  # a node's writes for its inside belong to the inner board
                        key = str(path[0])
                        into.setdefault(run.node_of(act), set()).add(key)
            ways |= {
                (run.node_of(source), run.node_of(target), failed)
                for (source, target, failed), first in rows.went.items()
                if first <= last and run.tables.acts[target].node >= 0
            }
        edges = run.plan.recipe.edges
        reactions, heard = self._reactions.up_to(run) if _listens(run) else (None, set())
        taken = set(_find_taken_edges(edges, ways)) | set(_find_event_edges(edges, heard))
        return dict(+visited), wrote, read, taken, reactions


def _is_way(history: History, push: int, source: int) -> bool:
    """Return True if a push by a step of the activation `source` follows an edge of the recipe."""
    acts = history.tables.acts
    target = acts[history.p_act[push]]
    if target.event >= 0:
        return False
    return history.p_val[push] is not CARRIED or is_inner_way(acts[source], target, history.tables.frames)


def _listens(run: Run) -> bool:
    return any(node.on for node in run.plan.recipe.nodes.values())


def _find_event_edges(edges: tuple[Edge, ...], ways: set[Way]) -> Iterator[int]:
    """Yield the indices of the edges that events followed: their condition names the types, or is empty."""
    pairs = {(source, target) for source, _, target in ways}
    for place, edge in enumerate(edges):
        if edge.kind == "event" and (edge.source, edge.target) in pairs:
            types = {edge.condition, *edge.condition.split(", ")}  # an edge from a log stands for several types
            if not edge.condition or any((edge.source, type_, edge.target) in ways for type_ in types):
                yield place


def _find_taken_edges(edges: tuple[Edge, ...], ways: set[tuple[str, str, bool]]) -> Iterator[int]:
    """Yield the indices of the edges taken; a failed step takes an ordinary edge only if there is no error edge."""
    handlers = {(edge.source, edge.target) for edge in edges if edge.kind in _OF_FAILURES}
    for place, edge in enumerate(edges):
        way = (edge.source, edge.target)
        if edge.kind in _OF_FAILURES:
            if (*way, True) in ways:
                yield place
        elif (*way, False) in ways or ((*way, True) in ways and way not in handlers):
            yield place
