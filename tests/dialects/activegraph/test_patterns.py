"""What patterns can say, and what they cannot."""

from __future__ import annotations

import importlib
from itertools import product

import pytest

from agentnb.dialects.activegraph import Behavior, Graph, Runtime
from agentnb.dialects.activegraph.errors import InvalidActivateAfter, UnsupportedPatternError
from agentnb.dialects.activegraph.parts.behaviors import parse_delay
from agentnb.dialects.activegraph.parts.patterns import parse_pattern
from tests.dialects.activegraph.judge import ours, theirs
from tests.dialects.activegraph.runtimes import runtime, tell


@pytest.fixture
def graph():
    built_graph = Graph()
    for number in range(3):
        built_graph.add_object("task", {"n": number, "who": {"name": f"p{number}"}})
    built_graph.add_object("order", {"set": True, "size": 2})
    built_graph.add_relation("task#1", "task#2", "next")
    built_graph.add_relation("task#2", "task#3", "next")
    built_graph.add_relation("order#4", "task#1", "of")
    return built_graph


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(a:task {n: 1})", [{"a": "task#2"}]),
        ("(a:task)-[r:next]->(b {n: 2})", [{"a": "task#2", "r": "rel_002", "b": "task#3"}]),
        ("(a)<-[:next]-(b)<-[:of]-(c:order {set: true})", [{"a": "task#2", "b": "task#1", "c": "order#4"}]),
        ("(a:task)-[:next]->(b)-[:next]->(c)", [{"a": "task#1", "b": "task#2", "c": "task#3"}]),
        ("(a:order {set: true, size: 2})", [{"a": "order#4"}]),
        ("(a:order {set: true, size: 3})", []),
        ("(a:task) WHERE a.n >= 1 AND NOT a.n = 2", [{"a": "task#2"}]),
        ("(a:task) WHERE a.who.name = 'p2'", [{"a": "task#3"}]),
        ("(a:task) WHERE NOT EXISTS { (a)-[:next]->(b) }", [{"a": "task#3"}]),
        ("(a:task)-[r:next]->(b) WHERE r.w = 1", []),
        ("(a)-[r:next]->(b) WHERE r.source = 'task#2'", [{"a": "task#2", "r": "rel_002", "b": "task#3"}]),
        ("(a)-[r:next]->(b) WHERE r.target = 'task#2'", [{"a": "task#1", "r": "rel_001", "b": "task#2"}]),
        ("(a)-[r:next]->(b) WHERE r.source.w = 'task#2'", []),
        ("(:order)", [{}]),
        (
            "(a:task)-[:next]->(b)-[:next]->(c) WHERE a.n < c.n AND c.data.n > a.n",
            [{"a": "task#1", "b": "task#2", "c": "task#3"}],
        ),
        ("(a)-[:next]->(b) WHERE b.n = a.n", []),
        ("(a)-[:next]->(b) WHERE NOT (a.n = 0 AND b.type = 'task') AND a <> b", [{"a": "task#2", "b": "task#3"}]),
        ("(a:task) WHERE NOT NOT a.id = 'task#2' AND a.version = 1", [{"a": "task#2"}]),
        ("(a) WHERE a.type = 'order' AND a.n = null", [{"a": "order#4"}]),
        ("(a:task)-[r:next]->(b)-[r:next]->(c)", []),
    ],
)
def test_a_pattern_finds_its_matches_in_the_order_of_creation(graph, text, found):
    assert [match.bindings for match in parse_pattern(text).matches(graph.ledger)] == found


@pytest.mark.parametrize(
    "text",
    ["", "a b", "(a:task) RETURN a", "(a)-->(b)", "(a)-[r]->(b)", "(a)-[:next*1..2]->(b)", "OPTIONAL (a)", "(a), (b)",
     "(a) WHERE a.n > 0 OR a.n = 1", "(a) WHERE a.n IN [1]", "(a) WHERE a.n =", "(a:task {n: zip})", "(a) ~ (b)",
     "(a) WHERE (a.n = 1", "(a) WHERE a.n = b."],
)  # fmt: skip
def test_an_invalid_pattern_is_rejected(text):
    with pytest.raises(UnsupportedPatternError, match="R320"):
        parse_pattern(text)


def test_a_behavior_can_be_deferred_by_events():
    assert [parse_delay(delay) for delay in (1, "3", "2 events", "1 event")] == [1, 3, 2, 1]
    for value in (0, -1, 2.5, "5 minutes", None, True):
        with pytest.raises(InvalidActivateAfter, match="R321"):
            parse_delay(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(a:c) WHERE a.x > 0 OR a.x < 1", "OR is not supported"),
        ("MATCH (a:c)", "MATCH is not supported"),
        ("(a:c) RETURN a", "RETURN is not supported"),
        ("(a:c)-[*]->(b)", "variable-length"),
        ("(a:c)-[:r*]->(b)", "variable-length"),
        ("(a:c)-[:r]-(b)", "undirected"),
        ("(a)-[]->(b)", "type required"),
        ("(a:c) junk", "trailing 'junk'"),
        ("(a:c", "expected '\\)', not the end"),
        ("(a:c) WHERE a.x ?? 1", "unexpected character"),
    ],
)
def test_an_error_names_what_is_not_supported(text, why):
    with pytest.raises(UnsupportedPatternError, match=why) as raised:
        parse_pattern(text)
    assert isinstance(raised.value, SyntaxError)
    assert str(raised.value).startswith("R320: ")


@pytest.mark.parametrize("reopened", [False, True])
def test_every_delivery_of_an_event_matches_the_graph_as_it_was_when_the_event_was_processed(reopened, tmp_path):
    def adds(event, graph, ctx):
        graph.add_object("note", {"n": 2})

    def counts(event, graph, ctx):
        graph.emit("found", {"n": sorted(graph.get_object(match.bindings["a"]).data["n"] for match in ctx.matches)})

    before, after = (Behavior(name, counts, on=["look"], pattern="(a:note)") for name in ("before", "after"))
    behaviors = [before, Behavior("adds", adds, on=["look"]), after]
    team = runtime(*behaviors, persist_to=str(tmp_path / "run.db"))
    team.graph.add_object("note", {"n": 1})
    team.session.run()
    tell(team, "look")
    team.session.step(2)
    if reopened:
        team.session.close()
        team = Runtime.load(tmp_path / "run.db", behaviors=behaviors)
    team.run_until_idle()
    assert [event.payload["n"] for event in team.graph.events if event.type == "found"] == [[1], [1]]


def match_all(package, find):
    """Return the matches of many patterns in one graph; `find` returns those of a pattern."""
    built_graph = package.Graph()
    objects = [built_graph.add_object("book" if n % 2 else "desk", {"n": n, "m": n % 2}).id for n in range(5)]
    pairs = [(0, 1), (1, 2), (2, 0), (1, 1), (3, 1), (2, 1), (4, 1), (1, 4), (0, 3)]
    for number, (source, target) in enumerate(pairs):
        built_graph.add_relation(objects[source], objects[target], "on" if number % 2 else "by")
    built_graph.remove_object(objects[4])
    chains = product(
        ["(a)", "(a:book)", "(a:desk {n: 2})"],
        ["-[r:on]->", "<-[r:by]-"],
        ["(b)", "(b:book)", "(b:book {n: 1})", "(b {m: 1})", "(a)", "(:desk)"],
        ["", "-[:by]->(c:desk)", "<-[s:on]-(a)", "<-[r:by]-(c)", " WHERE a.n < b.n AND NOT b.m = 0",
         " WHERE NOT EXISTS { (b)-[:on]->(c:desk) }", " WHERE NOT EXISTS { (b)<-[:by]-(c:book {n: 1}) }"],
    )  # fmt: skip
    texts = ["(a)", "(a:book)", "(a:desk {n: 2})", "(a:other)", *map("".join, chains)]
    return {text: [match.bindings for match in find(text, built_graph)] for text in texts}


def test_each_pattern_finds_what_the_package_finds():
    parse = importlib.import_module("activegraph.runtime.patterns").parse
    actual = match_all(ours(), lambda text, graph: parse_pattern(text).matches(graph.ledger))
    assert actual == match_all(theirs(), lambda text, graph: parse(text).compile().matches(None, graph))
    assert len({*map(str, actual.values())}) > 20  # they are told apart


CLAUSES = [
    *("a.n = 1", "NOT a.n = 1", "NOT NOT a.n = 1", "(a.n = 1)", "a = b", "a.n.k = b.n", "a.n = count", "xor.n = 1"),
    *("NOT EXISTS { (a)-[:on]->(b) }", "not exists{(a)}", "NOT NOT EXISTS { (a) }", "NOT (NOT EXISTS { (a) })"),
    *("EXISTS { (a)-[:on]->(b) }", "(EXISTS { (a) })", "NOT (EXISTS { (a) })", "NOT EXISTS { }", "NOT EXISTS (a)"),
    *("NOT EXISTS { (a) WHERE a.n = 1 }", "NOT EXISTS { (a) WHERE NOT EXISTS { (b) } }", "exists(a.n)", "a", "()", ""),
    *("true = 1", "null = null", "not.n = 1", "a.n = exists", "a.n = where.n", "a.and = 1", "a.n = True", "1 = a.n"),
    *("a.n IS NULL", "a.n = 1 = 2", "a.n == 1", "a.n = 1 AND", "a.n = -b.n", "a.n = .5", "a.n = 'it\\'s'"),
]
CHAINS = [
    *("(a {n: 1})", "(a {n: 1,})", "(a {,})", "(a {n: 1 m: 2})", "(a {n: 1, m: null})", "(a {})", "(a {n: b})"),
    *("(where:book)", "(a:not)", "(a {exists: 1})", "(a)-[:and]->(b)", "(a)-[true:on]->(b)", "(count:xor {count: 1})"),
    *(
        "(a)-[r:on {n: 1}]->(b)",
        "(a)<-[:on]->(b)",
        "(a)-[:on|by]->(b)",
        "(a:book:desk)",
        "( a : book )",
        "(`a`)",
        "(a);",
    ),
]


def test_the_same_texts_are_patterns_as_in_the_package():
    parse = importlib.import_module("activegraph.runtime.patterns").parse
    texts = [*(f"(a) WHERE {clause}" for clause in CLAUSES), *CHAINS,
             *(f"(a) WHERE {first} AND {second}" for first in CLAUSES[::3] for second in CLAUSES[::4])]  # fmt: skip
    accepted = {text for text in texts if can_parse(parse_pattern, text)}
    assert accepted == {text for text in texts if can_parse(parse, text)}
    assert 20 < len(accepted) < len(texts) - 40


def can_parse(parse, text):
    try:
        parse(text)
    except SyntaxError:
        return False
    return True


def test_a_word_of_cypher_that_is_not_supported_may_be_a_name(graph):
    matches = parse_pattern("(order:order {set: true})-[:of]->(b) WHERE order.size > 1").matches(graph.ledger)
    assert [match.bindings for match in matches] == [{"order": "order#4", "b": "task#1"}]
