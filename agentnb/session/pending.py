"""Pending interventions: questions, approvals and paused calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.engine.effects.crash_recovery import UnansweredCall, find_change, find_unanswered, save_change
from agentnb.engine.persistence import masked_values
from agentnb.errors import ExecutionError, Problem
from agentnb.secrets import Masking, masks_by, remember_masking
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.pending_step import Hold, PendingStep
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import ApprovalRequest


Kind = Literal["answer", "approval", "call"]
_KINDS: Final[Mapping[str, Kind]] = MappingProxyType({"human": "answer", "approval": "approval"})  # of effects
_MASKED: Final = "masked_"  # begins the id of a masked value, before its path


@masks_by(lambda shown: shown.masking())
@dataclass(frozen=True, slots=True)
class Pending:
    """One pending item: a node's question (`answer`, `approval`), or a paused call (`call`).

    An approval may also be pending on the board: then no node waits for it and the run continues.

    `arguments` are what was asked or is about to be sent; `answer` is the response, if the call is paused after it.
    `seconds_left` is the time left to answer at the time of the query; None without a timeout.
    `free` are the names of the arguments that may be changed; None for all. `replaces` are the current values that
    arguments would replace, by the arguments' names, where they are known.
    """

    id: str
    kind: Kind
    node: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: Any = ABSENT
    seconds_left: float | None = None
    free: tuple[str, ...] | None = None
    replaces: Mapping[str, Any] = field(default_factory=dict)
    masking: Callable[[], Masking] = field(default_factory=remember_masking, repr=False, compare=False)

    @property
    def is_masked(self) -> bool:
        """Whether a value is requested that was masked when the run was stored; `node` is its path."""
        return self.id == f"{_MASKED}{self.node}"

    def __repr__(self) -> str:
        """Return one line, without secrets."""
        answer = "" if self.answer is ABSENT else f", answer {safe_repr(self.answer)}"
        what = f"{safe_str(self.name, 200)} {safe_repr(self.arguments)}{answer}"
        return f"<{self.kind} {safe_repr(self.id, 200)} of {safe_repr(self.node, 200)}: {what}>"


def get_pending(run: Run) -> tuple[Pending, ...]:
    """Return what is pending, in the order in which it was requested."""
    held = [
        _make_pending(pending_step, kind)
        for pending_step in run.pending_steps.values()
        if (kind := _get_kind(pending_step)) is not None
    ]
    known = (known for _, known in list_waiting(run))
    return (
        *held,
        *map(to_pending, list_approvals(run)),
        *known,
        *map(_ask_for_masked, masked_values.find_masked_paths(run)),
    )


def list_calls(run: Run, pending: Sequence[Pending]) -> list[UnansweredCall]:
    """Return questions of the next nodes of a record as calls without a response, as a trace has them."""
    activation_by_node = {run.get_node_id(activation): activation for activation in reversed(run.frontier())}
    kinds = {kind: name for name, kind in _KINDS.items()}
    return [
        UnansweredCall(
            activation_by_node[row.node], number, 1, kinds[row.kind], row.name, freeze(dict(row.arguments)), 0
        )
        for number, row in enumerate(pending)
        if row.node in activation_by_node and row.kind in kinds
    ]


def list_approvals(run: Run) -> Sequence[ApprovalRequest]:
    """Return the approvals that are pending on the board."""
    approvals = run.plan.recipe.approvals
    return () if approvals is None else approvals.waiting(run)


def find_approval(run: Run, id: str | None) -> ApprovalRequest | None:
    """Return the approval pending on the board with this id or node, by default the first; None if there is none."""
    return next((each for each in list_approvals(run) if id is None or id in (each.id, each.node)), None)


def to_pending(leave: ApprovalRequest) -> Pending:
    """Return an approval that is pending on the board."""
    return Pending(
        leave.id, "approval", leave.node, leave.name, leave.arguments, free=leave.free, replaces=leave.replaces
    )


def list_waiting(run: Run, calls: Iterable[UnansweredCall] | None = None) -> list[tuple[UnansweredCall, Pending]]:
    """Return the questions and calls of another process without a response; their steps have not begun again.

    Args:
        calls: those of a record; None: those of the run.
    """
    waiting = []
    for call in find_unanswered(run) if calls is None else calls:
        kind = _KINDS.get(call.kind, "call")
        id = f"{kind}_{run.position}_{call.activation}"
        arguments = call.arguments
        if (change := find_change(run, call.activation, call.number)) is not None and change.arguments is not ABSENT:
            arguments = change.arguments
        waiting.append((call, Pending(id, kind, run.get_node_id(call.activation), call.name, dict(thaw(arguments)))))
    return waiting


def make_missing_problem(run: Run, masked: Sequence[str]) -> Problem:
    """Return the problem of a run whose values at these paths were masked when it was stored."""
    return Problem(
        "X142",
        f"values that were masked when the run was stored are missing: {', '.join(map(repr, masked))}",
        f"after step {run.position}",
        "a stored run contains no secrets, but its nodes need them",
        f"pass secrets={{PATH: VALUE}} to nb.open, or call session.answer(VALUE, {masked[0]!r})",
    )


def _ask_for_masked(path: str) -> Pending:
    prompt = f"the value of {path!r} was masked when this run was stored: supply it again"
    return Pending(f"{_MASKED}{path}", "answer", path, path, {"prompt": prompt})


def _get_kind(pending_step: PendingStep) -> Kind | None:
    """Return what a pending step waits for; None if it is running or paused at an event."""
    kind = pending_step.hold.kind if pending_step.is_held and pending_step.hold is not None else "emit"
    return None if kind == "emit" else kind  # type: ignore[return-value]  # the kinds of a Hold are these and emit


def _make_pending(pending_step: PendingStep, kind: Kind) -> Pending:
    hold = pending_step.hold
    assert hold is not None
    answer = hold.answer if hold.moment == "after" else ABSENT
    id, node, effect = (
        f"{kind}_{pending_step.start_position}_{pending_step.activation.id}",
        pending_step.activation.node.id,
        hold.effect,
    )
    return Pending(id, kind, node, effect.name, dict(effect.arguments), answer, hold.seconds_left)


def find_pending_step(run: Run, kind: Kind, id: str | None) -> PendingStep:
    """Return the pending step by its node or its id; by default the first one.

    Raises:
        ExecutionError: X115, nothing of that kind is pending.
    """
    step = find_pending_step_or_none(run, kind, id)
    if step is not None:
        return step
    waits = ", ".join(f"{pending.kind} of {pending.node!r} ({pending.id})" for pending in get_pending(run)) or "nothing"
    late = [
        pending_step.activation.node.id
        for pending_step in run.pending_steps.values()
        if pending_step.hold is not None and pending_step.hold.is_expired
    ]
    if late:
        waits += f"; the time to answer {', '.join(map(repr, late))} is up"
    raise ExecutionError(
        Problem(
            "X115",
            f"no {kind} is pending" + (f" at {id!r}" if id else ""),
            f"after step {run.position}",
            f"pending: {waits}",
            "run or step to the node that asks, and see session.pending",
        )
    )


def find_pending_step_or_none(run: Run, kind: Kind, id: str | None) -> PendingStep | None:
    """Return the pending step as `held` does; None if there is none."""
    for pending_step in run.pending_steps.values():
        if _get_kind(pending_step) == kind:
            known = _make_pending(pending_step, kind)
            if id is None or id in (known.node, known.id):
                return pending_step
    return None


def find_substitutions(pending_step: PendingStep) -> Mapping[str, Any] | None:
    """Return the arguments that a person has substituted in a pending approval; None if unchanged."""
    hold = pending_step.hold
    assert hold is not None
    now = freeze(dict(hold.effect.arguments))
    changed = [
        sent
        for _, effect, sent, *_ in pending_step.activation.work.calls_in_flight.values()
        if effect.kind == "approval"
    ]
    return None if not changed or changed[-1] == now else now


def change_call(pending_step: PendingStep, arguments: Mapping[str, Any] | None, answer: Any) -> None:
    """Change a paused call: its request or its response; a response set before the call is sent replaces the call.

    X127: the answer of an approval cannot be changed; it can be approved or denied.

    Raises:
        ExecutionError: X127, the answer of an approval is changed.
    """
    hold = pending_step.hold
    assert hold is not None
    if answer is not ABSENT and hold.kind == "approval":
        raise make_answer_error(hold.effect.name)
    request = hold.effect
    if arguments is not None:
        hold.effect = replace(hold.effect, arguments={key: thaw(freeze(value)) for key, value in arguments.items()})
    if answer is not ABSENT:
        check_answer(hold, answer)
        hold.answer, hold.has_answer = answer, True
    save_change(pending_step.activation.work, hold, request)


def check_answer(hold: Hold, answer: Any) -> None:
    """Raise if an answer does not fit the question, which stays pending.

    Raises:
        ExecutionError: X144, X147, the question expects something else.
    """
    if hold.effect.kind == "human" and hold.effect.check is not None:
        hold.effect.check(answer)


def make_answer_error(name: str) -> ExecutionError:
    """Return the exception for an approval that is given any other answer."""
    return ExecutionError(
        Problem("X127", f"{name!r} is an approval and has no answer to change", "change(answer=...)",
                "an approval is granted or denied; only its arguments can be changed",
                "call approve(id) or deny(id, reason)")
    )  # fmt: skip


def find_pause(run: Run) -> str:
    """Return where inside its node a step in flight is paused for inspection; empty if none is."""
    for pending_step in run.pending_steps.values():
        hold, node = pending_step.hold, pending_step.activation.node.id
        if not pending_step.is_held or hold is None:
            continue
        name = safe_repr(hold.effect.name, 200)
        if hold.kind == "emit":
            return f"at event {hold.answer.id} {name} of {node!r}"
        if hold.kind == "call":
            return f"{hold.moment} {hold.effect.kind} call {name} of {node!r}"
    return ""
