"""replay: the steps of a run once more, on what the world and people answered then; and where they differ.

A replay is a run of its own. Its nodes run again in the recorded order; each of their calls is answered by the row of
the recorded one, and none goes out. What people did is done again at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from agentnb.board.secrets import hide_found
from agentnb.board.values import ABSENT, thaw
from agentnb.engine import people, travel
from agentnb.engine.alike import is_known
from agentnb.engine.divergence import Divergence, Level, Sides, compared, inside
from agentnb.engine.done import Deed, Done, Record, done_of
from agentnb.engine.executor import LOOP, step_in_loop, take_off
from agentnb.engine.history import Act, ActRow, Tables
from agentnb.engine.loops import in_own_loop
from agentnb.engine.redoing import as_written, come_first, in_order, redo, turns
from agentnb.engine.run import NEVER, SUSPENDED, Run
from agentnb.engine.step import step
from agentnb.engine.tape import Tape, ThenClock

if TYPE_CHECKING:
    from agentnb.engine.frames import Activation
    from agentnb.engine.plan import Plan


class Replay:
    """One replay of a run up to where it stands. `go` makes it; then `found` are the differences, in their order.

    `unsure` are the places of which it cannot be said whether they differ; `compared` counts the steps.

    Args:
        plan: what runs, where it is another one than the steps were made with; it numbers its nodes as that one does.
        start: the step after which it begins, with the recorded state.
    """

    def __init__(self, source: Run, *, plan: Plan | None = None, start: int = 0, level: Level = "values") -> None:
        self.source, self.plan, self.start, self.level = source, plan, start, level
        self.record, self.clock = Record(source), ThenClock(source.clock)
        self.found: list[Divergence] = []
        self.unsure: list[Divergence] = []
        self.compared = 0
        self._ran: dict[ActRow, int] = {}  # the last step of each recorded activation
        self._later: dict[int, list[tuple[Act, Callable[[], object]]]] = {}  # what people did while this step was begun
        self._unseen: dict[int, set[int]] = {}  # events that came while this step was begun, and others before it
        self._masked: set[tuple[int, str]] = set()  # keys of which only a mask, or what came of one, is known here
        for held, end in sorted(self.record.spans.values(), key=lambda span: -span[0].step):
            if held.step <= start < end:
                start = max(held.step - 1, 0)  # a step was under way there, and began on what stood before
        self._from = start
        self._done_to = start or -1  # what people did after the steps up to this one is done
        self.run = self._taken_up(start) if start else self._begun()
        self.sides = Sides(self.record, self.run)

    def go(self) -> Replay:
        """Replay step after step, until the ways part or the record ends."""
        for number in range(self._from + 1, self.source.position + 1):
            recorded = self.record.done(number)
            if recorded.cancelled:  # the failure before it has cancelled it here too
                continue
            if not (self._with_plan_of(number) and self._people(recorded) and self._step(recorded)):
                break
            self.compared += number > self.start
        return self

    # -- where it begins -----------------------------------------------------------------------------------------------

    def _plan_of(self, number: int) -> Plan:
        return self.plan or self.record.plan(number)

    def _begun(self) -> Run:
        """Return a run that stands at the start: with the recorded board, or that of an edited recipe."""
        plan = self._plan_of(1 if self.source.position else 0)
        run = self._alike(Run(plan, clock=self.clock, seed=self.source.seed))
        rows, root = self.record.begun(), run.root.scope
        self.clock.stand(self.record.parts[0][0].s_t0[0])
        if self.plan is not None and plan.recipe.begin is None:
            for key, value in {**plan.recipe.init, **thaw(run.given)}.items():
                run.write(root, (key,), value)
            if self.level != "path":
                then = {row.path[0]: row.new for row in rows}
                self._note(inside((0, None, "write"), (), then, root.data))
        else:
            for row in rows:
                run.write(root, row.path, as_written(row))
        hide_found(root.data)
        run.history.first_row([run.turn(node, run.root).id for node in plan.entries["root"]], run.ns())
        run.checkpoint()
        return run

    def _taken_up(self, start: int) -> Run:
        """Return a run that stands after a step of the record; the record's own run does not notice."""
        origin = travel.home(self.source, start)
        sealed = origin.sealed
        run = travel.forked(self.source, self._plan_of(start + 1), start)
        origin.sealed = sealed
        tables = Tables()
        for name in Tables.__slots__:
            setattr(tables, name, copy(getattr(self.source.tables, name)))
        run.tables = run.history.tables = tables
        run.root.scope.codes = {}
        return self._alike(run)

    def _alike(self, run: Run) -> Run:
        """Give a run what the recorded one goes by, and no limit: what a limit ended is no step."""
        source = self.source
        run.given, run.max_frames, run.max_subgraph_depth = source.given, source.max_frames, source.max_subgraph_depth
        run.clock, run.ns, run.limit, run.chaos = self.clock, self.clock.ns, NEVER, None
        run.run_id = source.run_id
        run.set_mark()
        return run

    def _with_plan_of(self, number: int) -> bool:
        """Go on with the plan that the record goes on with here: a fork may have other tools, or another recipe."""
        plan = self._plan_of(number)
        if plan is not self.run.plan:
            self.run = self.sides.run = self._alike(travel.forked(self.run, plan, self.run.position))
        return True

    # -- what people did -----------------------------------------------------------------------------------------------

    def _people(self, recorded: Done) -> bool:
        """Do what people did before a step; say whether the replay can go on."""
        for number in range(self._done_to + 1, recorded.step):
            stopped, spans = False, dict[int, tuple[Act, int]]()
            for deed in self.record.deeds(number):
                act = deed.act
                stopped = stopped or (act is not None and act.act == "breakpoint")
                if act is not None and id(act) in self.record.spans:
                    spans[act.new["turn"]] = self.record.spans[id(act)]
                    continue
                span = self._during(deed, number, spans.values())
                if deed.event is not None:
                    self._keep_from(deed.event.seq, [other for other in spans.values() if other is not span])
                if span is not None:
                    self._later.setdefault(span[1], []).append((span[0], partial(self._redo, deed, number)))
                elif not self._redo(deed, number):
                    return False
            if stopped:
                in_order(self.run, self.sides, self.record.frontier(number))
        self._done_to = recorded.step - 1
        return True

    def _during(self, deed: Deed, number: int, spans: Iterable[tuple[Act, int]]) -> tuple[Act, int] | None:
        """Return of the steps that were under way the one that a deed is part of: what it had read, it read before."""
        if deed.wrote is None and deed.event is None:
            return None
        acts, frames = self.source.tables.acts, self.source.tables.frames
        scopes = ((frames[acts[span[0].new["turn"]].frame].scope, span) for span in spans)
        own = [span for scope, span in scopes if deed.wrote is not None and deed.wrote.scope == scope]
        return next(iter([*own, *(span for span in spans if span[1] == number + 1)]), None)

    def _keep_from(self, seq: int, spans: Iterable[tuple[Act, int]]) -> None:
        """Have steps of other branches, which end later, see an event only where they had come when it was emitted."""
        for held, end in spans:
            self._unseen.setdefault(end, set()).add(seq)
            self._later.setdefault(end, []).append((held, partial(self._show, seq)))

    def _show(self, seq: int) -> None:
        self.run.unseen.discard(self.sides.events.get(seq, seq))

    def _changes(self, recorded: Done) -> list[Any]:
        """Return what people gave calls of a step to send."""
        since = self._ran.get(recorded.act, 0)
        return [act.new for act in self.record.changes.get(self.sides.name(recorded.act), ())
                if since <= act.step < recorded.step]  # fmt: skip

    def _redo(self, deed: Deed, number: int) -> bool:
        """Do once more what a person did after a step; say whether the replay can go on."""
        found = redo(self.run, self.sides, deed, number)
        if found is not None:
            self.found.append(found)
        return found is None or not found.ends

    # -- one step ------------------------------------------------------------------------------------------------------

    def _step(self, recorded: Done) -> bool:
        """Replay a step and compare it; say whether the replay can go on."""
        act = self._turn(recorded)
        if act is None:
            return False
        run, node, before = self.run, act.node.id, self.run.position
        tape = run.recorded = Tape(recorded, node, self.level, self._changes(recorded))
        later = self._later.pop(recorded.step, ())
        tape.during = [(held.new["calls"], held.new["events"], do) for held, do in later]
        run.at_emit = (lambda work, _: tape.come(work)) if later else None
        run.unseen = {self.sides.events.get(seq, seq) for seq in self._unseen.pop(recorded.step, ())}
        self._ran[recorded.act] = recorded.step
        self.clock.stand(recorded.began)
        if recorded.skipped:
            self._skip(act, recorded)
        else:
            _moved(run, act)
        run.recorded = None
        if run.position == before:
            return self._not_done(recorded, node, tape)
        replayed = done_of(run.tables, run.history, before + 1)
        rows = [*tape.found, *(tape.missing() if self.level != "path" else ())]
        rows += compared(recorded, replayed, self.sides, self.level, tape.own_reads)
        for _, _, do in tape.during:  # the step did not come so far
            do()
        run.unseen = set()
        return self._note(rows, recorded, replayed, tape.unknown)

    def _turn(self, recorded: Done) -> Activation | None:
        """Return the turn that a recorded step was, where it comes next here too; else note what comes."""
        wanted, found = self.sides.act(recorded.act), turns(self.run)
        plan, name = self.run.plan, self.sides.name(recorded.act)
        region = self.source.tables.frames[recorded.act.frame].region
        there = plan.recipe.nodes.get(name)
        why = f"the recipe has no node {name!r} any more"
        if there is not None:
            why = f"it stood in region {region!r}, and stands in {there.scope!r}" if there.scope != region else ""
            for act in found:
                if not why and act.row == wanted:
                    return act
        lane = None if wanted is None else self.run.frames.get(wanted.frame)
        head = next((act for act in found if lane is not None and act.frame.lane is lane.lane), None)
        head = head or next(iter(found), None)
        comes = ABSENT if head is None else head.node.id
        if not why and comes == name:
            why = "the replay comes to another turn of it: in another frame, or at another point of its inside"
        self.found.append(Divergence(recorded.step, name, "node", "", name, comes, why, ends=True))
        return None

    def _skip(self, act: Activation, recorded: Done) -> None:
        come_first(self.run, act)
        try:
            people.skip(self.run, {str(row.path[0]): as_written(row) for row in recorded.writes})
        except Exception as error:  # noqa: BLE001  (whatever its conditions raise)
            why = f"to pass it over cannot be done again: {type(error).__name__}: {error}"
            self.found.append(Divergence(recorded.step, act.node.id, "act", "skip", why=why, ends=True))
            travel.repair(self.run)

    def _not_done(self, recorded: Done, node: str, tape: Tape) -> bool:
        """Note why a step did not come to its end."""
        for flight in list(self.run.flights.values()):
            flight.cancel()
        self.run.flights.clear()
        if not self._note(tape.found, recorded) or (self.found and self.found[-1].ends):
            return False
        why = "it waits for something that the record does not have"
        self.found.append(Divergence(recorded.step, node, "call", why=why, ends=True))
        return False

    # -- what was found ------------------------------------------------------------------------------------------------

    def _note(
        self, rows: Iterable[Divergence], recorded: Done | None = None, replayed: Done | None = None, unknown: str = ""
    ) -> bool:
        """Take note of what differs in a step; say whether the replay can go on.

        Of a step that goes by what is not known here, a mask for one, nothing can be said: `unknown` is what it is.
        """
        rows = [row for row in rows if row.ends or row.step > self.start or not row.step]
        self.unsure += [row for row in rows if not row.sure]
        sure = [row for row in rows if row.sure]
        if sure and recorded is not None and replayed is not None:
            unknown = unknown or self._masked_read(replayed)
        if not sure or not unknown or recorded is None or replayed is None:
            self.found += sure
            return not any(row.ends for row in sure)
        self._masked |= {(row.scope, str(row.path[0])) for row in replayed.writes}
        self.unsure += [row for row in sure if not row.ends]
        end = next((row for row in sure if row.ends), None)
        if end is not None:
            why = f"how it goes on depends on {unknown!r}, which is masked here, or not known, so it cannot be compared"
            self.found.append(Divergence(recorded.step, end.node, "masked", unknown, why=why, ends=True))
        return end is None

    def _masked_read(self, replayed: Done) -> str:
        """Return a key that a step has read and that is not known here, or came of what is not; empty where none is."""
        run, row = self.run, self.run.history.s_wend
        frame = run.frames.get(replayed.act.frame)
        scope = run.root.scope if frame is None else frame.scope
        inputs = run.plan.nodes[replayed.act.node].node.inputs or {}
        keys = {str(path[0]) for _, path in replayed.reads} | {str(path[0]) for path in inputs.values()}
        here = replayed.step - run.history.base
        before = {str(run.tables.codes[run.history.w_code[at] >> 2][1][0]): run.history.w_old[at]
                  for at in range(row[here - 1], row[here])}  # fmt: skip
        for key in sorted(keys):
            values = (scope.get(key), before.get(key, ABSENT))
            if (scope.id, key) in self._masked or not all(map(is_known, values)):
                return key
        return ""


def _moved(run: Run, act: Activation) -> None:
    """Run one turn to its end, in a loop where it needs one."""
    before, run.plain = run.plain, True
    try:
        code = step(run, act)
        flight = run.flights.get(act.id)
        if code == SUSPENDED and flight is not None:
            code = take_off(run, flight)
    finally:
        run.plain = before
    if code == LOOP:
        in_own_loop(lambda: step_in_loop(run, flight))


__all__ = ["Replay"]
