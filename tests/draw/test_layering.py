from itertools import pairwise

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from agentnb.draw.layering import (
    Bend,
    assign_layers,
    count_crossings,
    find_reversed_lines,
    get_gap,
    make_chains,
    order_layer,
    place_items,
)

GRAPHS = st.integers(1, 9).flatmap(
    lambda size: st.tuples(
        st.just([f"n{number}" for number in range(size)]),
        st.lists(st.tuples(*[st.integers(0, size - 1)] * 2).filter(lambda ends: ends[0] != ends[1]), max_size=20),
    )
)


def named(graph):
    items, ends = graph
    return items, [(items[source], items[target]) for source, target in ends]


def without_circles(items, lines):
    flips = find_reversed_lines(items, lines, ())
    return [line[::-1] if flip else line for line, flip in zip(lines, flips, strict=True)]


@given(GRAPHS)
def test_no_cycle_remains(graph):
    items, lines = named(graph)
    left = nx.DiGraph(without_circles(items, lines))
    assert nx.is_directed_acyclic_graph(left)


def test_edges_without_cycles_are_kept_and_preferences_are_respected():
    assert find_reversed_lines(["a", "b"], [("a", "b"), ("b", "a")], ()) == [False, True]
    assert find_reversed_lines(["a", "b"], [("a", "b"), ("b", "a")], (1,)) == [False, True]
    assert find_reversed_lines(["a", "b"], [("a", "b")], (0,)) == [True]


@given(GRAPHS)
def test_edges_lead_to_a_later_layer(graph):
    items, lines = named(graph)
    lines = without_circles(items, lines)
    layer = assign_layers(items, lines)
    assert set(layer) == set(items)
    assert all(level % 2 == 0 and level >= 0 for level in layer.values())
    assert all(layer[source] < layer[target] for source, target in lines)


@given(GRAPHS)
def test_routes_pass_every_layer_and_rows_contain_each_item_once(graph):
    items, lines = named(graph)
    lines = without_circles(items, lines)
    layer = assign_layers(items, lines)
    chains = make_chains(lines, layer)
    for chain, (source, target) in zip(chains, lines, strict=True):
        assert (chain[0], chain[-1]) == (source, target)
        assert [bend.layer for bend in chain[1:-1]] == list(range(layer[source] + 1, layer[target]))
    rows = order_layer(layer, chains)
    held = [item for row in rows for item in row]
    assert len(held) == len(set(held))
    assert set(held) == set(items) | {bend for line in chains for bend in line[1:-1]}


@given(GRAPHS, st.integers(1, 200))
def test_neighbors_keep_their_distance(graph, width):
    items, lines = named(graph)
    lines = without_circles(items, lines)
    layer = assign_layers(items, lines)
    chains = make_chains(lines, layer)
    rows = order_layer(layer, chains)
    widths = {item: float(width) if isinstance(item, str) else 4.0 for row in rows for item in row}
    x = place_items(rows, chains, widths)
    for row in rows:
        for left, right in pairwise(row):
            between = (widths[left] + widths[right]) / 2 + get_gap(left, right)
            assert x[right] - x[left] >= between - 1e-6
    assert min(x[item] - widths[item] / 2 for item in x) >= -1e-6


def test_a_chain_is_drawn_in_one_line():
    chains = [["a", "b"], ["b", "c"]]
    x = place_items([["a"], ["b"], ["c"]], chains, dict.fromkeys("abc", 50.0))
    assert len(set(x.values())) == 1


def test_crossings_are_counted_and_avoided():
    down = {"a": ["d"], "b": ["c"]}
    assert count_crossings([["a", "b"], ["c", "d"]], down) == 1
    layer = {"a": 0, "b": 0, "c": 2, "d": 2}
    chains = make_chains([("a", "d"), ("b", "c"), ("a", "c")], layer)
    rows = order_layer(layer, chains)
    assert sum(len(row) for row in rows) == 7
    assert count_crossings(rows, {chain[at]: [chain[at + 1]] for chain in chains for at in range(2)}) == 0


def test_edges_beyond_the_limit_have_no_labels(monkeypatch):
    monkeypatch.setattr("agentnb.draw.layering.MOST_BENDS", 0)
    far = make_chains([("a", "z"), ("a", "b")], {"a": 0, "b": 2, "z": 90})
    assert far[0] == ["a", "z"]
    assert far[1] == ["a", Bend(1, 1), "b"]
