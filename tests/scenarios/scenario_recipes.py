"""Recipes with tests of their own, for the tests of what runs them."""

from __future__ import annotations

import networkx as nx

import agentnb as nb

RECIPE = """\
apiVersion: coreason.ai/v2
kind: Recipe
metadata: {name: refunds}
interface: {inputs: {properties: {ticket: {type: string}}, required: [ticket]}}
topology:
  entry_point: read
  nodes:
    - {id: read, type: agent, agent_ref: reader, inputs_map: {text: ticket}}
    - {id: sort, type: router, input_key: topic, routes: {refund: ask}, default_route: close}
    - {id: ask, type: human, prompt: Refund it?}
    - {id: close, type: agent, agent_ref: closer, inputs_map: {ticket: ticket}}
  edges:
    - {source: read, target: sort}
    - {source: ask, target: close}
"""
TESTS = """\
tests:
  - {id: refund, description: Money is asked back, inputs: {ticket: money back},
     expected_output: {topic: refund, response: yes please, closed: true}, validation_logic: exact_match}
  - {id: other, description: Something else, inputs: {ticket: hello},
     expected_output: {topic: other}, validation_logic: exact_match}
"""
TOOLS = {
    "reader": lambda text: {"topic": "refund" if "money" in text else "other"},
    "closer": lambda ticket: {"closed": True},
}
ANSWERS = {"ask": ["yes please"]}


def refunds(tests=TESTS):
    return nb.load(RECIPE + tests)


def writes(**board):
    """Return a recipe of one node that writes these values."""
    return computed(lambda: board)


def computed(function, **attributes):
    """Return a recipe of one function."""
    graph = nx.DiGraph(name="one")
    graph.add_node("work", function=function, **attributes)
    return nb.load(graph)


def scenario(expected=None, compare="exact_match", id="one", about="", inputs=None):
    return {"id": id, "inputs": inputs or {}, "expected": expected, "compare": compare, "about": about}


def ran(recipe, *given, **options):
    """Return the one result of one scenario."""
    (result,) = nb.run_scenarios(recipe, list(given), **options)
    return result


def codes(raised):
    return [problem.code for problem in raised.value.problems]
