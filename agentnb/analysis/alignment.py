"""Alignment of two runs: which step of one corresponds to which step of the other.

Steps are aligned by node, frame, phase and visit, not by their numbers. Visits are counted within the iterations of the
loops around the node, so an additional iteration does not shift later steps, even inside another loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agentnb.engine.core.history import AGAIN, ENTER, RUN

if TYPE_CHECKING:
    import networkx as nx

    from agentnb.trace.row_index import StepIndex

# the loops around a node, outermost first, each identified by the node that starts its iterations
Loops = Mapping[str, Sequence[str]]


class StepKey(NamedTuple):
    """Identifies a step across runs: the `visit`-th step of a node in a frame, in this phase and these iterations.

    `rounds` are the numbers of the iterations in which it ran: of its frame, if that is the body of a loop, and of each
    loop of edges around the node.
    """

    node: str
    frame: str
    phase: int
    rounds: tuple[int, ...]
    visit: int


class Pair(NamedTuple):
    """A step of each of two runs; None if the other run has no such step.

    `visit` counts the steps of the node in its frame, in the first run that has the step.
    """

    key: StepKey
    step_a: int | None
    step_b: int | None
    visit: int


class StepKeys:
    """The keys of all steps of a run, and the names of its frames and scopes.

    A frame's name consists of its regions, outermost first, `root` for the whole run; a branch has its number, as in
    `left.0`. A region that was opened repeatedly has its iteration, as in `body#2`.
    """

    def __init__(self, reading: StepIndex, loops: Loops) -> None:
        self.reading = reading
        self.frames = {0: "root"}
        self.visits: list[int] = []
        self.keys = list(self._iter_keys(loops))
        self.numbers = {key: step for step, key in enumerate(self.keys, 1)}

    def _iter_keys(self, loops: Loops) -> Iterator[StepKey]:
        """Yield the key of each step; name the frames that it opened."""
        nodes, activations, frames = self.reading.nodes, self.reading.tables.activations, self.reading.tables.frames
        rounds: dict[tuple[int, tuple[int, ...], str], int] = {}
        of_frames: dict[tuple[int, int], int] = {}  # by the frame and the node that opened its inside
        visits: dict[tuple[str, str, int], int] = {}
        within: dict[tuple[str, str, int, tuple[int, ...]], int] = {}
        for history, last in self.reading.parts():
            for row in range(1, last + 1):
                activation, phase = activations[history.step_activations[row]], history.step_flags[row] & 3
                node, inside = nodes[activation.node].id, frames[activation.frame]
                prefix: tuple[int, ...] = (of_frames.get((inside.parent, inside.owner), 1) if activation.frame else 1,)
                for begins in loops.get(node, ()):
                    loop = activation.frame, prefix, begins
                    if node == begins and phase in (RUN, ENTER):
                        rounds[loop] = rounds.get(loop, 0) + 1
                    prefix = (*prefix, rounds.get(loop, 0))
                position = node, self.frame(activation.frame), phase
                visits[position] = visits.get(position, 0) + 1
                within[*position, prefix] = visit = within.get((*position, prefix), 0) + 1
                if phase in (ENTER, AGAIN):
                    of_frames[activation.frame, activation.node] = (
                        of_frames.get((activation.frame, activation.node), 0) + 1 if phase == AGAIN else 1
                    )
                for number in history.opened_frames.get(history.base + row, ()):
                    self._name_frame(number, prefix, visit)
                self.visits.append(visits[position])
                yield StepKey(*position, prefix, visit)

    def _name_frame(self, number: int, rounds: tuple[int, ...], visit: int) -> None:
        row = self.reading.tables.frames[number]
        around = self.frames.get(row.parent, "root")
        branch = f".{row.branch}" if row.branch >= 0 else ""
        counts = rounds[1:] if rounds[0] == visit == 1 else (*rounds, visit)
        suffix = f"#{'.'.join(map(str, counts))}" if any(count != 1 for count in counts) else ""
        self.frames[number] = f"{'' if around == 'root' else f'{around}/'}{row.region}{branch}{suffix}"

    def frame(self, number: int) -> str:
        """Return the name of a frame, or of the frame that opened a scope."""
        return self.frames.get(number) or self.reading.frame_name(number)


def make_step_keys(a: StepIndex, b: StepIndex) -> tuple[StepKeys, StepKeys]:
    """Return the keys of the steps of two runs, based on the loops of both recipes."""
    loops = find_loops(a, b)
    return StepKeys(a, loops), StepKeys(b, loops)


def find_loops(*runs: StepIndex) -> Loops:
    """Return the loops around each node that ran: cycles of edges, and the cycles inside them.

    The iterations of a loop start at the node of it that ran first. Removing the incoming edges of that node leaves the
    inner loops (a loop nesting forest; Steensgaard, "Sequentializing program dependence graphs for irreducible
    programs", 1993).
    """
    import networkx as nx

    order: dict[str, int] = {}
    for reading in runs:
        for history, last in reading.parts():
            for number in history.step_activations[1 : last + 1]:
                order.setdefault(reading.nodes[reading.tables.activations[number].node].id, len(order))
    graph: nx.DiGraph[str] = nx.DiGraph(
        (edge.source, edge.target)
        for reading in runs
        for edge in reading.edges
        if edge.kind != "event" and edge.source in order and edge.target in order
    )
    loops: dict[str, list[str]] = {}
    pending: list[Collection[str]] = [graph.nodes]
    while pending:
        part: nx.DiGraph[str] = graph.subgraph(pending.pop())
        for nodes in list(nx.strongly_connected_components(part)):
            begins = min(nodes, key=order.__getitem__)
            if len(nodes) == 1 and not part.has_edge(begins, begins):
                continue
            for node in nodes:
                loops.setdefault(node, []).append(begins)
            graph.remove_edges_from([(source, begins) for source in graph.predecessors(begins) if source in nodes])
            pending.append(nodes)
    return loops


def align(a: StepKeys, b: StepKeys) -> Iterator[Pair]:
    """Yield the pairs of steps of two runs, in the order of both; where they differ, in that of the first.

    Branches that ran in a different order are the same steps.
    """
    numbers_a, numbers_b = a.numbers, b.numbers
    at_a, at_b, size_a, size_b = 0, 0, len(a.keys), len(b.keys)
    while at_a < size_a or at_b < size_b:
        key_a = a.keys[at_a] if at_a < size_a else None
        key_b = b.keys[at_b] if at_b < size_b else None
        if key_a is not None and key_a not in numbers_b:
            yield Pair(key_a, at_a + 1, None, a.visits[at_a])
            at_a += 1
        elif key_b is not None and key_b not in numbers_a:
            yield Pair(key_b, None, at_b + 1, b.visits[at_b])
            at_b += 1
        elif key_b is not None and numbers_a[key_b] <= at_a:  # already yielded with its step of the first run
            at_b += 1
        elif key_a is not None:
            yield Pair(key_a, at_a + 1, numbers_b[key_a], a.visits[at_a])
            at_a += 1


__all__ = ["Pair", "StepKey", "StepKeys", "align", "find_loops", "make_step_keys"]
