"""Small recipes that once showed a difference between engine and model; each is stepped and walked through."""

from __future__ import annotations

import pytest

from agentnb import ABSENT
from agentnb.engine.core.work import Append
from agentnb.recipe.model import Edge, Node, Recipe, Region, Rescue
from tests.property.node_programs import Ask, Op, board_function, input_function
from tests.property.strategies import Drawn
from tests.property.test_engine import played

BOOM, NEVER = Ask("boom", "a"), Ask("has", "nothing")


def does(name, *ops, scope="root", **params):
    return Node(name, "function", scope=scope, params={"ops": ops, "function": board_function(ops), **params})


def recipe(nodes, edges, regions=(), routing="first"):
    inner = [Region(name, entry, owner=owner) for name, entry, owner in regions]
    root = Region("root", (nodes[0].id,))
    return Recipe("found", "test", {node.id: node for node in nodes}, tuple(edges), root.entry,
                  regions={region.id: region for region in [root, *inner]}, routing=routing)  # fmt: skip


FAILS_AS_IT_LEAVES = recipe(
    [
        Node("outer", "subgraph", bodies=("around",)),
        Node("inner", "subgraph", scope="around", bodies=("inside",)),
        does("fix", Op("set", "b", 1), scope="around"),
        does("leaf", scope="inside"),
        does("last"),
    ],
    [Edge("inner", "fix", "error"), Edge("inner", "fix", when=BOOM), Edge("outer", "last")],
    [("around", ("inner",), "outer"), ("inside", ("leaf",), "inner")],
)
LOOP_WITHOUT_AN_END = recipe(
    [
        Node("loop", "loop", params={"until": NEVER, "max": 2}, bodies=("body",)),
        does("leaf", Op("count", "a"), scope="body"),
        does("fix", Op("count", "b")),
    ],
    [Edge("loop", "fix", "error"), Edge("fix", "loop", when=Ask("less", "b", 1))],
    [("body", ("leaf",), "loop")],
)
JOIN_IN_A_BODY = recipe(
    [
        Node("outer", "subgraph", bodies=("inside",)),
        does("begin", scope="inside"),
        does("one", scope="inside"),
        does("two", scope="inside"),
        does("three", scope="inside"),
        Node("meet", "join", scope="inside"),
        does("beside"),
    ],
    [Edge("begin", name, "parallel") for name in ("one", "two")]
    + [Edge("one", "meet", "parallel"), Edge("one", "meet", "parallel"), Edge("two", "three"), Edge("three", "meet")]
    + [Edge("outer", "beside")],
    [("inside", ("begin",), "outer")],
)
SAME_NODE_TWICE = recipe(
    [does("begin"), does("fails", Op("fail_if", "a")), does("other")],
    [Edge("begin", "fails", "parallel"), Edge("begin", "other", "parallel"), Edge("begin", "fails", "parallel")],
)
GOES_ON_AFTER_FAILURE = recipe(
    [
        Node("writes", "doer", params={"ops": (Op("write", ("a", "b"), 1),)}, rescue=Rescue()),
        Node("keeps", "keeper", params={"ops": (Op("write", ("log",), Append(1)), Op("write", ("a", "b"), 1))}),
    ],
    [Edge("writes", "keeps", when=Ask("has", "a"))],
)
ASKS_AFTER_AN_APPEND = recipe(
    [
        Node("writes", "doer", params={"ops": (Op("write", ("n",), 1), Op("write", ("log",), Append(1)))}),
        does("once"),
        does("twice"),
    ],
    [Edge("writes", "twice", when=Ask("truthy", "log.1")), Edge("writes", "once", when=Ask("truthy", "log.0"))],
)
CHANGES_BELOW = recipe(
    [
        Node("change", "function", inputs={"x": ("a", "b"), "y": ("a",)},
             params={"ops": (ops := (Op("change", "x", ("add", 1)),)), "function": input_function(ops)}),
        Node("writes", "doer",
             params={"ops": (Op("write", ("c",), 1), Op("change", "a.b", ("add", 2)), Op("place", ("c",), ABSENT))}),
    ],
    [Edge("change", "writes")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "inputs", "script"),
    [
        (FAILS_AS_IT_LEAVES, {}, [("step", 6)]),
        (LOOP_WITHOUT_AN_END, {}, [("step", 20)]),
        (JOIN_IN_A_BODY, {}, [("step", 9)]),
        (SAME_NODE_TWICE, {"a": 1}, [("step", 3), ("edit", {"a": 0}), ("run", 9)]),
        (SAME_NODE_TWICE, {}, [("step", 1), ("set_next", 100), ("set_next", 50), ("run", 9)]),
        (GOES_ON_AFTER_FAILURE, {"a": [0]}, [("step", 3)]),
        (ASKS_AFTER_AN_APPEND, {}, [("step", 3)]),
        (CHANGES_BELOW, {"a": {"b": [0]}}, [("step", 2)]),
        (CHANGES_BELOW, {"a": {"b": [0]}}, [("step", 2), ("back", 2), ("edit", {"a.b.c": 1}), ("set_next", 100)]),
    ],
)
def test_cases_that_once_differed_agree(found, inputs, script):
    for pair in played(Drawn(found, inputs, None, lanes=False), script):
        pair.holds_as_its_model()
        pair.left_what_its_model_left()


def test_a_rejected_edit_leaves_no_branch():
    (pair,) = played(Drawn(CHANGES_BELOW, {"a": {"b": [0]}}, None, lanes=False), [("step", 2), ("goto", 0)])
    pair.edit({"a": 1, "a.b": 2})
    assert len(pair.session.trace) == 2
    assert pair.session.forks == ()
