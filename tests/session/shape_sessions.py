"""Sessions of the five shapes, with the kinds that tests are made of: one for each way of moving."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentnb.board.values import thaw
from agentnb.engine.control.budget import Budget
from agentnb.engine.core.event_queue import emit_from_outside
from agentnb.engine.core.run import Run
from agentnb.engine.effects.dispatch import EffectDispatcher
from agentnb.session import Session
from agentnb.session.limits import Limits
from agentnb.session.session import make_session as session_of_run
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import SHAPES, Meeting, Shape, branches, path, shape_of

ENDS = dict.fromkeys(SHAPES, "finished") | {"reactive": "idle"}

# Per shape: a leaf of it that is a plain function, and runs once the shape has been begun.
LEAF = {"diamond": "a", "cycle": "again", "branches": "first", "nested": "look", "reactive": "count"}


def session_of(name: str, shape: Shape | None = None, *, runs: bool = False) -> Session:
    """Return a session of a shape that stands at its start, with the events that set it off.

    Where it `runs`, the steps of branches come in one order.
    """
    shape = shape or (_in_one_order() if runs and name == "branches" else shape_of(name))
    run = Run(shape.plan(), EffectDispatcher())
    run.begin(shape.inputs)
    for payload in shape.emits:
        emit_from_outside(run, "hello", payload)
    return session_of_run(run, Limits(Budget()), name, dict(shape.inputs))


def _in_one_order() -> Shape:
    """Return the branches with steps that come in one order also where they run at the same time."""
    shape = branches(Meeting())

    def later(does):
        async def second(work):
            await work.loop()
            while work.run.position < 2:  # noqa: ASYNC110  (the first one's step is not an event of a loop)
                await asyncio.sleep(0)
            return does(work)

        return second

    nodes = [
        replace(node, params={"do": later(node.params["do"])}) if node.id == "second" else node for node in shape.nodes
    ]
    return replace(shape, nodes=nodes)


def asking(name: str, kind: str) -> Session:
    """Return a session of a shape whose leaf asks a person, or does any other effect, before what it does."""
    shape, leaf = shape_of(name), LEAF[name]
    effect = Effect(kind, "may it", {"of": leaf}, target=(lambda of: f"about {of}") if kind == "tool" else None)

    def first(does):
        async def do(work):
            answer = thaw(await work.call(effect))
            return {**does(work), "said": answer}

        return do

    nodes = [
        replace(node, params={**node.params, "do": first(node.params["do"])}) if node.id == leaf else node
        for node in shape.nodes
    ]
    return session_of(name, replace(shape, nodes=nodes))


def to_where_it_waits(session: Session) -> Session:
    """Step to where a person is asked, or a call is held."""
    while session.status not in ("waiting", "in_flight"):
        assert session.step() is not None or session.pending
    return session


def went(session: Session) -> list[str]:
    """Return each step up to where a session stands, with a mark for what was not a plain turn."""
    return path(session._parts.run)
