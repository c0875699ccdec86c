"""The types, systems and graphs that the tests of polaris share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agentnb.dialects.polaris import ExecutionError, Graph, GraphExecutor, Out, system

PLAN, RESULT = f"{__name__}.Plan", f"{__name__}.Result"


@dataclass
class Plan:
    goal: str
    done: int = 0


@dataclass
class Result:
    text: str


@system
def plan() -> Plan:
    return Plan("tea")


@system
async def work(plan: Out[Plan]) -> Plan:
    return Plan(plan.goal, plan.done + 1)


@system
def fail(plan: Out[Plan]) -> Result:
    raise ValueError("it broke")


@system
def fix(plan: Out[Plan]) -> Result:
    return Result(f"fixed {plan.goal}")


@system
def tell(plan: Out[Plan]) -> Result:
    return Result(f"{plan.goal} {plan.done}")


@system
def note() -> str:
    return "noted"


def nothing(graph):
    """A builder that adds no node."""


def execute(graph, ctx=None, hooks=None, **settings):
    return asyncio.run(GraphExecutor(**settings).execute(graph, ctx, hooks))


def refused(graph, ctx=None, hooks=None, **settings):
    """Return (kind, node) of the error that a graph ends with."""
    try:
        execute(graph, ctx, hooks, **settings)
    except ExecutionError as error:
        return error.kind, error.node_id
    return None


def path(session):
    """Return what a session has stepped through: node, phase where it is not a plain run, status where it is not ok."""
    rows = ((step.node_id, step.phase, step.status) for step in session.trace.steps)
    return [" ".join(word for word in words if word not in ("run", "ok")) for words in rows]


def nested(depth):
    """Return a graph of so many decisions inside one another."""

    def inside(left):
        def build(graph):
            if left:
                graph.add_conditional_branch(f"level{left}", Plan, lambda _: True, inside(left - 1))
            else:
                graph.add_system(tell)

        return build

    graph = Graph("nested").add_system(plan)
    inside(depth)(graph)
    return graph
