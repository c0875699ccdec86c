from __future__ import annotations

from collections import Counter
from itertools import pairwise
from textwrap import dedent

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentnb.dialects.agentruntime.loader import load as load_agent
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.sources import make_plain_source
from tests.dialects.agentruntime.agent_files import codes, edges, line, problems, ran, text

# -- the order in which nodes run ---------------------------------------------------------------------------------


def order(tmp_path, names, *pairs, **options):
    done = ran(tmp_path, text("\n".join([line(*names), edges(*pairs)])), **options)
    assert done.state["log"] == done.path
    return "".join(done.path)


def test_the_tail_of_a_diamond_runs_once_per_incoming_edge(tmp_path):
    assert order(tmp_path, "SLRJ", "S-L", "S-R", "L-J", "R-J") == "SLRJJ"


def test_two_sources_run_their_target_and_its_successors_twice(tmp_path):
    assert order(tmp_path, "ABCD", "A-C", "B-C", "C-D") == "ABCCDD"


def test_a_duplicate_edge_runs_its_target_twice(tmp_path):
    assert order(tmp_path, "ABC", "A-B", "A-B", "B-C") == "ABBCC"


def test_the_queue_is_first_in_first_out(tmp_path):
    assert order(tmp_path, "SABCD", "S-A", "S-B", "A-C", "B-D") == "SABCD"


def test_all_nodes_without_incoming_edges_are_entries_in_order(tmp_path):
    assert order(tmp_path, "CABD", "C-D") == "CABD"


def test_an_edge_is_taken_where_its_rule_holds_and_an_empty_one_always_does(tmp_path):
    graph = (
        line("S", "one", "two", "empty", "result")
        + """
edges:
  - {from: S, to: one, when: {"==": [{var: state.x}, 1]}}
  - {from: S, to: two, when: {"==": [{var: state.x}, 2]}}
  - {from: S, to: empty, when: {}}
  - {from: S, to: two, when: false}
  - {from: S, to: result, when: {"==": [{var: state.log.0}, S]}}
"""
    )
    assert ran(tmp_path, text(graph)).path == ["S", "one", "empty", "result"]  # rules see what the map has written


def test_a_fallback_reached_by_failures_alone_is_not_an_entry(tmp_path):
    graph = """
    nodes:
      - {id: rescue, type: noop, map: {merge: {log: [rescue]}}}
      - {id: try, type: tool, uses: echo, on_error: {to: rescue}}
    """
    done = ran(tmp_path, text(graph))
    assert (done.path, done.state["log"]) == (["try"], [])


def test_targets_of_routers_and_bodies_of_loops_are_not_entries(tmp_path):
    graph = (
        line("case", "other", "body")
        + """
  - {id: route, type: router, cases: [{when: {"==": [1, 1]}, to: case}], default: other}
  - {id: loop, type: loop, body: body, max_iterations: 1}
"""
    )
    assert ran(tmp_path, text(graph)).path == ["route", "loop enter", "body", "loop leave", "case"]


def test_a_graph_without_an_entry_is_rejected():
    round_ = line("a") + '\n  - {id: r, type: router, cases: [{when: {"==": [1, 1]}, to: a}]}\n' + edges("a-r")
    assert "R105" in codes(text(round_))
    inside = "\n  ".join(round_.splitlines())
    nested = f"subgraphs:\n  one:\n    inputs: [x]\n    outputs: [a]\n    {inside.replace(chr(10), chr(10) + '  ')}"
    assert "R116" in codes(text("nodes: [{id: s, type: subgraph, graph: one}]") + nested)


# -- ids, and where a node stands ---------------------------------------------------------------------------------

INNER = """
subgraphs:
  one:
    inputs: [x]
    outputs: [a]
    nodes:
      - {id: same, type: noop, map: {set: {a: 1}}}
      - {id: own, type: noop}
    edges: [{from: same, to: own}]
  two:
    inputs: [x]
    outputs: [b]
    nodes: [{id: same, type: noop, map: {set: {b: 2}}}]
"""


def test_nodes_with_one_name_in_several_graphs_have_distinct_ids(tmp_path):
    graph = """
    nodes:
      - {id: same, type: noop}
      - {id: one, type: subgraph, graph: one}
      - {id: two, type: subgraph, graph: two}
    edges: [{from: same, to: one}, {from: one, to: two}]
    """
    done = ran(tmp_path, text(graph, INNER))
    assert done.path == [
        "same", "one enter", "one/same", "own", "one leave", "two enter", "two/same", "two leave",
    ]  # fmt: skip
    assert (done.state["a"], done.state["b"]) == (1, 2)
    assert [done.session.recipe.nodes[id].label for id in ("same", "one/same", "own")] == ["", "same", ""]


def test_a_body_with_other_incoming_edges_is_copied_into_the_loop(tmp_path):
    graph = (
        line("first", "work")
        + """
  - {id: loop, type: loop, body: work, max_iterations: 2}
edges: [{from: first, to: work}]
"""
    )
    done = ran(tmp_path, text(graph))
    assert done.path == ["first", "loop enter", "loop/work", "loop again", "loop/work", "loop leave", "work"]
    assert done.state["log"] == ["first", "work", "work", "work"]
    assert done.session.recipe.nodes["loop/work"].label == "work"


def test_two_loops_may_run_one_body(tmp_path):
    graph = (
        line("work")
        + """
  - {id: one, type: loop, body: work, max_iterations: 2}
  - {id: two, type: loop, body: work, max_iterations: 1}
edges: [{from: one, to: two}]
"""
    )
    done = ran(tmp_path, text(graph))
    assert done.state["log"] == ["work"] * 3


def test_the_edges_of_a_body_are_ignored_and_reported(tmp_path):
    graph = (
        line("work", "after")
        + """
  - {id: loop, type: loop, body: work, max_iterations: 2}
edges: [{from: work, to: after}, {from: loop, to: after}]
"""
    )
    assert ("R119", "warning") in problems(text(graph))
    done = ran(tmp_path, text(graph))
    assert done.state["log"] == ["work", "work", "after"]


# -- what does not hang together ----------------------------------------------------------------------------------


def cycle_of(graph, *more):
    with pytest.raises(RecipeError) as caught:
        load(text(graph, *more))
    assert isinstance(caught.value, ValueError)
    return [problem.what for problem in caught.value.problems if "cycle" in problem.what]


def test_a_circular_route_is_a_cycle():
    assert cycle_of("\n".join([line("a", "b", "c"), edges("a-b", "b-c", "c-b")])) == [
        "the graph has a cycle: b -> c -> b"
    ]


def test_an_edge_to_itself_is_a_cycle():
    assert cycle_of("\n".join([line("a"), edges("a-a")])) == ["the graph has a cycle: a -> a"]


def test_a_loop_that_is_its_own_body_is_a_cycle():
    assert cycle_of("nodes:\n  - {id: l, type: loop, body: l}") == ["the graph has a cycle: l -> l"]


def test_a_body_that_leads_back_to_its_loop_is_a_cycle():
    graph = line("w") + "\n  - {id: l, type: loop, body: w}\n" + edges("w-l")
    assert cycle_of(graph) == ["the graph has a cycle: w -> l -> w"]


def test_subgraphs_that_contain_one_another_are_a_cycle():
    nested = """
    subgraphs:
      one: {inputs: [x], outputs: [a], nodes: [{id: p, type: subgraph, graph: two}]}
      two: {inputs: [x], outputs: [a], nodes: [{id: q, type: subgraph, graph: one}]}
    """
    (message,) = cycle_of("nodes:\n  - {id: s, type: subgraph, graph: one}", nested)
    assert "subgraph" in message
    recursive = "subgraphs:\n  one: {inputs: [x], outputs: [a], nodes: [{id: p, type: subgraph, graph: one}]}"
    assert len(cycle_of("nodes:\n  - {id: s, type: subgraph, graph: one}", recursive)) == 1


def test_an_edge_back_from_a_router_is_not_a_cycle():
    graph = line("a") + '\n  - {id: r, type: router, cases: [{when: {"==": [1, 2]}, to: a}]}\n' + edges("a-r")
    start = graph.replace("nodes:", "nodes:\n  - {id: s, type: noop}").replace("edges:", "edges:\n  - {from: s, to: a}")
    assert problems(text(start)) == []


UNKNOWN = {
    "uses": ("{id: a, type: tool, uses: gone}", "R182"),
    "graph": ("{id: a, type: subgraph, graph: gone}", "R182"),
    "prompt": ("{id: a, type: llm, prompt: gone}", "R182"),
    "body": ("{id: a, type: loop, body: gone}", "R182"),
    "case": ('{id: a, type: router, cases: [{when: {"==": [1, 1]}, to: gone}]}', "R104"),
    "default": ('{id: a, type: router, cases: [{when: {"==": [1, 1]}, to: b}], default: gone}', "R104"),
    "on_error": ("{id: a, type: noop, on_error: {to: gone}}", "R104"),
}


@pytest.mark.parametrize("word", UNKNOWN)
def test_an_unknown_name_is_reported_at_load(word):
    node, code = UNKNOWN[word]
    assert code in codes(text(f"{line('b')}\n  - {node}"))


@pytest.mark.parametrize("way", ["{from: a, to: gone}", "{from: gone, to: a}"])
def test_edges_must_have_existing_ends(way):
    assert "R104" in codes(text(f"{line('a', 'b')}\nedges: [{way}]"))


def test_ids_are_unique_in_a_graph():
    assert codes(text(line("a", "b", "a"))) == ["R106"]


def test_an_unused_subgraph_is_reported():
    assert problems(text(line("a"), INNER)) == [("R183", "warning")] * 2


def test_the_result_of_a_loop_is_that_of_its_last_iteration(tmp_path):
    graph = """
    nodes:
      - {id: more, type: tool, uses: add, inputs: {n: "{{ n }}"}, map: {set: {n: "{{ result.result }}"}}}
      - {id: loop, type: loop, body: more, max_iterations: 3, on_exhausted: continue}
    """
    done = ran(tmp_path, text(graph))
    assert (done.state["n"], done.path[-1]) == (3, "loop leave")
    assert done.session.trace.steps[-1].observation == {"result": 3}


def test_a_node_is_known_by_the_id_that_its_author_wrote_on_every_level(tmp_path):
    graph = dedent(
        """
    nodes:
      - {id: same, type: noop, map: {set: {log: "{{ (log or []) + [node.id] }}"}}}
      - {id: one, type: subgraph, graph: one, map: {set: {b: "{{ result.a }} of {{ node.id }}"}}}
      - {id: again, type: loop, body: twin, max_iterations: 1}
      - {id: twin, type: noop, map: {set: {log: "{{ (log or []) + [node.id] }}"}}}
    edges: [{from: same, to: one}, {from: same, to: twin}]
    """
    )
    inner = """
    subgraphs:
      one:
        inputs: [x]
        outputs: [a]
        nodes: [{id: same, type: noop, map: {set: {a: "{{ node.id }} {{ node.type }}"}}}]
    """
    done = ran(tmp_path, text(graph, inner))
    assert "one/same" in done.path
    assert "again/twin" in done.path
    assert done.state["log"] == ["same", *["twin"] * sum(name.endswith("twin") for name in done.path)]
    assert done.state["b"] == "same noop of one"


# -- levels against a naive reading --------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d")


@st.composite
def graphs(draw):
    """Draw the nodes and edges of a graph: plain nodes, routers and loops, some of which have an error handler."""
    names = st.sampled_from(NAMES)
    nodes = []
    for name in NAMES:
        node = {"id": name, "type": draw(st.sampled_from(["noop", "noop", "router", "loop"]))}
        if node["type"] == "router":
            node["cases"] = [{"when": True, "to": to} for to in draw(st.lists(names, min_size=1, max_size=2))]
            node |= draw(st.sampled_from([{}, *({"default": name} for name in NAMES)]))
        elif node["type"] == "loop":
            node |= {"body": draw(names), "max_iterations": 1}
        if draw(st.integers(0, 3)) == 3:
            node["on_error"] = draw(st.sampled_from([{"resume": True}, *({"to": name} for name in NAMES)]))
        nodes.append(node)
    return nodes, draw(st.lists(st.tuples(names, names), max_size=3))


@settings(max_examples=3 * settings.default.max_examples)
@given(graphs())
def test_entries_bodies_and_cycles_follow_from_what_leads_where(drawn):
    nodes, pairs = drawn
    edges = [{"from": source, "to": target} for source, target in pairs]
    graph = {"inputs": ["x"], "outputs": ["x"], "nodes": nodes, "edges": edges}
    content = {"meta": {"name": "t"}, "state": {"shape": {"x": "any"}}, "graph": graph}
    recipe, problems = load_agent(make_plain_source(content))

    bodies = [(node["id"], node["body"]) for node in nodes if node["type"] == "loop"]
    flow = nx.DiGraph([*pairs, *bodies])
    reported = [problem.what.split(": ")[1].split(" -> ") for problem in problems if problem.code == "R180"]
    assert bool(reported) == (not nx.is_directed_acyclic_graph(flow)) == (recipe is None)
    for cycle in reported:
        assert cycle[0] == cycle[-1]
        assert all(pair in flow.edges for pair in pairwise(cycle))
    if recipe is None:
        return

    routes = [(node["id"], case["to"]) for node in nodes for case in node.get("cases", ())]
    routes += [(node["id"], node["default"]) for node in nodes if "default" in node]
    handlers = [(node["id"], node["on_error"]["to"]) for node in nodes if "to" in node.get("on_error", ())]
    targets = {target for _, target in [*pairs, *routes, *handlers]}
    inside = {body: loop for loop, body in reversed(bodies) if body not in targets}
    starts = {loop: body if inside.get(body) == loop else f"{loop}/{body}" for loop, body in bodies}
    assert recipe.entry == tuple(name for name in NAMES if name not in targets | {body for _, body in bodies})
    assert {id: node.scope for id, node in recipe.nodes.items()} == (
        {name: inside.get(name, "root") for name in NAMES} | {start: loop for loop, start in starts.items()}
    )
    assert {id: region.entry for id, region in recipe.regions.items() if id != "root"} == {
        loop: (start,) for loop, start in starts.items()
    }
    ways = Counter((edge.source, edge.target, edge.kind) for edge in recipe.edges)
    kinds = [(pairs, "sequential"), (routes, "route"), (handlers, "error")]
    loops = starts | {starts[loop]: starts[body] for loop, body in bodies if body in starts}  # a body may be a loop
    rounds = [each for loop, body in loops.items() for each in ((loop, body, "sequential"), (body, loop, "loop_back"))]
    followed = [(*way, kind) for listed, kind in kinds for way in listed if way[0] not in inside]
    assert ways == Counter([*followed, *rounds])
    ignored = [way for way in [*pairs, *handlers] if way[0] in inside]
    assert [problem.code for problem in problems] == ["R119"] * len(ignored)
