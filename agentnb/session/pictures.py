"""Drawings of a session: the run on its recipe, causal chains, objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agentnb.board.values import ABSENT, freeze
from agentnb.errors import ExecutionError, Problem
from agentnb.session.causal_chain import Chain, chain_in
from agentnb.session.checks import refuse_step
from agentnb.session.run_queries import view_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentnb.draw.drawing import Drawing
    from agentnb.draw.run_view import RunView
    from agentnb.engine.core.run import Run
    from agentnb.session.session import Session


class Graphs:
    """The drawing methods of a session."""

    def view(self) -> RunView:
        """Return the state of the run, for a drawing."""
        session = cast("Session", self)
        stops = [row for row in session.breakpoints if row.enabled]
        return view_of(session.engine, session._seen, stops)  # noqa: SLF001  (it is its own)

    def draw(self, board: bool = True, direction: str = "TB", collapsed: Collection[str] = ()) -> Drawing:
        """Return the recipe's drawing with the state of the run; `collapsed` as in `Recipe.draw`."""
        from agentnb.draw.dot import draw_recipe

        session = cast("Session", self)
        return draw_recipe(session.recipe, board=board, direction=direction, run=session.view(), collapsed=collapsed)

    def chain(self, id: str) -> Chain:
        """Return the causes and effects of an event, an object, a relation, a patch or an approval.

        An object's chain has its creation, all its patches, the creation and removal of its relations, and its own
        removal, each with its causes.

        Raises:
            ExecutionError: X161, no event up to here concerns it.
        """
        return chain_in(cast("Session", self), id)

    def draw_objects(self, at: int | None = None) -> Drawing:
        """Return the drawing of the object graph, with the changes of the last step highlighted.

        Args:
            at: after which step; default: the current position, including the work of a step in flight.

        X160: a run of nodes and edges has no object graph.

        Raises:
            ExecutionError: X160, this is not a run of behaviors; X111, there is no such step.
        """
        from agentnb.draw.diagram import reacts
        from agentnb.draw.object_graph import draw_graph

        session = cast("Session", self)
        if not reacts(session.recipe):
            raise ExecutionError(
                Problem("X160", f"{session.recipe.name!r} has no object graph", "draw_objects()",
                        "only behaviors create one, from events about objects and relations",
                        "look at session.board, or draw() the recipe with its board")
            )  # fmt: skip
        step = session.position if at is None else at
        refuse_step(session, step)
        reading = session.trace.reading()
        now, before = (reading.replica(each).seen(0) for each in (step, max(step - 1, 0)))
        if at is None and (flying := _in_flight(session.engine)):
            step, before = step + 1, now
            now = {key: value for key, value in {**now, **flying}.items() if value is not ABSENT}
        return draw_graph(session.recipe.name, now, before if step else None)


def _in_flight(run: Run) -> dict[str, Any]:
    """Return the frozen values that steps in flight have written so far, by key; ABSENT for deletions."""
    own = (write for flight in run.flights.values() for write in flight.act.work.own)
    return {str(path[0]): value if value is ABSENT else freeze(value) for path, value in own if len(path) == 1}


__all__ = ["Graphs"]
