"""Backward slices: which writes, reads, conditions and calls led to a value (Korel and Laski, 1988)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentnb.analysis.dependence import Dependence, ReadRow
from agentnb.analysis.runs import get_recipe, get_session, get_trace
from agentnb.arguments import plain_arguments
from agentnb.engine.core.history import ENTER, LEAVE
from agentnb.errors import ExecutionError
from agentnb.expressions.paths import format_path, parse_path, resolve_path
from agentnb.secrets import masks_by, remember_masking
from agentnb.session.checks import refuse_step
from agentnb.session.state import get_state
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.board.paths import Path
    from agentnb.draw.drawing import Drawing
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session

Via = Literal["write", "read", "condition", "call"]
_TYPES = {
    "step": "int64", "node": "category", "key": "object", "via": "category", "distance": "int64", "inferred": "bool",
}  # fmt: skip
_MOST_LINES = 12


class SliceRow(NamedTuple):
    """One item that led to the value: a write, a read, a condition or a call of a step.

    `node` is None for the inputs (step 0) and for a person's edit. `key` is a path of the board, the name of a call, or
    the type of an event. `distance` counts the steps between this one and the value; `inferred` is True if the run does
    not record the dependency itself, so that it follows from the recipe or is an upper bound.
    """

    step: int
    node: str | None
    key: str
    via: Via
    distance: int
    inferred: bool = False

    def __str__(self) -> str:
        """Return the row as one line, without secrets."""
        where = "the inputs" if not self.step else f"step {self.step}, {safe_repr(self.node, 200)}"
        if self.node is None and self.step:
            where = f"after step {self.step}, a person"
        mark = " (inferred)" if self.inferred else ""
        return f"{where}: {self.via} {safe_str(self.key, 200)}{mark}"


@masks_by(lambda shown: shown.masking())
class Slice:
    """The backward slice of a value: everything that led to it, from the value back to the inputs.

    `steps` are the numbers of its steps, in order; 0 represents the inputs. `rows` start with the writes of the value
    itself. `path` is the value's path, `at` the step after which the value is explained.
    """

    def __init__(self, path: str, at: int, rows: list[SliceRow], recipe: Recipe) -> None:
        self.path, self.at, self.rows = path, at, tuple(rows)
        self._recipe, self.masking = recipe, remember_masking()

    @property
    def steps(self) -> list[int]:
        """The numbers of the steps that led to the value, in order; 0 represents the inputs."""
        return sorted({row.step for row in self.rows})

    @property
    def nodes(self) -> list[str]:
        """The ids of the nodes that led to the value, nearest first."""
        return list(dict.fromkeys(row.node for row in self.rows if row.node is not None))

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a DataFrame: step, node, key, via (write, read, condition, call), distance, inferred."""
        from agentnb.trace.frames import make_table

        return make_table([row._replace(key=safe_str(row.key))._asdict() for row in self.rows], _TYPES)

    @plain_arguments
    def draw(self, board: bool = True, direction: str = "TB") -> Drawing:
        """Return the recipe's drawing with the nodes of the slice marked; a dashed border means inferred only."""
        from agentnb.draw.overlay import draw_overlay

        marks: dict[str, tuple[str, ...]] = {}
        for row in self.rows:
            if row.node is None:
                continue
            sure = not row.inferred or "in-slice" in marks.get(row.node, ())
            marks[row.node] = ("visited", "in-slice" if sure else "maybe-in-slice")
        counts = {node: f"×{len({row.step for row in self.rows if row.node == node})}" for node in marks}
        return draw_overlay(self._recipe, nodes=marks, counts=counts, board=board, direction=direction, what="slice of")

    def __len__(self) -> int:
        return len(self.rows)

    @plain_arguments
    def lines(self, limit: int = _MOST_LINES) -> list[str]:
        """Return the nearest rows as lines of text, without secrets; the last line gives the number of further rows."""
        lines = [f"{'  ' * min(row.distance, 8)}{row}" for row in self.rows[:limit]]
        rest = len(self.rows) - limit
        return [*lines, f"and {rest} more"] if rest > 0 else lines

    def __repr__(self) -> str:
        """Return the slice as indented lines, nearest first."""
        head = f"<Slice of {safe_repr(self.path, 200)} after step {self.at}: {len(self.steps)} steps>"
        return "\n".join([head, *self.lines()])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = self.draw(board=False)._repr_mimebundle_(include, exclude)
        return bundle | {"text/plain": repr(self)}


class _Slicer:
    """One backward traversal, breadth first, so that each row has its smallest distance."""

    def __init__(self, rows: Dependence) -> None:
        self.rows = rows
        self.row_by_key: dict[tuple[int, str | None, str, Via], SliceRow] = {}
        self._queue: deque[Callable[[], None]] = deque()
        self._writes: set[int] = set()
        self._steps: set[int] = set()
        self._choices: set[int] = set()

    def run(self) -> list[SliceRow]:
        """Follow everything back to the inputs.

        Return the rows, nearest first, and the last step first at equal distance.
        """
        while self._queue:
            self._queue.popleft()()
        return sorted(self.row_by_key.values(), key=lambda row: (row.distance, -row.step))

    def value(self, read: ReadRow, bound: int, distance: int) -> None:
        """Follow the value at a path as seen from a scope, produced by the writes before `bound`."""
        self._queue.append(lambda: self._follow_path(read, bound, distance))

    def _follow_path(self, read: ReadRow, bound: int, distance: int) -> None:
        for row in self.rows.writers(read.scope, read.path, bound):
            if row not in self._writes:
                self._writes.add(row)
                self._write(row, distance, inferred=read.inferred)

    def _write(self, row: int, distance: int, *, inferred: bool) -> None:
        rows, step = self.rows, self.rows.step_of(row)
        by_node = rows.is_by_node(row)
        self._add(step, rows.node(step) if by_node else None, format_path(rows.path(row)), "write", distance, inferred)
        if by_node:
            self.step(step, distance)
            if rows.phase(step) == LEAVE:
                self._follow_merge(row, step, distance)

    def step(self, step: int, distance: int) -> None:
        """Follow what a step read and called, and why it ran."""
        if step in self._steps:
            return
        self._steps.add(step)
        rows, node, bound = self.rows, self.rows.node(step), self.rows.bound_before(step)
        for read in rows.reads(step):
            self._add(step, node, format_path(read.path), "read", distance, read.inferred)
            self.value(read, bound, distance + 1)
        for call in rows.calls(step):
            self._add(step, node, call.name, "call", distance)
        activation = rows.get_activation(step)
        if activation.event >= 0:
            self._follow_event(step, activation.event, distance)
        self._follow_inputs(step, distance)
        choice = rows.choice_before(step)
        if choice is not None:
            self._queue.append(lambda: self._follow_choice(choice, distance + 1))

    def _follow_choice(self, step: int, distance: int) -> None:
        """Follow a choice: what the conditions read, or what the deciding node had read and called."""
        if step in self._choices:
            return
        self._choices.add(step)
        rows, node = self.rows, self.rows.node(step)
        own = rows.condition_reads(step) if rows.phase(step) != ENTER else []
        bound = rows.bound_after(step, interventions=False)
        for read in own:
            self._add(step, node, format_path(read.path), "condition", distance, read.inferred)
            self.value(read, bound, distance + 1)
        if own and rows.reading.failure(step) is None:
            earlier = rows.choice_before(step)
            if earlier is not None:
                self._queue.append(lambda: self._follow_choice(earlier, distance + 1))
            return
        for read in rows.reads(step):  # the node itself chose, based on what it read; or it failed
            self._add(step, node, format_path(read.path), "condition", distance, read.inferred)
        self.step(step, distance)

    def _follow_merge(self, row: int, step: int, distance: int) -> None:
        """Follow a write at the end of a composite node into the scopes inside it."""
        rows = self.rows
        path, bound = rows.path(row), rows.bound_before(step)
        frames = (rows.reading.tables.frames[number] for number in rows.opened_frames(step))
        inner = [frame.scope for frame in frames if frame.scope == frame.id]
        named = self._find_named_output(step, path)
        same = [scope for scope in inner if str((named or path)[0]) in rows.keys(scope)]
        sure = named is not None or rows.reading.nodes[rows.get_activation(step).node].kind == "parallel"
        for scope in same:
            read = ReadRow(scope, named or path, inferred=not sure)
            self._add(step, rows.node(step), format_path(read.path), "read", distance, not sure)
            self.value(read, bound, distance + 1)
        if not same:
            for scope in inner:
                for key in rows.keys(scope):
                    self._add(step, rows.node(step), key, "read", distance, inferred=True)
                    self.value(ReadRow(scope, (key,), inferred=True), bound, distance + 1)

    def _find_named_output(self, step: int, path: Path) -> Path | None:
        """Return the inner path that a subgraph copies to a key of the outer board, if its recipe declares it."""
        recipe = self.rows.recipe
        node = None if recipe is None else recipe.nodes.get(self.rows.node(step))
        outputs = None if node is None or node.kind != "subgraph" else node.params.get("outputs")
        output_path = outputs.get(str(path[0])) if isinstance(outputs, Mapping) else None
        if output_path is None:
            return None
        return (output_path,) if isinstance(output_path, str) else tuple(output_path)

    def _follow_event(self, step: int, seq: int, distance: int) -> None:
        """Follow the event that activated a step to the step that emitted it."""
        event = self.rows.event(seq)
        if event is None:
            return
        self._add(step, self.rows.node(step), event.type, "read", distance)
        emitter = event.step
        node = None if emitter is None else self.rows.node(emitter)
        self._add(event.at if emitter is None else emitter, node, event.type, "write", distance + 1)
        if emitter is not None:
            self._queue.append(lambda: self.step(emitter, distance + 1))

    def _follow_inputs(self, step: int, distance: int) -> None:
        """Follow the inputs of an enclosing frame; which of them a step used is not recorded."""
        frame = self.rows.reading.tables.frames[self.rows.get_activation(step).frame]
        if frame.inputs is None or not frame.id:
            return
        opened = self.rows.last_step(frame.parent, frame.owner, step, (ENTER,))
        if opened is not None:
            self._add(step, self.rows.node(step), "inputs", "read", distance, inferred=True)
            self._queue.append(lambda: self.step(opened, distance + 1))

    def _add(self, step: int, node: str | None, key: str, via: Via, distance: int, inferred: bool = False) -> None:
        row = self.row_by_key.get((step, node, key, via))
        if row is None:
            self.row_by_key[step, node, key, via] = SliceRow(step, node, key, via, distance, inferred)
        elif row.inferred and not inferred:
            self.row_by_key[step, node, key, via] = row._replace(inferred=False)


def compute_slice(session: Session, path: str, at: int | None = None) -> Slice:
    """Return the backward slice of the value at a path; see `Session.slice`.

    Raises:
        ExecutionError: X145, nothing writes a key of this name; X111, there is no such step.
    """
    if problems := [*get_state(session).check_paths([parse_path(path)], "session.slice()")]:
        raise ExecutionError(*problems)
    if at is not None:
        refuse_step(get_state(session), at)
    return Slices(session).of_path(path, session.position if at is None else at)


class Slices:
    """The slices of one run, which share an index of its rows."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._recipe = get_recipe(run)

    @cached_property
    def _rows(self) -> Dependence:
        session = get_session(self._run)
        return Dependence(get_trace(self._run), None if session is None else session.recipe)

    def of_path(self, path: str, at: int) -> Slice:
        """Return the slice of the value at a path of the board after a step."""
        rows = self._rows
        firsts = dict.fromkeys(rows.keys(0))
        slicer = _Slicer(rows)
        slicer.value(ReadRow(0, resolve_path(path, firsts)), rows.bound_after(at), 0)
        return Slice(path, at, slicer.run(), self._recipe)

    def of_write(self, scope: int, path: Path, at: int) -> Slice:
        """Return the slice of the value at a path of any scope after a step."""
        slicer = _Slicer(self._rows)
        slicer.value(ReadRow(scope, path), self._rows.bound_after(at), 0)
        return Slice(format_path(path), at, slicer.run(), self._recipe)

    def of_step(self, step: int) -> Slice:
        """Return the slice of everything that determined a step."""
        slicer = _Slicer(self._rows)
        if step:
            slicer.step(step, 0)
            for read in self._rows.condition_reads(step):
                slicer.value(read, self._rows.bound_after(step, interventions=False), 1)
        return Slice(f"step {step}", step, slicer.run(), self._recipe)


__all__ = ["Slice", "SliceRow", "Slices", "compute_slice"]
