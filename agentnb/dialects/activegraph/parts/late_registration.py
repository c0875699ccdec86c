"""Changing the behaviors of a run that has started. The run continues with them from its current step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.activegraph.parts.ledger import get_ledger
from agentnb.dialects.activegraph.schema import make_recipe
from agentnb.engine.control.interventions import record_intervention
from agentnb.engine.core import event_queue, time_travel
from agentnb.engine.core.plan import Plan
from agentnb.kinds import KINDS
from agentnb.session.parts import get_parts

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.graph import Graph
    from agentnb.engine.core.history import Intervention
    from agentnb.engine.core.run import Run

GRAPH: Final = "graph"  # the name of a run without listeners
ATTACHED: Final = "listen"  # the intervention that records the event from which on behaviors listen


def attach(graph: Graph, behaviors: Sequence[Any], config: Any, name: str, since: int) -> None:
    """Replace the listeners of a graph's events by these behaviors.

    Raises:
        RecipeError: a behavior is not valid as a node: two have the same name, for example.
    """
    parts = get_parts(graph.session)
    state = parts.state
    run, recipe = state.run, make_recipe(behaviors, config, name, since)
    plan = Plan(recipe, KINDS, run.world, like=run.plan)
    time_travel.open_tip(run)
    run.plan, run.world = plan, plan.world
    if run.position > run.history.base:  # its steps were made with the previous behaviors
        time_travel.start_branch(run)
    run.history.plan = plan
    run.root.activations.clear()
    run.live_activations.clear()
    event_queue.match_again(run)
    state.trace = None  # the trace refers to the previous nodes
    if state.name == GRAPH:  # no name has been assigned yet
        state.name = name
    if get_registration_event(run) != since:
        record_intervention(run, ATTACHED, name, new=since, by="runtime")
    get_ledger(run).sync()
    parts.callbacks.install()  # breakpoints and limits depend on the recipe


def get_registration_event(run: Run) -> int:
    """Return the number of the event from which on behaviors listen in a run; -1 if none listen yet."""
    return max((int(intervention.new) for intervention in _iter_attached(run)), default=-1)


def get_first_step(run: Run) -> int:
    """Return the step after which behaviors were first attached to a run."""
    return min(intervention.step for intervention in _iter_attached(run))


def _iter_attached(run: Run) -> Iterator[Intervention]:
    return (
        intervention
        for history, _ in run.parts()
        for intervention in history.interventions
        if intervention.action == ATTACHED
    )


__all__ = ["attach", "get_first_step", "get_registration_event"]
