"""attaching: other behaviours for a run that has begun. The run goes on with them from where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.activegraph.ledger import ledger_of
from agentnb.dialects.activegraph.recipes import recipe_of_behaviors
from agentnb.engine import travel
from agentnb.engine.people import note
from agentnb.engine.plan import Plan
from agentnb.kinds import KINDS

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.graph import Graph
    from agentnb.engine.run import Run

GRAPH: Final = "graph"  # the name of a run that nothing listens to yet
ATTACHED: Final = "listen"  # the act that says from which event on behaviours listen


def attach(graph: Graph, behaviors: Sequence[Any], party: Any, name: str, since: int) -> None:
    """Let these behaviours listen to a graph's events, in place of those that did.

    Raises:
        RecipeError: a behaviour cannot be what a node is: two have one name, for example.
    """
    session = graph.session
    run, recipe = session.engine, recipe_of_behaviors(behaviors, party, name, since)
    plan = Plan(recipe, KINDS, run.world, like=run.plan)
    travel.open_tip(run)
    run.plan, run.world = plan, plan.world
    if run.position > run.history.base:  # its steps were made with the others
        travel.branch(run)
    run.history.plan = plan
    run.root.acts.clear()
    run.live.clear()
    session.recipe = recipe
    session._trace = None  # noqa: SLF001  (it knew the nodes that there were)
    if session.name == GRAPH:  # nobody has named it yet
        session.name = name
    if since_of(run) != since:
        note(run, ATTACHED, name, new=since, actor="runtime")
    ledger_of(run).sync()
    session._arm()  # noqa: SLF001  (what it breaks at and counts goes by the recipe)


def since_of(run: Run) -> int:
    """Return the number of the event from which on behaviours listen in a run; -1 where none have yet."""
    acts = (act for history, _ in run.parts() for act in history.people if act.act == ATTACHED)
    return max((int(act.new) for act in acts), default=-1)


__all__ = ["attach", "since_of"]
