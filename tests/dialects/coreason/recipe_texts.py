"""Coreason recipes for the tests, small enough to be read at a glance."""

from __future__ import annotations

from agentnb.errors import RecipeError
from agentnb.load import load

HEAD = "metadata: {name: t}\ninterface: {}\n"


def agent(id, **more):
    return {"id": id, "type": "agent", "agent_ref": f"{id}-agent", **more}


def router(id, routes, default, **more):
    return {"id": id, "type": "router", "input_key": "topic", "routes": routes, "default_route": default, **more}


def content(nodes, edges=(), entry=None, *, topology=None, **more):
    """Return a recipe as a dict: nodes as dicts or ids of agents, edges as pairs."""
    node_dicts = [each if isinstance(each, dict) else agent(each) for each in nodes]
    edge_dicts = [{"source": source, "target": target} for source, target in edges]
    graph = {"nodes": node_dicts, "edges": edge_dicts, "entry_point": entry or node_dicts[0]["id"], **(topology or {})}
    return {"metadata": {"name": "t"}, "interface": {}, "topology": graph, **more}


def problems(source, **options):
    """Return (code, severity, where) of every problem, raised or not."""
    try:
        faults = load(source, **options).check()
    except RecipeError as error:
        faults = error.problems
    return [(problem.code, problem.severity, problem.where) for problem in faults]


def codes(source, **options):
    return [code for code, _, _ in problems(source, **options)]
