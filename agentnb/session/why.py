"""Explain a step: why the run went where it did, with each condition and the values it read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.scopes import Board, Scope
from agentnb.engine.core.frames import get_frame_inputs, get_step_result
from agentnb.engine.core.history import AGAIN, CARRIED, LEAVE, UNKNOWN_EDGE, History
from agentnb.engine.core.time_travel import inspect_at
from agentnb.engine.persistence.state_projection import StateProjection
from agentnb.errors import ExecutionError, Problem
from agentnb.expressions.paths import format_path
from agentnb.kinds.context import Context, ContextCondition, make_strict
from agentnb.kinds.router import match_route
from agentnb.recipe.descriptions import OTHERWISE
from agentnb.secrets import Masking, masks_by, remember_masking
from agentnb.text import safe_repr, safe_str
from agentnb.trace.row_index import count_edits

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event, History
    from agentnb.engine.core.plan import PlanNode
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Node


@dataclass(frozen=True, slots=True)
class EvaluatedCondition:
    """One evaluated condition: its target, its result, whether that edge was taken, and what it read: (text, value).

    `edge` is the number of its edge in the plan; UNKNOWN_EDGE if it has none.
    """

    condition: str
    target: str
    value: Any
    taken: bool
    operands: tuple[tuple[str, Any], ...] = ()
    warning: str = ""
    edge: int = UNKNOWN_EDGE

    def line(self) -> str:
        """Return it as one line of text, without secrets."""
        read = ", ".join(f"{safe_str(text)} = {safe_repr(value, key=text)}" for text, value in self.operands)
        mark = "->" if self.taken else "  "
        return (
            f"{mark} {self.target or 'the end'}: {safe_str(self.condition) or 'always'} is {safe_repr(self.value)}"
            + (f"  ({read})" if read else "")
            + (f"  odd: {safe_str(self.warning)}" if self.warning else "")
        )


FEW: Final = 8  # number of preceding causes named in a line


@dataclass(frozen=True, slots=True)
class DeliveredEvent:
    """The event that a step has delivered: its id and type, its emitter, its step, and its causes.

    `step` is None for an event from outside. `causes` are the ids of the preceding events, nearest first.
    """

    event: str
    type: str
    emitter: str
    step: int | None
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as one line, without secrets."""
        where = "from outside" if self.step is None else f"in step {self.step}"
        more = len(self.causes) - FEW
        causes = f", after {' <- '.join(self.causes[:FEW])}" if self.causes else ""
        causes += f" and {more} more before" if more > 0 else ""
        return safe_str(
            f"event {self.event} {safe_repr(self.type, 200)}, emitted by {safe_repr(self.emitter, 200)} {where}{causes}"
        )


def find_delivered_event(run: Run, history: History, step: int) -> DeliveredEvent | None:
    """Return the event that a step has delivered; None if it has delivered none."""
    event = _find_event(run, history, step)
    if event is None:
        return None
    known = {each.id: each for part in run.chain for each in part.events}
    causes: list[str] = []
    cause = known.get(event.cause or "")
    while cause is not None and cause.id not in causes:
        causes.append(cause.id)
        cause = known.get(cause.cause or "")
    return DeliveredEvent(event.id, event.type, event.actor or "somebody", event.step, tuple(causes))


def iter_clauses(run: Run, history: History, step: int) -> Iterator[EvaluatedCondition]:
    """Yield each clause of the node that the event of a step matched, with the values at that time."""
    event = _find_event(run, history, step)
    if event is None:
        return
    node = run.plan.nodes[run.tables.activations[history.step_activations[step - history.base]].node].node
    named = event.type if event.type in node.on else "*"
    yield _make_met_condition(node, f"on {named!r}", ("type", event.type))
    for path, expected in (node.params.get("where") or {}).items():
        operators = expected.items() if isinstance(expected, Mapping) else [("is", expected)]
        for word, value in operators:
            yield _make_met_condition(
                node, f"where {path} {word} {safe_repr(value, key=path)}", (path, _get_value_at(event.payload, path))
            )
    events = [each for each in history.events if each.step == step]
    if node.params.get("pattern"):
        matches = _match_pattern(run, history, step) if any(each.type == "pattern.matched" for each in events) else ()
        yield _make_met_condition(
            node, f"pattern {node.params['pattern']}", *([("it fits", matches)] if matches else [])
        )
    if node.params.get("relation_type"):
        relation_id = next(filter(None, (_get_value_at(each.payload, "relation_id") for each in events)), None)
        yield _make_met_condition(
            node,
            f"relation {node.params['relation_type']}",
            *([] if relation_id is None else [("its id", relation_id)]),
        )
    if node.params.get("activate_after"):
        yield _make_met_condition(node, f"{node.params['activate_after']} events later")


def _match_pattern(run: Run, history: History, step: int) -> Sequence[Mapping[str, str]]:
    """Return the pattern matches of a step's node when its event was due: before the first delivery."""
    reactive, activations = run.plan.recipe.reactive, run.tables.activations
    if reactive is None or history not in run.chain:
        return ()
    activation, first = activations[history.step_activations[step - history.base]], step
    while (
        first - 1 > history.base
        and activations[history.step_activations[first - 1 - history.base]].event == activation.event
    ):
        first -= 1
    with inspect_at(run, first - 1) as past_run:
        return list(reactive.find_matches(past_run, run.plan.nodes[activation.node].id))


def iter_triggered(run: Run, history: History, step: int) -> Iterator[str]:
    """Yield the nodes with queued deliveries of a step's events, as far as they are known there."""
    emitted = {each.seq for each in history.events if each.step == step}
    for number in history.queue_after(step):
        activation = run.tables.activations[number]
        if activation.node >= 0 and activation.event in emitted:
            yield run.get_node_id(number)


def _find_event(run: Run, history: History, step: int) -> Event | None:
    return run.get_event(run.tables.activations[history.step_activations[step - history.base]].event)


def _make_met_condition(node: Node, clause: str, *read: tuple[str, Any]) -> EvaluatedCondition:
    return EvaluatedCondition(clause, node.id, value=True, taken=True, operands=read)


def _get_value_at(value: Any, path: str) -> Any:
    """Return the value at a dotted path of a payload; None if there is none."""
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


@masks_by(lambda shown: shown.masking())
@dataclass(frozen=True, slots=True)
class Why:
    """Why a step led where it did: the node's stated reasoning, and each condition with its values.

    If it delivered an event, `delivered_event` is that event, and `conditions` are the clauses that matched it to the
    node; `targets` are then the nodes with pending deliveries of the step's events.
    """

    step: int
    node: str
    thought: str
    targets: tuple[str, ...]
    conditions: tuple[EvaluatedCondition, ...]
    delivered_event: DeliveredEvent | None = None
    masking: Callable[[], Masking] = field(default_factory=remember_masking, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return one line for the step, and one for each condition."""
        if not self.step:
            return "nothing has run yet"
        if self.delivered_event is None:
            goes = f"went to {', '.join(self.targets)}" if self.targets else "ended: no outgoing edge matched"
            thought = f": {safe_str(self.thought)}" if self.thought else ""
        else:
            goes, thought = f"was triggered by {self.delivered_event}", ""
        lines = [
            f"step {self.step}, {safe_repr(self.node, 200)} {goes}{thought}",
            *(f"  {each.line()}" for each in self.conditions),
        ]
        if self.delivered_event is not None and self.targets:
            lines.append(f"  what it emitted triggers {', '.join(self.targets)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def explain_why(run: Run, at: int | None = None) -> Why:
    """Return why a step led where it did; by default the last one up to the current position.

    Raises:
        ExecutionError: X111, there is no such step.
    """
    step = run.position if at is None else at
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= run.history.tip:
        raise ExecutionError(
            Problem("X111", f"there is no step {step!r}", f"recipe {run.plan.recipe.name!r}",
                    f"its steps are 1 to {run.history.tip}, and 0 is before the first",
                    "use one of them, or continue the run")
        )  # fmt: skip
    if not step:
        return Why(0, "", "", (), ())
    history = next(each for each in reversed(run.chain) if each.base < step)
    row = step - history.base
    note = history.notes.get(step)
    node, targets = run.get_node_id(history.step_activations[row]), tuple(_iter_next_nodes(run, history, step))
    delivered = find_delivered_event(run, history, step)
    if delivered is not None:
        thought = "" if note is None else note.thought or ""
        targets = tuple(dict.fromkeys([*targets, *iter_triggered(run, history, step)]))
        conditions = (*iter_clauses(run, history, step), *iter_conditions(run, history, step))
        return Why(step, node, thought, targets, conditions, delivered)
    return Why(
        step, node, "" if note is None else note.thought or "", targets, tuple(iter_conditions(run, history, step))
    )


def iter_conditions(run: Run, history: History, step: int) -> Iterator[EvaluatedCondition]:
    """Yield each condition that the node of a step evaluates, on the board as the step left it."""
    row = step - history.base
    activation = run.tables.activations[history.step_activations[row]]
    node = run.plan.nodes[activation.node]
    board = _rebuild_board(run, history, step, activation.frame)
    inputs, result = partial(get_frame_inputs, run, activation.frame), get_step_result(history, step)
    if history.step_flags[row] & 3 != LEAVE:  # at its end, its inside may have changed what was evaluated
        yield from _evaluate_branches(run, node.node, board, tuple(_iter_next_nodes(run, history, step)))
    evaluation = _Evaluation(
        run, node, Context(board, inputs, result, node.node), board, list_taken_edges(history, step)
    )
    yield from evaluation.iter_choices()
    yield from evaluation.iter_edges()


def _iter_next_nodes(run: Run, history: History, step: int) -> Iterator[str]:
    """Yield the nodes that a step led to: inside its own node, by an edge, or by a route it chose."""
    row = step - history.base
    for number in history.opened_frames.get(step, ()):
        yield from _get_entry(run, run.tables.frames[number].region)
    if history.step_flags[row] & 3 == AGAIN:
        node = run.plan.nodes[run.tables.activations[history.step_activations[row]].node].node
        yield from (id for region in node.bodies for id in _get_entry(run, region))
    for push in range(history.push_ends[row - 1], history.push_ends[row]):
        if (
            history.push_values[push] is not CARRIED
            and run.tables.activations[history.push_activations[push]].node >= 0
        ):
            yield run.get_node_id(history.push_activations[push])


def list_taken_edges(history: History, step: int) -> frozenset[int]:
    """Return the numbers of the edges that a step took, as far as they are known."""
    row = step - history.base
    return frozenset(history.push_edges[history.push_ends[row - 1] : history.push_ends[row]]) - {UNKNOWN_EDGE}


def _get_entry(run: Run, region: str | None) -> tuple[str, ...]:
    """Return the entry nodes of a region; none if there is no such region."""
    entry_region = run.plan.recipe.regions.get(region or "")
    return () if entry_region is None else entry_region.entry


def _evaluate_branches(run: Run, node: Node, board: Board, targets: tuple[str, ...]) -> Iterator[EvaluatedCondition]:
    """Yield each branch of a decision or a switch, with the condition for it."""
    question = node.params.get("predicate") or node.params.get("discriminator")
    if question is None or not hasattr(question, "explain"):  # a snapshot without code
        return
    *read, (text, answer) = question.explain(board)
    if not read:
        yield EvaluatedCondition(text, "", answer, taken=False)
        return
    if "predicate" in node.params:
        branches = [(f"{text} is {label}", region, bool(answer) is (label == "true"))
                for label, region in node.params["branches"].items()]  # fmt: skip
    else:
        read.append((text, answer))
        branches = [(f"{text} == {safe_repr(key)}", region, key == answer) for key, region in node.params["cases"]]
        if node.params.get("default") is not None:
            branches.append(
                (f"{text} is anything else", node.params["default"], not any(fits for *_, fits in branches))
            )
    for condition, region, fits in branches:
        target = next(iter(_get_entry(run, region)), "")
        yield EvaluatedCondition(condition, target, fits, fits and target in targets, tuple(read))


def _rebuild_board(run: Run, history: History, step: int, frame: int) -> Board:
    """Return the board as a step's node left it, without later edits by people."""
    replica, row = StateProjection(run.tables), step - history.base
    replica.move_to(history, step - 1)
    replica.apply(history, history.write_ends[row - 1], history.write_ends[row] - count_edits(history, step))
    scope = Scope(-1, "why")
    scope.data = replica.visible_items(run.tables.frames[frame].scope)
    return Board(lambda: scope)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """The conditions that a node evaluates after a step, on what it saw then; `taken` are the edges that it took."""

    run: Run
    node: PlanNode
    context: Context
    board: Board
    taken: frozenset[int]

    def iter_choices(self) -> Iterator[EvaluatedCondition]:
        """Yield the conditions of the node itself: a router's cases and routes, and whether a loop continues."""
        params, default = self.node.node.params, self.node.node.params.get("default")
        cases = params.get("cases", ()) if "discriminator" not in params else ()
        evaluated = [self._evaluate(condition, target, self._find_route(target, condition.text))
                     for condition, target in cases]  # fmt: skip
        yield from evaluated
        if cases and default is not None and not any(each.value for each in evaluated):
            yield self._describe_route(OTHERWISE, default, holds=True)
        for word in ("while", "until"):
            if params.get(word) is not None:
                row = self._evaluate(params[word], "", UNKNOWN_EDGE)
                yield replace(row, condition=f"{word} {row.condition}", target="the end of the loop",
                              taken=bool(row.value) is (word == "until"))  # fmt: skip
        if "input_key" in params:
            key = format_path(params["input_key"])
            value, routes = self.board.get(key), params.get("routes", {})
            chosen = match_route(routes, value)
            for text, target in routes.items():
                row = self._describe_route(text, target, holds=text == chosen, operands=((key, value),))
                yield replace(row, condition=f"{key} == {text!r}")
            if default is not None and chosen is None:
                yield self._describe_route(OTHERWISE, default, holds=True, operands=((key, value),))

    def iter_edges(self) -> Iterator[EvaluatedCondition]:
        """Yield the conditions of the node's edges."""
        for _, _, edge, number in self.node.outgoing_edges:
            if hasattr(edge.when, "explain"):  # a condition from a snapshot cannot explain
                yield self._evaluate(edge.when, edge.target, number)

    def _find_route(self, target: str, condition: str) -> int:
        number = self.run.plan.index.get(target, -1)
        return self.node.routes.get((number, condition), UNKNOWN_EDGE)

    def _describe_route(
        self, condition: str, target: str, *, holds: bool, operands: tuple[tuple[str, Any], ...] = ()
    ) -> EvaluatedCondition:
        number = self._find_route(target, condition)
        return EvaluatedCondition(condition, target, holds, number in self.taken, operands, edge=number)

    def _evaluate(self, condition: Any, target: str, number: int) -> EvaluatedCondition:
        condition = make_strict(condition, getattr(self.run.world, "strict", True))
        *operands, (_, value) = condition.explain(
            self.context if isinstance(condition, ContextCondition) else self.board
        )
        warning = getattr(condition, "warning", "")
        return EvaluatedCondition(condition.text, target, value, number in self.taken, tuple(operands), warning, number)
