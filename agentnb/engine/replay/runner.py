"""Replay: execute the steps of a run again with recorded responses and interventions, and report differences.

A replay is a separate run. Its nodes run again in the recorded order; each call is answered by the row of the recorded
call, and none is sent. Interventions are repeated at their recorded positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.board.codec import is_known
from agentnb.board.masking import mask_value, register_secrets
from agentnb.board.values import ABSENT, thaw
from agentnb.engine.control import interventions
from agentnb.engine.core import time_travel
from agentnb.engine.core.drivers import LOOP, resume_without_loop, step_in_loop
from agentnb.engine.core.history import ActivationRow, Intervention, Tables
from agentnb.engine.core.run import NEVER, SUSPENDED, Run
from agentnb.engine.core.step import step
from agentnb.engine.replay.divergence import Divergence, Level, Sides, compare_steps, iter_inner_differences
from agentnb.engine.replay.recorded_effects import RecordedClock, StepRecording
from agentnb.engine.replay.recorded_interventions import (
    list_next_activations,
    redo,
    to_written_value,
)
from agentnb.engine.replay.step_record import Record, RecordedIntervention, StepRecord, read_step
from agentnb.event_loops import run_in_own_loop
from agentnb.recipe.call_settings import get_call_settings

if TYPE_CHECKING:
    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.plan import Plan


class Replay:
    """One replay of a run up to its position. `execute` runs it; then `divergences` holds the differences, in order.

    `unsure` holds the places where it is unknown whether they differ; `compared` counts the steps.

    Args:
        plan: the plan to run if it differs from the recorded one; it must number its nodes in the same way.
        start: the step after which the replay starts, with the recorded state.
    """

    def __init__(self, source: Run, *, plan: Plan | None = None, start: int = 0, level: Level = "values") -> None:
        self.source, self.plan, self.start, self.level = source, plan, start, level
        self.record, self.clock = Record(source), RecordedClock(source.clock)
        self.divergences: list[Divergence] = []
        self.unsure: list[Divergence] = []
        self.compared_steps = 0
        self._ran: dict[ActivationRow, int] = {}  # the last step of each recorded activation
        self._later: dict[int, list[tuple[Intervention, Callable[[], object]]]] = {}  # by step in flight
        self._hidden_events: dict[int, set[int]] = {}  # by step in flight: later events
        self._settings: dict[int, Mapping[str, Any]] = {}  # of calls, by recipe
        self._masked_keys: set[tuple[int, str]] = set()  # keys whose value, or its source, is masked in the record
        for intervention, end in sorted(self.record.spans.values(), key=lambda span: -span[0].step):
            if intervention.step <= start < end:
                start = max(intervention.step - 1, 0)  # a step was in flight there, and started from the state before
        self._from = start
        self._repeated_up_to = start or -1  # interventions after the steps up to this one have been repeated
        self.run = self._run_after(start) if start else self._run_at_start()
        self.sides = Sides(self.record, self.run)

    def execute(self) -> Replay:
        """Replay step by step until the replay diverges or the record ends."""
        for number in range(self._from + 1, self.source.position + 1):
            recorded = self.record.read_step(number)
            if recorded.is_cancelled:  # the preceding failure has cancelled it here as well
                continue
            if not (self._use_plan(number) and self._repeat_interventions(recorded) and self._step(recorded)):
                break
            self.compared_steps += number > self.start
        return self

    # -- start ---------------------------------------------------------------------------------------------------------

    def _plan_of(self, number: int) -> Plan:
        return self.plan or self.record.plan(number)

    def _run_at_start(self) -> Run:
        """Return a run at the start, with the recorded board or that of an edited recipe."""
        plan = self._plan_of(1 if self.source.position else 0)
        run = self._configure(Run(plan, self.source.dispatcher, clock=self.clock, seed=self.source.seed))
        rows, root = self.record.read_initial_writes(), run.root.scope
        self.clock.set_time(self.record.parts[0][0].start_times[0])
        if self.plan is not None and plan.recipe.begin is None:
            for key, value in {**plan.recipe.init, **thaw(run.inputs)}.items():
                run.write(root, (key,), value)
            if self.level != "path":
                recorded_values = {row.path[0]: row.new for row in rows}
                self._record_differences(iter_inner_differences((0, None, "write"), (), recorded_values, root.data))
        else:
            for row in rows:
                run.write(root, row.path, to_written_value(row))
        register_secrets(root.data, owner=self.source.tables.secrets)
        run.history.set_first_row([run.get_activation(node, run.root).id for node in plan.entries["root"]], run.ns())
        run.checkpoint()
        return run

    def _run_after(self, start: int) -> Run:
        """Return a run positioned after a step of the record; the recorded run does not change."""
        origin = time_travel.find_history(self.source, start)
        sealed = origin.sealed_step
        run = time_travel.fork_run(self.source, self._plan_of(start + 1), start)
        origin.sealed_step = sealed
        tables = Tables()
        for name in Tables.__slots__:
            setattr(tables, name, copy(getattr(self.source.tables, name)))
        run.tables = run.history.tables = tables
        run.root.scope.codes = {}
        return self._configure(run)

    def _configure(self, run: Run) -> Run:
        """Configure a run like the recorded one, but without limits: a step stopped by a limit is not recorded."""
        source = self.source
        run.inputs, run.max_frames, run.max_subgraph_depth = source.inputs, source.max_frames, source.max_subgraph_depth
        run.clock, run.ns, run.limit, run.chaos = self.clock, self.clock.ns, NEVER, None
        run.salt = source.salt
        run.run_id, run.origin_id = source.run_id, source.origin_id
        run.set_next_due()
        return run

    def _use_plan(self, number: int) -> bool:
        """Continue with the plan that was used for this step: a fork may have other tools or another recipe."""
        plan = self._plan_of(number)
        if plan is not self.run.plan:
            self.run = self.sides.run = self._configure(time_travel.fork_run(self.run, plan, self.run.position))
        return True

    # -- interventions -------------------------------------------------------------------------------------------------

    def _repeat_interventions(self, recorded: StepRecord) -> bool:
        """Repeat the interventions before a step; return True if the replay can continue."""
        for number in range(self._repeated_up_to + 1, recorded.step):
            spans = dict[int, tuple[Intervention, int]]()
            for each in self.record.interventions_between(number):
                intervention = each.intervention
                if intervention is not None and id(intervention) in self.record.spans:
                    spans[intervention.new["turn"]] = self.record.spans[id(intervention)]
                    continue
                span = self._find_intervention(each, number, spans.values())
                if each.event is not None:
                    self._hide_event(each.event.seq, [other for other in spans.values() if other is not span])
                if span is not None:
                    self._later.setdefault(span[1], []).append((span[0], partial(self._redo, each, number)))
                elif not self._redo(each, number):
                    return False
        self._repeated_up_to = recorded.step - 1
        return True

    def _find_intervention(
        self, recorded: RecordedIntervention, number: int, spans: Iterable[tuple[Intervention, int]]
    ) -> tuple[Intervention, int] | None:
        """Return the step in flight that an intervention belongs to; its earlier reads came before the intervention."""
        if recorded.write is None and recorded.event is None:
            return None
        activations, frames = self.source.tables.activations, self.source.tables.frames
        scopes = ((frames[activations[span[0].new["turn"]].frame].scope, span) for span in spans)
        own = [span for scope, span in scopes if recorded.write is not None and recorded.write.scope == scope]
        return next(iter([*own, *(span for span in spans if span[1] == number + 1)]), None)

    def _hide_event(self, seq: int, spans: Iterable[tuple[Intervention, int]]) -> None:
        """Hide an event from pending steps of other branches until the point where it was emitted."""
        for intervention, end in spans:
            self._hidden_events.setdefault(end, set()).add(seq)
            self._later.setdefault(end, []).append((intervention, partial(self._show_event, seq)))

    def _show_event(self, seq: int) -> None:
        self.run.hidden_events -= {self.sides.events.get(seq, seq)}

    def _list_changes(self, recorded: StepRecord) -> list[Any]:
        """Return the arguments that people substituted in calls of a step."""
        since = self._ran.get(recorded.activation, 0)
        return [intervention.new for intervention in self.record.changes.get(self.sides.name(recorded.activation), ())
                if since <= intervention.step < recorded.step]  # fmt: skip

    def _get_settings(self, number: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the masked call settings of the recipe that a step was made with, and of the replay's recipe."""
        settings = []
        for recipe in (self.record.plan(number).recipe, self.run.plan.recipe):
            if id(recipe) not in self._settings:
                self._settings[id(recipe)] = mask_value(get_call_settings(recipe))
            settings.append(self._settings[id(recipe)])
        return settings[0], settings[1]

    def _redo(self, recorded: RecordedIntervention, number: int) -> bool:
        """Repeat an intervention after a step; return True if the replay can continue."""
        found = redo(self.run, self.sides, recorded, number)
        if found is not None:
            self.divergences.append(found)
        return found is None or not found.ends

    # -- one step ------------------------------------------------------------------------------------------------------

    def _step(self, recorded: StepRecord) -> bool:
        """Replay a step and compare it; return True if the replay can continue."""
        activation = self._find_activation(recorded)
        if activation is None:
            return False
        run, node, position_before = self.run, activation.node.id, self.run.position
        settings = self._get_settings(recorded.step)
        recording = run.recorded = StepRecording(recorded, node, self.level, self._list_changes(recorded), settings)
        later = self._later.pop(recorded.step, ())
        recording.during = [(held.new["calls"], held.new["events"], do) for held, do in later]
        run.on_emit = (lambda work, _: recording.run_interventions(work)) if later else None
        run.hidden_events = frozenset(
            self.sides.events.get(seq, seq) for seq in self._hidden_events.pop(recorded.step, ())
        )
        self._ran[recorded.activation] = recorded.step
        self.clock.set_time(recorded.started_at)
        if recorded.is_skipped:
            self._skip(activation, recorded)
        else:
            _run_activation(run, activation)
        run.recorded = None
        if run.position == position_before:
            return self._record_unfinished(recorded, node, recording)
        replayed = read_step(run.tables, run.history, position_before + 1)
        rows = [*recording.divergences, *(recording.missing() if self.level != "path" else ())]
        rows += compare_steps(recorded, replayed, self.sides, self.level, recording.compares_reads)
        for _, _, do in recording.during:  # the step did not reach these points
            do()
        run.hidden_events = frozenset()
        return self._record_differences(rows, recorded, replayed, recording.unknown_call)

    def _find_activation(self, recorded: StepRecord) -> Activation | None:
        """Return the activation of a recorded step if it can come next here; else record a divergence."""
        expected, candidates = self.sides.map_activation(recorded.activation), list_next_activations(self.run)
        plan, name = self.run.plan, self.sides.name(recorded.activation)
        region = self.source.tables.frames[recorded.activation.frame].region
        node = plan.recipe.nodes.get(name)
        why = f"the recipe has no node {name!r} any more"
        if node is not None:
            why = f"it was in region {region!r} and is now in {node.scope!r}" if node.scope != region else ""
            for activation in candidates:
                if not why and activation.row == expected:
                    return activation
        lane = None if expected is None else self.run.frames.get(expected.frame)
        head = next(
            (activation for activation in candidates if lane is not None and activation.frame.lane is lane.lane), None
        )
        head = head or next(iter(candidates), None)
        comes = ABSENT if head is None else head.node.id
        if not why and comes == name:
            why = "the replay runs another activation of it: in another frame or phase"
        self.divergences.append(Divergence(recorded.step, name, "node", "", name, comes, why, ends=True))
        return None

    def _skip(self, activation: Activation, recorded: StepRecord) -> None:
        time_travel.move_to_front(self.run, activation)
        try:
            interventions.skip(self.run, {str(row.path[0]): to_written_value(row) for row in recorded.writes})
        except Exception as error:  # noqa: BLE001  (its conditions may raise anything)
            why = f"skipping it cannot be repeated: {type(error).__name__}: {error}"
            self.divergences.append(Divergence(recorded.step, activation.node.id, "act", "skip", why=why, ends=True))
            time_travel.repair(self.run)

    def _record_unfinished(self, recorded: StepRecord, node: str, recording: StepRecording) -> bool:
        """Record why a step did not end."""
        for pending_step in list(self.run.pending_steps.values()):
            pending_step.cancel()
        self.run.pending_steps.clear()
        if not self._record_differences(recording.divergences, recorded) or (
            self.divergences and self.divergences[-1].ends
        ):
            return False
        why = "it waits for something that the record does not contain"
        self.divergences.append(Divergence(recorded.step, node, "call", why=why, ends=True))
        return False

    # -- results -------------------------------------------------------------------------------------------------------

    def _record_differences(
        self,
        rows: Iterable[Divergence],
        recorded: StepRecord | None = None,
        replayed: StepRecord | None = None,
        unknown: str = "",
    ) -> bool:
        """Record the differences of a step; return True if the replay can continue.

        A step that depends on an unknown value, such as a mask, cannot be compared; `unknown` names that value.
        """
        rows = [row for row in rows if row.ends or row.step > self.start or not row.step]
        self.unsure += [row for row in rows if not row.sure]
        sure = [row for row in rows if row.sure]
        if sure and recorded is not None and replayed is not None:
            unknown = unknown or self._find_masked_read(replayed)
        if not sure or not unknown or recorded is None or replayed is None:
            self.divergences += sure
            return not any(row.ends for row in sure)
        self._masked_keys |= {(row.scope, str(row.path[0])) for row in replayed.writes}
        self.unsure += [row for row in sure if not row.ends]
        end = next((row for row in sure if row.ends), None)
        if end is not None:
            why = f"the next node depends on {unknown!r}, whose value is masked or unknown, so it cannot be compared"
            self.divergences.append(Divergence(recorded.step, end.node, "masked", unknown, why=why, ends=True))
        return end is None

    def _find_masked_read(self, replayed: StepRecord) -> str:
        """Return a key read by a step whose value, or its source, is unknown; "" if there is none."""
        run, row = self.run, self.run.history.write_ends
        frame = run.frames.get(replayed.activation.frame)
        scope = run.root.scope if frame is None else frame.scope
        inputs = run.plan.nodes[replayed.activation.node].node.inputs or {}
        keys = {str(path[0]) for _, path in replayed.reads} | {str(path[0]) for path in inputs.values()}
        replayed_row = replayed.step - run.history.base
        old_values = {str(run.tables.codes[run.history.write_codes[at] >> 2][1][0]): run.history.old_values[at]
                  for at in range(row[replayed_row - 1], row[replayed_row])}  # fmt: skip
        for key in sorted(keys):
            values = (scope.get(key), old_values.get(key, ABSENT))
            if (scope.id, key) in self._masked_keys or not all(map(is_known, values)):
                return key
        return ""


def _run_activation(run: Run, activation: Activation) -> None:
    """Run one activation to completion, in an event loop if needed."""
    was_without_loop, run.without_loop = run.without_loop, True
    try:
        code = step(run, activation)
        pending_step = run.pending_steps.get(activation.id)
        if code == SUSPENDED and pending_step is not None:
            code = resume_without_loop(run, pending_step)
    finally:
        run.without_loop = was_without_loop
    if code == LOOP:
        run_in_own_loop(lambda: step_in_loop(run, pending_step))


__all__ = ["Replay"]
