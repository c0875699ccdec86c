"""trace: the SimulationTrace, a whole run to look at. Live while its session runs, and the same from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agentnb.board.scopes import ROOT_SCOPE
from agentnb.board.secrets import short
from agentnb.board.values import ABSENT, same, thaw
from agentnb.engine.history import History
from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.ids import uuid_of
from agentnb.trace.reading import EdgeRow, NodeRow, Reading
from agentnb.trace.steps import SimulationStep, Steps

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.engine.run import Run
    from agentnb.trace.frames import Frames

Outcome = dict[str, Any] | None


class SimulationTrace:
    """What happened in a run: its steps, its tables, and what the blackboard held after each step.

    It is live: steps made later are seen, those after the session's position too, until a new one takes their place.
    Steps and states are true; what leaves by `frames`, `wide`, `to_json` and on the screen is masked.

    Args:
        chain: returns the histories of the run, the oldest first.
        nodes: id, kind and type of each node, in the plan's order.
        outcome: returns how the run stands or ended, None before it began.
        score: returns how good the run's work was found, None where nothing has judged it.
        metadata: whatever else belongs to the run.
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
    ) -> None:
        self._chain, self._nodes, self._edges = chain, tuple(nodes), tuple(edges)
        self._outcome, self.run_id = outcome, run_id
        self.agent_id, self.agent_version = agent_id, agent_version
        self._score, self.metadata = score, dict(metadata or {})
        self._read: Reading | None = None
        self._frames: tuple[Any, Frames] | None = None

    @classmethod
    def of(cls, run: Run | Callable[[], Run], **words: Any) -> SimulationTrace:
        """Return the live trace of a run; given a function, of the run that it returns at the time of asking.

        `words` are the named arguments of SimulationTrace.
        """
        current = run if callable(run) else lambda: run
        plan = current().plan
        nodes = [
            NodeRow(node.id, node.node.kind, node.kind.step_type, tuple((node.node.inputs or {}).items()))
            for node in plan.nodes
        ]
        edges = [
            EdgeRow(edge.source, edge.target, edge.kind, edge.condition, edge.when is not None)
            for edge in plan.recipe.edges
        ]
        return cls(lambda: current().chain, nodes, edges, **{"agent_id": plan.recipe.name, **words})

    @property
    def trace_id(self) -> UUID:
        """The id of this trace: the same for the same run, in every process."""
        return uuid_of(self.run_id, 0)

    @property
    def outcome(self) -> Outcome:
        """How the run stands or ended: `status` and what belongs to it; None before it began."""
        return self._outcome()

    @property
    def score(self) -> float | None:
        """The last score that a node of the run has given to its work; None where none has."""
        return self._score()

    @property
    def steps(self) -> Steps:
        """The steps, from 1 on (`steps[0]` is step 1); each is made when it is asked for."""
        return Steps(self.reading, self.run_id)

    def reading(self) -> Reading:
        """Return the run's rows as they can be looked up now."""
        chain = tuple(self._chain())
        read = self._read
        if (
            read is None
            or len(read.chain) != len(chain)
            or any(a is not b for a, b in zip(read.chain, chain, strict=True))
        ):
            read = self._read = Reading(chain, self._nodes, self._edges)
        return read

    def __len__(self) -> int:
        return self.reading().tip

    def __bool__(self) -> bool:
        """A trace is true, without steps too."""
        return True

    # -- states ----------------------------------------------------------------------------------------------

    def state_at(self, step: int) -> dict[str, Any]:
        """Return the blackboard (the root's scope) after a step, people's edits there included; 0 is the start.

        Raises:
            ExecutionError: L405, there is no such step.
        """
        return {key: thaw(value) for key, value in self._state(step).items()}

    def diff(self, before: int, after: int) -> dict[str, tuple[Any, Any]]:
        """Return what differs between two states: key -> (value before, value after), ABSENT where there is none.

        Raises:
            ExecutionError: L405, there is no such step.
        """
        old, new = self._state(before), self._state(after)
        keys = [*old, *(key for key in new if key not in old)]
        pairs = ((key, old.get(key, ABSENT), new.get(key, ABSENT)) for key in keys)
        return {key: (thaw(one), thaw(other)) for key, one, other in pairs if not _alike(one, other)}

    def _state(self, step: int) -> dict[str, Any]:
        reading = self.reading()
        if not 0 <= step <= reading.tip:
            raise ExecutionError(
                Problem(
                    "L405",
                    f"there is no step {step}",
                    f"the trace of {self.agent_id!r}",
                    f"it has {reading.tip} steps, and 0 is its start",
                    f"use a number from 0 to {reading.tip}",
                )
            )
        return reading.replica(step).data[0]

    # -- tables ----------------------------------------------------------------------------------------------

    @property
    def frames(self) -> Frames:
        """The run as DataFrames: steps, writes, reads, edges, calls, acts, events. As it is now, and masked.

        Each access of a table gives a frame of its own; changing one changes no other.
        """
        from agentnb.trace.frames import Frames

        reading = self.reading()
        last = reading.chain[-1]
        sizes = (len(last.s_pend), last.s_wend[-1], len(last.people), len(last.events), len(last.calls))
        if self._frames is None or self._frames[0] != (reading, sizes):
            self._frames = (reading, sizes), Frames(reading)
        return self._frames[1]

    def to_frame(self) -> pd.DataFrame:
        """Return `frames.steps`."""
        return self.frames.steps

    def wide(self, keys: str | Sequence[str], scope: str = ROOT_SCOPE) -> pd.DataFrame:
        """Return one row a step and one column a key (dotted text reads below it): what stood there after the step.

        Raises:
            ExecutionError: L406, the run has no scope of this name.
        """
        from agentnb.trace.frames import wide

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
        return wide(reading, [keys] if isinstance(keys, str) else list(keys), number)

    # -- files and the screen --------------------------------------------------------------------------------

    def to_json(self, path: str | Path | None = None) -> str | None:
        """Write the trace to a file as JSON, or return the text where no path is given. Masked; nothing is pickled.

        What no codec takes is written as its short text, marked as opaque.
        """
        from agentnb.trace.export import text_of

        text = text_of(self)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    @classmethod
    def read(cls, path: str | Path) -> SimulationTrace:
        """Return the trace that `to_json` wrote; it answers the same questions without the recipe. Imports nothing.

        Raises:
            StoreError: L402, the file is none of ours or is damaged; L403, a newer agentnb wrote it.
        """
        from agentnb.trace.export import trace_of

        return trace_of(Path(path).read_text(encoding="utf-8"), str(path))

    def _repr_html_(self) -> str:
        """Return a small table: the first steps, and how the run stands."""
        from agentnb.trace.export import html_of

        return html_of(self)

    def __repr__(self) -> str:
        """Return one line: whose trace, how many steps, how it stands."""
        return f"<SimulationTrace of {self.agent_id!r}: {len(self)} steps, {self.outcome_line()}>"

    def outcome_line(self) -> str:
        """Return how the run stands as one line of text, masked."""
        outcome = self.outcome
        if not outcome:
            return "no outcome yet"
        rest = {key: value for key, value in outcome.items() if key != "status" and value is not None}
        return str(outcome.get("status", "")) + (f" {short(rest)}" if rest else "")


def _alike(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if one is ABSENT or other is ABSENT:
        return False
    return same(thaw(one), other)


__all__ = ["EdgeRow", "NodeRow", "SimulationStep", "SimulationTrace"]
