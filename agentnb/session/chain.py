"""chain: what led to an event or a thing of a run, and what it led to: as a table, as a picture, as text."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from agentnb.board.secrets import hidden
from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.trace.causes import Linked, about_of, chain_of, tells_of_itself

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.draw.chain import Told
    from agentnb.draw.drawing import Drawing
    from agentnb.engine.history import Event
    from agentnb.session.session import Session


class Chain:
    """The causal chain of an event, an object, a relation, a patch or an approval, as it was when it was asked for.

    Backwards it goes from cause to cause to the events that came from outside, forwards to all that followed. Shows
    itself as a picture in a notebook. What leaves it is masked.

    Example:
        >>> chain = session.chain("task#1")         # doctest: +SKIP
        >>> chain.to_frame()                        # doctest: +SKIP
    """

    def __init__(self, asked: str, links: list[Linked], nodes: dict[int, str]) -> None:
        self.asked, self.links, self._nodes = asked, tuple(links), nodes

    @property
    def events(self) -> tuple[Event, ...]:
        """Its events, in the order in which they were told."""
        return tuple(link.event for link in self.links)

    def __len__(self) -> int:
        return len(self.links)

    def __bool__(self) -> bool:
        """A chain is true: what nothing tells of has none."""
        return True

    def to_frame(self) -> pd.DataFrame:
        """Return it as a table, one row an event.

        Its columns: seq, step (NA from outside), id, type, actor, cause, node (whose step told of it), relation (cause,
        self or effect), away (causes between it and what was asked: below 0 before, above 0 after), objects (the ids
        of the things that it is about).
        """
        from agentnb.trace.frames import chain_table

        return chain_table([(link, self._nodes.get(link.event.seq, "")) for link in self.links])

    def draw(self) -> Drawing:
        """Return its drawing: each event below the one that it followed from; what was asked for is marked.

        What only tells that a behaviour was given an event is left out; of a long chain the nearest events are drawn.
        """
        from agentnb.draw.chain import draw_chain

        return draw_chain(hidden(self.asked), list(self._told()))

    def _told(self) -> Iterator[Told]:
        from agentnb.draw.chain import Told

        for link in self.links:
            event = link.event
            if link.part == "self" or not tells_of_itself(event):
                node = self._nodes.get(event.seq, "")
                yield Told(
                    event.id, hidden(event.type), hidden(event.actor or "somebody"), node, event.cause or "",
                    tuple(map(hidden, link.about)), link.part, link.away, event.step,
                )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | ({"text/plain": repr(self)} if "text/plain" in bundle else {})

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        """Return one line an event: `<-` before a cause, `==` before what was asked, `->` before an effect."""
        return self.draw().text


def chain_in(session: Session, wanted: str) -> Chain:
    """Return the chain of an event or a thing, up to where a session stands.

    X161: nothing that has been told so far has this id.

    Raises:
        ExecutionError: X161, there is no such thing up to here.
    """
    events = session.events
    links = chain_of(events, wanted)
    if not links:
        names = dict.fromkeys(id for event, about in about_of(events).items() for id in (*about, event))
        raise ExecutionError(
            Problem("X161", f"nothing tells of {wanted!r} up to here", f"after step {session.position}",
                    "a chain is that of an event, or of an object, a relation, a patch or an approval that events name",
                    did_you_mean(str(wanted), names, "look at session.events, or go on to where it is made"))
        )  # fmt: skip
    run = session.engine
    nodes = {event.seq: flight.act.node.id for flight in run.flights.values() for event in flight.act.work.emitted}
    for link in links:
        step = link.event.step
        if step is not None:
            history = next(each for each in reversed(run.chain) if each.base < step)
            nodes[link.event.seq] = run.node_of(history.s_act[step - history.base])
    return Chain(wanted, links, nodes)


__all__ = ["Chain", "chain_in"]
