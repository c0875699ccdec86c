"""Drawings of a session: the run on its recipe, and the objects of a reactive run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT, freeze
from agentnb.errors import ExecutionError, Problem
from agentnb.session.checks import refuse_step
from agentnb.session.node_coverage import NodeCoverage
from agentnb.session.run_queries import make_view

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentnb.draw.drawing import Drawing
    from agentnb.draw.run_view import RunView
    from agentnb.engine.core.run import Run
    from agentnb.session.state import State


class Pictures:
    """Draws a session."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._coverage, self._run = NodeCoverage(state.recipe), state.run

    def view(self) -> RunView:
        """Return the state of the run, for a drawing."""
        state = self._state
        if self._run is not state.run:  # it was reset
            self._coverage, self._run = NodeCoverage(state.recipe), state.run
        return make_view(state.run, self._coverage, [row for row in state.breakpoints if row.enabled])

    def draw(self, board: bool, direction: str, collapsed: Collection[str]) -> Drawing:
        """Return the recipe's drawing with the state of the run."""
        from agentnb.draw.dot import draw_recipe

        recipe = self._state.recipe
        return draw_recipe(recipe, board=board, direction=direction, run=self.view(), collapsed=collapsed)

    def draw_objects(self, at: int | None) -> Drawing:
        """Return the drawing of the object graph.

        X160: a run of nodes and edges has no object graph.

        Raises:
            ExecutionError: X160, this is not a run of behaviors; X111, there is no such step.
        """
        from agentnb.draw.diagram import is_reactive
        from agentnb.draw.object_graph import draw_graph

        state = self._state
        if not is_reactive(state.recipe):
            raise ExecutionError(
                Problem("X160", f"{state.recipe.name!r} has no object graph", "draw_objects()",
                        "only recipes with behaviors have one; it is built from events",
                        "see session.board, or draw() the recipe with its board")
            )  # fmt: skip
        step = state.run.position if at is None else at
        refuse_step(state, step)
        reading = state.trace.reading()
        now, earlier = (reading.replica(each).visible_items(0) for each in (step, max(step - 1, 0)))
        if at is None and (flying := _get_in_flight(state.run)):
            step, earlier = step + 1, now
            now = {key: value for key, value in {**now, **flying}.items() if value is not ABSENT}
        return draw_graph(state.recipe.name, now, earlier if step else None)


def _get_in_flight(run: Run) -> dict[str, Any]:
    """Return the frozen values that steps in flight have written so far, by key; ABSENT for deletions."""
    own = (write for pending_step in run.pending_steps.values() for write in pending_step.activation.work.own_writes)
    return {str(path[0]): value if value is ABSENT else freeze(value) for path, value in own if len(path) == 1}


__all__ = ["Pictures"]
