"""Where in its file a problem is reported, and where the parts of its recipe are."""

from __future__ import annotations

import pytest

from agentnb.load import load
from tests.dialects.marked_texts import find_problems, get_spot, read_marks

HEAD = "meta: {name: t}\nstate: {shape: {x: any, log: any}, init: {log: []}}\n"
GRAPH = "graph: {inputs: [x], outputs: [x], nodes: [{id: a}]}\n"
TOOLS = """
tools:
  - {id: «R240»one, kind: python, impl: "m#f"}
  - {id: other, kind: subgraph, impl: «R185»gone}
  - {id: «R240»one, kind: python, impl: "m#f"}
  - {id: deep, kind: subgraph, impl: in}
  - «R158»{id: one, kind: python, impl: "m#f"}
"""
INNER = "subgraphs: {in: {inputs: [x], outputs: [x], nodes: [{id: inner}]}}\n"
FAULTS = {
    "tools": HEAD + TOOLS + "graph: {inputs: [x], outputs: [x], nodes: [{id: a, uses: deep}]}\n" + INNER,
    "unused subgraphs": HEAD + GRAPH + """
subgraphs:
  «R183»one: {inputs: [x], outputs: [x], nodes: [{id: b, graph: two}]}
  «R183»two: {inputs: [x], outputs: [x], nodes: [{id: c}]}
""",
    "names": HEAD + INNER.replace("inner", "inner, uses: «R182»there") + """
graph:
  inputs: [x]
  outputs: [x]
  nodes:
    - {id: a}
    - {id: b, type: tool, uses: «R182»gone}
    - {id: c, type: llm, prompt: «R182»gone}
    - {id: «R121»d, type: subgraph, graph: «R182»gone}
    - {id: «R116»e, type: loop, body: «R182»gone}
    - {id: f, type: subgraph, graph: in}
""",
    "duplicate ids": HEAD + """
graph:
  inputs: [x]
  outputs: [x]
  nodes: [{id: a}, {id: b}, {id: «R106»a}, {id: «R106»a, uses: «R182»gone}]
subgraphs:
  in:
    inputs: [x]
    outputs: [x]
    nodes: [{id: a}, {id: b}, {id: «R106»b}]
""",
    "cycles": HEAD + """
graph:
  inputs: [x]
  outputs: [x]
  nodes: [{id: a}, {id: b}]
  edges: «R180»[{from: a, to: b}, {from: b, to: a}]
subgraphs:
  in:
    inputs: [x]
    outputs: [x]
    nodes: [{id: a}, {id: b}]
    edges:
      «R180»- {from: a, to: a}
  «R181»one: {inputs: [x], outputs: [x], nodes: [{id: p, graph: two}]}
  two: {inputs: [x], outputs: [x], nodes: [{id: p}, {id: q, graph: one}]}
""",
    "edges that are not followed": HEAD + """
graph:
  inputs: [x]
  outputs: [x]
  nodes:
    - {id: l, body: b, max_iterations: 2}
    - {id: b, on_error: «R119»{to: c}}
    - {id: c, on_error: {to: d}}
    - {id: d}
  edges:
    - {from: l, to: d}
    - «R119»{from: b, to: d}
    - «R104»{from: c, to: gone}
    - «R104»{from: gone, to: d}
""",
    "targets": HEAD + """
graph:
  inputs: [x]
  outputs: [x]
  nodes:
    - {id: a, on_error: {to: «R104»gone}}
    - {id: r, cases: «R104»[{when: {"==": [1, 1]}, to: gone}], default: b}
    - {id: s, cases: [{when: {"==": [1, 1]}, to: b}], default: «R104»gone}
    - {id: b}
""",
    "rules and templates": HEAD + """
graph:
  inputs: [x]
  outputs: [x]
  nodes:
    - {id: a, cases: [{when: true, to: b}, {when: «R313»{gone: 1}, to: b}]}
    - {id: b, map: {set: {x: "{{ x }}", log: «R301»"{{ x. }}"}, merge: {log: ["a", «R301»"{{ x. }}"]}}}
    - {id: c, body: d, until: «R313»{gone: 1}}
    - {id: d, map: {history: {h: «R301»"{{ x. }}"}, delete: ["a", «R301»"{{ x. }}"]}}
    - {id: e, uses: t, inputs: {one: 1, two: «R301»"{{ x. }}"}}
    - {id: f, graph: in, inputs: {two: «R301»"{{ x. }}"}}
  edges: [{from: b, to: c}, {from: b, to: e, when: «R313»{gone: 1}}]
tools: [{id: t, kind: subgraph, impl: in}]
""" + INNER,
    "memory": HEAD + GRAPH + "memory: {enabled: true, dsn: d, kind: «R186»redis}",
    "the model": """
meta:
  name: t
  defaults: {temp: 0, llm: «R241»"ours:m", «R170»tracing: {enabled: true}}
  providers:
    «R242»other: {model: m}
    openai: {model: m, «R243»tempratur: 1, type: openai, «R243»word: 1}
    third: {type: «R242»gone}
state: {shape: {x: any}}
""" + GRAPH,
}  # fmt: skip


@pytest.mark.parametrize("marked", FAULTS.values(), ids=FAULTS)
def test_each_problem_is_reported_where_it_is(marked):
    text, marks = read_marks(marked)
    assert find_problems(text) == marks


PARTS = """
meta: {name: t}
state: {shape: {x: any}}
«entry»graph:
  inputs: [x]
  outputs: [x]
  nodes:
    - type: noop
      id: «a»a
    - {id: «r»r, cases: «r-a, r-t»[{when: true, to: a}, {when: false, to: t}], default: «r-b»b}
    - {type: tool, id: «t»t, uses: one, on_error: {resume: true, to: «t-b»b}}
    - {type: subgraph, id: «s, s-q»s, graph: in}
    - {type: loop, id: «l, l-body»l, body: body}
    - {id: «body, body-l»body}
    - {id: «b»b}
  edges:
    - «t-s»{from: t, to: s}
    - «s-l»{from: s, to: l}
tools:
  - «one»{id: one, kind: python, impl: "m#f"}
  - «two»{id: two, kind: python, impl: "m#g"}
subgraphs:
  in:
    inputs: [x]
    outputs: [x]
    nodes: [{type: noop, id: «p»p}, {id: «q»q, cases: «q-p»[{when: true, to: p}]}]
"""


def test_each_part_of_a_recipe_is_where_it_is_written():
    text, marks = read_marks(PARTS)
    recipe = load(text)
    places = {node.id: node.place for node in recipe.nodes.values()}
    places |= {f"{edge.source}-{edge.target}": edge.place for edge in recipe.edges}
    places |= {tool.id: tool.place for tool in recipe.tools.values()} | {"entry": recipe.meta["entry_place"]}
    written = {word: spot for words, spot in marks for word in words.split(", ")}
    assert {word: get_spot(place) for word, place in places.items()} == written
