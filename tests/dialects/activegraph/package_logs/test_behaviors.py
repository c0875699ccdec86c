"""The recipe that a log tells of."""

from __future__ import annotations

import agentnb as nb
from agentnb.dialects.activegraph.parts.package_logs.behaviors import assign_names
from agentnb.dialects.activegraph.parts.package_logs.deliveries import Delivery
from agentnb.dialects.activegraph.parts.package_logs.reading import read_log


def test_nodes_are_the_behaviors_that_ran_and_edges_lead_to_those_that_they_triggered(team_path):
    recipe = nb.open_activegraph(team_path, "run-team").recipe
    assert {name: (node.kind, node.on) for name, node in recipe.nodes.items()} == {
        "planner": ("behavior", ("goal.created",)),
        "worker": ("behavior", ("object.created",)),
        "unblock": ("relation_behavior", ("task.completed",)),
        "breaks": ("behavior", ("task.completed",)),
        "asks": ("behavior", ("task.completed",)),
    }
    assert [(edge.source, edge.target, edge.kind, edge.condition) for edge in recipe.edges] == [
        ("planner", "worker", "event", "object.created"),
        ("worker", "unblock", "event", "task.completed"),
        ("worker", "breaks", "event", "task.completed"),
        ("worker", "asks", "event", "task.completed"),
    ]
    assert recipe.entry == ("planner", "worker")
    assert (recipe.name, recipe.dialect) == ("Evaluate", "activegraph")


def test_a_behavior_that_called_a_model_is_a_model_behavior(model_path):
    recipe = nb.open_activegraph(model_path).recipe
    assert [(name, node.kind) for name, node in recipe.nodes.items()] == [("think", "llm_behavior")]


def test_a_deferred_behavior_that_never_ran_is_a_node(tmp_path):
    from tests.dialects.activegraph.package_logs import programs

    path = tmp_path / "stopped.db"
    programs.close(programs.run_late(path, budget={"max_events": 3}))
    assert list(nb.open_activegraph(path).recipe.nodes) == ["start", "hop", "late"]


def test_two_behaviors_with_one_name_are_distinguished(late_path):
    both = [Delivery("a", "behavior", "e1"), Delivery("a", "relation_behavior", "e1")]
    assert set(assign_names(both, read_log(late_path)).values()) == {"a", "a (relation_behavior)", "late"}
