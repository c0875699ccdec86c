"""why_event: why an event came to a node: who told of it, what that followed from, and each clause that it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.secrets import hidden, short
from agentnb.session.asked import Asked

if TYPE_CHECKING:
    from agentnb.engine.history import Event, History
    from agentnb.engine.run import Run
    from agentnb.recipe.model import Node

FEW: Final = 8  # of the events before it, so many are named in a line


@dataclass(frozen=True, slots=True)
class Came:
    """The event that a step has delivered: its id and type, who told of it, in which step, and what it followed from.

    `step` is None where it came from outside. `causes` are the ids of the events before it, the nearest first.
    """

    event: str
    type: str
    teller: str
    step: int | None
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it in one line, without secrets."""
        where = "from outside" if self.step is None else f"in step {self.step}"
        left = len(self.causes) - FEW
        before = f", after {' <- '.join(self.causes[:FEW])}" if self.causes else ""
        before += f" and {left} more before" if left > 0 else ""
        return hidden(f"event {self.event} {self.type!r}, told by {self.teller!r} {where}{before}")


def came_in(run: Run, history: History, step: int) -> Came | None:
    """Return the event that a step has delivered; None where it has delivered none."""
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
    """Yield each clause of the node that the event of a step answers, with the values that were there."""
    event = _delivered(run, history, step)
    if event is None:
        return
    node = run.plan.nodes[run.tables.acts[history.s_act[step - history.base]].node].node
    named = event.type if event.type in node.on else "*"
    yield _holds(node, f"on {named!r}", ("type", event.type))
    for path, wanted in (node.params.get("where") or {}).items():
        asked = wanted.items() if isinstance(wanted, Mapping) else [("is", wanted)]
        for word, value in asked:
            yield _holds(node, f"where {path} {word} {short(value, path)}", (path, _at(event.payload, path)))
    told = [each for each in history.events if each.step == step]
    if node.params.get("pattern"):
        found = next((_at(each.payload, "bindings") for each in told if each.type == "pattern.matched"), None)
        yield _holds(node, f"pattern {node.params['pattern']}", *([] if found is None else [("it fits", found)]))
    if node.params.get("relation_type"):
        about = next(filter(None, (_at(each.payload, "relation_id") for each in told)), None)
        yield _holds(node, f"relation {node.params['relation_type']}", *([] if about is None else [("its id", about)]))
    if node.params.get("activate_after"):
        yield _holds(node, f"{node.params['activate_after']} events later")


def led_to(run: Run, history: History, step: int) -> Iterator[str]:
    """Yield the nodes for which events of a step wait in the queue, as far as they are known there."""
    told = {each.seq for each in history.events if each.step == step}
    for number in history.queue_after(step):
        act = run.tables.acts[number]
        if act.node >= 0 and act.event in told:
            yield run.node_of(number)


def _delivered(run: Run, history: History, step: int) -> Event | None:
    return run.event(run.tables.acts[history.s_act[step - history.base]].event)


def _holds(node: Node, clause: str, *read: tuple[str, Any]) -> Asked:
    return Asked(clause, node.id, value=True, taken=True, operands=read)


def _at(found: Any, path: str) -> Any:
    """Return what stands at a dotted path of a payload; None where nothing does."""
    for name in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found


__all__ = ["FEW", "Came", "came_in", "clauses_in", "led_to"]
