from __future__ import annotations

import asyncio
import threading

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.dialects.coreason.api import GraphExecutor
from agentnb.dialects.coreason.parts.parallel_sections import make_sections
from agentnb.load import load
from agentnb.recipe.model import ROOT, Edge, Node, Rescue, RouteTarget
from agentnb.session import Session
from tests.dialects.coreason.recipe_texts import agent, content, router
from tests.session.small_sessions import path

IN_PARALLEL = {"execution_mode": "parallel"}
JUDGE = {"id": "e", "type": "evaluator", "target_variable": "output", "evaluator_agent_ref": "judge",
         "evaluation_profile": "strict", "pass_threshold": 0.5, "max_refinements": 2, "pass_route": "j",
         "fail_route": "a", "feedback_variable": "critique"}  # fmt: skip
DIAMOND = [("f", "a"), ("f", "b"), ("a", "j"), ("b", "j")]


def parallel(nodes, edges, **more):
    return load(content(nodes, edges, policy=IN_PARALLEL, **more))


def ways(recipe):
    return {(edge.source, edge.target) for edge in recipe.outgoing_edges}


def list_codes(recipe):
    return [problem.code for problem in recipe.check()]


def inside(recipe):
    """Return region -> the nodes in it, but for the outermost."""
    return {
        region: [node.id for node in recipe.nodes.values() if node.scope == region]
        for region in recipe.regions
        if region != ROOT
    }


def falling(id, target):
    return agent(id, recovery={"behavior": "route_to_fallback", "fallback_node_id": target})


# ---------------------------------------------------------------------------------------------- what becomes a section


def test_a_fork_becomes_a_parallel_section_that_ends_where_its_branches_join():
    recipe = parallel(["f", "a", "a2", "b", "j"], [("f", "a"), ("f", "b"), ("a", "a2"), ("a2", "j"), ("b", "j")])
    assert inside(recipe) == {"f.parallel.a": ["a", "a2"], "f.parallel.b": ["b"]}
    assert ways(recipe) == {("f", "f.parallel"), ("f.parallel", "j"), ("a", "a2")}
    section = recipe.nodes["f.parallel"]
    assert (section.kind, section.label, section.counted) == ("parallel", "in parallel", False)
    assert section.bodies == ("f.parallel.a", "f.parallel.b")
    assert section.place.path == "topology.edges[0]"
    assert list(recipe.nodes) == ["f", "f.parallel", "a", "a2", "b", "j"]
    assert list_codes(recipe) == []


def test_nodes_in_a_branch_keep_everything_but_their_region():
    edges = [("f", "a"), ("f", "b"), ("a", "j"), ("b", "j")]
    plain, recipe = load(content(["f", "a", "b", "j"], edges)), parallel(["f", "a", "b", "j"], edges)
    before, after = plain.nodes["a"], recipe.nodes["a"]
    assert (after.params, after.place, after.counted) == (before.params, before.place, before.counted)
    assert recipe.nodes["j"] == plain.nodes["j"]


def test_sequential_mode_creates_no_sections():
    recipe = load(content(["f", "a", "b", "j"], DIAMOND, policy={"execution_mode": "sequential"}))
    assert "f.parallel" not in recipe.nodes
    assert list_codes(recipe) == ["R118", "R115"]


def test_without_a_fork_nothing_is_reported():
    recipe = parallel(["a", "b"], [("a", "b")])
    assert (list_codes(recipe), list(recipe.nodes)) == ([], ["a", "b"])


def test_the_edges_of_a_router_are_not_a_fork():
    recipe = parallel([router("r", {"x": "a"}, "b"), "a", "b"], [])
    assert list(recipe.nodes) == ["r", "a", "b"]


def test_branches_that_never_join_run_to_the_end():
    recipe = parallel(["f", "a", "b"], [("f", "a"), ("f", "b")])
    assert ways(recipe) == {("f", "f.parallel")}
    assert list_codes(recipe) == []


def test_an_edge_directly_to_the_join_is_not_a_branch():
    recipe = parallel(["f", "a", "j"], [("f", "j"), ("f", "a"), ("a", "j")])
    assert inside(recipe) == {"f.parallel.a": ["a"]}
    assert ways(recipe) == {("f", "f.parallel"), ("f.parallel", "j")}


def test_two_edges_to_one_node_are_not_a_fork():
    assert list_codes(parallel(["f", "a"], [("f", "a"), ("f", "a")])) == ["R118"]


def test_a_fork_in_a_branch_is_a_section_inside_it():
    edges = [("f", "a"), ("f", "b"), ("a", "x"), ("a", "y"), ("x", "m"), ("y", "m"), ("m", "j"), ("b", "j")]
    recipe = parallel(["f", "a", "x", "y", "m", "b", "j"], edges)
    assert inside(recipe)["f.parallel.a"] == ["a", "a.parallel", "m"]
    assert inside(recipe)["a.parallel.x"] == ["x"]
    assert recipe.regions["a.parallel.x"].owner == "a.parallel"
    assert list_codes(recipe) == []


def test_a_fork_in_a_branch_may_join_with_the_outer_one():
    edges = [("f", "a"), ("f", "b"), ("a", "x"), ("a", "y"), ("x", "j"), ("y", "j"), ("b", "j")]
    recipe = parallel(["f", "a", "x", "y", "b", "j"], edges)
    assert ways(recipe) == {("f", "f.parallel"), ("f.parallel", "j"), ("a", "a.parallel")}
    assert list_codes(recipe) == []


def test_two_consecutive_forks_are_two_sections():
    more = [("j", "c"), ("j", "d")]
    recipe = parallel(["f", "a", "b", "j", "c", "d"], DIAMOND + more)
    assert list(inside(recipe)) == ["f.parallel.a", "f.parallel.b", "j.parallel.c", "j.parallel.d"]


@pytest.mark.parametrize("exit", [True, False])
def test_a_loop_from_the_join_back_to_before_the_fork_is_kept(exit):
    nodes = ["s", "f", "a", "b", "j", "end"] if exit else ["s", "f", "a", "b", "j"]
    way_back = [] if exit else [("j", "s")]
    edges = [("s", "f"), *DIAMOND, *way_back]
    if exit:
        nodes, edges = [*nodes, router("r", {"x": "s"}, "end")], [*edges, ("j", "r")]
    recipe = parallel(nodes, edges)
    assert inside(recipe) == {"f.parallel.a": ["a"], "f.parallel.b": ["b"]}
    assert list_codes(recipe) == ([] if exit else ["R125"])


def test_names_of_sections_are_unique():
    nodes = ["f", "a", "b", "f.parallel"]
    recipe = parallel(nodes, [("f", "a"), ("f", "b"), ("a", "f.parallel"), ("b", "f.parallel")])
    assert recipe.nodes["f.parallel-2"].kind == "parallel"
    assert ("f.parallel-2", "f.parallel") in ways(recipe)


def test_the_label_of_an_edge_is_the_title_of_its_branch():
    document = content(["f", "a", "b"], [("f", "a"), ("f", "b")], policy=IN_PARALLEL)
    document["topology"]["edges"][1]["condition"] = "in doubt"
    assert [region.title for region in load(document).regions.values()][1:] == ["branch 1", "branch 2: in doubt"]


def test_in_a_draft_a_missing_node_is_a_branch():
    recipe = parallel(["f", "a"], [("f", "gone"), ("f", "a")], topology={"status": "draft"})
    assert (recipe.nodes["gone"].kind, recipe.nodes["gone"].scope) == ("missing", "f.parallel.gone")
    assert list_codes(recipe) == ["R104"]


# -------------------------------------------------------------------------------------- where a branch leads to its end


def test_a_route_to_the_join_ends_the_branch():
    recipe = parallel(["f", router("r", {"x": "a", "y": "j"}, "j"), "a", "b", "j"],
                      [("f", "r"), ("f", "b"), ("a", "j"), ("b", "j")])  # fmt: skip
    params = recipe.nodes["r"].params
    assert (dict(params["routes"]), params["default"], params["meets"]) == ({"x": "a", "y": ""}, "", "j")
    assert ("r", "a") in ways(recipe)
    assert ("r", "j") not in ways(recipe)
    assert list_codes(recipe) == []


def test_the_routes_of_an_evaluator_are_rewritten_too():
    recipe = parallel(["f", "a", JUDGE, "b", "j"], [("f", "a"), ("f", "b"), ("a", "e"), ("b", "j")])
    params = recipe.nodes["e"].params
    assert (params["pass_route"], params["fail_route"], params["meets"]) == ("", "a", "j")
    assert inside(recipe)["f.parallel.a"] == ["a", "e"]


def test_a_fallback_to_the_join_ends_the_branch():
    recipe = parallel(["f", falling("a", "j"), "b", "j"], DIAMOND)
    assert recipe.nodes["a"].rescue == Rescue({}, ())
    assert all(edge.kind != "error" for edge in recipe.edges)
    assert list_codes(recipe) == []


def test_a_fallback_inside_the_branch_is_kept():
    recipe = parallel(["f", falling("a", "h"), "h", "b", "j"], [*DIAMOND, ("h", "j")])
    assert inside(recipe)["f.parallel.a"] == ["a", "h"]
    assert [(edge.source, edge.target) for edge in recipe.edges if edge.kind == "error"] == [("a", "h")]


def test_a_fallback_to_the_join_keeps_its_writes():
    nodes = {name: Node(name, "noop") for name in "fbj"} | {
        "a": Node("a", "noop", rescue=Rescue({"x": 1}, (RouteTarget("j", "pass"),)))
    }
    edges = tuple(Edge(source, target) for source, target in DIAMOND)
    sections = make_sections(nodes, edges, "f")
    assert sections.nodes["a"].rescue == Rescue({"x": 1}, ())
    assert sections.notes == ()


# ----------------------------------------------------------------------------------------------- what is not a section


def unfit(nodes, edges):
    """Return why the fork of a recipe is not a section, and where that is told."""
    recipe = parallel(nodes, edges)
    assert not inside(recipe)
    (problem,) = [problem for problem in recipe.check() if problem.code == "R137"]
    assert problem.what == "the branches of 'f' cannot run in parallel; only its first edge is followed"
    assert problem.severity == "warning"
    assert "R118" in list_codes(recipe)
    return problem.why, problem.where.removeprefix("<dict>, topology.")


def test_two_branches_that_join_without_the_third_are_no_section():
    edges = [("f", "a"), ("f", "b"), ("f", "c"), ("a", "k"), ("b", "k"), ("k", "j"), ("c", "j")]
    why, place = unfit(["f", "a", "b", "c", "k", "j"], edges)
    assert why.startswith("the branches of 'a' and 'b' both lead to 'k' (the edge 'b' -> 'k')")
    assert place == "edges[4]"


def test_the_named_edge_leads_into_the_second_branch_and_not_around_a_loop():
    nodes = ["f", "a", "b", "c", router("k", {"x": "n"}, "j"), "n", "j"]
    edges = [("f", "a"), ("f", "b"), ("f", "c"), ("n", "k"), ("a", "k"), ("b", "k"), ("c", "j")]
    why, place = unfit(nodes, edges)
    assert why.startswith("the branches of 'a' and 'b' both lead to 'k' (the edge 'b' -> 'k')")
    assert place == "edges[5]"


def test_a_branch_that_may_end_before_the_join_prevents_a_section():
    why, place = unfit(["f", "a", router("r", {"x": "j"}, "z"), "j", "z"], [("f", "a"), ("f", "r"), ("a", "j")])
    assert why.endswith("both lead to 'j' (the route 'r' -> 'j'), and the run may also end at 'z'")
    assert place == "nodes[2].routes.x"


def test_an_edge_back_to_the_fork_prevents_a_section():
    why, _ = unfit(["f", "a", router("r", {"x": "f"}, "j"), "j"], [("f", "a"), ("f", "r"), ("a", "j")])
    assert why == "the route 'r' -> 'f' leads back to 'f' before its branches have met"


def test_a_fork_with_an_edge_to_itself_is_no_section():
    assert unfit(["f", "a"], [("f", "f"), ("f", "a")])[0].startswith("the edge 'f' -> 'f' leads back")


def test_an_edge_from_outside_prevents_a_section():
    why, place = unfit([router("s", {"x": "f"}, "b"), "f", "a", "b", "j"], DIAMOND)
    assert (why, place) == ("the route 's' -> 'b' leads into the path from 'b' from outside", "nodes[0].default_route")


def test_an_entry_in_a_branch_prevents_a_section():
    nodes, edges = ["a", router("r", {"x": "f"}, "end"), "end", "f", "b", "j"], [*DIAMOND, ("j", "r")]
    assert unfit(nodes, edges)[0] == "the run starts at 'a', which is on the path from 'a'"


def test_a_fallback_out_of_the_branch_prevents_a_section():
    why, place = unfit(["f", falling("a", "h"), "b", "j", "h"], [*DIAMOND, ("j", "h")])
    assert why == "the fallback 'a' -> 'h' leaves the path from 'a' for the same node as the edge 'j' -> 'h'"
    assert place == "nodes[1].recovery.fallback_node_id"


def test_a_fallback_that_ends_the_run_prevents_a_section():
    why, _ = unfit(["f", falling("a", "h"), "b", "j", "h"], DIAMOND)
    assert why == "the fallback 'a' -> 'h' leads to 'h', which ends the run; the others meet at 'j'"


def test_a_fallback_shared_by_two_branches_prevents_a_section():
    why, _ = unfit(["f", falling("a", "h"), falling("b", "h"), "j", "h"], [*DIAMOND, ("h", "j")])
    assert "both lead to 'h' (the fallback 'b' -> 'h')" in why


def test_a_fork_without_a_section_does_not_prevent_another_section():
    nodes = ["f", "a", "b", "j", "g", "c", router("r", {"x": "g"}, "d"), "d"]
    recipe = parallel(nodes, [*DIAMOND, ("j", "g"), ("g", "c"), ("g", "r")])
    assert list(inside(recipe)) == ["f.parallel.a", "f.parallel.b"]
    assert [p.what.split("'")[1] for p in recipe.check() if p.code == "R137"] == ["g"]


def test_an_edge_to_a_missing_node_is_reported_elsewhere():
    nodes = {name: Node(name, "noop") for name in "fab"}
    edges = (Edge("f", "a"), Edge("f", "b"), Edge("a", "gone"))
    assert make_sections(nodes, edges, "f") == (nodes, edges, {}, ())


def test_a_branch_that_starts_where_another_may_lead_prevents_a_section():
    why, place = unfit(["f", router("r", {"x": "b"}, ""), "b"], [("f", "r"), ("f", "b")])
    assert why == (
        "the branches of 'r' and 'b' both lead to 'b' (the edge 'f' -> 'b'), and the run may also end at 'r'"
    )
    assert place == "edges[1]"


def test_only_targets_of_an_evaluator_are_rewritten():
    judge = {**JUDGE, "evaluator_agent_ref": "j", "target_variable": "j", "feedback_variable": "j"}
    recipe = parallel(["f", "a", judge, "b", "j"], [("f", "a"), ("f", "b"), ("a", "e"), ("b", "j")])
    params = recipe.nodes["e"].params
    assert (params["pass_route"], params["ref"], params["feedback"], params["target"]) == ("", "j", "j", ("j",))


def test_a_loop_with_an_exit_is_no_end_beside_one_without():
    inner = router("m", {"again": "a"}, "j")
    nodes = [router("s", {"x": "f"}, "z"), "f", "a", inner, "b", "j", "z", "z2"]
    edges = [("f", "a"), ("f", "b"), ("a", "m"), ("b", "j"), ("z", "z2"), ("z2", "z")]
    recipe = parallel(nodes, edges)
    assert inside(recipe) == {"f.parallel.a": ["a", "m"], "f.parallel.b": ["b"]}
    assert ("f.parallel", "j") in ways(recipe)


@st.composite
def flows(draw):
    """Draw nodes, all of which can be reached from the first, some of them routers; their edges; and another order."""
    names, edges, routers = "abcdef", [], {}
    for name in names:
        targets = draw(st.lists(st.sampled_from(names), max_size=2))
        if draw(st.integers(0, 3)) == 3:
            routers[name] = router(
                name, {str(n): to for n, to in enumerate(targets)}, draw(st.sampled_from(["", *names]))
            )
        else:
            edges += [(name, to) for to in targets]
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(names)
    for name, node in routers.items():
        graph.add_edges_from((name, to) for to in (*node["routes"].values(), node["default_route"]) if to)
    reached = {"a", *nx.descendants(graph, "a")}
    nodes = [routers.get(name, name) for name in names if name in reached]
    return nodes, [edge for edge in edges if edge[0] in reached], draw(st.permutations(nodes))


@given(flows())
def test_sections_do_not_depend_on_the_order_of_the_nodes(drawn):
    nodes, edges, other = drawn
    found = []
    for order in (nodes, other):
        recipe = parallel(order, edges, entry="a")
        regions = {region: frozenset(members) for region, members in inside(recipe).items()}
        notes = {
            problem.what for problem in recipe.notes if problem.code == "R137"
        }  # the edge that is named may differ
        found.append((regions, ways(recipe), notes, {id: node.scope for id, node in recipe.nodes.items()}))
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------------------------- as it runs


def agents(**answers):
    """Return callables by agent_ref: those given, and one for each answer that gives it."""
    return {f"{name}-agent": each if callable(each) else saying(each) for name, each in answers.items()}


def saying(answer):
    return lambda: answer


def test_the_agents_of_a_fork_run_concurrently_and_join_once():
    barrier = threading.Barrier(2, timeout=30)

    def meet():
        barrier.wait()
        return {}

    executor = GraphExecutor(parallel(["f", "a", "b", "j"], DIAMOND), {}, agents=agents(f={}, a=meet, b=meet, j={}))
    trace = asyncio.run(executor.run())
    nodes = [step.node_id for step in trace.steps]
    assert (sorted(nodes[2:4]), nodes[4:]) == (["a", "b"], ["f.parallel", "j"])


def test_writes_of_two_agents_are_merged_in_the_order_of_the_edges():
    run = Session(parallel(["f", "a", "b", "j"], DIAMOND), {}, tools=agents(f={}, a="A", b="B", j={}))
    run.run()
    assert run.board["output"] == "B"


@pytest.mark.parametrize(
    ("topic", "way", "says"), [("x", "a", "Go to a"), ("y", "j", "Go to j, where the branches meet")]
)
def test_a_router_in_a_branch_chooses_its_end(topic, way, says):
    recipe = parallel(["f", router("r", {"x": "a"}, "j"), "a", "b", "j"],
                      [("f", "r"), ("f", "b"), ("a", "j"), ("b", "j")])  # fmt: skip
    run = Session(recipe, {"topic": topic}, tools=agents(f={}, a={}, b={}, j={}))
    run.run()
    (step,) = [step for step in run.trace.steps if step.node_id == "r"]
    assert step.thought.endswith(says)
    assert step.observation == {"decision": way, "value": topic}
    assert (run.status, path(run).count("j"), "a" in path(run)) == ("finished", 1, topic == "x")


def test_an_evaluator_refines_inside_its_branch_and_its_forced_end_ends_the_branch():
    recipe = parallel(["f", "a", JUDGE, "b", "j"], [("f", "a"), ("f", "b"), ("a", "e"), ("b", "j")])
    scores = iter([0.1, 0.2, 0.3])
    run = Session(recipe, {}, tools=agents(f={}, a="draft", b={}, j={}) | {"judge": lambda output: next(scores)})
    run.run()
    assert (run.status, path(run).count("a"), path(run).count("e"), path(run)[-1]) == ("finished", 3, 3, "j")
    last = [step for step in run.trace.steps if step.node_id == "e"][-1]
    assert last.observation["decision"] == "j"
    assert last.thought.endswith("forced end of the branch")


def test_a_fallback_to_the_join_continues_there_once():
    def breaks():
        raise ValueError("it broke")

    recipe = parallel(["f", falling("a", "j"), "b", "j"], DIAMOND)
    run = Session(recipe, {}, tools=agents(f={}, a=breaks, b={"b": 1}, j={}))
    run.run()
    assert (run.status, path(run).count("j"), dict(run.board)) == ("finished", 1, {"b": 1})


def test_a_failure_without_a_fallback_fails_the_run_inside_a_branch_too():
    def breaks():
        raise ValueError("it broke")

    run = Session(parallel(["f", "a", "b", "j"], DIAMOND), tools=agents(f={}, a=breaks, b={}, j={}))
    run.run()
    assert (run.status, "ValueError: it broke" in str(run.error), "j" in path(run)) == ("failed", True, False)


def test_a_fork_in_a_loop_runs_in_each_iteration():
    nodes = ["f", "a", "b", "j", router("r", {"again": "f"}, "end"), "end"]
    topics = iter(["again", "again", "enough"])
    tools = agents(f={}, a={}, b={}, j=lambda: {"topic": next(topics)}, end={})
    run = Session(parallel(nodes, [*DIAMOND, ("j", "r")]), {}, tools=tools)
    run.run()
    assert (run.status, path(run).count("b"), path(run).count("j")) == ("finished", 3, 3)


def test_max_steps_ends_an_endless_loop():
    run = Session(parallel(["f", "a", "b", "j"], [*DIAMOND, ("j", "f")]), {})
    run.run()
    counted = [name for name in path(run) if not name.startswith("f.parallel")]
    assert (run.status, len(counted)) == ("exhausted", 50)


def test_a_section_itself_does_not_count_as_a_step():
    run = Session(parallel(["f", "a", "b", "j"], DIAMOND), budget={"max_steps": 1})
    run.run()
    assert (path(run), run.status) == (["f", "f.parallel enter"], "exhausted")
