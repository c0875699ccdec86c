from __future__ import annotations

import sys
from datetime import timedelta
from functools import partial

import networkx as nx
import pytest

import agentnb as nb
from agentnb.dialects.polaris import ConditionalEdge, Graph, JoinNode, LoopNode, Out, ParallelNode, SwitchNode, system
from agentnb.dialects.polaris.parts.graph import MOST_NESTED
from agentnb.errors import RecipeError
from tests.dialects.polaris.polaris_graphs import Plan, fail, fix, note, nothing, plan, tell, work


def edges(graph):
    return [(edge.source, edge.target, edge.kind) for edge in graph.edges]


def test_a_chain_starts_at_its_first_node_and_links_each_to_its_predecessor():
    graph = Graph().add_system(plan).add_system(work).add_system(tell)
    assert (graph.entry, graph.last_node) == ("plan", "tell")
    assert edges(graph) == [("plan", "work", "sequential"), ("work", "tell", "sequential")]
    assert (graph.node_count, graph.edge_count, graph.is_empty) == (3, 2, False)
    assert Graph().is_empty


def test_ids_are_names_and_repeated_names_get_a_number():
    graph = Graph().add_system(plan).add_loop_n("again", 2, lambda inner: inner.add_system(plan).add_system(plan))
    assert [node.id for node in graph.nodes] == ["plan", "again", "plan_2", "plan_3"]
    assert graph.get_node("plan_3").name == "plan"
    assert graph.get_node("plan_4") is None
    assert graph.get_edge(graph.edges[0].id) is graph.edges[0]


def test_an_id_costs_the_same_after_many_with_its_name():
    def lines(count):
        """Return how many lines of code run while a graph gets so many nodes of one name."""
        graph, ran = Graph(), 0

        def note(_frame, event, _argument):
            nonlocal ran
            ran += event == "line"
            return note

        before = sys.gettrace()
        sys.settrace(note)
        try:
            for _ in range(count):
                graph.add_system(plan)
        finally:
            sys.settrace(before)
        assert graph.nodes[-1].id == f"plan_{count}"
        return ran

    assert lines(400) < 6 * lines(100)


def test_a_taken_name_gets_the_first_free_number():
    graph = Graph()
    for name in ("plan", "plan", "plan_2", "plan", "plan_2", "root", "root"):
        graph.add_loop_n(name, 2, lambda inner: inner)
    assert [node.id for node in graph.nodes] == [
        "plan", "plan_2", "plan_2_2", "plan_3", "plan_2_3", "root_2", "root_3",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["root", "plan_2", "plan"])
def test_ids_are_unique_whatever_came_before(name):
    graph = Graph()
    for each in ("plan", name, "plan", name, "plan_2_2", name, "plan", "root", name):
        graph.add_loop_n(each, 2, lambda inner: inner.add_system(work))
    ids = [node.id for node in graph.nodes]
    assert len(set(ids)) == len(ids)
    assert "root" not in ids


def test_a_successor_is_linked_to_the_control_node_and_not_to_its_branches():
    graph = Graph().add_system(plan)
    graph.add_conditional_branch("ask", Plan, bool, lambda g: g.add_system(work), tell).add_system(note)
    assert edges(graph) == [
        ("plan", "ask", "sequential"),
        ("ask", "work", "conditional"),
        ("ask", "tell", "conditional"),
        ("ask", "note", "sequential"),
    ]
    assert [edge.case for edge in graph.edges if isinstance(edge, ConditionalEdge)] == ["true", "false"]
    decision = graph.get_node("ask")
    assert (decision.true_branch, decision.false_branch) == ("work", "tell")


def test_a_successor_of_parallel_branches_is_linked_to_their_join():
    graph = Graph().add_parallel("both", [work, lambda g: g.add_system(tell)]).add_system(note)
    both = graph.get_node("both")
    assert isinstance(both, ParallelNode)
    assert both.branches == ["work", "tell"]
    join = graph.get_node(both.join)
    assert isinstance(join, JoinNode)
    assert (join.name, join.sources) == ("join", ["work", "tell"])
    assert edges(graph) == [
        ("both", "work", "parallel"),
        ("both", "tell", "parallel"),
        ("both", join.id, "sequential"),
        (join.id, "note", "sequential"),
    ]


def test_the_end_of_a_loops_body_leads_back_to_the_loop():
    graph = Graph().add_loop_n("again", 2, lambda g: g.add_system(work).add_system(tell))
    assert edges(graph) == [("work", "tell", "sequential"), ("tell", "again", "loop_back")]


def whole():
    """Return a graph with control flow of each sort."""
    graph = Graph().add_system(plan).add_switch("route", Plan, str, {"a": note}, default=tell)
    graph.add_parallel("both", [work, lambda g: g.add_conditional_branch("ask", Plan, bool, tell, note)])
    graph.add_loop("again", Plan, bool, lambda g: g.add_system(work).add_loop_n("twice", 2, tell))
    risky = graph.add_system_node(fail)
    return graph.set_timeout(risky, 9).add_error_handler(risky, fix).add_timeout_handler(risky, fix)


@pytest.mark.parametrize("of", [lambda graph: [(e.source, e.target) for e in graph.edges if e.kind != "loop_back"],
                                lambda graph: nb.load(graph).graph])  # fmt: skip
def test_every_node_is_reachable_along_edges(of):
    graph = whole()
    built_graph = nx.DiGraph(of(graph))
    if built_graph.number_of_edges() < 20:  # a graph has no edge into a loop's body: its node names the body
        built_graph.add_edges_from((node.id, node.body_entry) for node in graph.nodes if isinstance(node, LoopNode))
    assert {"plan", *nx.descendants(built_graph, "plan")} == {node.id for node in graph.nodes}


def test_a_recipes_edges_are_of_the_kinds_of_its_control_flow():
    recipe = nb.load(whole())
    kinds = {(edge.source, edge.target): (edge.kind, edge.condition) for edge in recipe.edges if edge.inner}
    assert kinds == {
        ("route", "note"): ("conditional", "case 'a'"),
        ("route", "tell"): ("conditional", "default"),
        ("both", "work"): ("parallel", ""),
        ("both", "ask"): ("parallel", ""),
        ("ask", "tell_2"): ("conditional", "true"),
        ("ask", "note_2"): ("conditional", "false"),
        ("again", "work_2"): ("sequential", ""),
        ("twice", "again"): ("loop_back", ""),
        ("twice", "tell_3"): ("sequential", ""),
        ("tell_3", "twice"): ("loop_back", ""),
    }
    drawn = {(link.ends, link.kind) for link in recipe.draw().picture.links}
    assert {(("twice", "again"), "loop_back"), (("both", "ask"), "enter")} <= drawn
    assert {kind for _, _, kind in recipe.graph.edges(data="kind")} == {
        *("sequential", "conditional", "parallel", "loop_back", "error", "timeout"),
    }


def test_builders_that_add_nothing_omit_their_branch():
    graph = Graph().add_conditional_branch("ask", Plan, bool, plan, nothing)
    graph.add_switch("route", Plan, str, {"a": nothing, "b": tell}, default=nothing)
    graph.add_parallel("both", [nothing, tell]).add_loop("again", Plan, bool, nothing)
    assert graph.get_node("ask").false_branch is None
    assert graph.get_node("ask").left_out == frozenset()
    assert graph.get_node("route").cases == [("b", "tell")]
    assert graph.get_node("route").default is None
    assert graph.get_node("both").branches == ["tell_2"]
    assert graph.get_node("again").body_entry is None


def test_an_omitted_branch_is_marked():
    assert Graph().add_conditional_branch("ask", Plan, bool, plan).get_node("ask").left_out == {"false"}


def test_cases_are_a_mapping_or_pairs_in_their_order():
    pairs = Graph().add_switch("route", Plan, str, [("a", plan), ("a", tell)])
    assert pairs.get_node("route").cases == [("a", "plan"), ("a", "tell")]


def test_a_handler_is_reached_by_its_edge_alone_and_the_next_node_follows_the_previous_one():
    graph = Graph().add_system(plan)
    risky = graph.add_system_node(fail)
    graph.add_error_handler(risky, lambda g: g.add_system(fix), resume=True).add_system(tell)
    assert edges(graph)[1:] == [("fail", "fix", "error"), ("fail", "tell", "sequential")]
    assert (graph.edges[1].resume, graph.edges[1].last) == (True, "fix")


def test_an_empty_handler_is_omitted():
    graph = Graph()
    graph.add_error_handler(graph.add_system_node(fail), nothing)
    assert graph.edges == []


def test_timeouts_are_seconds_or_a_timedelta_and_retries_count_all_attempts():
    graph = Graph()
    slow = graph.add_system_node(work)
    graph.set_timeout(slow, timedelta(milliseconds=50)).set_retry(slow, 3, 0.5)
    node = graph.get_node(slow)
    assert (node.timeout, node.attempts, node.backoff) == (0.05, 3, 0.5)
    assert graph.set_timeout(slow, 2).get_node(slow).timeout == 2.0


@pytest.mark.parametrize("timeout", [0.001, 1, 2.5, timedelta(seconds=3)])
def test_the_smallest_settings_are_accepted(timeout):
    graph = Graph().add_system(work).set_timeout("work", timeout).set_retry("work", 1, 0)
    node = graph.get_node("work")
    assert node.timeout == (3.0 if isinstance(timeout, timedelta) else timeout)
    assert (node.attempts, node.backoff) == (1, 0.0)
    assert (graph.set_retry("work", 2).get_node("work").attempts, node.backoff) == (2, 0.0)
    graph.add_loop_n("never", 0, tell).add_loop("ended", Plan, bool, tell, 0)
    assert [graph.get_node(id).max_iterations for id in ("never", "ended")] == [0, 0]


def test_a_settings_mistake_names_the_call():
    graph = Graph("tea").add_system(work).add_loop_n("again", 2, tell)
    for call, where, what in (
        (lambda: graph.set_timeout("gone", 1), "graph 'tea', set_timeout('gone')", "there is no node 'gone'"),
        (lambda: graph.set_retry("again", 1), "graph 'tea', set_retry('again')", "node 'again' is not a system"),
        (lambda: graph.add_error_handler("x", fix), "graph 'tea', add_error_handler('x')", "there is no node 'x'"),
        (lambda: graph.add_timeout_handler("x", fix), "graph 'tea', add_timeout_handler('x')", "there is no node 'x'"),
        (lambda: Graph("tea").set_timeout("x", 1), "graph 'tea', set_timeout('x')", "there is no node 'x'"),
    ):
        with pytest.raises(RecipeError) as caught:
            call()
        assert (caught.value.problems[0].where, caught.value.problems[0].what) == (where, what)
    with pytest.raises(RecipeError, match=r"has: work, tell\n.*use one of them"):
        graph.set_timeout("something else", 1)
    with pytest.raises(RecipeError, match="has: none"):
        Graph().set_timeout("x", 1)


def test_names_are_kept_apart():
    @system
    def root() -> Plan:
        return Plan("tea")

    def again_2() -> Plan:
        return Plan("tea")

    graph = Graph().add_system(root).add_system(root).add_system(again_2).add_loop_n("again", 1, root)
    graph.add_loop_n("again", 1, root).add_loop_n("again", 1, root)
    assert [node.id for node in graph.nodes] == [
        "root_2", "root_3", "again_2", "again", "root_4", "again_3", "root_5", "again_4", "root_6",
    ]  # fmt: skip
    assert graph.get_edge("gone") is None


@pytest.mark.parametrize("verb", ["set_timeout", "set_retry", "add_error_handler", "add_timeout_handler"])
@pytest.mark.parametrize("id", ["wrok", "again"])
def test_settings_of_a_system_need_an_existing_system(verb, id):
    graph = Graph().add_system(work).add_loop_n("again", 2, tell)
    with pytest.raises(RecipeError) as caught:
        getattr(graph, verb)(id, 1 if verb.startswith("set") else fix)
    problem = caught.value.problems[0]
    assert problem.code == "R144"
    assert repr(id) in problem.what
    assert "work" in problem.why


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.set_timeout("work", 0),
        lambda graph: graph.set_timeout("work", "soon"),
        lambda graph: graph.set_retry("work", 0),
        lambda graph: graph.set_timeout("work", float("inf")),
        lambda graph: graph.set_retry("work", attempts=True),
        lambda graph: graph.set_retry("work", 2, -1),
        lambda graph: graph.set_retry("work", 2, "soon"),
        lambda graph: graph.set_retry("work", 2, float("inf")),
        lambda graph: graph.add_switch("route", Plan, str, [("a", tell, tell)]),
        lambda graph: graph.add_loop_n("again", -1, tell),
        lambda graph: graph.add_loop_n("again", 1.5, tell),
        lambda graph: graph.add_parallel("both", ["tell"]),
        lambda graph: graph.add_parallel("both", tell),
        lambda graph: graph.add_switch("route", Plan, str, None),
        lambda graph: graph.add_switch("route", Plan, str, [tell, tell]),
    ],
)
def test_invalid_arguments_are_rejected(call):
    with pytest.raises(RecipeError, match="R145"):
        call(Graph().add_system(work))


def test_its_repr_is_its_drawing_even_if_it_is_invalid():
    graph = Graph("broken").add_conditional_branch("ask", Plan, bool, nothing, nothing)
    assert not graph.validate().ok
    assert "ask" in graph.draw().dot
    assert "image/svg+xml" in graph._repr_mimebundle_()
    assert repr(graph) == "<Graph 'broken': 1 nodes, 0 edges>"


def test_handlers_and_branches_are_in_clusters_and_their_edges_are_dashed_and_marked():
    graph = Graph().add_system(plan)
    risky = graph.add_system_node(fail)
    graph.set_timeout(risky, 5).add_error_handler(risky, fix)
    graph.add_timeout_handler(risky, lambda g: g.add_loop_n("again", 2, tell))
    dot = graph.draw(board=False).dot
    clusters = ['label="error of fail"', 'label="timeout of fail"', "label=body"]
    assert [cluster for cluster in clusters if cluster in dot] == clusters
    assert dot.count("dashed") == 2
    assert "◷ 5 s" in dot
    within = dot[dot.index(clusters[1]) :]
    assert within.index(clusters[2]) < within.index("\t}\n")  # the loop's body stands within the handler


# -- ready-made graphs, and builders without an end --------------------------------------------------------------------


def inner():
    return Graph("inner").add_system(plan).add_switch("route", Plan, str, {"a": work}, default=note).add_system(tell)


@pytest.mark.parametrize(
    "place",
    [
        lambda graph, ready: graph.add_conditional_branch("ask", Plan, bool, ready, ready),
        lambda graph, ready: graph.add_switch("choose", Plan, str, {1: ready, 2: ready}, default=ready),
        lambda graph, ready: graph.add_parallel("both", [ready, ready]),
        lambda graph, ready: graph.add_loop_n("again", 2, ready),
        lambda graph, ready: graph.add_error_handler("plan", ready),
    ],
)
def test_a_ready_made_graph_is_equivalent_to_a_builder_that_adds_its_nodes(place):
    ready, before = inner(), edges(inner())
    built = place(Graph().add_system(plan), place_of)
    ready_made = place(Graph().add_system(plan), ready)
    assert [node.id for node in ready_made.nodes] == [node.id for node in built.nodes]
    assert edges(ready_made) == edges(built)
    assert [type(node) for node in ready_made.nodes] == [type(node) for node in built.nodes]
    assert edges(ready) == before
    assert ready_made.validate().errors == built.validate().errors


def place_of(graph):
    graph.add_system(plan).add_switch("route", Plan, str, {"a": work}, default=note).add_system(tell)


def test_a_ready_made_graph_is_copied_with_updated_references():
    ready = Graph().add_parallel("both", [work, tell]).add_loop("again", Plan, bool, note)
    ready.add_error_handler("work", fix, resume=True).given(Plan)
    graph = Graph().add_system(work).add_loop_n("twice", 2, ready)
    both, again = graph.get_node("both"), graph.get_node("again")
    assert (both.branches, graph.get_node(both.join).sources, again.body_entry) == (["work_2", "tell"],) * 1 + (
        ["work_2", "tell"], "note",
    )  # fmt: skip
    assert both.join == "both_join"
    (handler,) = [edge for edge in graph.edges if edge.kind == "error"]
    assert (handler.source, handler.target, handler.last, handler.resume) == ("work_2", "fix", "fix", True)
    assert graph.given_types == [Plan]
    ready.add_system(tell)
    assert graph.get_node("tell_2") is None
    assert isinstance(Graph().add_loop_n("x", 1, inner()).get_node("route"), SwitchNode)


def test_a_graph_inside_itself_is_rejected():
    graph = Graph("own").add_system(plan)
    with pytest.raises(RecipeError, match="R149: graph 'own' contains itself"):
        graph.add_loop_n("again", 2, graph)
    with pytest.raises(RecipeError, match="R149: graph 'own' contains itself"):
        graph.add_loop_n("again", 2, lambda g: g.add_parallel("both", [graph, plan]))


def endless(graph):
    graph.add_system(plan).add_loop_n("again", 2, endless)


def test_an_infinitely_recursive_builder_is_a_problem():
    def by_way_of(graph, *more):  # each takes several frames of Python's stack
        return by_way_of(graph, *more[1:]) if more else endless_too(graph)

    def endless_too(graph):
        graph.add_parallel("both", [lambda inner: by_way_of(inner, *range(9))])

    for builder in (endless, endless_too):
        with pytest.raises(RecipeError, match=r"R149: builder '.*' contains itself") as caught:
            builder(Graph())
        assert "add_loop" in caught.value.problems[0].do


def test_deep_graphs_can_be_built():
    def nested(depth):
        return (lambda g: g.add_loop_n("level", 1, nested(depth - 1))) if depth else (lambda g: g.add_system(plan))

    for depth in (150, MOST_NESTED):
        graph = Graph()
        nested(depth)(graph)
        assert graph.node_count == depth + 1
    with pytest.raises(RecipeError, match="R149"):
        nested(MOST_NESTED + 1)(Graph())


def test_the_classes_of_nodes_and_edges_can_be_imported_from_the_package():
    from agentnb.dialects import polaris

    graph = whole()
    assert {type(node).__name__ for node in graph.nodes} | {type(edge).__name__ for edge in graph.edges} == {
        *("SystemNode", "DecisionNode", "SwitchNode", "ParallelNode", "LoopNode", "JoinNode"),
        *("SequentialEdge", "ConditionalEdge", "ParallelEdge", "LoopBackEdge", "ErrorEdge", "TimeoutEdge"),
    }
    for part in (*graph.nodes, *graph.edges):
        assert getattr(polaris, type(part).__name__) is type(part)
    assert all(isinstance(edge, polaris.Edge) and isinstance(edge, polaris.GraphEdge) for edge in graph.edges)
    assert all(isinstance(node, polaris.Node) for node in graph.nodes)


def nested_flow():
    """Return a graph with every kind of composite node, in and after one another."""
    graph = Graph("flow").add_system(plan)
    graph.add_loop_n("again", 2, lambda g: g.add_conditional_branch("ask", Plan, lambda _: True, work, tell))
    graph.add_switch("route", Plan, lambda _: "b", {"a": tell, "b": lambda g: g.add_loop_n("more", 2, note)})
    return graph.add_parallel("both", [lambda g: g.add_system(work).add_system(tell), note])


def moves_of(recipe):
    """Return each position of a run with the node that has just run and the one that is next."""
    session, moves = nb.Session(recipe), []
    while (step := session.step()) is not None:
        moves.append((step.step, step.node_id, session.current))
    return moves


def test_breakpoints_stop_at_edges_into_and_out_of_nested_nodes():
    recipe = nb.load(nested_flow())
    branches = {("both", "work_2"), ("both", "note_2")}  # both are taken by one step
    moves = moves_of(recipe)
    inner = [(edge.source, edge.target) for edge in recipe.edges if edge.inner]
    assert len(inner) == 10
    for edge in inner:
        session = nb.Session(recipe)
        session.breakpoints.add(edge=edge)
        stops = []
        while session.run() and session.status == "paused":
            stops.append(session.position)
        taken = [at for at, *pair in moves if tuple(pair) == edge or (edge in branches and pair[0] == "both")]
        assert stops == taken[: 1 if edge in branches else None], edge
        assert session.breakpoints.rows[1].hits == len(stops)


def test_edges_into_nested_nodes_and_back_are_drawn_as_taken():
    recipe = nb.load(nested_flow())
    session = nb.Session(recipe)
    assert not session._parts.pictures.view().taken
    session.run()
    edges = {
        (edge.source, edge.target)
        for place, edge in enumerate(recipe.edges)
        if place in session._parts.pictures.view().taken
    }
    not_taken = {(edge.source, edge.target) for edge in recipe.edges} - edges
    assert not_taken == {("ask", "tell"), ("route", "tell_2")}
    session.goto(1)
    assert {recipe.edges[place].target for place in session._parts.pictures.view().taken} == {"again"}


def unmarked(plan: Out[Plan]) -> str:
    raise AssertionError("a system is not called while a graph is built")


@pytest.mark.parametrize("builder", [unmarked, lambda: 1, lambda g, other: None, partial(unmarked), lambda g: 42])
@pytest.mark.parametrize(
    "add",
    [
        lambda graph, builder: graph.add_parallel("both", [builder]),
        lambda graph, builder: graph.add_loop_n("again", 2, builder),
        lambda graph, builder: graph.add_conditional_branch("ask", Plan, bool, builder),
        lambda graph, builder: graph.add_error_handler("work", builder),
    ],
)
def test_a_function_that_is_not_a_builder_is_rejected_with_a_hint(add, builder):
    with pytest.raises(RecipeError, match=r"R145: '.*' (is not a builder|added no node and returned an int)") as caught:
        add(Graph().add_system(work), builder)
    assert "@system" in caught.value.problems[0].why


def test_a_builder_may_have_defaults_and_return_anything_if_it_adds_nodes():
    graph = Graph().add_parallel("both", [lambda g, each=each: g.add_system_node(each) for each in (work, tell)])
    assert [node.id for node in graph.nodes] == ["both", "work", "tell", "both_join"]
