from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from agentnb.dialects.polaris import Graph, system
from agentnb.dialects.polaris.parts.validation import CODES
from agentnb.dialects.polaris.schema import JoinNode, SequentialEdge
from agentnb.errors import RecipeError
from agentnb.load import load
from tests.dialects.polaris.polaris_graphs import Plan, Result, fail, fix, note, nothing, plan, tell, work


def errors(graph):
    return [(finding.kind, finding.node) for finding in graph.validate().errors]


def warnings(graph):
    return [(finding.kind, finding.node) for finding in graph.validate().warnings]


def whole():
    """Return a graph with a node of each sort, and nothing wrong with it."""
    graph = Graph().add_system(plan).add_loop("loop", Plan, lambda plan: plan.done > 1, work)
    graph.add_conditional_branch("ask", Plan, bool, tell, note)
    return graph.add_switch("route", Plan, str, {"a": tell}, note).add_parallel("both", [tell, note])


def test_a_graph_with_nothing_wrong_is_ok():
    result = whole().validate()
    assert (result.ok, bool(result), result.errors, result.warnings, str(result)) == (True, True, (), (), "ok")


def changed(id, **fields):
    graph = whole()
    for name, value in fields.items():
        setattr(graph.get_node(id), name, value)
    return graph


def with_edge(source, target):
    graph = whole()
    graph.edges.append(SequentialEdge("odd", source, target))
    return graph


def entry(id):
    graph = whole()
    graph.entry = id
    return graph


@pytest.mark.parametrize(("count", "end"), [(12, "n11"), (13, "n11 and 1 more"), (15, "n11 and 3 more")])
def test_the_nodes_of_a_large_graph_are_not_all_named(count, end):
    graph = Graph()
    for number in range(count):
        graph.nodes.append(JoinNode(f"n{number}"))
    graph.entry = "gone"
    (error,) = [finding for finding in graph.validate().errors if finding.kind == "InvalidEntryPoint"]
    assert error.why.endswith(end)


def test_a_missing_end_of_an_edge_is_named():
    for graph, verb in ((with_edge("gone", "plan"), "begins"), (with_edge("plan", "gone"), "ends")):
        (error,) = graph.validate().errors
        assert f"{verb} at 'gone'" in str(error)


@pytest.mark.parametrize(
    ("graph", "kind", "node"),
    [
        (Graph(), "NoEntryPoint", None),
        (entry("gone"), "InvalidEntryPoint", "gone"),
        (with_edge("gone", "plan"), "InvalidEdgeSource", "gone"),
        (with_edge("plan", "gone"), "InvalidEdgeTarget", "gone"),
        (changed("ask", predicate=None), "MissingPredicate", "ask"),
        (changed("ask", true_branch=None), "MissingBranch", "ask"),
        (changed("ask", false_branch="gone"), "InvalidBranchTarget", "ask"),
        (changed("both", branches=["gone"]), "InvalidBranchTarget", "both"),
        (changed("route", discriminator=None), "MissingDiscriminator", "route"),
        (changed("route", cases=[], default=None), "EmptySwitch", "route"),
        (changed("route", cases=[("a", "gone")]), "InvalidCaseTarget", "route"),
        (changed("route", default="gone"), "InvalidDefaultTarget", "route"),
        (changed("both", branches=[]), "EmptyParallel", "both"),
        (changed("both", join=None), "MissingJoin", "both"),
        (changed("both", join="plan"), "InvalidJoinTarget", "both"),
        (changed("both_join", sources=[]), "EmptyJoinSources", "both_join"),
        (changed("both_join", sources=["gone"]), "InvalidJoinSource", "both_join"),
        (changed("loop", termination=None), "NoTerminationCondition", "loop"),
        (changed("loop", body_entry=None), "EmptyLoopBody", "loop"),
        (changed("loop", body_entry="gone"), "InvalidLoopBody", "loop"),
        (changed("loop", body_entry="note"), "LoopPredicateOutputNotProduced", "loop"),
    ],
)
def test_each_mistake_is_an_error_that_names_its_node(graph, kind, node):
    assert (kind, node) in errors(graph)
    actual = next(finding for finding in graph.validate().errors if finding.kind == kind)
    assert all((actual.what, actual.where, actual.why, actual.do))
    assert actual.code == CODES[kind]
    with pytest.raises(RecipeError) as caught:
        load(graph)
    assert actual in caught.value.problems


def test_empty_builders_are_reported():
    graph = Graph().add_system(plan).add_conditional_branch("ask", Plan, bool, nothing, nothing)
    graph.add_loop_n("again", 2, nothing).add_parallel("both", []).add_switch("route", Plan, str, {})
    assert [kind for kind, _ in errors(graph)] == [
        "MissingBranch", "MissingBranch", "EmptySwitch", "EmptyParallel", "EmptyJoinSources", "EmptyLoopBody",
    ]  # fmt: skip
    assert [error.details["branch"] for error in graph.validate().errors[:2]] == ["true", "false"]


def test_an_omitted_branch_is_not_an_error():
    assert Graph().add_system(plan).add_conditional_branch("ask", Plan, bool, tell).validate().ok


def test_a_loop_whose_predicate_has_no_value_is_reported():
    graph = Graph().add_loop("again", Plan, bool, plan)
    assert errors(graph) == [("LoopPredicateOutputNotThere", "again")]
    assert "Plan" in graph.validate().errors[0].what
    assert Graph().given(Plan).add_loop("again", Plan, bool, plan).validate().ok
    assert Graph().add_system(plan).add_loop("again", Plan, bool, plan).validate().ok


def test_a_system_without_return_annotation_may_return_anything():
    @system
    def anything():
        return Plan("tea")

    assert Graph().add_system(anything).add_loop("again", Plan, bool, anything).validate().ok


def test_an_output_of_one_branch_may_be_available():
    graph = Graph().add_system(note).add_conditional_branch("ask", str, bool, plan).add_loop("again", Plan, bool, work)
    assert (errors(graph), warnings(graph)) == ([], [])


def test_the_output_of_a_handler_counts_only_if_the_run_continues():
    for resume in (True, False):
        graph = Graph().add_system(plan)
        graph.add_error_handler(graph.add_system_node(work), note, resume=resume)
        graph.add_conditional_branch("ask", str, bool, tell)
        assert warnings(graph) == ([] if resume else [("OutputNotProduced", "ask")])


def test_a_loop_may_read_outputs_of_the_previous_iteration():
    def body(graph):
        graph.add_conditional_branch("ask", Plan, bool, lambda g: g.add_switch("read", Result, str, {"a": note}))
        graph.add_system(work).add_system(tell)

    assert warnings(Graph().add_system(plan).add_loop("again", Plan, bool, body)) == []


def test_two_branches_that_produce_one_type_are_one_warning_per_type():
    graph = Graph().add_system(plan).add_parallel("both", [tell, fix, tell, note])
    assert warnings(graph) == [("ConflictingParallelOutputs", "both")]
    assert graph.validate().warnings[0].details["output_type"] is Result
    assert load(graph).notes[0].code == "R197"


def test_a_duplicate_case_is_a_warning():
    graph = Graph().add_system(plan).add_switch("route", Plan, str, [("a", tell), ("a", note)])
    assert warnings(graph) == [("DuplicateCase", "route")]


class Counted:
    """A key that counts how often it is compared; it cannot be hashed."""

    __hash__ = None
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return self is other


@dataclass(order=True)
class Version:
    """A key that cannot be hashed, but is ordered."""

    number: int


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ([1, {"a": [2]}], [1.0, {"a": [2]}], True),
        ({"a": 1, "b": []}, {"b": [], "a": 1}, True),
        ({1, 2}, frozenset({2, 1}), True),
        (([],), ([],), True),
        ([1], (1,), False),
        ([[]], [()], False),
        ({"a": [1]}, {"a": [2]}, False),
        (bytearray(b"x"), b"x", True),
        (Version(1), Version(1), True),
        (Version(1), Version(2), False),
        (np.array([1, 2]), np.array([1, 2]), False),  # whether they are equal is no one truth
    ],
)
def test_keys_of_cases_are_compared_whether_hashable_or_not(first, second, equal):
    for cases in ([first, second], [second, first]):
        graph = Graph().add_system(plan).add_switch("route", Plan, str, [(key, tell) for key in cases])
        assert warnings(graph) == [("DuplicateCase", "route")] * equal


def switch_of(keys):
    """Return a graph with a switch that has one branch and all these keys."""
    graph = Graph().add_system(plan).add_switch("route", Plan, str, {"first": tell})
    (_, target) = graph.nodes[1].cases[0]
    graph.nodes[1].cases[:] = [(key, target) for key in keys]
    return graph


@pytest.mark.parametrize("make_key", [Counted, lambda: [Counted()]], ids=["plain", "in a list"])
def test_a_switch_of_many_keys_that_cannot_be_hashed_is_checked_in_linear_time(make_key):
    Counted.compared = 0
    assert warnings(switch_of([make_key() for _ in range(1000)])) == []
    assert Counted.compared <= 1000 * 100


def test_a_key_that_cannot_be_hashed_is_compared_with_the_first_hundred_of_them():
    keys = [Version(number) for number in range(101)]
    assert warnings(switch_of([*keys, Version(99)])) == [("DuplicateCase", "route")]
    assert warnings(switch_of([*keys, Version(100)])) == []


def test_lists_as_keys_are_not_compared_with_one_another():
    keys = [[n] for n in range(20_000)]
    assert warnings(switch_of([*keys, [0]])) == [("DuplicateCase", "route")]


def test_unreachable_nodes_are_a_warning():
    graph = whole()
    graph.nodes.append(JoinNode("alone", sources=["plan"]))
    assert warnings(graph) == [("Unreachable", "alone")]
    assert [problem.code for problem in load(graph).check()] == ["R115"]


def test_a_second_handler_is_a_warning():
    graph = Graph().add_system(plan)
    risky = graph.add_system_node(fail)
    graph.add_error_handler(risky, fix).add_error_handler(risky, tell)
    assert warnings(graph) == [("HandlerNeverTaken", "tell")]


def test_the_timeout_handler_of_a_system_without_a_timeout_is_a_warning():
    graph = Graph()
    graph.add_timeout_handler(graph.add_system_node(plan), note)
    (actual,) = graph.validate().warnings
    assert (actual.kind, actual.node, actual.do) == ("HandlerNeverTaken", "note", "graph.set_timeout('plan', seconds)")
    assert graph.set_timeout("plan", 5).validate().warnings == ()


def test_a_chain_that_returns_to_itself_is_a_warning():
    graph = Graph().add_system(plan).add_system(work)
    graph.edges.append(SequentialEdge("back", "work", "plan"))
    assert [kind for kind, _ in warnings(graph)] == ["Cycle"]


def test_inputs_that_no_earlier_node_produces_are_a_warning_for_systems_decisions_and_switches():
    graph = Graph().add_system(work).add_conditional_branch("ask", Result, bool, note)
    graph.add_switch("route", Result, str, {"a": note})
    assert warnings(graph) == [("OutputNotProduced", id) for id in ("work", "ask", "route")]


def test_findings_are_shown_as_rows():
    assert "MissingBranch" not in Graph().validate()._repr_html_()
    assert "R146" in Graph().validate()._repr_html_()


DETAILS = [
    # a fault -> where it is found, and the details of its finding
    (entry("gone"), "InvalidEntryPoint", "nodes['gone']", {}),
    (Graph(), "NoEntryPoint", "", {}),
    (with_edge("gone", "plan"), "InvalidEdgeSource", "nodes['gone']", {"edge": "odd"}),
    (with_edge("plan", "gone"), "InvalidEdgeTarget", "nodes['gone']", {"edge": "odd"}),
    (changed("ask", predicate=None), "MissingPredicate", "nodes['ask']", {"name": "ask"}),
    (changed("ask", true_branch=None), "MissingBranch", "nodes['ask']", {"name": "ask", "branch": "true"}),
    (changed("ask", false_branch=None), "MissingBranch", "nodes['ask']", {"name": "ask", "branch": "false"}),
    (changed("ask", true_branch="x"), "InvalidBranchTarget", "nodes['ask']", {"branch": "true", "target": "x"}),
    (changed("ask", false_branch="x"), "InvalidBranchTarget", "nodes['ask']", {"branch": "false", "target": "x"}),
    (changed("both", branches=["x"]), "InvalidBranchTarget", "nodes['both']", {"branch": "parallel", "target": "x"}),
    (changed("route", discriminator=None), "MissingDiscriminator", "nodes['route']", {"name": "route"}),
    (changed("route", cases=[], default=None), "EmptySwitch", "nodes['route']", {"name": "route"}),
    (changed("route", cases=[("a", "x")]), "InvalidCaseTarget", "nodes['route']", {"case": "a", "target": "x"}),
    (changed("route", default="x"), "InvalidDefaultTarget", "nodes['route']", {"target": "x"}),
    (changed("both", branches=[]), "EmptyParallel", "nodes['both']", {"name": "both"}),
    (changed("both", join=None), "MissingJoin", "nodes['both']", {"name": "both"}),
    (changed("both", join="x"), "InvalidJoinTarget", "nodes['both']", {"target": "x"}),
    (changed("both_join", sources=[]), "EmptyJoinSources", "nodes['both_join']", {}),
    (changed("both_join", sources=["x"]), "InvalidJoinSource", "nodes['both_join']", {"source": "x"}),
    (changed("loop", termination=None), "NoTerminationCondition", "nodes['loop']", {"name": "loop"}),
    (changed("loop", body_entry=None), "EmptyLoopBody", "nodes['loop']", {"name": "loop"}),
    (changed("loop", body_entry="x"), "InvalidLoopBody", "nodes['loop']", {"target": "x"}),
    (
        changed("loop", body_entry="note"),
        "LoopPredicateOutputNotProduced",
        "nodes['loop']",
        {"name": "loop", "expected_output": Plan},
    ),
]


@pytest.mark.parametrize(("graph", "kind", "path", "details"), DETAILS)
def test_a_finding_has_its_place_and_its_details(graph, kind, path, details):
    actual = next(finding for finding in graph.validate().errors if finding.kind == kind)
    assert actual.where == ", ".join(["<graph 'graph'>", *([path] if path else [])])
    assert dict(actual.details) == details
    assert actual.node == (path.split("'")[1] if path else None)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        # both conditions of a rule, apart from each other
        ({"id": "loop", "termination": None, "max_iterations": 3}, []),
        ({"id": "loop", "max_iterations": 3}, []),
        ({"id": "route", "cases": []}, []),
        ({"id": "route", "default": None}, []),
        ({"id": "ask", "false_branch": None, "left_out": frozenset({"false"})}, []),
        ({"id": "ask", "false_branch": None, "left_out": frozenset({"true"})}, ["MissingBranch"]),
        ({"id": "both", "join": "gone"}, ["InvalidJoinTarget"]),
    ],
)
def test_a_rule_with_several_conditions_holds_if_one_does(change, kinds):
    graph = changed(**change)
    assert [kind for kind, _ in errors(graph)] == kinds
    assert graph.validate().ok is (not kinds)


def test_nothing_is_unreachable_from_an_entry_that_does_not_exist():
    assert [kind for kind, _ in warnings(entry("gone"))] == []
