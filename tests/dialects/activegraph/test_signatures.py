"""What the package names is there, and is called as it is called there."""

from __future__ import annotations

import inspect

import pytest

from agentnb.dialects import activegraph
from tests.dialects.activegraph.judge import theirs

# What this dialect leaves out: sinks, embeddings, traced reads, native structured output, other callers of tools.
LEFT_OUT = {"sinks", "native_structured_output", "embedding_provider", "replay_embedding_cache", "embedding_cache",
            "trace_context_reads", "tool_invoker", "check_wall_clock"}  # fmt: skip
CALLED = (
    *("behavior", "relation_behavior", "llm_behavior", "tool", "register", "get_registry", "clear_registry"),
    *("configure_logging", "Graph", "Runtime", "Event", "Object", "Relation", "Patch", "Budget", "Pack", "Frame"),
    *("Policy", "IDGen", "Clock", "FrozenClock", "TickingClock", "Behavior", "RelationBehavior", "BehaviorFailure"),
    *("RunQuantumResult", "RuntimeStatus", "Diff", "LLMBehavior", "ObjectType", "RelationType", "PackPolicy"),
)
MEMBERS = {
    "Runtime": "errors status load_pack loaded_packs get_behavior get_tool pending_approvals approve save_state load "
    "fork run_goal run_until_idle run_until run_quantum",
    "Graph": "add_object add_relation remove_object remove_relation patch_object propose_patch apply_patch "
    "reject_patch emit events get_object get_relation get_patch all_objects all_relations objects query "
    "relations get_relations neighborhood match_chain objects_in_types has_object_of_type add_listener",
    "Budget": "cost_remaining cost_remaining_amount has_cost_limit exhausted_by snapshot",
    "IDGen": "event object relation patch frame run reseed_from_events",
    "Event": "to_dict",
}
NAMED = [(name, "") for name in CALLED] + [(name, each) for name, words in MEMBERS.items() for each in words.split()]


@pytest.mark.parametrize(("name", "member"), NAMED)
def test_signatures_are_those_of_the_package(name, member):
    expected, got = (getattr(package, name) for package in (theirs(), activegraph))
    if member:
        expected, got = getattr(expected, member), getattr(got, member)
    if not callable(expected):
        assert type(expected) is type(got) is property
        return
    known = inspect.signature(got).parameters
    for each in inspect.signature(expected).parameters.values():
        if each.name in LEFT_OUT:
            continue
        assert each.name in known, f"{name}.{member} knows no {each.name}"
        ours = known[each.name]
        same = getattr(each.default, "__name__", each.default) == getattr(ours.default, "__name__", ours.default)
        assert ours.kind is each.kind, f"{name}.{member}, {each.name}: {ours.kind} is not {each.kind}"
        assert same or repr(ours.default) == repr(each.default), f"{name}.{member}, {each.name}: {ours.default!r}"


def test_errors_are_caught_by_the_names_of_the_package():
    wrong = [name for name in activegraph.__all__ if name.endswith("Error") or "Conflict" in name]
    for name in wrong:
        their_error = getattr(theirs(), name, None) or getattr(__import__("activegraph.llm").llm, name)
        assert issubclass(getattr(activegraph, name), Exception)
        for usual in (KeyError, LookupError):
            assert issubclass(getattr(activegraph, name), usual) or not issubclass(their_error, usual), name
    assert {"PackConflictError", "PackVersionConflictError", "ReplayDivergenceError", "ReservedFieldError"} <= set(
        wrong
    )
