"""Explain why a node did not run: its events if it listens to events, else its incoming edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import chain, repeat
from typing import TYPE_CHECKING

from agentnb.engine.core.history import (
    CARRIED,
    ERROR,
    PHASES,
    SKIPPED,
    STATUS,
    UNKNOWN_EDGE,
    ActivationRow,
    Event,
    History,
)
from agentnb.engine.core.time_travel import find_history
from agentnb.engine.persistence.state_projection import StateProjection
from agentnb.errors import ExecutionError, Problem
from agentnb.secrets import Masking, masks_by, remember_masking
from agentnb.session.why import EvaluatedCondition, iter_conditions, list_taken_edges
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.plan import PlanNode
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Edge, Reactive

FEW = 5  # number of past events named


@dataclass(frozen=True, slots=True)
class IncomingEdge:
    """One incoming edge: its source, its kind, its result and step, and the conditions evaluated."""

    source: str
    kind: str
    step: int | None
    result: str
    conditions: tuple[EvaluatedCondition, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield it as lines of text, without secrets."""
        yield f"  from {self.source!r} ({self.kind}): {safe_str(self.result)}"
        for each in self.conditions:
            yield f"    {each.line()}"


@masks_by(lambda shown: shown.masking())
@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a node did not run up to a step: `reason` in one sentence, and each of its incoming edges.

    `event` is the one asked about, if the node listens to events. `fired` is the step in which the node ran (for that
    event); None if it did not.
    """

    step: int
    node: str
    event: str | None
    fired: int | None
    reason: str
    incoming_edges: tuple[IncomingEdge, ...] = ()
    masking: Callable[[], Masking] = field(default_factory=remember_masking, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return the sentence, and the lines of each incoming edge."""
        lines = [line for edge in self.incoming_edges for line in edge.lines()]
        return "\n".join([f"after step {self.step}, {safe_repr(self.node, 200)}: {safe_str(self.reason)}", *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def explain_why_not(run: Run, node: str, at: int | str | None) -> WhyNot:
    """Return why a node did not run, at a step (default: here) or for an event.

    Raises:
        ExecutionError: X101, there is no such node; X111, there is no such event.
    """
    target = run.plan.nodes[run.plan.number(node)]
    past = _PastRun(run, at if isinstance(at, int) else run.position)
    event = None if not isinstance(at, str) else past.event(at)
    return _explain_listener(past, target, event) if target.node.on else _explain_node(past, target)


class _PastRun:
    """A run as it was after a step, read from its history; the run itself does not move."""

    def __init__(self, run: Run, step: int) -> None:
        self.run, self.step, self.at = run, step, find_history(run, step)
        ends = [*(history.base for history in run.chain[1:]), step]
        self.parts = [(history, min(end, step)) for history, end in zip(run.chain, ends, strict=True)
                      if history.base <= step]  # fmt: skip

    def queue(self) -> list[ActivationRow]:
        """Return the next activations in order."""
        return [self.run.tables.activations[number] for number in self.at.queue_after(self.step)]

    def events(self) -> list[Event]:
        """Return the events so far; at the current position, including those of steps in flight."""
        events = [event for history, end in self.parts for event in history.events if event.at <= end]
        if self.step == self.run.position:
            events += [
                event
                for pending_step in self.run.pending_steps.values()
                for event in pending_step.activation.work.emitted
            ]
        return sorted(events, key=lambda event: event.seq)

    def event(self, id: str) -> Event:
        """Return the event with an id."""
        found = next((event for event in self.events() if event.id == id), None)
        if found is None:
            raise ExecutionError(
                Problem("X111", f"there is no event {id!r} up to here", f"after step {self.step}",
                        "no event of this run has that id", "see session.events, or pass a step number")
            )  # fmt: skip
        return found

    def steps(self) -> Iterator[tuple[int, History, ActivationRow]]:
        """Yield the steps so far, last first."""
        for history, end in reversed(self.parts):
            for step in range(end, history.base, -1):
                yield step, history, self.run.tables.activations[history.step_activations[step - history.base]]

    def frames(self) -> Iterable[int]:
        """Return the numbers of the open frames."""
        replica = StateProjection(self.run.tables)
        replica.move_to(self.at, self.step)
        return replica.frames

    def describe_interventions_after(self, step: int) -> str:
        """Return the interventions since a step that may have changed the next nodes."""
        done = [
            intervention
            for history, end in self.parts
            for intervention in history.interventions
            if step <= intervention.step <= end
        ]
        return ", ".join(
            f"{intervention.action} {intervention.target!r} after step {intervention.step}"
            for intervention in done
            if intervention.action == "set_next"
        )


def _explain_listener(past: _PastRun, node: PlanNode, event: Event | None) -> WhyNot:
    types, events = " and ".join(map(repr, node.node.on)), past.events()
    reactive = past.run.plan.recipe.reactive
    if reactive is not None:
        return _explain_reactive(past, node, event, reactive)
    if event is not None and event.type not in node.node.on:
        text = f"event {event.id} is a {event.type!r}, and it listens to {types}"
        return WhyNot(past.step, node.id, event.id, None, text)
    matching = [event] if event is not None else [one for one in events if one.type in node.node.on]
    if not matching:
        emitted = ", ".join(f"{one.id} {one.type!r}" for one in events[-FEW:]) or "none at all"
        text = f"no event of its types has been emitted: it listens to {types}; emitted: {emitted}"
        return WhyNot(past.step, node.id, None, None, text)
    results = [_explain_delivery(past, node, one) for one in matching]
    return next((each for each in results if each.fired is None), results[-1])


def _explain_reactive(past: _PastRun, node: PlanNode, event: Event | None, reactive: Reactive) -> WhyNot:
    """Return which clause prevented a node from running: for this event, else for the last that it listens to."""
    emitted = [one for one in past.events() if reactive.has_listeners(one)]
    matching = [event] if event is not None else [one for one in emitted if reactive.listens(node.id, one)]
    if not matching:
        last = ", ".join(f"{one.id} {one.type!r}" for one in emitted[-FEW:]) or "none at all"
        types = " and ".join(map(repr, node.node.on))
        text = f"no event of its types has been emitted: it listens to {types}; emitted: {last}"
        return WhyNot(past.step, node.id, None, None, text)
    results = []
    for one in reversed(matching):
        explanation = _explain_delivery(past, node, one)
        refused = list(reactive.explain_refusal(past.run, node.id, one))
        if explanation.fired is None and refused:
            clauses = tuple(IncomingEdge(one.type, "event", None, clause) for clause in refused)
            explanation = WhyNot(past.step, node.id, one.id, None, "; ".join(refused), clauses)
        elif explanation.fired is None and explanation.reason.endswith("removed from the frontier"):
            text = f"the graph did not match when event {one.id} was processed; it matches now"
            explanation = WhyNot(past.step, node.id, one.id, None, text)
        results.append(explanation)
    return next((each for each in results if each.fired is None), results[0])


def _explain_delivery(past: _PastRun, node: PlanNode, event: Event) -> WhyNot:
    """Return the result of the delivery of an event to a node."""
    fired, named = None, f"event {event.id} {event.type!r}"
    queue = past.queue()
    waits = next((n for n, row in enumerate(queue) if row.node == node.index and row.event == event.seq), None)
    unmatched = next((n for n, row in enumerate(queue) if row.node < 0 and row.event == event.seq), None)
    done = next(((step, history) for step, history, row in past.steps()
                 if row.node == node.index and row.event == event.seq), None)  # fmt: skip
    if waits is not None:
        text = (
            f"{named} is delivered to it next"
            if not waits
            else f"the delivery of {named} waits: {_format_position(waits)}"
        )
    elif unmatched is not None:
        text = f"{named} has not been matched yet: {_format_position(unmatched)}"
    elif done is not None:
        step, history = done
        status = history.step_flags[step - history.base] & STATUS
        fired = None if status == SKIPPED else step
        outcome = (
            "a person skipped it" if status == SKIPPED else "it fired, and failed," if status == ERROR else "it fired"
        )
        text = f"{outcome} for {named} in step {step}"
    elif event.step is None and event.actor != "user":
        text = f"{named} was emitted by {event.actor!r}, whose step has not finished"
    else:
        taken = past.describe_interventions_after(event.at)
        text = f"the delivery of {named} was removed from the frontier" + (f": {taken}" if taken else "")
    return WhyNot(past.step, node.id, event.id, fired, text)


def _format_position(before: int) -> str:
    return f"{before} {'step is' if before == 1 else 'steps are'} before it"


def _explain_node(past: _PastRun, node: PlanNode) -> WhyNot:
    queue = past.queue()
    last = next((step for step, _, row in past.steps() if row.node == node.index), None)
    position = next((n for n, row in enumerate(queue) if row.node == node.index), None)
    ran = "" if last is None else f"; it ran in step {last}"
    if position is not None:
        waits = _explain_join(past, node, queue) if position and node.kind.is_join else ""
        text = "it is next" if not position else f"it waits: {_format_position(position)}{waits}"
        return WhyNot(past.step, node.id, None, last, text + ran)
    region = past.run.plan.recipe.regions.get(node.node.scope)
    open_now = {past.run.tables.frames[number].region for number in past.frames()}
    if region is not None and region.owner and region.id not in open_now:
        text = f"it is inside {region.owner!r}, which is not open here"
        return WhyNot(past.step, node.id, None, last, text + ran)
    if any(past.run.tables.frames[number].owner == node.index for number in past.frames()):
        return WhyNot(past.step, node.id, None, last, f"it was entered, and its inner nodes are still running{ran}")
    plan = past.run.plan
    numbers = chain(plan.edge_numbers, repeat(UNKNOWN_EDGE))  # the inner edges come last
    edges = [(edge, number) for edge, number in zip(plan.recipe.edges, numbers, strict=False) if edge.target == node.id]
    incoming = tuple(_explain_edge(past, edge, number, node) for edge, number in edges)
    entry = node.index in past.run.plan.entries.get(node.node.scope, ())
    begins = ["it is the entry of its region"] if entry else [] if edges else ["no edge leads to it"]
    followed = next((one for one in reversed(incoming) if one.result.startswith("taken")), None)
    text = "; ".join([*begins, *(["no incoming edge is open now"] if incoming else [])])
    if followed is not None and followed.step is not None and (last is None or last < followed.step):
        taken = past.describe_interventions_after(followed.step)
        text = "it has been removed from the frontier" + (f": {taken}" if taken else "")
    return WhyNot(past.step, node.id, None, last, text + ran, incoming)


def _explain_join(past: _PastRun, node: PlanNode, queue: list[ActivationRow]) -> str:
    ahead = [
        past.run.plan.nodes[row.node].id
        for row in queue
        if row.node in past.run.plan.nodes_before_join.get(node.index, ())
    ]
    return f", and it joins {', '.join(map(repr, ahead))}" if ahead else ""


def _explain_edge(past: _PastRun, edge: Edge, number: int, node: PlanNode) -> IncomingEdge:
    """Return the result of one incoming edge, the last time that its source node had run."""
    run, source = past.run, past.run.plan.index[edge.source]
    found = next(((step, history) for step, history, row in past.steps() if row.node == source), None)
    if found is None:
        return IncomingEdge(edge.source, edge.kind, None, f"{edge.source!r} has not run")
    step, history = found
    row = step - history.base
    followed = [
        run.get_node_id(history.push_activations[push])
        for push in range(history.push_ends[row - 1], history.push_ends[row])
        if history.push_values[push] is not CARRIED and run.tables.activations[history.push_activations[push]].node >= 0
    ]
    conditions = tuple(each for each in iter_conditions(run, history, step)
                       if each.target == node.id and each.edge == number)  # fmt: skip
    taken = number in list_taken_edges(history, step)
    text = f"taken in step {step}" if taken else _describe_edge(edge, history, step, followed, conditions)
    return IncomingEdge(edge.source, edge.kind, step, text, conditions)


def _describe_edge(
    edge: Edge, history: History, step: int, followed: list[str], conditions: tuple[EvaluatedCondition, ...]
) -> str:
    """Return why a step did not take an edge."""
    flag, failure = history.step_flags[step - history.base], history.errors.get(step)
    outcome = f"it led to {', '.join(map(repr, followed))}" if followed else "it led nowhere"
    if edge.kind in ("error", "timeout"):
        if failure is None or (edge.kind == "timeout" and not failure.timeout):
            return f"step {step} did not {'fail' if edge.kind == 'error' else 'take too long'}"
        return f"step {step} failed, and {outcome}"
    if failure is not None:
        return f"step {step} failed: {failure.message}"
    if PHASES[flag & 3] in ("enter", "again"):
        return f"step {step} went into it, and it has not been left"
    if any(not each.value for each in conditions):
        return f"its condition did not hold in step {step}"
    return f"in step {step} {outcome}"
