"""Causal chains: the causes and effects of an event or object, as a table, a drawing and text."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.secrets import masks_by, remember_masking
from agentnb.session.run_queries import get_events
from agentnb.trace.causality import LinkedEvent, find_chain, index_by_object, reports_delivery

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.draw.causality_view import ChainEvent
    from agentnb.draw.drawing import Drawing
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.run import Run


@masks_by(lambda shown: shown.masking())
class Chain:
    """The causal chain of an event, object, relation, patch or approval, as it was when it was requested.

    Backwards it follows the causes to the events from outside, forwards it includes all effects. Displays as a drawing
    in a notebook. Its output is masked.

    Example:
        >>> chain = session.chain("task#1")         # doctest: +SKIP
        >>> chain.to_frame()                        # doctest: +SKIP
    """

    def __init__(self, event_id: str, links: list[LinkedEvent], nodes: dict[int, str]) -> None:
        self.event_id, self.links, self._nodes = event_id, tuple(links), nodes
        self.masking = remember_masking()

    @property
    def events(self) -> tuple[Event, ...]:
        """Its events, in the order in which they were emitted."""
        return tuple(link.event for link in self.links)

    def __len__(self) -> int:
        return len(self.links)

    def __bool__(self) -> bool:
        """Return True: a chain is never empty."""
        return True

    def to_frame(self) -> pd.DataFrame:
        """Return it as a table, one row per event.

        Columns: seq, step (NA from outside), id, type, actor, cause, node (whose step emitted it), relation (cause,
        self or effect), distance (in causes from the requested item: negative before, positive after), objects
        (the ids of the objects that it concerns).
        """
        from agentnb.trace.frames import make_chain_table

        return make_chain_table([(link, self._nodes.get(link.event.seq, "")) for link in self.links])

    def draw(self) -> Drawing:
        """Return its drawing: each event below its cause; the requested events are highlighted.

        Events that only report a delivery are omitted; of a long chain the nearest events are drawn.
        """
        from agentnb.draw.causality_view import draw_chain

        return draw_chain(self.event_id, list(self._format_lines()))

    def _format_lines(self) -> Iterator[ChainEvent]:
        from agentnb.draw.causality_view import ChainEvent

        for link in self.links:
            event = link.event
            if link.part == "self" or not reports_delivery(event):
                node = self._nodes.get(event.seq, "")
                yield ChainEvent(
                    event.id, event.type, event.actor or "somebody", node, event.cause or "",
                    tuple(link.objects), link.part, link.distance, event.step,
                )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | ({"text/plain": repr(self)} if "text/plain" in bundle else {})

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        """Return one line per event: `<-` for a cause, `==` for the requested events, `->` for an effect."""
        return self.draw().text


def get_chain(run: Run, subject: str) -> Chain:
    """Return the chain of an event or an object, up to the current position of a run.

    X161: no event so far concerns this id.

    Raises:
        ExecutionError: X161, there is no such item up to here.
    """
    events = get_events(run)
    links = find_chain(events, subject)
    if not links:
        names = dict.fromkeys(id for event, about in index_by_object(events).items() for id in (*about, event))
        raise ExecutionError(
            Problem("X161", f"no event up to here concerns {subject!r}", f"after step {run.position}",
                    "a chain belongs to an event, or to an object, relation, patch or approval that events refer to",
                    did_you_mean(str(subject), names, "see session.events, or run until it is created"))
        )  # fmt: skip
    nodes = {
        event.seq: pending_step.activation.node.id
        for pending_step in run.pending_steps.values()
        for event in pending_step.activation.work.emitted
    }
    for link in links:
        step = link.event.step
        if step is not None:
            history = next(each for each in reversed(run.chain) if each.base < step)
            nodes[link.event.seq] = run.get_node_id(history.step_activations[step - history.base])
    return Chain(subject, links, nodes)


__all__ = ["Chain", "get_chain"]
