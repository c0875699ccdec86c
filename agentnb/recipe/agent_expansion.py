"""Agent expansion: a node that calls an agent becomes a composite node, stepped and drawn like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType, MappingProxyType
from typing import Any, Final

from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.recipe.user_functions import get_own_attribute

WHOLE: Final = ""  # the name of the agent in a recipe that consists of only this agent
_CALLING: Final = frozenset({"agent", "function", "system", "task", "tool"})
_WAS: Final = "was"  # the parameter with a node's kind before its agent was expanded
_NAMES: Final = ("function", "ref")  # the parameters that name what a node calls


def graft_agents(recipe: Recipe, tools: Mapping[str, Any]) -> Recipe:
    """Return a recipe in which each node that calls an agent contains the agent's recipe.

    An agent is an object with a `recipe` that includes it (`meta["agents"]`). A node calls an agent if it has the agent
    in place of a callable, or names it and `tools` has it under that name. The agent's nodes are called `NODE/NAME`;
    they have a separate board and do not count towards max_steps: to the enclosing recipe, the agent is one node. If
    `tools` has something else under the name of an agent, the original node is restored.
    """
    if not _may_call_agents(recipe, tools):
        return recipe
    recipe = _restore_nodes(recipe, tools)
    inner = {node.id: inside for node in recipe.nodes.values() if (inside := _find_agent(node, tools)) is not None}
    if not inner:
        return recipe
    recipe = _remove_insides(recipe, inner)
    nodes: dict[str, Node] = {}
    edges, regions = [*recipe.outgoing_edges], dict(recipe.regions)
    agents = dict(recipe.meta.get("agents", {}))
    for node in recipe.nodes.values():
        inside = inner.get(node.id)
        if inside is None:
            nodes[node.id] = node
            continue
        region = _find_free_name(node.id, regions)
        nodes[node.id] = replace(node, kind="task", bodies=(region,), params=_get_params(node))
        stem = _make_prefix(node.id, inside, recipe)
        nodes |= {each.id: each for each in _expand_nodes(inside, node, region, stem)}
        edges += [_expand_edge(edge, stem) for edge in inside.outgoing_edges]
        entry = tuple(f"{stem}/{id}" for id in inside.entry)
        regions[region] = Region(region, entry, inside.name, node.id, isolated=True)
        agents[node.id] = inside.meta["agents"][WHOLE]
    meta = MappingProxyType({**recipe.meta, "agents": agents})
    return replace(
        recipe, nodes=MappingProxyType(nodes), edges=tuple(edges), regions=MappingProxyType(regions), meta=meta
    )


def find_agent(called: Any) -> Recipe | None:
    """Return the recipe of an agent; None for anything else that can be called."""
    recipe = get_own_attribute(called, "recipe")
    return recipe if isinstance(recipe, Recipe) and WHOLE in recipe.meta.get("agents", {}) else None


def _may_call_agents(recipe: Recipe, tools: Mapping[str, Any]) -> bool:
    """Return False if no node can call an agent, by far the most common case. Called names are collected only once."""
    known = recipe.derived
    if "called" not in known:
        called = [_get_called(node) for node in recipe.nodes.values() if node.kind in _CALLING]
        names = frozenset(each for each in called if isinstance(each, str))
        objects = tuple(each for each in called if type(each) not in (str, FunctionType))
        known["called"] = names, objects, any(_WAS in node.params for node in recipe.nodes.values())
    names, objects, has_agents = known["called"]
    return (
        has_agents
        or any(find_agent(each) is not None for each in objects)
        or any(find_agent(called) is not None for name, called in tools.items() if name in names)
    )


def _find_agent(node: Node, tools: Mapping[str, Any]) -> Recipe | None:
    """Return the recipe of the agent that a node calls; None if it calls none."""
    if node.kind not in _CALLING:
        return None
    name = _get_called(node)
    return find_agent(tools.get(name) if isinstance(name, str) else name)


def _restore_nodes(recipe: Recipe, tools: Mapping[str, Any]) -> Recipe:
    """Return a recipe without the agents that are now replaced by a plain callable."""
    removed = {
        node.id: replace(node, kind=node.params[_WAS], bodies=(), params=_drop_param(node, _WAS))
        for node in recipe.nodes.values()
        if _WAS in node.params and tools.get(_get_called(node)) is not None and _find_agent(node, tools) is None
    }
    if not removed:
        return recipe
    recipe = _remove_insides(recipe, removed)
    agents = {id: agent for id, agent in recipe.meta["agents"].items() if id not in removed}
    return replace(
        recipe,
        nodes=MappingProxyType({**recipe.nodes, **removed}),
        meta=MappingProxyType({**recipe.meta, "agents": agents}),
    )


def _drop_param(node: Node, without: str) -> Mapping[str, Any]:
    return MappingProxyType({name: value for name, value in node.params.items() if name != without})


def _get_called(node: Node) -> Any:
    """Return what a node calls: a name, or the object itself."""
    return next((node.params[name] for name in _NAMES if node.params.get(name) is not None), node.id)


def _remove_insides(recipe: Recipe, owners: Mapping[str, Any]) -> Recipe:
    """Return a recipe without the insides of these nodes, because another agent may replace an earlier one."""
    inside = {region for owner in owners for region in recipe.nodes[owner].bodies}
    if not inside:
        return recipe
    nodes = {id: node for id, node in recipe.nodes.items() if node.scope not in inside}
    return replace(
        recipe,
        nodes=MappingProxyType(nodes),
        edges=tuple(edge for edge in recipe.outgoing_edges if edge.source in nodes),
        regions=MappingProxyType({id: region for id, region in recipe.regions.items() if id not in inside}),
    )


def _get_params(node: Node) -> Mapping[str, Any]:
    """Return a node's parameters with the agent's name in place of the object itself."""
    named = {name: node.params[name].recipe.name for name in _NAMES
             if node.params.get(name) is not None and not isinstance(node.params[name], str)}  # fmt: skip
    return MappingProxyType({_WAS: node.kind, **node.params, **named})


def _find_free_name(name: str, regions: Mapping[str, Region]) -> str:
    while name in regions:
        name += "/inside"
    return name


def _make_prefix(name: str, inside: Recipe, recipe: Recipe) -> str:
    """Return the prefix for the inner nodes: their owner's name, extended if a node already has it."""
    while any(f"{name}/{id}" in recipe.nodes for id in inside.nodes):
        name += "/inside"
    return name


def _expand_nodes(inside: Recipe, owner: Node, region: str, stem: str) -> list[Node]:
    assert all(node.scope == ROOT and not node.bodies for node in inside.nodes.values()), "an agent has no regions"
    return [
        replace(
            node,
            id=f"{stem}/{node.id}",
            label=node.label or node.id,
            scope=region,
            counted=False,
            params=MappingProxyType({"own_id": node.id, **node.params, "agent": owner.id}),
        )
        for node in inside.nodes.values()
    ]


def _expand_edge(edge: Edge, stem: str) -> Edge:
    return replace(edge, source=f"{stem}/{edge.source}", target=f"{stem}/{edge.target}")


__all__ = ["WHOLE", "find_agent", "graft_agents"]
