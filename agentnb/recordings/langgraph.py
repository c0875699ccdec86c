"""LangGraph checkpoint databases as recordings: SQLite and PostgreSQL savers, threads, subgraphs, forks.

A step is one task: the run of one node in a super-step. LangGraph applies the writes of a super-step together, at its
end. Here, each key changes with the last task that wrote it, so that after the last task of a super-step the board has
the values of the next checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import ABSENT, freeze
from agentnb.engine.replay.equality import iter_innermost_differences
from agentnb.errors import Problem, StoreError, did_you_mean, warn_caller
from agentnb.recordings.builder import (
    EPOCH,
    ImportedIntervention,
    NodeIds,
    RecordedStep,
    build,
    make_damage_error,
    reading,
    to_ns,
)
from agentnb.recordings.delta_channels import add_write
from agentnb.recordings.msgpack_values import Opaque, Send, decode_typed
from agentnb.session.pending import Pending
from agentnb.session.recording import Recording
from agentnb.store.other_tables import DatabaseReader, read_database
from agentnb.text import LONGEST_TEXT, safe_repr, safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.session.session import Session

MOST: Final = 200_000  # checkpoints of one thread
NO_NODE_ID: Final = "00000000-0000-0000-0000-000000000000"  # the task of writes that belong to no node
_TRIGGERS: Final = ("branch:", "join:", "start:")  # channels that LangGraph adds for its edges
_HANDLER: Final = ", node_error_handler, 0000000000"  # ends the path of an error handler, after that of the failed task
_NEEDED: Final = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"}
_COLUMNS: Final = {"run_id": "object", "thread": "object", "checkpoints": "int64", "updated": "datetime64[ns, UTC]",
                   "parent": "object"}  # fmt: skip


@dataclass(slots=True)
class Task:
    """A node's run in a super-step: its path, and what it wrote, in order."""

    id: str
    path: str
    writes: list[tuple[str, Any]] = field(default_factory=list)

    def values(self, channel: str) -> list[Any]:
        """Return what it wrote to a channel."""
        return [value for name, value in self.writes if name == channel]


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint: the public values of its channels, how it was made, and the tasks that ran from it."""

    id: str
    parent: str | None
    time: datetime
    board: dict[str, Any]
    triggers: dict[str, Any]
    seen: Mapping[str, Any]
    source: str
    deltas: frozenset[str] = frozenset()  # the DeltaChannels, whose values are stored as writes only
    tasks: list[Task] = field(default_factory=list)
    outside: list[tuple[str, Any]] = field(default_factory=list)  # writes that belong to no task


Namespaces = dict[str, dict[str, Checkpoint]]


@dataclass(slots=True)
class Thread:
    """All checkpoints of a thread: namespace -> id -> checkpoint, oldest first. "" is the graph itself.

    `restored` are the keys whose values were computed from writes.
    """

    shown: str
    id: str
    spaces: Namespaces
    restored: Sequence[str] = ()

    def leaves(self) -> list[str]:
        """Return the leaf checkpoints of the graph itself, newest first."""
        own = self.spaces.get("", {})
        parents = {checkpoint.parent for checkpoint in own.values()}
        return sorted((id for id in own if id not in parents), reverse=True)

    def path(self, space: str, leaf: str) -> list[Checkpoint]:
        """Return a checkpoint and its ancestors, oldest first."""
        known, checkpoints, seen = self.spaces[space], list[Checkpoint](), set[str]()
        at: str | None = leaf
        while at is not None and at in known and at not in seen:
            seen.add(at)
            checkpoints.append(known[at])
            at = known[at].parent
        return checkpoints[::-1]


class LangGraphRun(Recording):
    """A thread of a LangGraph checkpoint database, or a fork in it. It can only be read.

    `runs` lists the threads and forks of the database; `forks` and `parent` are those of this thread.
    """

    __slots__ = ("_family", "_leaf", "_steps", "_thread", "_where")

    _thread: Thread
    _where: str
    _leaf: str
    _family: dict[str, LangGraphRun]
    _steps: Mapping[str, int]

    @property
    def checkpoints(self) -> Mapping[str, int]:
        """The step at which each checkpoint was made: id -> step, oldest first, including those of subgraphs."""
        return self._steps

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of the database: run_id, thread, checkpoints, updated, parent. A fork is a run with a parent."""
        from agentnb.trace.frames import make_table

        return make_table([mask_value(row) for row in read_database(self._where, _list_runs)], _COLUMNS)

    @property
    def parent(self) -> Session | None:
        """The newest run of the thread; None for that run itself."""
        newest = self._thread.leaves()[0]
        return None if newest == self._leaf else self._open_other(newest)

    @property
    def forks(self) -> tuple[Session, ...]:
        """The other runs of the thread, which share their first checkpoints with this one."""
        leaves = self._thread.leaves()
        return () if leaves[0] != self._leaf else tuple(map(self._open_other, leaves[1:]))

    def tree(self) -> str:
        """Return the runs of the thread, one per line."""
        leaves = self._thread.leaves()
        lines = []
        for depth, leaf in ((int(at > 0), leaf) for at, leaf in enumerate(leaves)):
            size = len(self._thread.path("", leaf))
            mark = " <- here" if leaf == self._leaf else ""
            lines.append(f"{'  ' * depth}{safe_str(_run_id(self._thread, leaf))}: {size} checkpoints{mark}")
        return "\n".join(lines)

    def _open_other(self, leaf: str) -> LangGraphRun:
        known = self._family.get(leaf)
        return known or _make_session(self._where, self._thread, leaf, self._family)


def open_langgraph(where: str | os.PathLike[str], run_id: str | None = None) -> LangGraphRun:
    """Return a thread of a LangGraph checkpoint database as a session, at its end. Nothing of it is executed.

    The database is opened read-only, and a program may be writing it.

    Args:
        where: a path, or a URL (sqlite:///checkpoints.db, postgresql://user:password@host/database).
        run_id: a thread, or THREAD@CHECKPOINT for one of its forks; by default the thread written last.

    Raises:
        StoreError: L410, there is nothing; L573, it is not a database of LangGraph; L574, a checkpoint cannot be read;
            L575, there is no such thread.
    """
    path = os.fspath(where)
    thread, leaf = read_database(path, lambda reader: _read(reader, run_id))
    if thread.restored:
        warn_caller(str(_make_restored_problem(thread)))
    return _make_session(path, thread, leaf, {})


def _run_id(thread: Thread, leaf: str) -> str:
    return thread.id if leaf == thread.leaves()[0] else f"{thread.id}@{leaf}"


def _make_session(where: str, thread: Thread, leaf: str, family: dict[str, LangGraphRun]) -> LangGraphRun:
    with reading(f"{thread.shown}, thread {thread.id!r}"):
        steps = _Steps(thread, leaf)
    first = steps.path[0]
    origin = {"langgraph": {"store": thread.shown, "thread": thread.id, "checkpoint": leaf,
                           "checkpoints": len(steps.path)}}  # fmt: skip
    run = build(f"thread {thread.id}", "langgraph", steps.steps, first.board, following=steps.following,
                last_interventions=steps.interventions, about=origin)  # fmt: skip
    session = LangGraphRun.of_run(run, f"thread {thread.id}", _run_id(thread, leaf), _read_only(thread), steps.ended,
                                  pending=steps.pending)  # fmt: skip
    session._thread, session._where, session._leaf = thread, where, leaf  # noqa: SLF001  (it is made here)
    session._family = family  # noqa: SLF001  (the same)
    session._steps = MappingProxyType(steps.at)  # noqa: SLF001  (the same)
    family[leaf] = session
    return session


def _make_restored_problem(thread: Thread) -> Problem:
    """Return the warning about values that depend on a reducer which is not in the database.

    L578: the values of a DeltaChannel were computed from its writes.
    """
    return Problem(
        "L578",
        f"the values of {', '.join(map(repr, thread.restored))} were computed from what the nodes wrote",
        f"{thread.shown}, thread {thread.id!r}",
        "a DeltaChannel stores writes, and its reducer is in the program; here lists are joined, a message replaces "
        "the one with its id, and mappings are merged",
        "if the program's reducer does anything else, compare with get_state_history(...) of its graph",
        severity="warning",
    )


def _read_only(thread: Thread) -> Problem:
    """L450: this run can only be read."""
    return Problem(
        "L450",
        "this run can only be read: it is a checkpoint database of LangGraph",
        f"{thread.shown}, thread {thread.id!r}",
        "checkpoints are a record; the code of the nodes is in the program that wrote them",
        "go through it with step(), back() and goto(); to continue, invoke that program's graph with this thread_id",
    )


# -- the steps of a thread ---------------------------------------------------------------------------------------------


class _Steps:
    """The steps of one path through a thread, with those of its subgraphs."""

    def __init__(self, thread: Thread, leaf: str) -> None:
        self.thread = thread
        self.steps: list[RecordedStep] = []
        self.at: dict[str, int] = {}  # checkpoint -> the number of steps before it
        self.interventions: list[ImportedIntervention] = []  # what people did since the last step
        self.pending: list[Pending] = []
        self.following: list[RecordedStep] = []
        self.ended = "finished"
        self.ids = NodeIds()
        self.walked: set[str] = set()
        self.path = thread.path("", leaf)
        self._walk(self.path, "", "", None, None)
        if self.pending:
            self.ended = "waiting"
        elif self.steps and self.steps[-1].failure is not None:
            self.ended = "failed"
        elif self.following:
            self.ended = "paused"

    def _walk(
        self, path: Sequence[Checkpoint], space: str, prefix: str, inside: int | None, came_from: int | None
    ) -> None:
        """Append the steps from each checkpoint of a path to the next, and those started at the last one."""
        if space in self.walked:
            raise ValueError(f"two tasks have the same id: both contain {space!r}")
        self.walked.add(space)
        scheduled_by: dict[str, int | None] = {}  # node -> the step that scheduled it
        # The steps that scheduled tasks with Send, in order; a thread can start with an update that did so.
        sends = [came_from] * len(_get_sends(path[0]))
        earlier: int | None = None  # the first step of the super-step before
        for at, checkpoint in enumerate(path):
            next_checkpoint = path[at + 1] if at + 1 < len(path) else None
            self.at[checkpoint.id] = len(self.steps)
            if next_checkpoint is not None and next_checkpoint.source != "loop":
                self._add_outside(checkpoint, next_checkpoint, inside)
                if next_checkpoint.source == "update":  # the update schedules the nodes that follow
                    last_step = len(self.steps) - 1 if self.steps else None
                    scheduled_by, sends = (
                        dict.fromkeys(_list_due(next_checkpoint), last_step),
                        [last_step] * len(_get_sends(next_checkpoint)),
                    )
                continue
            first = len(self.steps)
            now, scheduled = dict[str, int](), list[int | None]()
            ran = list(self._iter_tasks(checkpoint, next_checkpoint))
            last = {channel: task.id for _, task in ran for channel, _ in task.writes}
            handled = dict.fromkeys(task.path.removesuffix(_HANDLER) for _, task in ran if _is_handler(task))
            index_by_id = dict[str, int]()  # the path of a task -> its step
            start = came_from if at == 0 else -1
            for name, task in ran:
                source = (
                    index_by_id.get(task.path.removesuffix(_HANDLER), -1)
                    if _is_handler(task)
                    else self._find_source((name, _push_number(task.path)), scheduled_by, sends, start)
                )
                source = _find_scheduling_step(earlier, source, first)
                index = self._add_task(checkpoint, next_checkpoint, (name, task), (space, prefix, inside), source, last,
                                       task.path in handled)  # fmt: skip
                index_by_id[task.path] = index
                for channel, value in task.writes:
                    if channel.startswith("branch:to:"):
                        now.setdefault(channel.removeprefix("branch:to:"), index)
                    elif channel.startswith("join:"):
                        now[channel.rpartition(":")[2]] = index
                    elif channel == "__pregel_tasks":
                        scheduled.extend([index] * (len(value) if isinstance(value, list) else 1))
            if next_checkpoint is not None:
                self._add_rest(checkpoint, next_checkpoint, first)
                scheduled_by, sends = dict(now) or scheduled_by, scheduled
                earlier = first if len(self.steps) > first else earlier
        self._add_end(path[-1], prefix, inside, scheduled_by, sends, earlier)

    def _find_source(
        self,
        task: tuple[str, int | None],
        scheduled_by: Mapping[str, int | None],
        sends: Sequence[int | None],
        start: int | None,
    ) -> int | None:
        """Return the step that scheduled a task: a node's name, and the number of the Send, if it is one."""
        name, number = task
        if number is not None:
            return sends[number] if number < len(sends) else -1
        return scheduled_by.get(name, start if not scheduled_by else -1)

    def _iter_tasks(self, checkpoint: Checkpoint, after: Checkpoint | None) -> Iterator[tuple[str, Task]]:
        """Yield the tasks that ran from a checkpoint, with the names of their nodes."""
        tasks = sorted(checkpoint.tasks, key=lambda task: (task.path, task.id))
        names = [_name_of(task, checkpoint, after) for task in tasks]
        if after is not None and (None in names or not tasks):
            # Savers of older versions do not store the paths of tasks: the nodes are those that saw newer versions.
            seen = [name for name in after.seen if after.seen[name] != checkpoint.seen.get(name) and name[:1] != "_"]
            seen = [*(["__start__"] if _has_seen(checkpoint, after, "__start__") else []), *seen]
            missing = [name for name in seen if name not in names]
            unknown = [task for task, name in zip(tasks, names, strict=True) if name is None]
            if len(missing) == len(unknown) == 1:
                names[names.index(None)] = missing.pop()
            else:  # it is not stored which of them wrote it: the last one shows it
                writes = [write for task in unknown for write in task.writes]
                names += missing
                tasks += [
                    Task(f"{checkpoint.id}:{name}", "", writes if name == missing[-1] else []) for name in missing
                ]
        for known, task in zip(names, tasks, strict=True):
            if known is not None:
                yield known, task

    def _add_task(self, checkpoint: Checkpoint, after: Checkpoint | None, what: tuple[str, Task],
              where: tuple[str, str, int | None], source: int | None, last: Mapping[str, str],
              is_handled: bool) -> int:  # fmt: skip
        """Append the step of a task and everything that ran inside it; return the place of its (last) step."""
        name, task = what
        space, prefix, inside = where
        node = self.ids.id_of(prefix, name)
        start, ended = to_ns(checkpoint.time), to_ns(after.time if after is not None else checkpoint.time)
        self._add_answers(checkpoint, task, node)
        interrupts = task.values("__interrupt__")
        error = next(iter(task.values("__error__")), None)
        public = {channel for channel, _ in task.writes if _is_public(channel)}
        waits = after is None and bool(interrupts) and not public
        if waits:
            self._ask(interrupts, node)
        below = f"{space}|{name}:{task.id}" if space else f"{name}:{task.id}"
        writes = {} if after is None else {
            key: value for key, value in after.board.items()
            if last.get(key) == task.id and not _are_alike(checkpoint.board.get(key, ABSENT), value)
        }  # fmt: skip
        # An error before another checkpoint was handled, or the task was retried.
        failure = _make_failure(error) if error is not None and (after is None or is_handled) else None
        entered, scheduled = None, len(self.following)
        if self.thread.spaces.get(below):
            path = self.thread.path(below, max(self.thread.spaces[below]))
            entered = len(self.steps)
            self._add(RecordedStep(node, "subgraph", "enter", inside, None, source, started_at=start,
                                   ended_at=to_ns(path[0].time), writes=path[0].board))  # fmt: skip
            self._walk(path, below, node, entered, entered)
            source = len(self.steps) - 1
        elif waits:
            self.following.append(RecordedStep(node, "function", inside=inside, triggered_by=source))
            return -1
        if waits or (after is None and entered is not None and failure is None and not public):
            return len(self.steps) - 1  # it was interrupted inside
        del self.following[scheduled:]  # a subgraph that was left, for example because it failed, runs nothing more
        kind = "function" if name != "__start__" else "noop"
        self._add(RecordedStep(node, "subgraph" if entered is not None else kind,
                               "leave" if entered is not None else "run", inside, entered, source, started_at=start,
                               ended_at=ended, writes=writes, inputs=self._find_inputs(task, checkpoint),
                               failure=failure, uncaught=failure is not None and not is_handled))  # fmt: skip
        return len(self.steps) - 1

    def _add(self, step: RecordedStep) -> None:
        step.interventions, self.interventions = self.interventions, []
        self.steps.append(step)

    def _find_inputs(self, task: Task, checkpoint: Checkpoint) -> Any:
        """Return the input of a task that Send scheduled; other tasks read the board."""
        number, sends = _push_number(task.path), _get_sends(checkpoint)
        if number is None or number >= len(sends):
            return None
        arg = sends[number].arg
        return arg if isinstance(arg, dict) and all(isinstance(key, str) for key in arg) else {"input": arg}

    def _add_rest(self, checkpoint: Checkpoint, after: Checkpoint, first: int) -> None:
        """Add changes without a task's write to the last step of a super-step, and delete missing keys."""
        own = [step for step in self.steps[first:] if step.inside == (self.steps[first].inside)]
        if not own:
            return
        done = {key for step in own if step.phase != "enter" for key in step.writes}
        rest = {key: value for key, value in after.board.items()
                if key not in done and not _are_alike(checkpoint.board.get(key, ABSENT), value)}  # fmt: skip
        removed = dict.fromkeys((key for key in checkpoint.board if key not in after.board), ABSENT)
        own[-1].writes = {**own[-1].writes, **rest, **removed}

    # -- people ------------------------------------------------------------------------------------------------------

    def _add_outside(self, checkpoint: Checkpoint, after: Checkpoint, inside: int | None) -> None:
        """Record an input, an update of the state or a fork between two checkpoints."""
        action = {"input": "input", "update": "edit", "fork": "fork"}.get(after.source, after.source)
        scope = 0 if inside is None else inside + 1
        if action != "edit":
            target = safe_str((after.triggers.get("__start__") and "__start__") or "", 100)
            self.interventions.append(ImportedIntervention(action, target, after.triggers.get("__start__"), after.time))
        keys = [*after.board, *(key for key in checkpoint.board if key not in after.board)]
        for key in keys:
            value = after.board.get(key, ABSENT)
            if not _are_alike(checkpoint.board.get(key, ABSENT), value):
                self.interventions.append(ImportedIntervention("edit", key, value, after.time, scope=scope))

    def _add_answers(self, checkpoint: Checkpoint, task: Task, node: str) -> None:
        """Record the answers to a task's interrupts; the last one may be stored separately from the task."""
        if not task.values("__interrupt__"):
            return
        resumes = task.values("__resume__")
        answers = [value for values in resumes for value in (values if isinstance(values, list) else [values])]
        answers += [value for channel, value in checkpoint.outside if channel == "__resume__" and value not in answers]
        for value in answers:
            self.interventions.append(ImportedIntervention("answer", node, value, checkpoint.time))

    def _ask(self, interrupts: Sequence[Any], node: str) -> None:
        for interrupt in interrupts:
            for each in interrupt if isinstance(interrupt, list) else [interrupt]:
                value = each.get("value") if isinstance(each, dict) else each
                id = str(each.get("id", node)) if isinstance(each, dict) else node
                # An interrupt inside a subgraph is also recorded for the enclosing tasks; the innermost one asks.
                self.pending = [row for row in self.pending if row.id != id]
                self.pending.append(Pending(id, "answer", node, "interrupt", {"value": value}))

    def _add_end(self, last: Checkpoint, prefix: str, inside: int | None, scheduled_by: Mapping[str, int | None],
             sends: Sequence[int | None], earlier: int | None) -> None:  # fmt: skip
        """Find what was scheduled but not started when the record ended."""
        started = {(_name_of(task, last), _push_number(task.path)) for task in last.tasks if not _is_handler(task)}
        rows: list[tuple[str, int | None, int | None]] = [
            (name, None, scheduled_by.get(name, -1)) for name in _list_due(last)
        ]
        rows += [(send.node, at, sends[at] if at < len(sends) else -1) for at, send in enumerate(_get_sends(last))]
        for name, number, source in rows:
            if (name, number) not in started:
                source = _find_scheduling_step(earlier, source, self.at[last.id])  # noqa: PLW2901
                self.following.append(
                    RecordedStep(self.ids.id_of(prefix, name), "function", inside=inside, triggered_by=source)
                )


def _find_scheduling_step(earlier: int | None, source: int | None, first: int) -> int | None:
    """Return the step that scheduled a task of the super-step that begins at step `first`.

    A task that has waited, such as a deferred one, was scheduled by a step before the super-step before (which begins
    at `earlier`). When it is due, the end of that super-step has led to it.
    """
    return first - 1 if earlier is not None and (source is None or source < earlier) else source


def _list_due(checkpoint: Checkpoint) -> list[str]:
    """Return the nodes that a checkpoint schedules, except by Send."""
    due = (name for name, value in checkpoint.triggers.items() if _is_due(name, value))
    return list(dict.fromkeys(name.rpartition(":")[2] for name in due))


def _is_due(channel: str, value: Any) -> bool:
    """Return True if a channel schedules its node: a join when all have arrived, a deferred one when all is done."""
    if channel == "__start__":
        return True
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool):  # of a deferred node
        value, is_done = value
        if not is_done:
            return False
    if channel.startswith("join:"):
        sources = channel.removeprefix("join:").rpartition(":")[0].split("+")
        return isinstance(value, set | frozenset | list) and set(map(str, value)) == set(sources)
    return channel.startswith("branch:to:")


def _has_seen(checkpoint: Checkpoint, after: Checkpoint, name: str) -> bool:
    return name in after.seen and after.seen[name] != checkpoint.seen.get(name)


def _get_sends(checkpoint: Checkpoint) -> list[Send]:
    sends = checkpoint.triggers.get("__pregel_tasks") or []
    return [send for send in sends if isinstance(send, Send)] if isinstance(sends, list) else []


def _push_number(path: str) -> int | None:
    """Return the number of the Send that scheduled a task, from its path; None for any other task."""
    parts = path.removeprefix("~").split(", ")
    if parts[0] != "__pregel_push" or len(parts) < 2 or not parts[1].isdecimal() or len(parts[1]) > 20:
        return None
    return int(parts[1])


def _is_handler(task: Task) -> bool:
    """Return True if a task handles the error of another one."""
    return task.path.endswith(_HANDLER)


def _name_of(task: Task, checkpoint: Checkpoint, after: Checkpoint | None = None) -> str | None:
    """Return the node of a task, from its path; None if the saver did not store it."""
    if _is_handler(task):
        failed = _name_of(Task(task.id, task.path.removesuffix(_HANDLER)), checkpoint)
        is_default = after is not None and f"__error_handler__{failed}" not in after.seen
        return "__default_error_handler__" if is_default else f"__error_handler__{failed}"
    parts = task.path.removeprefix("~").split(", ", 1)
    if parts[0] == "__pregel_pull" and len(parts) > 1:
        return parts[1]
    number, sends = _push_number(task.path), _get_sends(checkpoint)
    return sends[number].node if number is not None and number < len(sends) else None


def _is_public(channel: str) -> bool:
    return not channel.startswith(("__", *_TRIGGERS))


def _make_failure(error: Any) -> tuple[str, str]:
    text = error if isinstance(error, str) else safe_repr(error, LONGEST_TEXT)
    kind, bracket, message = text.partition("(")
    named = bool(bracket) and kind.isidentifier()
    return (kind, message.removesuffix(")").strip("'\"")) if named else ("Error", text)


def _are_alike(left: Any, right: Any) -> bool:
    if left is ABSENT or right is ABSENT:
        return left is right
    return next(iter(iter_innermost_differences(freeze(left), freeze(right), ())), None) is None


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(reader: DatabaseReader, run_id: str | None) -> tuple[Thread, str]:
    """Return the thread and the checkpoint that a run id denotes.

    L575: the database has no such thread, or no threads.

    Raises:
        StoreError: L573, L574, L575.
    """
    _check_tables(reader)
    newest = reader.rows("SELECT thread_id, MAX(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = ? "
                       "GROUP BY thread_id ORDER BY 2 DESC", "")  # fmt: skip
    threads = [str(row[0]) for row in newest]
    name, _, leaf = (run_id or "").rpartition("@") if run_id not in threads else (run_id, "", "")
    name = threads[0] if run_id is None and threads else name or run_id or ""
    if name in threads:
        thread = _read_thread(reader, name)
        leaves = thread.leaves()
        if not leaf or leaf in thread.spaces[""]:
            return thread, leaf or leaves[0]
    shown = ", ".join(map(repr, threads[:5])) or "none"
    raise StoreError(
        Problem("L575", f"there is no thread {run_id!r}" if run_id else "there is no thread yet", reader.display_name,
                f"its threads are: {shown}{' ...' if len(threads) > 5 else ''}",
                did_you_mean(run_id or "", threads, "leave run_id out for the thread that was written last"))
    )  # fmt: skip


def _check_tables(reader: DatabaseReader) -> None:
    """L573: this is not a checkpoint database of LangGraph.

    Raises:
        StoreError: L573.
    """
    tables = reader.tables()
    expected = {"checkpoints", "writes"} if reader.kind == "sqlite" else {"checkpoints", "checkpoint_blobs",
                                                                     "checkpoint_writes"}  # fmt: skip
    missing = expected - tables or _NEEDED - reader.columns("checkpoints")
    if missing:
        raise StoreError(
            Problem("L573", "this is not a checkpoint database of LangGraph", reader.display_name,
                    f"it lacks {', '.join(map(repr, sorted(missing)))}",
                    "pass the file or URL of the graph's checkpointer")
        )  # fmt: skip


def _read_thread(reader: DatabaseReader, name: str) -> Thread:
    """Return all checkpoints of a thread.

    Raises:
        StoreError: L574, one of them cannot be read.
    """
    where = f"{reader.display_name}, thread {name!r}"
    ((count,),) = reader.rows("SELECT COUNT(*) FROM checkpoints WHERE thread_id = ?", name)
    if count > MOST:
        raise make_damage_error(where, f"it has {count} checkpoints, and the limit is {MOST}")
    spaces: Namespaces = {}
    with reading(where):
        for space, checkpoint in _read_checkpoints(reader, name):
            spaces.setdefault(space, {})[checkpoint.id] = checkpoint
        _add_writes(reader, name, spaces)
        restored = {key for each in spaces.values() for key in _restore_boards(each)}
    thread = Thread(reader.display_name, name, spaces, sorted(restored))
    if spaces.get("") and not thread.leaves():
        raise make_damage_error(where, "each checkpoint continues another one: none is the last")
    return thread


def _read_checkpoints(reader: DatabaseReader, thread: str) -> Iterator[tuple[str, Checkpoint]]:
    rows = reader.rows("SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata "
                     "FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id", thread)  # fmt: skip
    blobs = {}
    if reader.kind != "sqlite":
        query = "SELECT checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs WHERE thread_id = ?"
        blobs = {tuple(map(str, row[:3])): row[3:] for row in reader.rows(query, thread)}
    for space, id, parent, type, data, meta in rows:
        body = decode_typed(type, data) if reader.kind == "sqlite" else data
        if not isinstance(body, dict):
            raise TypeError(body.why if isinstance(body, Opaque) else "a checkpoint is not a mapping")
        values = dict(body.get("channel_values") or {})
        if reader.kind != "sqlite":
            for channel, version in (body.get("channel_versions") or {}).items():
                if (blob := blobs.get((space, channel, str(version)))) is not None and blob[0] != "empty":
                    values[channel] = decode_typed(*blob)
        metadata = json.loads(meta) if isinstance(meta, str | bytes) else meta or {}
        yield str(space), Checkpoint(
            str(id), None if parent is None else str(parent), _parse_time(body.get("ts")),
            {str(key): _to_plain(value) for key, value in values.items() if _is_public(str(key))},
            {str(key): value for key, value in values.items() if not _is_public(str(key))},
            {str(node): seen for node, seen in dict(body.get("versions_seen") or {}).items()},
            str(metadata.get("source", "loop")),
            frozenset(map(str, metadata.get("counters_since_delta_snapshot") or ())),
        )  # fmt: skip


def _add_writes(reader: DatabaseReader, thread: str, spaces: Namespaces) -> None:
    table, value = ("writes", "value") if reader.kind == "sqlite" else ("checkpoint_writes", "blob")
    path = "task_path" if "task_path" in reader.columns(table) else "''"
    query = (f"SELECT checkpoint_ns, checkpoint_id, task_id, {path}, channel, type, {value} FROM {table} "  # noqa: S608  (names of ours)
             "WHERE thread_id = ? ORDER BY checkpoint_id, task_id, idx")  # fmt: skip
    for space, id, task, where, channel, type, data in reader.rows(query, thread):
        checkpoint = spaces.get(space, {}).get(id)
        if checkpoint is None:
            continue
        if not all(isinstance(text, str) for text in (task, where, channel)):
            raise TypeError("a write names no task or channel")
        decoded = decode_typed(type, data)
        if task == NO_NODE_ID:
            checkpoint.outside.append((channel, decoded))
            continue
        if not checkpoint.tasks or checkpoint.tasks[-1].id != task:
            checkpoint.tasks.append(Task(task, where))
        checkpoint.tasks[-1].writes.append((channel, decoded))


def _restore_boards(checkpoints: Mapping[str, Checkpoint]) -> set[str]:
    """Add the values of DeltaChannels to the boards of a namespace; return the names of those that had to be computed.

    Without a value of its own, a checkpoint has its parent's value with what the parent's tasks wrote.
    """
    names = sorted({name for checkpoint in checkpoints.values() for name in checkpoint.deltas})
    computed, done = set[str](), set[str]()
    for id in checkpoints if names else ():
        path = list[Checkpoint]()
        at: str | None = id
        while at is not None and at in checkpoints and at not in done:
            done.add(at)
            path.append(checkpoints[at])
            at = checkpoints[at].parent
        for checkpoint in reversed(path):
            parent = checkpoints.get(checkpoint.parent or "")
            if parent is None:
                continue
            for name in names:
                if name in checkpoint.board:
                    continue
                value = parent.board.get(name, ABSENT)
                for write in _list_writes(parent, name):
                    value = add_write(value, write)
                if value is not ABSENT:
                    checkpoint.board[name] = _to_plain(value)
                    computed.add(name)
    return computed


def _list_writes(checkpoint: Checkpoint, channel: str) -> list[Any]:
    """Return what was written to a channel from a checkpoint, in the order in which LangGraph applies it."""
    tasks = sorted(checkpoint.tasks, key=lambda task: (task.path, task.id))
    return [
        value
        for writes in (checkpoint.outside, *(task.writes for task in tasks))
        for name, value in writes
        if name == channel
    ]


def _to_plain(value: Any) -> Any:
    """Return a value as it can be on a board: parts that were not decoded become a text that says why."""
    match value:
        case Opaque():
            return f"<{value.why}>"
        case Send():
            return {"node": value.node, "arg": _to_plain(value.arg)}
        case dict():
            return {key: _to_plain(item) for key, item in value.items()}
        case list():
            return [_to_plain(item) for item in value]
    return value


def _parse_time(text: Any) -> datetime:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return EPOCH
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _list_runs(reader: DatabaseReader) -> list[dict[str, Any]]:
    _check_tables(reader)
    threads = reader.rows("SELECT thread_id, MAX(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = ? "
                        "GROUP BY thread_id ORDER BY 2", "")  # fmt: skip
    rows = []
    for name, _ in threads:
        thread = _read_thread(reader, name)
        for at, leaf in enumerate(thread.leaves()):
            path = thread.path("", leaf)
            rows.append({"run_id": _run_id(thread, leaf), "thread": name, "checkpoints": len(path),
                         "updated": path[-1].time, "parent": name if at else None})  # fmt: skip
    return rows


__all__ = ["LangGraphRun", "open_langgraph"]
