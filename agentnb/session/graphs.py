"""graphs: the part of a Session that shows it as pictures: the run on its recipe, chains of causes, objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agentnb.board.values import ABSENT, freeze
from agentnb.errors import ExecutionError, Problem
from agentnb.session.chain import Chain, chain_in
from agentnb.session.checks import refuse_step
from agentnb.session.reading import view_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentnb.draw.drawing import Drawing
    from agentnb.draw.view import RunView
    from agentnb.engine.run import Run
    from agentnb.session.session import Session


class Graphs:
    """The pictures of a session; a Session has them."""

    def view(self) -> RunView:
        """Return where the run stands, for a picture."""
        session = cast("Session", self)
        stops = [row for row in session.breakpoints if row.enabled]
        return view_of(session.engine, session._seen, stops)  # noqa: SLF001  (it is its own)

    def draw(self, board: bool = True, direction: str = "TB", collapsed: Collection[str] = ()) -> Drawing:
        """Return the recipe's drawing with the run on it; `collapsed` regions are one box each, as in `Recipe.draw`."""
        from agentnb.draw.dot import draw_recipe

        session = cast("Session", self)
        return draw_recipe(session.recipe, board=board, direction=direction, run=session.view(), collapsed=collapsed)

    def chain(self, id: str) -> Chain:
        """Return what led to an event, an object, a relation, a patch or an approval, and what it led to.

        An object's chain has its creation, all its patches, the relations that were made and removed at it, and its
        removal, each with its causes.

        Raises:
            ExecutionError: X161, nothing up to here tells of it.
        """
        return chain_in(cast("Session", self), id)

    def draw_objects(self, at: int | None = None) -> Drawing:
        """Return the drawing of the graph of objects, with what the last step has changed marked.

        Args:
            at: after which step; left out, where the run stands: what a step in flight has done so far counts then.

        X160: a run of nodes and edges has no graph of objects.

        Raises:
            ExecutionError: X160, this is no run of behaviours; X111, there is no such step.
        """
        from agentnb.draw.objects import draw_graph
        from agentnb.draw.picture import reacts

        session = cast("Session", self)
        if not reacts(session.recipe):
            raise ExecutionError(
                Problem("X160", f"{session.recipe.name!r} has no graph of objects", "draw_objects()",
                        "only behaviours make one: objects and relations that events tell of",
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
    """Return what steps in flight have written so far, frozen, by its key; ABSENT where something goes."""
    own = (write for flight in run.flights.values() for write in flight.act.work.own)
    return {str(path[0]): value if value is ABSENT else freeze(value) for path, value in own if len(path) == 1}


__all__ = ["Graphs"]
