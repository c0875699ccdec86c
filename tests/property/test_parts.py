"""Which step changed a part, against a naive model that keeps a deep copy of every state.

A random program changes nested values in place, returns new ones that share parts with the old, and returns equal ones.
"""

from __future__ import annotations

import copy
import random
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentnb as nb

KEYS = ("a", "b", "c")
MISSING = object()


def make_value(rng, depth=0):
    """Return a small nested value."""
    kind = rng.random()
    if depth > 2 or kind < 0.4:
        return rng.choice(["x", "y", 1, 2, None])
    if kind < 0.7:
        return [make_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {name: make_value(rng, depth + 1) for name in rng.sample("pqr", rng.randrange(3))}


def list_containers(value):
    """Return all lists and mappings in a value."""
    if not isinstance(value, list | dict):
        return []
    parts = value if isinstance(value, list) else value.values()
    return [value, *(inner for part in parts for inner in list_containers(part))]


def change_in_place(rng, value):
    """Change one container of a value."""
    containers = list_containers(value)
    if not containers:
        return
    where = rng.choice(containers)
    if isinstance(where, dict):
        where[rng.choice("pqr")] = make_value(rng, 2)
    elif where and rng.random() < 0.3:
        where.pop(rng.randrange(len(where)))
    else:
        where.insert(rng.randrange(len(where) + 1), make_value(rng, 2))


def make_step(seed):
    """Return a node's function: some changes in place, then some keys returned."""

    def act(board):
        rng = random.Random(seed)
        own = {key: board[key] for key in KEYS}
        for _ in range(rng.randrange(3)):
            change_in_place(rng, own[rng.choice(KEYS)])
        result = {}
        for key in rng.sample(KEYS, rng.randrange(3)):
            value = own[key]
            rebuilt = {**value, "p": 3} if isinstance(value, dict) else [*value, "z"] if isinstance(value, list) else 4
            result[key] = rng.choice([make_value(rng), rebuilt, copy.deepcopy(value)])
        return result

    return act


def list_paths(value, path=()):
    """Return the paths of a value and of all its parts."""
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    return [path, *(inner for name, part in items for inner in list_paths(part, (*path, name)))]


def get_part(value, path):
    """Return the part at a path, or MISSING."""
    for name in path:
        is_item = isinstance(value, list) and isinstance(name, int) and name < len(value)
        if not is_item and not (isinstance(value, dict) and name in value):
            return MISSING
        value = value[name]
    return value


def check_parts(seed):
    """Run a random program; compare the answers about each part of its last state with the naive ones."""
    rng = random.Random(seed)
    steps = rng.randrange(2, 9)
    graph = nx.DiGraph(name="parts", entry="n1", inputs=list(KEYS))
    for number in range(1, steps + 1):
        graph.add_node(f"n{number}", function=make_step(f"{seed} {number}"))
        if number > 1:
            graph.add_edge(f"n{number - 1}", f"n{number}")
    session = nb.Session(nb.load(graph), {key: make_value(rng) for key in KEYS})
    states = [copy.deepcopy(dict(session.board))]
    while session.step() is not None:
        states.append(copy.deepcopy(dict(session.board)))
        if rng.random() < 0.15:
            session.back()
            states.pop()
            session.step()
            states.append(copy.deepcopy(dict(session.board)))
    for path in list_paths(states[-1])[1:]:
        values = [MISSING, *(get_part(state, path) for state in states)]
        changes = [step for step, (old, new) in enumerate(pairwise(values)) if old != new]
        text = ".".join(map(str, path))
        assert session.who_wrote(text) == changes[-1], (text, states)
        assert session.blame(text).step.tolist() == changes, (text, states)


@given(st.integers(0, 2**32))
def test_the_step_that_changed_a_part_is_found(seed):
    check_parts(seed)


@settings(derandomize=False, database=None)
@given(st.integers(0, 2**32))
def test_the_step_that_changed_a_part_is_found_in_other_programs_each_time(seed):
    check_parts(seed)


@pytest.mark.parametrize("seed", range(3))
def test_some_programs_that_are_always_the_same(seed):
    check_parts(seed)
