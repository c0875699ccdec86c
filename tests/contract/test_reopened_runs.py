"""A recorded run replays without a difference, whoever answered then and whatever its session is given when opened."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.kinds import KINDS
from agentnb.kinds.agent import ASKING
from agentnb.recipe.model import Edge
from agentnb.store import MemoryLog
from tests.contract.test_kinds import FAILING, REACTIVE, recipe_of
from tests.property.test_samples_replay import SAMPLES, STARTS, inputs_of, run_on

JUDGED = {"name": "a", "score": 0.9, "critique": "fine"}
DECIDED = {"tool_name": "none", "response": "x"}
ANSWERS = {"text": "fine", "json": json.dumps(JUDGED), "decision": json.dumps(DECIDED), "mapping": JUDGED}
OWN = sorted(KINDS.keys() - REACTIVE - FAILING)


class Caught:
    """Stands in for a model and for bound callables, and counts how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.calls += 1
        raise AssertionError("a call went out")


def asking(recipe: Any) -> list[str]:
    """Return the names under which callables answer for a recipe's nodes."""
    nodes = [node for node in recipe.nodes.values() if node.kind in ASKING - {"llm"}]
    return [str(node.params.get("ref", node.id)) for node in nodes]


def check_replays(log: MemoryLog, recipe: Any) -> None:
    """Open a run with nothing, another model, other callables, and both: each replays, and nothing is called."""
    caught = Caught()
    tools = dict.fromkeys(asking(recipe), caught)
    for options in ({}, {"llm": caught}, {"tools": tools}, {"llm": caught, "tools": tools}):
        opened = nb.open(log, "run", recipe=recipe, **options)
        report = opened.replay(strict="reads")
        assert report.ok, (list(options), report)
        opened.close()
    assert caught.calls == 0


def answered(by: str, recipe: Any) -> dict[str, Any]:
    """Return what a session is given, so that its nodes are answered by nobody, by callables, or by a model."""
    if by == "nobody":
        return {}
    if by != "callable":
        return {"llm": lambda _request: ANSWERS[by]}
    return {"tools": {name: lambda *_, **__: JUDGED for name in asking(recipe)}}


@pytest.mark.parametrize("by", ["nobody", "callable", *ANSWERS])
@pytest.mark.parametrize("kind", OWN)
def test_a_node_of_any_kind_replays_whatever_answered_it(kind, by):
    recipe, log = recipe_of(kind), MemoryLog()
    run = nb.Session(recipe, {"word": "a"}, answers={"here": "yes"}, clock=FrozenClock(), store=log,
                     run_id="run", **answered(by, recipe))  # fmt: skip
    run.run()
    assert run.position
    run.close()
    check_replays(log, recipe_of(kind))


@pytest.mark.parametrize("by", ["nobody", "callable", "text", "decision"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_replays_whatever_answered_it(name, by):
    recipe, log = nb.samples(name), MemoryLog()
    run = nb.Session(recipe, inputs_of(recipe), store=log, run_id="run", **answered(by, recipe))
    if name in STARTS:
        run.emit(*STARTS[name])
    run_on(run)
    assert run.position
    run.close()
    check_replays(log, nb.samples(name))


@pytest.mark.parametrize("kind", sorted({*ASKING, "chat"}))
def test_a_run_answered_by_several_models_replays(kind):
    """Each of three sessions makes one step of a loop: with a model, with nobody, with a callable or a model."""
    body = recipe_of(kind)
    again = [Edge("here", "here", "loop_back") if edge.source == "here" else edge for edge in body.edges]
    recipe = replace(body, edges=tuple(again), name="again")
    if kind == "evaluator":
        params = {**recipe.nodes["here"].params, "pass_route": "here"}
        recipe = replace(recipe, nodes={**recipe.nodes, "here": replace(recipe.nodes["here"], params=params)}, edges=())
    log = MemoryLog()
    run = nb.Session(recipe, {"word": "a"}, llm=lambda _request: ANSWERS["json"], store=log, run_id="run")
    run.step()
    run.close()
    for source in ("nobody", "callable", "mapping", "nobody"):
        run = nb.open(log, "run", recipe=recipe, **answered(source, recipe))
        run.step()
        assert run.status == "paused", run.error
        run.close()
    assert run.position == 5
    check_replays(log, recipe)
