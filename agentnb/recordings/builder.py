"""Builds the history of a recorded run from a list of steps: rows are appended directly, nothing runs.

A reader of recordings describes each step as a `RecordedStep`; the nodes, edges and regions of the recipe are derived
from them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agentnb.board.masking import register_secrets
from agentnb.board.values import ABSENT, freeze
from agentnb.clock import FrozenClock
from agentnb.engine.core.history import (
    COUNTED,
    ENTER,
    ERROR,
    LEAVE,
    OK,
    RESUME,
    RUN,
    UNCAUGHT,
    UNKNOWN_EDGE,
    Call,
    Failure,
    FrameRow,
    Intervention,
    Note,
    Push,
    carry,
)
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.time_travel import restore
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.errors import AgentNbError, BoardError, Problem, StoreError
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.trace.recipe_snapshot import make_readable_kinds
from agentnb.world.world import World

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = 2**62 - 1  # nanoseconds since 1970
_PHASES: Final = {"run": RUN, "enter": ENTER, "leave": LEAVE}
# Exceptions that reading a damaged or malicious file may raise.
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError)


@dataclass(slots=True)
class RecordedCall:
    """A call that a step made: a model's (`llm`) or a tool's (`tool`). `seconds` is how long it took."""

    kind: str
    name: str
    arguments: Any = None
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    tokens_in: int | None = None
    tokens_out: int | None = None
    provider: str | None = None
    model: str | None = None
    finish_reason: str | None = None


@dataclass(slots=True)
class ImportedIntervention:
    """What a person did before a step: an edit of the board (`writes`), an answer, an input."""

    action: str
    target: str
    new: Any
    time: datetime
    actor: str = "user"
    scope: int = 0  # the index of the step that opened the frame, plus 1; 0 is the root


@dataclass(slots=True)
class RecordedStep:
    """One step of a recording. Places are indexes in the list of steps.

    Attributes:
        node: the id of the node, unique in the whole recording.
        kind: the kind of the node.
        phase: `run`, or `enter` and `leave` of a node that contains others.
        inside: the place of the `enter` step of the frame in which it runs; None for the root.
        enter_place: for `leave`, the place of its `enter` step.
        triggered_by: the place of the step that led to it; None for an entry, -1 if unknown.
        lanes: for `enter`, how many parallel branches it opens; 0 opens one frame that is not a branch.
        lane: the branch of the enclosing frame in which the step runs, from 0; -1 if there are none.
        shared: for `enter`, whether its inside writes to the enclosing board.
        started_at, ended_at: nanoseconds since 1970.
        writes: key -> value; ABSENT deletes. Those of an `enter` step are the initial board of the frame.
        before: what people did between the previous step and this one.
    """

    node: str
    kind: str
    phase: str = "run"
    inside: int | None = None
    enter_place: int | None = None
    triggered_by: int | None = -1
    lanes: int = 0
    lane: int = -1
    shared: bool = False
    started_at: int = 0
    ended_at: int = 0
    writes: Mapping[str, Any] = field(default_factory=dict)
    appends: Mapping[str, Any] = field(default_factory=dict)
    inputs: Any = None
    failure: tuple[str, str] | None = None
    uncaught: bool = False
    calls: Sequence[RecordedCall] = ()
    interventions: Sequence[ImportedIntervention] = ()
    label: str = ""


def build(
    name: str,
    dialect: str,
    steps: Sequence[RecordedStep],
    board: Mapping[str, Any],
    *,
    following: Sequence[RecordedStep] = (),
    last_interventions: Sequence[ImportedIntervention] = (),
    about: Mapping[str, Any] | None = None,
) -> Run:
    """Return the run at its end.

    Args:
        board: the values before the first step.
        following: the steps that were scheduled when the record ended and did not run.
        last_interventions: what people did after the last step.
        about: data about the origin, for the trace.

    Raises:
        StoreError: L574, a value cannot be on a board, or is nested too deeply.
    """
    with reading(name):
        return _Builder(name, dialect, steps, board, following, last_interventions, about or {}).run


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Raise a Problem if the part of a recording that is read inside the block is damaged.

    Raises:
        StoreError: L574.
    """
    try:
        yield
    except BoardError as error:
        raise make_damage_error(where, error.problems[0].what) from None
    except AgentNbError:
        raise
    except RecursionError:
        raise make_damage_error(where, "a value, or what ran inside something else, is nested too deeply") from None
    except _UNREADABLE as error:
        raise make_damage_error(where, f"{type(error).__name__}: {error}") from error


def make_damage_error(where: str, why: str) -> StoreError:
    """L574: a recording is damaged, or has a part that cannot be read."""
    return StoreError(
        Problem("L574", "this recording cannot be read", where, why,
                "open another run of it, or record it again with the version of the package that is documented")
    )  # fmt: skip


def to_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970, limited to the range that tables can show, from 1970 to 2116."""
    since = moment - EPOCH
    exact = (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    return min(max(exact, 0), LATEST)


class NodeIds:
    """The ids of nodes: `REGION/NAME`, followed by a number if another node already has that id."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._used_ids: set[str] = set()

    def id_of(self, region: str, name: str) -> str:
        """Return the id of the node with this name inside another node; `region` is the id of that node, or empty."""
        node_id = self._known.get((region, name))
        if node_id is None:
            plain = f"{region}/{name}" if region else name
            node_id, number = plain, 2
            while node_id in self._used_ids:
                node_id, number = f"{plain}#{number}", number + 1
            self._known[region, name] = node_id
            self._used_ids.add(node_id)
        return node_id


class _Builder:
    def __init__(self, name: str, dialect: str, steps: Sequence[RecordedStep], board: Mapping[str, Any],
                 following: Sequence[RecordedStep], last_interventions: Sequence[ImportedIntervention],
                 about: Mapping[str, Any]) -> None:  # fmt: skip
        self.steps = [*steps, *following]
        recipe = _build_recipe(name, dialect, self.steps, about)
        last = EPOCH + timedelta(microseconds=max((step.ended_at for step in steps), default=0) // 1000)
        plan = Plan(recipe, make_readable_kinds(recipe), World())
        self.run = run = Run(plan, EffectDispatcher(), clock=FrozenClock(last))
        self.history, self.tables = run.history, run.tables
        self.frames: dict[tuple[int, int], Any] = {}  # the place of an enter step, and the lane -> the frame
        self.edges = {(edge.source, edge.target): number for number, edge in enumerate(plan.edges)}
        self.activations: dict[int, int] = {}
        self.successors: dict[int, list[int]] = {}  # a step -> the steps that it led to
        for node_index, step in enumerate(self.steps):
            if step.triggered_by is None or (step.triggered_by < 0 and node_index >= len(steps) == 0):
                self.successors.setdefault(-1, []).append(node_index)
            elif step.triggered_by >= 0:
                self.successors.setdefault(step.triggered_by, []).append(node_index)
        self.queue: deque[int] = deque()
        for key, value in board.items():
            run.write(run.root.scope, (key,), value)
        register_secrets(run.root.scope.data, owner=run.tables.secrets)
        self.queue.extend(self.successors.get(-1, ()))
        start = steps[0].started_at if steps else 0
        self.history.set_first_row([self._add_activation(node_index) for node_index in self.queue], start)
        run.checkpoint()
        for node_index, step in enumerate(steps):
            self._intervene(step.interventions, node_index)
            self._move_to_front(node_index)
            self._step(node_index, step)
        self._intervene(last_interventions, len(steps))
        for node_index in range(len(steps), len(self.steps)):
            if node_index not in self.queue:
                self._move_to_front(node_index)
        restore(run, self.history.tip)

    def _make_frame(self, step: RecordedStep) -> Any:
        return self.run.root if step.inside is None else self.frames[step.inside, step.lane]

    def _add_activation(self, node_index: int) -> int:
        """Return the activation of a step; its frame is open, or will be when the step is reached."""
        known = self.activations.get(node_index)
        if known is None:
            step = self.steps[node_index]
            what = RESUME if step.phase == "leave" else 0
            node = self.run.plan.index[step.node]
            known = self.activations[node_index] = self.run.get_activation(node, self._make_frame(step), what).id
        return known

    def _move_to_front(self, node_index: int) -> None:
        """Make a step the next one; it may wait behind others, or nothing in the record led to it."""
        if self.queue and self.queue[0] == node_index:
            return
        if node_index in self.queue:
            self.queue.remove(node_index)
        self.queue.appendleft(node_index)
        history = self.history
        history.queue_starts[-1] = self.run.queue_start = len(history.push_activations)
        for number in self.queue:
            history.push(carry([self._add_activation(number)]))
        history.push_ends[-1] = len(history.push_activations)

    def _step(self, node_index: int, step: RecordedStep) -> None:
        history, run, number = self.history, self.run, node_index + 1
        activation, pos = self._add_activation(node_index), history.queue_starts[-1] + 1
        self.queue.popleft()
        scope = self._make_frame(step).scope
        if step.phase == "enter":
            scope = self._open(node_index, step, number).scope
        for key, value in step.writes.items():
            run.write(scope, (key,), value)
        for key, item in step.appends.items():
            run.write(scope, (key,), [*(() if (seen := scope.get(key)) is ABSENT else seen), freeze(item)])
        register_secrets(scope.data, owner=run.tables.secrets)
        if step.phase == "leave" and step.enter_place is not None:
            frames = [frame.id for (place_of, _), frame in self.frames.items() if place_of == step.enter_place]
            history.closed_frames[number] = tuple(frames)
            history.mark_rare(number)
            for frame in frames:
                run.close_frame(frame)
        self._add_extras(number, activation, step)
        status = OK if step.failure is None else ERROR | (UNCAUGHT if step.uncaught else 0)
        targets = self.successors.get(node_index, [])
        self.queue.extend(targets)
        # Inside comes first
        if targets and len(self.queue) > len(targets) and self.steps[targets[0]].inside is not None:
            self.queue.rotate(len(targets))
            pos = len(history.push_activations)
            waiting = list(self.queue)[len(targets) :]
            history.push([*self._follow(step, targets), *carry([self._add_activation(other) for other in waiting])])
        else:
            history.push(self._follow(step, targets))
        history.step_activations.append(activation)
        history.start_times.append(step.started_at)
        history.end_times.append(max(step.started_at, step.ended_at))
        history.step_flags.append(status | _PHASES[step.phase] | COUNTED)
        history.queue_starts.append(pos)
        history.write_ends.append(len(history.new_values))
        history.push_ends.append(len(history.push_activations))
        run.position, run.queue_start, run.counted_steps = number, pos, run.counted_steps + 1
        if number >= run.next_checkpoint:
            run.checkpoint()

    def _follow(self, step: RecordedStep, targets: Sequence[int]) -> list[Push]:
        """Return the pushes of the steps that a step led to; the recipe has one edge from each node to another."""
        return [
            (self._add_activation(other), None, self.edges.get((step.node, self.steps[other].node), UNKNOWN_EDGE))
            for other in targets
        ]

    def _open(self, node_index: int, step: RecordedStep, number: int) -> Any:
        parent, tables, node = self._make_frame(step), self.tables, self.run.plan.index[step.node]
        policy, rows = "shared" if step.shared else "isolated", []
        for lane in range(step.lanes) if step.lanes else [-1]:
            id = len(tables.frames)
            scope = parent.row.scope if step.shared else id
            tables.frames.append(FrameRow(id, parent.id, node, step.node, policy, lane, scope, number))
            rows.append(id)
            self.frames[node_index, lane] = self.run.open_frame(tables.frames[id])
        self.history.opened_frames[number] = tuple(rows)
        self.history.mark_rare(number)
        return self.frames[node_index, 0 if step.lanes else -1]

    def _add_extras(self, number: int, activation: int, step: RecordedStep) -> None:
        history = self.history
        if step.inputs is not None:
            history.notes[number] = Note(inputs=freeze(step.inputs))
        if step.failure is not None:
            history.errors[number] = Failure(*step.failure)
        for at, call in enumerate(step.calls):
            history.calls.append(
                Call(number, activation, at, call.kind, call.name, 1, 0.0, freeze(call.arguments), freeze(call.result),
                     call.error, call.seconds, call.tokens_in, call.tokens_out, None, call.provider, call.model,
                     call.finish_reason)
            )  # fmt: skip

    def _intervene(self, rows: Sequence[ImportedIntervention], node_index: int) -> None:
        """Append what people did after the last step; an edit writes one row, which belongs to that step."""
        history = self.history
        for row in rows:
            frame = self.frames[row.scope - 1, -1] if row.scope else self.run.root
            old = frame.scope.get(row.target) if row.action == "edit" else ABSENT
            if row.action == "edit":
                self.run.write(frame.scope, (row.target,), row.new)
                register_secrets(frame.scope.data, owner=self.run.tables.secrets)
                history.write_ends[-1] = len(history.new_values)
            history.interventions.append(
                Intervention(node_index, row.action, row.target, old, freeze(row.new), row.actor, row.time)
            )


# -- the recipe ------------------------------------------------------------------------------------------------------


def _build_recipe(name: str, dialect: str, steps: Sequence[RecordedStep], about: Mapping[str, Any]) -> Recipe:
    """Return the recipe derived from the steps: it can be drawn and inspected, and contains no code."""
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str], None] = {}
    entries: dict[str, dict[str, None]] = {ROOT: {}}
    written: dict[str, dict[str, None]] = {}
    for step in steps:
        region = ROOT if step.inside is None else steps[step.inside].node
        if step.node not in nodes:
            nodes[step.node] = Node(step.node, step.kind, step.label, region, inputs={})
        if step.phase == "enter":
            nodes[step.node] = replace(nodes[step.node], kind=step.kind, bodies=(step.node,))
            entries.setdefault(step.node, {})
        else:
            written.setdefault(step.node, {}).update(dict.fromkeys([*step.writes, *step.appends]))
        if step.phase != "leave":
            source = None if step.triggered_by is None or step.triggered_by < 0 else steps[step.triggered_by]
            if source is not None and source.inside == step.inside:
                edges[source.node, step.node] = None
            else:
                entries.setdefault(region, {})[step.node] = None
    nodes = {id: replace(node, writes=tuple(written.get(id, ()))) for id, node in nodes.items()}
    regions = {id: Region(id, tuple(entry), title=id, owner=id, isolated=True)
               for id, entry in entries.items() if id != ROOT}  # fmt: skip
    recipe_edges = tuple(Edge(source, target) for source, target in edges)
    entry = tuple(entries[ROOT]) or tuple(nodes)[:1]
    return Recipe(
        name, dialect, nodes, recipe_edges, entry, regions=regions, routing="all", meta={"about": dict(about)}
    )


__all__ = [
    "ImportedIntervention",
    "NodeIds",
    "RecordedCall",
    "RecordedStep",
    "build",
    "make_damage_error",
    "reading",
    "to_ns",
]
