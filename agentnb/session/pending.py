"""pending: what waits for a person: an answer, or a call that is held."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from agentnb.board.secrets import short
from agentnb.board.values import ABSENT, freeze, thaw
from agentnb.errors import ExecutionError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentnb.engine.flight import Flight
    from agentnb.engine.run import Run


@dataclass(frozen=True, slots=True)
class Pending:
    """One thing that waits for a person: a node's question (`answer`), or a held call (`call`).

    `arguments` are what was asked or is about to be sent; `answer` is what came back, where the call is held after it.
    `left` are the seconds that were left to answer when this was asked for; None where there is no end to them.
    """

    id: str
    kind: Literal["answer", "approval", "call"]
    node: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: Any = ABSENT
    left: float | None = None

    def __repr__(self) -> str:
        """Return one line, without secrets."""
        answer = "" if self.answer is ABSENT else f", answer {short(self.answer)}"
        return f"<{self.kind} {self.id!r} of {self.node!r}: {self.name} {short(self.arguments)}{answer}>"


def pending_of(run: Run) -> tuple[Pending, ...]:
    """Return what waits for a person, in the order in which it was asked."""
    return tuple(_pending(flight) for flight in run.flights.values() if flight.held)


def _pending(flight: Flight) -> Pending:
    hold = flight.hold
    assert hold is not None
    kind: Literal["answer", "call"] = "answer" if hold.kind == "answer" else "call"
    answer = hold.answer if hold.moment == "after" else ABSENT
    id, node, effect = f"{kind}_{flight.at}_{flight.act.id}", flight.act.node.id, hold.effect
    return Pending(id, kind, node, effect.name, dict(effect.arguments), answer, hold.left)


def held(run: Run, kind: str, wanted: str | None) -> Flight:
    """Return the flight that waits, by its node or its id; the first one where nothing is named.

    Raises:
        ExecutionError: X115, nothing of that kind waits.
    """
    for flight in run.flights.values():
        if flight.held and flight.hold is not None and flight.hold.kind == kind:
            known = _pending(flight)
            if wanted is None or wanted in (known.node, known.id):
                return flight
    waits = ", ".join(f"{one.kind} of {one.node!r} ({one.id})" for one in pending_of(run)) or "nothing"
    late = [flight.act.node.id for flight in run.flights.values() if flight.hold is not None and flight.hold.late]
    if late:
        waits += f"; the time to answer {', '.join(map(repr, late))} is up"
    raise ExecutionError(
        Problem(
            "X115",
            f"no {kind} is waited for" + (f" at {wanted!r}" if wanted else ""),
            f"after step {run.position}",
            f"what waits here: {waits}",
            "run or step to the node that asks, and look at session.pending",
        )
    )


def change(flight: Flight, arguments: Mapping[str, Any] | None, answer: Any) -> None:
    """Change a held call: what it sends, or what it comes back with; an answer before it goes out replaces it."""
    hold = flight.hold
    assert hold is not None
    if arguments is not None:
        hold.effect = replace(hold.effect, arguments={key: thaw(freeze(value)) for key, value in arguments.items()})
    if answer is not ABSENT:
        hold.answer, hold.answered = answer, True
