"""Small recipes made by hand, for the tests of the rules."""

from __future__ import annotations

from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region


def node(name, kind="noop", **more):
    return Node(name, kind, **more)


def recipe(nodes, edges=(), entry=None, regions=(), **more):
    """Return a recipe: nodes as Nodes or ids, edges as Edges or (source, target, kind)."""
    all_nodes = [each if isinstance(each, Node) else node(each) for each in nodes]
    entry = (all_nodes[0].id,) if entry is None and all_nodes else tuple(entry or ())
    all_edges = tuple(edge if isinstance(edge, Edge) else Edge(*edge) for edge in edges)
    every = {ROOT: Region(ROOT, entry), **{region.id: region for region in regions}}
    return Recipe("made", "test", {each.id: each for each in all_nodes}, all_edges, entry, regions=every, **more)


def list_codes(rule, made):
    return [(problem.code, problem.severity) for problem in rule(made)]
