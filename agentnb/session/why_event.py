"""Explain an event delivery: who emitted the event, its causes, and each clause that matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.engine.core.time_travel import looked_at
from agentnb.session.condition_trace import Asked
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.history import Event, History
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Node

FEW: Final = 8  # number of preceding causes named in a line


@dataclass(frozen=True, slots=True)
class Came:
    """The event that a step has delivered: its id and type, its emitter, its step, and its causes.

    `step` is None for an event from outside. `causes` are the ids of the preceding events, nearest first.
    """

    event: str
    type: str
    teller: str
    step: int | None
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as one line, without secrets."""
        where = "from outside" if self.step is None else f"in step {self.step}"
        left = len(self.causes) - FEW
        before = f", after {' <- '.join(self.causes[:FEW])}" if self.causes else ""
        before += f" and {left} more before" if left > 0 else ""
        return safe_str(
            f"event {self.event} {safe_repr(self.type, 200)}, told by {safe_repr(self.teller, 200)} {where}{before}"
        )


def came_in(run: Run, history: History, step: int) -> Came | None:
    """Return the event that a step has delivered; None if it has delivered none."""
    event = _delivered(run, history, step)
    if event is None:
        return None
    known = {each.id: each for part in run.chain for each in part.events}
    causes: list[str] = []
    cause = known.get(event.cause or "")
    while cause is not None and cause.id not in causes:
        causes.append(cause.id)
        cause = known.get(cause.cause or "")
    return Came(event.id, event.type, event.actor or "somebody", event.step, tuple(causes))


def clauses_in(run: Run, history: History, step: int) -> Iterator[Asked]:
    """Yield each clause of the node that the event of a step matched, with the values at that time."""
    event = _delivered(run, history, step)
    if event is None:
        return
    node = run.plan.nodes[run.tables.acts[history.s_act[step - history.base]].node].node
    named = event.type if event.type in node.on else "*"
    yield _holds(node, f"on {named!r}", ("type", event.type))
    for path, wanted in (node.params.get("where") or {}).items():
        asked = wanted.items() if isinstance(wanted, Mapping) else [("is", wanted)]
        for word, value in asked:
            yield _holds(
                node, f"where {path} {word} {safe_repr(value, key=path)}", (path, _value_at(event.payload, path))
            )
    told = [each for each in history.events if each.step == step]
    if node.params.get("pattern"):
        found = _match_pattern(run, history, step) if any(each.type == "pattern.matched" for each in told) else ()
        yield _holds(node, f"pattern {node.params['pattern']}", *([("it fits", found)] if found else []))
    if node.params.get("relation_type"):
        about = next(filter(None, (_value_at(each.payload, "relation_id") for each in told)), None)
        yield _holds(node, f"relation {node.params['relation_type']}", *([] if about is None else [("its id", about)]))
    if node.params.get("activate_after"):
        yield _holds(node, f"{node.params['activate_after']} events later")


def _match_pattern(run: Run, history: History, step: int) -> Sequence[Mapping[str, str]]:
    """Return the pattern matches of a step's node when its event was due: before the first delivery."""
    reactive, acts = run.plan.recipe.reactive, run.tables.acts
    if reactive is None or history not in run.chain:
        return ()
    act, first = acts[history.s_act[step - history.base]], step
    while first - 1 > history.base and acts[history.s_act[first - 1 - history.base]].event == act.event:
        first -= 1
    with looked_at(run, first - 1) as then:
        return list(reactive.fits(then, run.plan.nodes[act.node].id))


def led_to(run: Run, history: History, step: int) -> Iterator[str]:
    """Yield the nodes with queued deliveries of a step's events, as far as they are known there."""
    told = {each.seq for each in history.events if each.step == step}
    for number in history.queue_after(step):
        act = run.tables.acts[number]
        if act.node >= 0 and act.event in told:
            yield run.node_of(number)


def _delivered(run: Run, history: History, step: int) -> Event | None:
    return run.event(run.tables.acts[history.s_act[step - history.base]].event)


def _holds(node: Node, clause: str, *read: tuple[str, Any]) -> Asked:
    return Asked(clause, node.id, value=True, taken=True, operands=read)


def _value_at(found: Any, path: str) -> Any:
    """Return the value at a dotted path of a payload; None if there is none."""
    for name in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


__all__ = ["FEW", "Came", "came_in", "clauses_in", "led_to"]
