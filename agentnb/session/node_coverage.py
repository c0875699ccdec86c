"""Node coverage: which nodes have run up to a step, and which keys each has touched. Reads each row once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any

from agentnb.engine.core.history import CARRIED, UNKNOWN_EDGE, crosses_region
from agentnb.session.event_reactions import EventReactions
from agentnb.session.history_fold import MANY, HistoryFold, compute_rows, iter_unknown_pairs, to_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentnb.draw.run_view import Reactions
    from agentnb.engine.core.history import History
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Edge, Node, Recipe
    from agentnb.session.event_reactions import EventRoute

Touched = dict[str, frozenset[str]]


class _FirstRows:
    """The first row of each item, and the items in the order of these rows; `included` of them are in the totals."""

    __slots__ = ("included", "items", "rows")

    def __init__(self) -> None:
        self.rows: dict[Any, int] = {}
        self.items: list[Any] = []
        self.included = 0

    def add(self, item: Any, row: int) -> None:
        """Add an item, if it is new; its row is not before that of another one."""
        if item not in self.rows:
            self.rows[item] = row
            self.items.append(item)

    def move(self, row: int) -> Iterator[tuple[Any, int]]:
        """Include the items up to a row; yield what this changes: items with 1 (included now) or -1 (not any more)."""
        rows, items = self.rows, self.items
        while self.included < len(items) and rows[items[self.included]] <= row:
            self.included += 1
            yield items[self.included - 1], 1
        while self.included and rows[items[self.included - 1]] > row:
            self.included -= 1
            yield items[self.included], -1


class _Keys:
    """The keys of each node, counted by where they come from."""

    def __init__(self) -> None:
        self.of: dict[str, frozenset[str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, changes: Iterable[tuple[str, str, int]]) -> None:
        """Add 1 or -1 to the counts of keys of nodes."""
        changed: dict[str, set[str]] = {}
        for node, key, times in changes:
            count = self._counts[node, key] = self._counts[node, key] + times
            if not count:
                del self._counts[node, key]
            if not count or (count == 1 and times > 0):
                changed.setdefault(node, set()).add(key)
        for node, keys in changed.items():
            seen_keys = {key for key in keys if (node, key) in self._counts}
            now = (self.of.get(node, frozenset()) - keys) | seen_keys
            if now:
                self.of[node] = now
            else:
                del self.of[node]


class _EdgeCoverage:
    """The edges of a recipe, and those of them that a run has taken."""

    def __init__(self, recipe: Recipe) -> None:
        self.taken_edges: set[int] = set()
        self._inner_edges = {(edge.source, edge.target): index for index, edge in enumerate(recipe.edges) if edge.inner}
        self._counts: Counter[int] = Counter()
        self._numbers: list[int] = []  # the numbers of the recipe's edges in the plan
        self._indices: dict[int, int] = {}  # by number

    def find(self, run: Run, move: tuple[int, int, int]) -> int:
        """Return the index of the edge that a transition between two activations followed; -1 if it is not known."""
        source, target, number = move
        if number == UNKNOWN_EDGE:
            return self._inner_edges.get((run.get_node_id(source), run.get_node_id(target)), -1)
        if self._numbers is not run.plan.edge_numbers:
            self._numbers = run.plan.edge_numbers
            self._indices = {each: index for index, each in enumerate(self._numbers)}
        return self._indices.get(number, -1)

    def add(self, index: int, times: int) -> None:
        """Add 1 or -1 to the count of an edge."""
        self._counts[index] += times
        if self._counts[index]:
            self.taken_edges.add(index)
        else:
            self.taken_edges.discard(index)


class _Rows:
    """What is known of one history: how far it was read, and the first row of each (node, key) and each edge.

    `at` is the row up to which the totals of the session include this history.
    """

    def __init__(self) -> None:
        self._row = self._reads = 0
        self.written_keys = _FirstRows()
        self.reads = _FirstRows()
        self.moves = _FirstRows()  # from, to, and the number of the edge
        self.at = 0

    def read(self, _run: Run, history: History, _end: int) -> None:
        """Read the rows added since the last call."""
        if len(history.step_activations) - self._row > MANY:
            self._read_many(history)
            return
        wrote, codes, begin = self.written_keys, history.write_codes, history.write_ends[self._row]
        moves, pushed, size = self.moves, history.push_ends[self._row], len(history.step_activations)
        for row in range(self._row + 1, size):
            end = history.write_ends[row]
            for number in range(begin, end):
                pair = (history.step_activations[row], codes[number] >> 2)
                wrote.add(pair, row)
            begin = end
            for at in range(pushed, history.push_ends[row]):
                move = (history.step_activations[row], history.push_activations[at], history.push_edges[at])
                if move not in moves.rows and _follows_edge(history, at, move[0]):
                    moves.add(move, row)
            pushed = history.push_ends[row]
        self._row = size - 1
        for number in range(self._reads, len(history.read_codes)):
            row = history.read_steps[number] - history.base
            if row < size:
                self.reads.add((history.step_activations[row], history.read_codes[number] >> 2), row)
        self._reads = len(history.read_codes)

    def _read_many(self, history: History) -> None:
        """Read many rows. Few of them are new, and only these are processed one by one."""
        begin, size = self._row + 1, len(history.step_activations)
        activations = to_array(history.step_activations, begin, size)
        rows, start, end = compute_rows(history.write_ends, begin, size)
        for index, *pair in iter_unknown_pairs(
            activations[rows - begin], to_array(history.write_codes, start, end) >> 2, self.written_keys.rows
        ):
            self.written_keys.add((pair[0], pair[1]), int(rows[index]))
        rows, start, end = compute_rows(history.push_ends, begin, size)
        edges = to_array(history.push_edges, start, end)
        count = max(int(edges.max(initial=0)), max((edge for _, _, edge in self.moves.rows), default=0)) + 2
        sources = activations[rows - begin] * count + edges + 1
        known = [(source * count + edge + 1, target) for source, target, edge in self.moves.rows]
        for index, source, target in iter_unknown_pairs(sources, to_array(history.push_activations, start, end), known):
            if _follows_edge(history, start + index, source // count):
                self.moves.add((source // count, target, source % count - 1), int(rows[index]))
        self._row = size - 1
        begin = bisect_left(history.read_steps, history.base + begin, self._reads)
        end = bisect_left(history.read_steps, history.base + size, begin)
        steps = to_array(history.read_steps, begin, end) - history.base
        codes = to_array(history.read_codes, begin, end) >> 2
        for index, *pair in iter_unknown_pairs(activations[steps - size + len(activations)], codes, self.reads.rows):
            self.reads.add((pair[0], pair[1]), int(steps[index]))
        self._reads = end


class NodeCoverage:
    """The visits, reads, writes and edges of a session's nodes, for its drawing: totals that follow its position.

    A move costs as much as the rows between the two positions; what is returned is copied.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._reactions = EventReactions()
        self._listens = any(node.on for node in recipe.nodes.values())
        self._static = {id: keys for id, node in recipe.nodes.items() if (keys := get_first_keys(node))}
        self._recipe = recipe
        self._reset()

    def _reset(self) -> None:
        """Count nothing: the next call counts all again."""
        self._fold: HistoryFold[_Rows] = HistoryFold(_Rows)
        self._chain: dict[History, _Rows] = {}
        self._visited: dict[str, int] = {}
        self._wrote, self._read, self._ways = _Keys(), _Keys(), _EdgeCoverage(self._recipe)

    def up_to(self, run: Run) -> tuple[dict[str, int], Touched, Touched, frozenset[int], Reactions | None]:
        """Return visits by node, keys written, keys read, edges taken and reactions, up to the current position.

        The keys read include those that the inputs of visited nodes read. An edge is identified by its index in
        `recipe.edges`. Reactions are the effects of events; None if no node listens.
        """
        try:
            self._follow(run)
        except BaseException:  # an interrupt, between two totals
            self._reset()
            raise
        taken, reactions = frozenset(self._ways.taken_edges), None
        if self._listens:
            reactions, events = self._reactions.up_to(run)
            taken |= {*_iter_event_edges(run.plan.recipe.edges, events)}
        return dict(self._visited), dict(self._wrote.of), dict(self._read.of), taken, reactions

    def _follow(self, run: Run) -> None:
        """Move the totals to the current position."""
        chain: dict[History, _Rows] = {}
        for history, last, rows in self._fold.parts(run):
            chain[history] = rows
            self._move(run, history, rows, last)
        for history, rows in self._chain.items():
            if history not in chain:
                self._move(run, history, rows, 0)
        self._chain = chain

    def _move(self, run: Run, history: History, rows: _Rows, last: int) -> None:
        """Let the totals include a history up to a row."""
        first, end, sign = (rows.at, last, 1) if last >= rows.at else (last, rows.at, -1)
        rows.at = last
        for activation, times in Counter(history.step_activations[first + 1 : end + 1]).items():
            self._visit(run.get_node_id(activation), sign * times)
        for keys, firsts in ((self._wrote, rows.written_keys), (self._read, rows.reads)):
            keys.add(_iter_own_board(run, firsts.move(last)))
        for move, change in rows.moves.move(last):
            index = self._ways.find(run, move) if run.tables.activations[move[1]].node >= 0 else -1
            if index >= 0:
                self._ways.add(index, change)

    def _visit(self, node: str, times: int) -> None:
        visits = self._visited.get(node, 0)
        if visits + times:
            self._visited[node] = visits + times
        else:
            del self._visited[node]
        if not visits or not visits + times:
            self._read.add((node, key, -1 if visits else 1) for key in self._static.get(node, ()))


def _iter_own_board(run: Run, changes: Iterable[tuple[Any, int]]) -> Iterator[tuple[str, str, int]]:
    """Yield (node, key, change); a node's writes for its inside belong to the inner board, and are left out."""
    tables = run.tables
    for (activation, code), change in changes:
        scope, path = tables.codes[code]
        if scope == tables.frames[tables.activations[activation].frame].scope:
            yield run.get_node_id(activation), str(path[0]), change


def get_first_keys(node: Node) -> list[str]:
    """Return the board keys that a node's inputs read."""
    return [str(path[0]) for path in (node.inputs or {}).values()]


def _follows_edge(history: History, push: int, source: int) -> bool:
    """Return True if a push by a step of the activation `source` follows an edge of the recipe."""
    activations = history.tables.activations
    target = activations[history.push_activations[push]]
    if target.event >= 0:
        return False
    return history.push_values[push] is not CARRIED or crosses_region(
        activations[source], target, history.tables.frames
    )


def _iter_event_edges(edges: tuple[Edge, ...], routes: set[EventRoute]) -> Iterator[int]:
    """Yield the indices of the edges that events followed: their condition names the types, or is empty."""
    pairs = {(source, target) for source, _, target in routes}
    for number, edge in enumerate(edges):
        if edge.kind == "event" and (edge.source, edge.target) in pairs:
            types = {edge.condition, *edge.condition.split(", ")}  # an edge from a log represents several types
            if not edge.condition or any((edge.source, type_, edge.target) in routes for type_ in types):
                yield number
