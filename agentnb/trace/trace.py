"""The SimulationTrace of a whole run: live while its session runs, with the same interface when read from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agentnb.arguments import plain_arguments, plain_methods
from agentnb.board.key_checks import check_keys
from agentnb.board.scopes import ROOT_SCOPE
from agentnb.board.values import ABSENT, are_alike, freeze, thaw
from agentnb.display import get_view
from agentnb.engine.core.history import History
from agentnb.engine.effects.crash_recovery import collect_interrupted_steps
from agentnb.engine.replay.equality import iter_innermost_differences
from agentnb.errors import ExecutionError, Problem, did_you_mean, pluralize
from agentnb.expressions.paths import format_path, parse_path
from agentnb.ids import make_step_id
from agentnb.secrets import masks_by
from agentnb.text import safe_repr
from agentnb.trace.recipe_snapshot import describe_origin
from agentnb.trace.row_index import EdgeRow, NodeRow, StepIndex
from agentnb.trace.steps import SimulationStep, Steps

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.engine.core.run import Run
    from agentnb.engine.effects.crash_recovery import UnansweredCall
    from agentnb.trace.frames import Frames

Outcome = dict[str, Any] | None


@masks_by(lambda trace: trace._chain()[0].tables.secrets)  # noqa: SLF001  (its own)
@plain_methods
class SimulationTrace:
    """What happened in a run: its steps, its tables, and the contents of the blackboard after each step.

    It is live: later steps appear, also those after the session's position, until a new step replaces them.
    Steps and states are unmasked; `frames`, `wide`, `to_json` and the display are masked.

    Args:
        chain: returns the histories of the run, oldest first.
        nodes: id, kind and type of each node, in the plan's order.
        outcome: returns the status or outcome of the run, None before it began.
        score: returns the score of the run, None if no node has given one.
        metadata: further data about the run.
        origin: returns what the run began with (recipe, given, seed, salt), as JSON; empty if unknown.
        unanswered: returns the calls and questions after the last step that have no response yet.
    """

    def __init__(
        self,
        chain: Callable[[], Sequence[History]],
        nodes: Sequence[NodeRow],
        edges: Sequence[EdgeRow] = (),
        *,
        agent_id: str = "",
        run_id: str = "",
        outcome: Callable[[], Outcome] = lambda: None,
        agent_version: str = "v2",
        score: Callable[[], float | None] = lambda: None,
        metadata: Mapping[str, Any] | None = None,
        origin: Callable[[], Mapping[str, Any]] = dict,
        unanswered: Callable[[], Sequence[UnansweredCall]] = tuple,
    ) -> None:
        self._chain, self._outcome, self._score, self.origin = chain, outcome, score, origin
        self.unanswered = unanswered
        self.agent_id, self.agent_version, self.run_id = agent_id, agent_version, run_id
        self._nodes, self._edges, self._metadata = tuple(nodes), tuple(edges), freeze(dict(metadata or {}))

    # Most traces of short runs are never looked at, so `of` leaves to these what is first asked for later.
    agent_version = "v2"
    _read: StepIndex | None = None
    _frames: tuple[Any, Frames] | None = None

    @classmethod
    def of(cls, run: Run | Callable[[], Run], **options: Any) -> SimulationTrace:
        """Return the live trace of a run; given a function, of the run that it returns at the time of access.

        `options` are keyword arguments of SimulationTrace; `run_id` and `metadata` may be functions, which are called
        when they are first needed.
        """
        trace = cls.__new__(cls)
        trace._follow(run if callable(run) else lambda: run, **options)  # noqa: SLF001  (its own)
        return trace

    def _follow(
        self,
        current: Callable[[], Run],
        *,
        agent_id: str | None = None,
        run_id: str | Callable[[], str] = "",
        outcome: Callable[[], Outcome] = lambda: None,
        score: Callable[[], float | None] = lambda: None,
        metadata: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        unanswered: Callable[[], Sequence[UnansweredCall]] | None = None,
    ) -> None:
        self._plan = plan = current().plan
        self.agent_id = plan.recipe.name if agent_id is None else agent_id
        self._chain, self.origin = lambda: current().chain, lambda: describe_origin(current())
        self.unanswered = (lambda: _list_unanswered(current())) if unanswered is None else unanswered
        self._outcome, self._score, self._given_id, self._given_metadata = outcome, score, run_id, metadata

    @cached_property
    def run_id(self) -> str:
        """The id of the run."""
        return self._given_id() if callable(self._given_id) else self._given_id

    @cached_property
    def _nodes(self) -> tuple[NodeRow, ...]:
        return tuple(
            NodeRow(node.id, node.node.kind, node.kind.step_type, tuple((node.node.inputs or {}).items()))
            for node in self._plan.nodes
        )

    @cached_property
    def _edges(self) -> tuple[EdgeRow, ...]:
        return tuple(
            EdgeRow(edge.source, edge.target, edge.kind, edge.condition, edge.when is not None)
            for edge in self._plan.edges
        )

    @cached_property
    def _metadata(self) -> Any:
        metadata = self._given_metadata
        return freeze(dict((metadata() if callable(metadata) else metadata) or {}))

    @property
    def trace_id(self) -> UUID:
        """The id of this trace: the same for the same run, in every process."""
        return make_step_id(self.run_id, 0)

    @property
    def outcome(self) -> Outcome:
        """The status or outcome of the run: `status` and its details; None before it began."""
        outcome: Outcome = thaw(freeze(self._outcome()))
        return outcome

    @property
    def metadata(self) -> dict[str, Any]:
        """Further data about the run."""
        metadata: dict[str, Any] = thaw(self._metadata)
        return metadata

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the recipe that the run was made with; None if it is not known."""
        recipe = self.origin().get("recipe")
        return None if recipe is None else str(recipe["fingerprint"])

    @property
    def score(self) -> float | None:
        """The last score that a node of the run has given; None if there is none."""
        return self._score()

    @property
    def steps(self) -> Steps:
        """The steps, from 1 on (`steps[0]` is step 1); each is created on access."""
        return Steps(self.reading, self.run_id)

    def reading(self) -> StepIndex:
        """Return an index of the run's current rows."""
        chain = tuple(self._chain())
        read = self._read
        if (
            read is None
            or len(read.chain) != len(chain)
            or any(a is not b for a, b in zip(read.chain, chain, strict=True))
        ):
            read = self._read = StepIndex(chain, self._nodes, self._edges)
        return read

    def __len__(self) -> int:
        return self.reading().tip

    def __bool__(self) -> bool:
        """Return True: a trace is true even without steps."""
        return True

    # -- states ----------------------------------------------------------------------------------------------

    def state_at(self, step: int) -> dict[str, Any]:
        """Return the blackboard (the root's scope) after a step, including edits by people; 0 is the start.

        Raises:
            ExecutionError: L405, there is no such step.
        """
        return {key: thaw(value) for key, value in self._get_state(step).items()}

    def diff(self, before: int, after: int) -> dict[str, tuple[Any, Any]]:
        """Return what differs between two states: path -> (value before, value after), ABSENT for a missing value.

        The paths lead to the innermost parts that differ: `messages.3` for a new message, `user.name` for a field.

        Raises:
            ExecutionError: L405, there is no such step.
        """
        old, new = self._get_state(before), self._get_state(after)
        keys = [*old, *(key for key in new if key not in old)]
        changes: dict[str, tuple[Any, Any]] = {}
        for key in keys:
            left, right = old.get(key, ABSENT), new.get(key, ABSENT)
            if are_alike(left, right):
                continue
            parts = [*iter_innermost_differences(left, right, (key,))]
            for path, was, now in [part[:3] for part in parts] or [((key,), left, right)]:
                changes[format_path(path)] = thaw(was), thaw(now)
        return changes

    def _get_state(self, step: int) -> dict[str, Any]:
        reading = self.reading()
        if not 0 <= step <= reading.tip:
            raise ExecutionError(
                Problem(
                    "L405",
                    f"there is no step {step}",
                    f"the trace of {self.agent_id!r}",
                    f"it has {reading.tip} steps; 0 is its start",
                    f"use a number from 0 to {reading.tip}",
                )
            )
        return reading.replica(step).data[0]

    # -- tables ----------------------------------------------------------------------------------------------

    @property
    def frames(self) -> Frames:
        """The run as DataFrames: steps, writes, reads, edges, calls, interventions, events. A masked snapshot.

        Each access of a table returns an independent frame.
        """
        from agentnb.trace.frames import Frames

        reading = self.reading()
        last = reading.chain[-1]
        events, calls = last.events, last.calls
        sizes = (
            len(last.push_ends),
            last.write_ends[-1],
            len(last.interventions),
            len(events),
            len(calls),
            last.uncommitted_calls,
        )
        if self._frames is None or self._frames[0] != (reading, sizes):
            self._frames = (reading, sizes), Frames(reading)
        return self._frames[1]

    def to_frame(self) -> pd.DataFrame:
        """Return `frames.steps`."""
        return self.frames.steps

    def wide(self, keys: str | Sequence[str], scope: str = ROOT_SCOPE) -> pd.DataFrame:
        """Return one row per step and one column per key (dotted keys read nested values): its value after the step.

        Raises:
            ExecutionError: L406, the run has no scope of this name; X145, a key that nothing writes.
        """
        from agentnb.trace.frames import make_wide_table

        reading = self.reading()
        number = reading.scope_of(scope)
        if number is None:
            names = [reading.frame_name(row.id) for row in reading.tables.frames if row.scope == row.id]
            raise ExecutionError(
                Problem(
                    "L406",
                    f"there is no scope {scope!r}",
                    f"the trace of {self.agent_id!r}",
                    f"its scopes are: {', '.join(names[:20])}",
                    did_you_mean(scope, names, f"use {ROOT_SCOPE!r}"),
                )
            )
        key_list = [keys] if isinstance(keys, str) else list(keys)
        known = {str(path[0]) for _, path in reading.tables.codes}
        if problems := [*check_keys(map(parse_path, key_list), known, "trace.wide()")]:
            raise ExecutionError(*problems)
        return make_wide_table(reading, key_list, number)

    # -- files and display --------------------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str | None:
        """Write the trace to a file as JSON, or return the text if no path is given. Masked; nothing is pickled.

        Values without a codec are written as short text, marked as opaque.
        """
        from agentnb.trace.export import to_json_text

        text = to_json_text(self)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    def to_html(self, path: str | Path | None = None, *, quiz: Sequence[Any] = ()) -> str | None:
        """Write the run as one HTML page, or return its text if no path is given.

        The page is the cockpit: graph, board, timeline, details and slider. It opens from disk without a kernel or a
        network, and is a table where scripts cannot run. Secrets are masked.

        Args:
            quiz: exercises; each hides what comes after a step until the reader predicts it. A step number asks which
                node runs next, `{"step": 3, "key": "reply"}` asks for the value that the next step writes to a key;
                `question` replaces the text of the question.

        Raises:
            AgentNbError: U590, an exercise is neither; U591, the run has no such step or key.
        """
        text: str | None = get_view("page")(self, path, quiz=quiz)
        return text

    @classmethod
    @plain_arguments
    def read(cls, path: str | Path) -> SimulationTrace:
        """Return the trace that `to_json` wrote; it needs no recipe and imports nothing.

        Raises:
            StoreError: L402, the file is not a trace or is damaged; L403, a newer agentnb wrote it.
        """
        from agentnb.trace.export import parse_trace_text

        return parse_trace_text(Path(path).read_bytes(), str(path))

    def to_parquet(self, path: str | Path) -> None:
        """Write the tables to a folder, one Parquet file each, or to one file if the path ends with `.parquet`.

        The one file has the rows of all tables, with the name of the table in the column `table`. Masked.

        Raises:
            ExecutionError: L590, pyarrow is not installed.
        """
        get_view("parquet")(self, path)

    def to_arrow(self) -> dict[str, Any]:
        """Return the tables as pyarrow Tables, by name. Masked.

        Raises:
            ExecutionError: L590, pyarrow is not installed.
        """
        tables: dict[str, Any] = get_view("arrow")(self)
        return tables

    def to_otel(self, tracer_provider: Any) -> int:
        """Send the run to an OpenTelemetry TracerProvider, by the GenAI semantic conventions; return how many spans.

        While a session runs, `agentnb.export.otel.send_live(session, tracer_provider)` sends its steps. Masked.

        Raises:
            ExecutionError: L590, opentelemetry is not installed.
        """
        count: int = get_view("otel")(self, tracer_provider)
        return count

    def to_event_log(self) -> pd.DataFrame:
        """Return one row per step as an event log for process mining: `case:concept:name`, `concept:name`, ...

        `time:timestamp` is when the step ended, `lifecycle:transition` is `start` where a composite node is entered.
        """
        log: pd.DataFrame = get_view("event_log")(self)
        return log

    def sequence_diagram(self, max_steps: int = 100) -> str:
        """Return a Mermaid sequence diagram of the first steps: nodes, models, tools and people. Masked."""
        text: str = get_view("sequence_diagram")(self, max_steps)
        return text

    @property
    def charts(self) -> Any:
        """The charts of the run, by Altair: `timeline`, `durations`, `board`, `usage`. Masked.

        Raises:
            ExecutionError: L590, altair is not installed (when a chart is made).
        """
        return get_view("charts")(self)

    def _repr_html_(self) -> str:
        """Return a small HTML table: the first steps and the status of the run."""
        from agentnb.trace.export import render_html

        return render_html(self)

    def __repr__(self) -> str:
        """Return one line: the run's name, number of steps and status."""
        size = pluralize(len(self), "step")
        return f"<SimulationTrace of {safe_repr(self.agent_id, 200)}: {size}, {self.outcome_line()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the trace as the JSON text that `to_json` writes, with secrets masked."""
        from agentnb.trace.export import parse_trace_text, to_json_text

        return parse_trace_text, (to_json_text(self), "a pickled trace")

    def outcome_line(self) -> str:
        """Return the status of the run as one masked line of text."""
        outcome = self.outcome
        if not outcome:
            return "no outcome yet"
        rest = [f"{key} {safe_repr(value, key=key)}" for key, value in outcome.items()
                if key not in {"status", "steps"} and value is not None]  # fmt: skip
        return ", ".join([str(outcome.get("status", "")), *rest])


def _list_unanswered(run: Run) -> Sequence[UnansweredCall]:
    """Return the unanswered calls of the steps that are pending after the last step, not of those begun earlier."""
    return list(collect_interrupted_steps(run).iter_unanswered()) if run.position == run.history.tip else ()


__all__ = ["EdgeRow", "NodeRow", "SimulationStep", "SimulationTrace"]
