from __future__ import annotations

import networkx as nx
import pytest

from agentnb.kinds.router import match_route
from tests.dialects.agentruntime.agent_files import edges, line, ran, text
from tests.session.small_sessions import path, session


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("refund", "r"),
        (1, "one"),
        (1.0, "float"),
        (True, "yes"),
        (False, "no"),
        ("True", "other"),
        ([1], "list"),
        ("", "empty"),
        (0, "zero"),
        (None, "other"),
        ("None", "text"),
        ({"a": 1}, "other"),
    ],
)
def test_the_text_of_the_value_is_matched(value, target):
    routes = {"refund": "r", "1": "one", "1.0": "float", "true": "yes", "False": "no", "[1]": "list", "": "empty",
              "0": "zero", "None": "text"}  # fmt: skip
    assert routes.get(match_route(routes, value), "other") == target


def test_without_match_no_route_is_chosen():
    assert match_route({"a": "b"}, "c") is None


def router(**attributes):
    graph = nx.DiGraph()
    graph.add_node("route", kind="router", **{"input_key": "topic", **attributes})
    for name in ("refund", "bug", "other"):
        graph.add_node(name, kind="noop")
    return graph


def test_it_follows_the_route_of_the_value():
    routes = {"refund": "refund", "bug": "bug"}
    for topic, target in (("refund", "refund"), ("bug", "bug"), ("x", "other"), (None, "other")):
        run = session(nx.DiGraph(router(routes=routes, default="other"), entry="route"), {"topic": topic})
        run.run()
        assert path(run) == ["route", target]


def test_its_step_reports_why():
    run = session(nx.DiGraph(router(routes={"1": "bug"}, default="other"), entry="route"), {"topic": 1})
    step = run.step()
    assert step.thought == "Router decision based on topic=1: Go to bug"
    assert (step.observation, step.inputs) == ({"decision": "bug", "value": 1}, {"topic": 1})
    assert [read.key for read in step.reads] == ["topic"]
    assert run.trace.frames.edges.to_dict("records")[0]["value"] == 1


def test_routes_may_be_drawn_as_edges_with_a_value():
    graph = router()
    graph.graph["entry"] = "route"
    graph.add_edge("route", "bug", value="bug")
    graph.add_edge("route", "other", kind="route")
    run = session(graph, {"topic": "bug"})
    run.run()
    assert path(run) == ["route", "bug"]
    run = session(graph, {"topic": "?"})
    run.run()
    assert path(run) == ["route", "other"]


def test_a_path_below_a_key_is_read():
    graph = router(input_key="ticket.topic", routes={"bug": "bug"}, default="other")
    graph.graph["entry"] = "route"
    run = session(graph, {"ticket": {"topic": "bug"}})
    run.run()
    assert path(run) == ["route", "bug"]


def test_without_an_outgoing_edge_the_run_ends():
    graph = router(routes={"bug": "bug"})
    graph.graph["entry"] = "route"
    run = session(graph, {"topic": "?"})
    run.run()
    assert (run.status, path(run)) == ("finished", ["route"])
    assert "Go to the end" in run.trace.steps[0].thought


# -- by cases ------------------------------------------------------------------------------------------------------


HOLDS, FAILS = '{"==": [{var: state.x}, 1]}', '{"==": [{var: state.x}, 2]}'


def routed(tmp_path, cases, *, default="", ways=()):
    """Return the nodes that a router led to."""
    cases_text = ", ".join(f"{{when: {rule}, to: {target}}}" for rule, target in cases)
    rest = f", default: {default}" if default else ""
    nodes = f"{line('a', 'b', 'c')}\n  - {{id: route, type: router, cases: [{cases_text}]{rest}}}\n"
    # A router that a failure alone would lead to: so a, b and c are led to, and no entries.
    nodes += "  - {id: start, type: noop, on_error: {to: spare}}\n"
    nodes += "  - {id: spare, type: router, cases: [{when: true, to: a}, {when: true, to: b}, {when: true, to: c}]}\n"
    done = ran(tmp_path, text(nodes + edges("start-route", *ways)))
    assert done.path[:2] == ["start", "route"]
    return done.path[2:]


@pytest.mark.parametrize(
    ("cases", "default", "ways", "led"),
    [
        ([(HOLDS, "a"), (FAILS, "b"), (HOLDS, "c")], "", (), ["a", "c"]),
        ([(HOLDS, "c"), (HOLDS, "a")], "", (), ["c", "a"]),
        ([(HOLDS, "a"), (HOLDS, "a")], "", (), ["a", "a"]),
        ([(HOLDS, "a")], "b", ("route-c",), ["a"]),
        ([(FAILS, "a")], "b", ("route-c",), ["b"]),
        ([(FAILS, "a")], "", ("route-c", "route-b"), ["c", "b"]),
        ([(FAILS, "a")], "", (), []),
        ([("true", "a"), ("false", "b")], "", (), ["a"]),
    ],
)
def test_all_matching_cases_are_next_then_the_default_then_the_edges(tmp_path, cases, default, ways, led):
    assert routed(tmp_path, cases, default=default, ways=ways) == led


def test_its_step_reports_the_matching_case(tmp_path):
    graph = f"""
nodes:
  - {{id: route, type: router, cases: [{{when: {HOLDS}, to: a}}, {{when: {FAILS}, to: b}}], default: b}}
  - {{id: a, type: noop}}
  - {{id: b, type: noop}}
"""
    step = ran(tmp_path, text(graph)).session.trace.steps[0]
    assert step.thought == "state.x == 1 holds: go to a"
    assert step.observation == {"decision": ["a"], "cases": [True, False]}
    assert [read.key for read in step.reads] == ["x"]
