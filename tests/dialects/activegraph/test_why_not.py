"""why_not against a naive model: a behavior was not run on an event exactly for the clauses that it does not meet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentnb.dialects.activegraph import Behavior, RelationBehavior
from tests.dialects.activegraph.runtimes import runtime

TYPES = ["a", "b"]
clauses = st.tuples(
    st.sampled_from([[], ["a"], ["b"], ["a", "b"]]),  # on
    st.sampled_from([None, {"n": 1}, {"n": {">": 1}}]),  # where
    st.sampled_from([None, "(x:box)", "(x:box)-[:holds]->(y:ball)", "(x:ball)-[:holds]->(y:box)"]),  # pattern
    st.sampled_from([None, "holds", "sees"]),  # relation
)
payloads = st.fixed_dictionaries({"n": st.integers(0, 2), "id": st.sampled_from(["box", "ball", "nobody"])})
FITS = {None: True, "(x:box)": True, "(x:box)-[:holds]->(y:ball)": True, "(x:ball)-[:holds]->(y:box)": False}


def naive(clause, type_, payload):
    """Return the clauses that an event does not meet, each by its first word."""
    on, filters, pattern, relation = clause
    if on and type_ not in on:
        return ["on"]
    meets = filters is None or (payload["n"] == 1 if filters == {"n": 1} else payload["n"] > 1)
    related = relation is None or (relation == "holds" and payload["id"] != "nobody")
    checks = (("where", meets), ("pattern", FITS[pattern]), ("relation", related))
    return [word for word, holds in checks if not holds]


def behavior(number, clause):
    on, filters, pattern, relation = clause
    words = {"on": on, "where": filters, "pattern": pattern}
    if relation is None:
        return Behavior(f"b{number}", lambda event, graph, ctx: None, **words)
    return RelationBehavior(f"b{number}", lambda found, event, graph, ctx: None, relation, **words)


@given(st.lists(clauses, min_size=1, max_size=4), st.lists(st.tuples(st.sampled_from(TYPES), payloads), max_size=4))
def test_why_not_names_the_clauses_that_an_event_does_not_meet(behaviors, events):
    team = runtime(*(behavior(number, clause) for number, clause in enumerate(behaviors)))
    box, ball = team.graph.add_object("box", {}), team.graph.add_object("ball", {})
    ids = {"box": box.id, "ball": ball.id}
    team.graph.add_relation(box.id, ball.id, "holds")
    team.run_until_idle()
    for type_, payload in events:
        team.session.emit(type_, {**payload, "id": ids.get(payload["id"], "nobody")})
    team.run_until_idle()
    emitted = [event for event in team.graph.events if event.type in TYPES]
    assert len(emitted) == len(events)
    for event, (type_, payload) in zip(emitted, events, strict=True):
        for number, clause in enumerate(behaviors):
            explanation = team.session.why_not(f"b{number}", at=event.id)
            unmet = naive(clause, type_, payload)
            assert (explanation.fired is None) == bool(unmet), explanation
            assert [edge.result.partition(":")[0] for edge in explanation.incoming_edges] == unmet
