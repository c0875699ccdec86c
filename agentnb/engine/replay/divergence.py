"""Divergence: where a replayed step differs from the recorded one, in causal order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal

from agentnb.board.masking import find_secret_word
from agentnb.board.paths import DELETE, OPS, Path
from agentnb.board.values import ABSENT
from agentnb.engine.replay.equality import are_messages_equal, iter_innermost_differences
from agentnb.expressions.paths import format_path, parse_path
from agentnb.secrets import Masking, masks_by, remember_masking
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.history import ActivationRow
    from agentnb.engine.core.plan import Plan
    from agentnb.engine.core.run import Run
    from agentnb.engine.replay.step_record import Record, StepRecord, WriteRecord

Level = Literal["path", "values", "reads"]
LEVELS: Final = ("path", "values", "reads")
What = Literal["node", "frame", "phase", "error", "call", "setting", "read", "write", "event", "edge", "act", "masked"]
MOST: Final = 20  # maximum number of reported places inside one value


@masks_by(lambda shown: shown.masking())
@dataclass(frozen=True, slots=True, repr=False)
class Divergence:
    """One place where a replay differs from the record. The values are not masked; ABSENT means no value.

    `what` differs: the `node` that ran, its `frame` or `phase`, its `error`, a `call`, a `setting` of the tool or the
    model that it calls, a `read`, a `write`, an `event`, a followed `edge` or its condition's value, or an intervention
    (`act`) that cannot be repeated; `masked` values cannot be compared. `path` is the place: on the board, in a call's
    arguments or settings, or in an event. `ends` is True if the replay could not continue from there; `sure` is False
    if it is unknown whether the two differ.
    """

    step: int
    node: str | None
    what: What
    path: str = ""
    recorded: Any = ABSENT
    replayed: Any = ABSENT
    why: str = ""
    ends: bool = False
    sure: bool = True
    masking: Callable[[], Masking] = field(default_factory=remember_masking, repr=False, compare=False)

    @property
    def key(self) -> str | None:
        """The first part of the path that names a secret; None if there is none."""
        return find_secret_word(parse_path(self.path))

    def __str__(self) -> str:
        """Return one sentence, with secrets masked and long values shortened."""
        at = f"step {self.step}" if self.step else "at the start"
        where = at if self.node is None else f"{at}, {safe_repr(self.node, 200)}"
        return safe_str(f"{where}: {self.why or self._format_text()}")

    def __repr__(self) -> str:
        """Return the sentence in brackets, because the raw values may be secrets."""
        return f"<Divergence {self}>"

    def _format_text(self) -> str:
        recorded_text, replayed_text = ("nothing" if value is ABSENT else safe_repr(value, key=self.key) for value in
                     (self.recorded, self.replayed))  # fmt: skip
        match self.what:
            case "node":
                ends = self.replayed is ABSENT
                return "the replay has ended" if ends else f"the replay runs {replayed_text} instead"
            case "error":
                recorded_text, replayed_text = (
                    "" if value is ABSENT else safe_str(" ".join(safe_str(value).split()), 200)
                    for value in (self.recorded, self.replayed)
                )
                failed = f"it failed with {recorded_text}" if recorded_text else "it did not fail"
                return f"{failed}, and the replay {f'fails with {replayed_text}' if replayed_text else 'does not fail'}"
            case "write":
                return f"it wrote {recorded_text} to {self.path!r}, and the replay writes {replayed_text}"
            case "read":
                return f"it {'read' if self.recorded else 'did not read'} {self.path!r}, and the replay does" + (
                    "" if self.replayed else " not"
                )
            case "call":
                return f"it sent {recorded_text} as {self.path!r}, and the replay sends {replayed_text}"
            case "setting":
                return f"setting {self.path!r} of its call was {recorded_text}, and in the replay it is {replayed_text}"
            case "event":
                return f"it emitted {recorded_text} as {self.path!r}, and the replay emits {replayed_text}"
            case "edge":
                return f"{self.path!r} led to {recorded_text}, and in the replay to {replayed_text}"
        return f"{self.what} {self.path}: {recorded_text} in the record, {replayed_text} in the replay"


class Sides:
    """Maps numbers of a record to those of its replay: frames, scopes and events. Nodes are identified by their ids."""

    def __init__(self, record: Record, run: Run) -> None:
        self.record, self.run = record, run
        self.frames: dict[int, int] = {number: number for number in run.frames}
        self.events: dict[int, int] = {}
        self.ids: dict[str, str] = {}

    def name(self, activation: ActivationRow) -> str:
        """Return the id of a recorded activation's node."""
        return self.record.run.plan.nodes[activation.node].id

    def map_activation(self, row: ActivationRow) -> ActivationRow | None:
        """Return the replay's activation for a recorded one; None if the replay has no such node or frame."""
        number, frame = self.run.plan.index.get(self.name(row)), self.frames.get(row.frame)
        if number is None or frame is None:
            return None
        return row._replace(node=number, frame=frame, event=self.events.get(row.event, row.event),
                            about=self.events.get(row.about, row.about))  # fmt: skip

    def align(self, recorded: StepRecord, replayed: StepRecord) -> None:
        """Map the frames opened and the events emitted by a step from the record to the replay."""
        for recorded_frame, replayed_frame in zip(recorded.opened_frames, replayed.opened_frames, strict=False):
            self.frames[recorded_frame.id] = replayed_frame.id
        for left, right in zip(recorded.events, replayed.events, strict=False):
            self.events[left.seq], self.ids[left.id] = right.seq, right.id


def compare_steps(
    recorded: StepRecord, replayed: StepRecord, sides: Sides, level: Level, own_reads: bool = True
) -> Iterator[Divergence]:
    """Yield the differences of a step: its status, its reads, writes and events, and where it led.

    Args:
        own_reads: True if all its reads were made by code that ran again.
    """
    node = sides.name(recorded.activation)
    yield from _compare_status(recorded, replayed, node, level)
    opened = [[(row.region, row.branch) for row in side.opened_frames] for side in (recorded, replayed)]
    if opened[0] != opened[1] and recorded.phase == replayed.phase:
        recorded_regions, replayed_regions = ([region for region, _ in side] for side in opened)
        yield Divergence(recorded.step, node, "frame", "", recorded_regions, replayed_regions, ends=True)
    sides.align(recorded, replayed)
    if level == "reads":
        yield from _read_differences(recorded, replayed, sides, own_reads)
    if level != "path":
        yield from _write_differences(recorded, replayed, sides)
        yield from _compare_events(recorded, replayed, sides)
    yield from _compare_edges(recorded, replayed, sides, level)


def iter_inner_differences(
    at: tuple[int, str | None, What], path: Path, recorded: Any, replayed: Any
) -> Iterator[Divergence]:
    """Yield the first places inside a value where two values differ; `at` is (step, node, what)."""
    for row in islice(iter_innermost_differences(recorded, replayed, path), MOST):
        yield Divergence(*at, format_path(row.path), row.recorded, row.replayed, sure=row.sure)


def _compare_status(recorded: StepRecord, replayed: StepRecord, node: str, level: Level) -> Iterator[Divergence]:
    recorded_status, replayed_status = ((f"{side.failure.type}: {side.failure.message}" if side.failure else ABSENT)
                 for side in (recorded, replayed))  # fmt: skip
    if recorded.status != replayed.status:
        yield Divergence(recorded.step, node, "error", "", recorded_status, replayed_status, ends=True)
    elif recorded.phase != replayed.phase:
        why = f"its phase was {recorded.phase!r}, and in the replay it is {replayed.phase!r}"
        yield Divergence(recorded.step, node, "phase", "", recorded.phase, replayed.phase, why, ends=True)
    elif (
        level != "path"
        and recorded_status is not ABSENT
        and replayed_status is not ABSENT
        and not are_messages_equal(str(recorded_status), str(replayed_status))
    ):
        yield Divergence(recorded.step, node, "error", "", recorded_status, replayed_status)


def _read_differences(
    recorded: StepRecord, replayed: StepRecord, sides: Sides, own_reads: bool
) -> Iterator[Divergence]:
    """Yield what only one side has read. Paths of a node's inputs are read by each activation and not recorded."""
    recorded_reads = {(sides.frames.get(scope), path) for scope, path in recorded.reads}
    differ = recorded_reads ^ replayed.reads if own_reads else replayed.reads - recorded_reads
    declared = set(_find_declared(sides.record.plan(recorded.step), recorded))
    differ |= {(-1, path) for path in declared ^ set(_find_declared(sides.run.plan, replayed))}
    for scope, path in sorted(differ, key=repr):
        read = path in declared if scope == -1 else (scope, path) in recorded_reads
        yield Divergence(recorded.step, sides.name(recorded.activation), "read", format_path(path), read, not read)


def _find_declared(plan: Plan, done: StepRecord) -> Iterable[Path]:
    return () if done.activation.purpose else (plan.nodes[done.activation.node].node.inputs or {}).values()


def _write_differences(recorded: StepRecord, replayed: StepRecord, sides: Sides) -> Iterator[Divergence]:
    """Yield the writes that differ. The writes to one path are compared in order."""
    table: dict[tuple[int | None, Path], tuple[list[WriteRecord], list[WriteRecord]]] = {}
    for write in recorded.writes:
        table.setdefault((sides.frames.get(write.scope), write.path), ([], []))[0].append(write)
    for write in replayed.writes:
        table.setdefault((write.scope, write.path), ([], []))[1].append(write)
    for recorded_writes, replayed_writes in table.values():
        for left, right in zip_longest(recorded_writes, replayed_writes):
            yield from _write(recorded.step, sides.name(recorded.activation), left, right)


def _write(step: int, node: str, left: WriteRecord | None, right: WriteRecord | None) -> Iterator[Divergence]:
    path = (left or right).path  # type: ignore[union-attr]  # one of them exists
    if left is not None and right is not None and left.op == right.op:
        inside = path if left.at is None else (*path, left.at)
        yield from iter_inner_differences((step, node, "write"), inside, left.new, right.new)
        return
    why = ""
    if any(write is not None and write.op == DELETE for write in (left, right)) or (
        left is not None and right is not None
    ):
        texts = [f"{OPS[write.op]}" if write is not None else "no write" for write in (left, right)]
        why = f"{format_path(path)!r}: {texts[0]} in the record, {texts[1]} in the replay"
    recorded_value, replayed_value = (ABSENT if write is None else write.new for write in (left, right))
    yield Divergence(step, node, "write", format_path(path), recorded_value, replayed_value, why)


def _compare_events(recorded: StepRecord, replayed: StepRecord, sides: Sides) -> Iterator[Divergence]:
    step, node = recorded.step, sides.name(recorded.activation)
    for left, right in zip_longest(recorded.events, replayed.events):
        if left is None or right is None or left.type != right.type:
            recorded_type, replayed_type = (ABSENT if event is None else event.type for event in (left, right))
            why = f"it emitted {_quote(recorded_type)}, and the replay emits {_quote(replayed_type)}"
            yield Divergence(step, node, "event", "type", recorded_type, replayed_type, why)
            continue
        yield from iter_inner_differences((step, node, "event"), (left.type,), left.payload, right.payload)
        cause = sides.ids.get(left.cause, left.cause) if left.cause is not None else None
        if cause != right.cause:
            yield Divergence(step, node, "event", f"{left.type}, its cause", left.cause, right.cause)


def _quote(type: Any) -> str:
    return "no event" if type is ABSENT else f"{safe_repr(type)}"


def _compare_edges(recorded: StepRecord, replayed: StepRecord, sides: Sides, level: Level) -> Iterator[Divergence]:
    node = sides.name(recorded.activation)
    nodes = sides.run.plan.nodes
    expected = [sides.map_activation(target) for target, _ in recorded.targets]
    if expected != [target for target, _ in replayed.targets]:
        recorded_targets = ", ".join(sides.name(target) for target, _ in recorded.targets)
        replayed_targets = ", ".join(nodes[target.node].id for target, _ in replayed.targets)
        yield Divergence(
            recorded.step, node, "edge", node, recorded_targets or ABSENT, replayed_targets or ABSENT, ends=True
        )
    elif level != "path":
        for (target, left), (_, right) in zip(recorded.targets, replayed.targets, strict=True):
            edge = f"{node} -> {sides.name(target)}"
            for row in islice(iter_innermost_differences(left, right), MOST):
                recorded_targets, replayed_targets = safe_repr(row.recorded), safe_repr(row.replayed)
                why = f"the condition of edge {edge} was {recorded_targets}, and in the replay it is {replayed_targets}"
                yield Divergence(recorded.step, node, "edge", edge, row.recorded, row.replayed, why, sure=row.sure)


__all__ = ["LEVELS", "MOST", "Divergence", "Level", "Sides", "compare_steps", "iter_inner_differences"]
