"""Compare the logs of this dialect with those of the real package: ids, types, payloads, actors, causes, times.

What cannot be equal is compared by its kind: tracebacks, measured seconds, the wording of messages and prompts. Hashes
of prompts are compared by which of them are equal. See `judge.recount` for `max_llm_calls`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.activegraph import programs, programs_of_edges, programs_of_models
from tests.dialects.activegraph.judge import log_of, same, theirs

TYPES = ("task", "claim")
SAID = ("go", "stop", "goal.created", "object.created", "relation.created", "patch.applied")
PATTERNS = (None, "(a:task)-[r:next]->(b)", "(a {n: 1})", "(a:claim)<-[:next]-(b:task) WHERE b.n >= 1 AND NOT a.n = 2",
            "(a:task) WHERE NOT EXISTS { (a)-[:next]->(b) }")  # fmt: skip

acts = st.one_of(
    st.tuples(st.just("object"), st.sampled_from(TYPES), st.integers(0, 2)),
    st.tuples(st.just("relation"), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("patch"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("propose"), st.integers(0, 3), st.sampled_from(("update", "replace"))),
    st.tuples(st.just("emit"), st.sampled_from(("go", "stop")), st.integers(0, 2)),
    st.tuples(st.just("raise"), st.just(""), st.just(0)),
)
behaviors = st.fixed_dictionaries(
    {
        "on": st.lists(st.sampled_from(SAID), min_size=1, max_size=2, unique=True),
        "n": st.sampled_from((None, {"n": {">": 0}}, {"object.data.n": 1}, {"n": {"in": [0, 2]}})),
        "pattern": st.sampled_from(PATTERNS),
        "after": st.sampled_from((None, None, 1, 2)),
        "relation": st.booleans(),
        "acts": st.lists(acts, max_size=3),
    }
)


def act(graph: Any, what: str, one: Any, other: Any, seen: Any) -> None:
    """Do one generated act; what it names may not be there."""
    match what:
        case "object":
            graph.add_object(one, {"n": other})
        case "relation":
            graph.add_relation(f"task#{one}", f"claim#{other}", "next")
        case "patch":
            graph.patch_object(f"task#{one}", {"n": other})
        case "propose":
            graph.propose_patch(f"claim#{one}", other, {"n": 2})
        case "emit":
            graph.emit(one, {"n": other, "of": f"task#{other}", "seen": seen})
        case "raise":
            raise ValueError("as it was generated")


def program(made: list[dict[str, Any]], events: list[tuple[str, int]], budget: int) -> Any:
    def run(p: Any) -> None:
        for number, each in enumerate(made):
            relation = each["relation"] and each["after"] is None  # there the package puts nothing off

            def does(*given: Any, each: Any = each) -> None:
                _, graph, ctx = given[-3:]
                seen = [len(ctx.view.objects()), [one.id for one in ctx.view.events()][-2:]]
                for kind, one, other in each["acts"]:
                    act(graph, kind, one, other, seen)

            on = ["begin"] if each["after"] else each["on"]
            words = {"name": f"b{number}", "on": on, "where": each["n"], "pattern": each["pattern"]}
            if relation:
                p.relation_behavior("next", **words)(lambda r, event, graph, ctx, does=does: does(event, graph, ctx))
            else:
                words["activate_after"] = each["after"]
                p.behavior(**words)(lambda event, graph, ctx, does=does: does(event, graph, ctx))
        runtime = p.Runtime(p.graph, budget={"max_behavior_calls": budget})
        p.graph.emit(p.Event(p.graph.ids.event(), "begin", {"n": 1}))
        for type_, n in events:
            p.graph.emit(p.Event(p.graph.ids.event(), type_, {"n": n, "of": f"claim#{n}"}))
        for _ in range(4):  # the timers of "begin" end; the package would wait for more events for ever
            p.graph.emit(p.Event(p.graph.ids.event(), "end", {}))
        runtime.run_goal("generated")

    return run


@pytest.mark.parametrize("ticking", [False, True], ids=["frozen", "ticking"])
@pytest.mark.parametrize(
    "program", [*programs.PROGRAMS, *programs_of_models.PROGRAMS], ids=lambda program: program.__name__
)
def test_both_write_the_same_log(program, ticking):
    assert same(program, ticking=ticking)


@pytest.mark.parametrize("ticking", [False, True], ids=["frozen", "ticking"])
@pytest.mark.parametrize("program", programs.WITHOUT_CAUSES, ids=lambda program: program.__name__)
def test_both_write_the_same_log_except_for_causes(program, ticking):
    assert same(program, ticking=ticking, besides=("caused_by", "caused_by_event"))


@pytest.mark.parametrize("program", programs_of_edges.PROGRAMS, ids=lambda program: program.__name__)
def test_both_write_the_same_log_in_edge_cases(program):
    """Under a frozen clock: the package asks a clock once more for what it then refuses."""
    assert same(program, ticking=False)


# Every type of event that the graph, the runtime, models, tools, approvals and packs of this dialect tell of. Not of
# this dialect are vectors, promotion, retention, authority, sandboxes and receipts of reads and overrides.
IN_SCOPE = {
    *("goal.created", "object.created", "object.removed", "relation.created", "relation.removed"),
    *("patch.proposed", "patch.applied", "patch.rejected"),
    *("behavior.started", "relation_behavior.started", "behavior.completed", "behavior.failed", "behavior.scheduled"),
    *("pattern.matched", "runtime.idle", "runtime.budget_exhausted"),
    *("llm.requested", "llm.responded", "tool.requested", "tool.responded"),
    *("approval.proposed", "approval.granted", "pack.loaded"),
}
OWN = {"task.completed", "hop", "asked"}  # custom types: whatever a behavior or a person says


def test_the_programs_emit_every_type_of_event():
    every = [*programs.PROGRAMS, *programs.WITHOUT_CAUSES, *programs_of_models.PROGRAMS]
    types_seen = {event["type"] for program in every for event in log_of(theirs(), program)}
    assert len(every) >= 12
    assert (IN_SCOPE | OWN) - types_seen == set()


@settings(max_examples=settings.default.max_examples * 4)
@given(
    made=st.lists(behaviors, min_size=1, max_size=4),
    events=st.lists(st.tuples(st.sampled_from(("go", "stop")), st.integers(0, 2)), max_size=4),
)
def test_both_write_the_same_log_for_generated_programs(made, events):
    for each in made:  # what sets itself off ends at the budget, and a timer that never fires would spin
        each["after"] = None if each["pattern"] else each["after"]
    same(program(made, events, 12))
