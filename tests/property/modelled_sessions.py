"""Sessions of drawn recipes, with a few kinds of this suite's own, and what they show at each step."""

from __future__ import annotations

from typing import Any

from agentnb.engine.control.budget import Budget
from agentnb.engine.core.history import PHASES, STATUSES
from agentnb.engine.core.plan import Plan
from agentnb.engine.core.run import Run
from agentnb.engine.core.time_travel import find_history
from agentnb.engine.core.work import Body, Enter, Kind, Outcome
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.kinds import KINDS
from agentnb.session import Session
from agentnb.session.limits import Limits
from agentnb.session.session import make_session as session_of_run
from agentnb.world.world import World
from tests.property.node_programs import perform
from tests.property.reference_model import Model


def doer(node: Any, world: Any) -> Any:
    """Bind a node that writes below keys, by `work.write` and by the places of its Outcome."""

    def act(work: Any) -> Outcome:
        writes, places = perform(node.params["ops"], work.board.get, work.write)
        return Outcome(writes, places)

    return act


def branches(node: Any, world: Any) -> Any:
    """Bind a node whose bodies are parallel branches; what they leave is merged in the order of the branches."""

    def act(work: Any) -> Any:
        if work.phase == "start":
            return Enter([Body(body, "child", {"who": n}, n) for n, body in enumerate(node.bodies)])
        boards = [frame.scope.visible_items() for frame in work.frames]
        return {key: [board.get(key) for board in boards] for key in node.params["merge"]}

    return act


OWN = {
    "doer": Kind("doer", doer),
    "keeper": Kind("keeper", doer, keeps_writes=True),
    "branches": Kind("branches", branches),
}


def session_of(recipe: Any, inputs: Any, limit: int | None) -> Session:
    """Return a session: made as people make it, or wired by hand where the recipe has kinds of this suite."""
    if not any(node.kind in OWN for node in recipe.nodes.values()):
        return Session(recipe, inputs, budget={"max_steps": limit}, run_id="r")
    run = Run(Plan(recipe, {**KINDS, **OWN}, World()), EffectDispatcher())
    run.begin({**recipe.init, **inputs})
    return session_of_run(run, Limits(Budget(max_steps=limit)), recipe.name, dict(inputs), "r")


def describe_session(session: Session) -> dict[str, Any]:
    """Return all that a session shows where it stands."""
    cursor = session.cursor
    return {
        "position": session.position,
        "status": session.status,
        "board": repr(dict(session.board)),
        "frontier": [(entry.node, entry.depth, entry.phase, entry.branch) for entry in session.frontier],
        "frames": [(f.node, f.region, f.depth, f.iteration, f.scope, f.branch) for f in cursor.frames],
        "used": session._parts.run.counted_steps,
        "root": repr(session.trace.state_at(session.position)),
        "row": row_of(session),
    }


def row_of(session: Session) -> tuple[str, str, str] | None:
    """Return node, phase and status of the step where a session stands."""
    run = session._parts.run
    history = find_history(run, session.position)
    if session.position == history.base:  # the start of a branch repeats the step that it begins after
        histories = [h for h in run.chain if h.base < session.position <= h.tip]
        if not histories:
            return None
        history = histories[-1]
    row = session.position - history.base
    flag = history.step_flags[row]
    return (run.get_node_id(history.step_activations[row]), PHASES[flag & 3], STATUSES[flag >> 2 & 3])


def expected(model: Model) -> dict[str, Any]:
    """Return what a session has to show where its model stands."""
    now = model.now
    frames = now.frames.values()
    return {
        "position": model.position,
        "status": model.status,
        "board": repr(now.board),
        "frontier": [(e.node, now.frames[e.frame].depth, e.turn, now.frames[e.frame].branch) for e in now.queue],
        "frames": [(f.owner, f.region, f.depth, f.iteration, now.scopes[f.scope].name, f.branch) for f in frames],
        "used": now.used,
        "root": repr(now.seen(0)),
        "row": None if now.row is None else tuple(now.row),
    }
