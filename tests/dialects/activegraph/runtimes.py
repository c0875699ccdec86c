"""Graphs and runtimes for tests, with clocks and ids that are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentnb.dialects import activegraph
from agentnb.dialects.activegraph import (
    Behavior,
    Event,
    Graph,
    IDGen,
    LLMBehavior,
    RelationBehavior,
    Runtime,
    TickingClock,
)
from tests.dialects.activegraph.programs_of_models import Answers


def graph() -> Graph:
    return Graph(ids=IDGen(), clock=TickingClock("2026-01-01T00:00:00Z"), run_id="RUN")


def on(*types: str, **words: Any) -> Callable[[Callable[..., Any]], Behavior]:
    """Make a behavior of a function, and register nothing."""
    return lambda fn: Behavior(fn.__name__, fn, on=list(types), **words)


def on_relation(relation_type: str, *types: str, **words: Any) -> Callable[[Callable[..., Any]], RelationBehavior]:
    return lambda fn: RelationBehavior(fn.__name__, fn, relation_type, on=list(types), **words)


def runtime(*behaviors: Any, **options: Any) -> Runtime:
    return Runtime(graph(), behaviors=behaviors, **options)


def tell(runtime: Runtime, type_: str = "goal.created", **payload: Any) -> Event:
    """Emit an event from outside; nothing runs."""
    return runtime.graph.emit(Event(runtime.graph.ids.event(), type_, payload, actor="user"))


def log(runtime: Runtime) -> list[dict[str, Any]]:
    """Return the whole log; runs differ in nothing but their ids."""
    return [without_run(event.to_dict()) for event in runtime.graph.events]


def without_run(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_run(item) for name, item in value.items() if name != "run_id"}
    return [without_run(item) for item in value] if isinstance(value, list) else value


def types(runtime: Runtime) -> list[str]:
    """Return the types of the events that are not of the run itself."""
    own_prefixes = ("behavior.", "relation_behavior.", "runtime.")
    return [event.type for event in runtime.graph.events if not event.type.startswith(own_prefixes)]


@pytest.fixture
def research():
    """A team: tasks are made, worked on with chance and time, and looked at later."""

    @on("goal.created")
    def plan(event, graph, ctx):
        tasks = [graph.add_object("task", {"n": number}) for number in range(3)]
        graph.add_relation(tasks[0].id, tasks[1].id, "next")

    @on("object.created", where={"object.type": "task"})
    def work(event, graph, ctx):
        graph.patch_object(event.payload["id"], {"luck": ctx.random.random(), "at": ctx.clock.now()})
        graph.emit("done", {"task": event.payload["id"]})

    @on_relation("next", "done")
    def follow(relation, event, graph, ctx):
        graph.emit("followed", {"target": relation.target})

    @on("done", activate_after=2)
    def later(event, graph, ctx):
        graph.add_object("note", {"of": event.id, "luck": ctx.random.random()})

    @on("followed", pattern="(a:task)-[:next]->(b:task)")
    def look(event, graph, ctx):
        graph.emit("looked", {"found": [match.bindings for match in ctx.matches]})

    return [plan, work, follow, later, look]


def thinking(*answers: Any, tools: Any = (), **options: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return a behavior that asks a model, and the options of a runtime in which it answers so."""

    def think(event, graph, ctx, answer):
        graph.emit("thought", {"by": ctx.llm_provider is not None})

    behavior = LLMBehavior("think", think, on=["goal.created"], handler=think, tools=list(tools))
    return [behavior], {
        "llm_provider": Answers(activegraph, *answers),
        "llm_retry_initial_delay_seconds": 0.0,
        **options,
    }
