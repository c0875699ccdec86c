"""The engine of rules for WebAssembly gives what datalogic-py gives: values, errors and the places of errors."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from datalogic_py import EvaluateError
from hypothesis import assume, given
from hypothesis import strategies as st

from agentnb.errors import ExecutionError
from agentnb.expressions import conditions
from agentnb.expressions.conditions import to_condition
from agentnb.expressions.plain_rules import Engine, RuleError

LIBRARY, PLAIN = conditions._get_engine(1_000_000), Engine(1_000_000)
RULES = [json.loads(line) for line in (Path(__file__).parent / "rules.jsonl").read_text(encoding="utf-8").splitlines()]
CONTEXT = {
    "a": {"b": 1}, "xs": [3, 1, 2], "s": "héllo", "o": {"y": 2, "z": 1}, "rows": [{"k": 2}, {"k": 1}], "n": None,
    "w": "a.b", "ns": ["10", "9"], "f": 1.0, "ys": [[1, 2], [3]], "i": 2.5, "e": [], "big": 1e308, "x1": ["a", ["b"]],
    "u": {"z": 1e-5, "a": [-1e22, 2**64, {"y": 2**53 + 1, "b": 1e17}]},
}  # fmt: skip


def outcome(engine, rule, context=CONTEXT):
    """Return a rule's value with its type, or the sort and the place of its error."""
    try:
        value = engine.compile(rule).evaluate(json.dumps(context))
    except (EvaluateError, RuleError) as error:
        return error.error_type, (error.path or [{}])[-1].get("json_pointer")
    return json.dumps(value, sort_keys=True)


def test_every_rule_of_a_list_has_the_same_outcome():
    differ = [rule for rule in RULES if outcome(LIBRARY, rule) != outcome(PLAIN, rule)]
    assert differ == []


WIDE = 2**63
NUMBERS = [
    0,
    -0.0,
    2,
    -8,
    2.5,
    WIDE // 2,
    2**53 + 1,
    1e15,
    1e16,
    1e30,
    *(sign * WIDE + offset for sign in (1, -1) for offset in (-1, 0, 1)),
]
ALMOST = [*map(str, NUMBERS), "+5", "1e3", "0x10", " 7 ", "", None, True, False]


@pytest.mark.parametrize(
    "name", ["+", "-", "*", "/", "%", "===", "==", "<", "min", "max", "abs", "cat", "substr", "slice"]
)
def test_numbers_at_the_limits_and_near_numbers_give_the_same_results(name):
    for value in (*NUMBERS, *ALMOST):
        for arguments in (["v"], ["v", 1], [1, "v"], ["v", "v"], [8, 2, "v"], [8, "v", 2], ["v", "2"], ["héllo", "v"]):
            rule = {name: [{"var": "v"} if one == "v" else one for one in arguments]}
            assert outcome(PLAIN, rule, {"v": value}) == outcome(LIBRARY, rule, {"v": value}), (rule, value)


@pytest.mark.parametrize("name", ["<", "<=", ">", ">=", "==", "!=", "===", "!=="])
def test_values_of_any_two_types_compare_in_the_same_way(name):
    for left, right in product([*CONTEXT, "none"], repeat=2):
        rule = {name: [{"var": left}, {"var": right}]}
        assert outcome(PLAIN, rule) == outcome(LIBRARY, rule), rule


# With these the library may be done, or refuse an argument, before it evaluates a later one that fails.
EARLY = {"throw", "exists", "abs", "ceil", "floor", "slice", "sort", "/", "%"}
ARITIES = {row["name"]: (row["min_args"], row["max_args"]) for row in PLAIN.operators() if row["name"] not in EARLY}


@pytest.mark.parametrize("name", ARITIES)
def test_failures_of_arguments_have_the_same_order(name):
    least, maximum = ARITIES[name]
    for count in range(max(least or 0, 2 if name == "if" else 1), min(maximum or 4, 5) + 1):
        for at in range(count):
            for other in ("n", "f", "xs", "s", "rows", "o", "i"):
                arguments = [{"var": other}] * count
                arguments[at] = {"throw": {"var": "w"}}
                assert outcome(PLAIN, {name: arguments}) == outcome(LIBRARY, {name: arguments}), arguments


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%", "max", "min", "abs", "ceil", "floor"])
def test_a_single_argument_of_any_type_gives_the_same_result(name):
    for operand in CONTEXT:
        rule = {name: [{"var": operand}]}
        assert outcome(PLAIN, rule) == outcome(LIBRARY, rule), rule
        assert outcome(PLAIN, {name: rule[name][0]}) == outcome(LIBRARY, {name: rule[name][0]}), rule


def test_operators_and_their_arities_are_the_same_except_for_dates():
    known = {row["name"]: (row["min_args"], row["max_args"], list(row["aliases"])) for row in LIBRARY.operators()}
    plain = {row["name"]: (row["min_args"], row["max_args"], list(row["aliases"])) for row in PLAIN.operators()}
    assert plain.items() <= known.items()
    assert known.keys() - plain.keys() == {
        "datetime", "timestamp", "parse_date", "format_date", "date_diff", "now", "distinct",
    }  # fmt: skip


atoms = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "1", "x", "2.5"]) | st.floats(-2, 2)
leaves = atoms | st.sampled_from([{"var": path} for path in ("n", "f", "xs", "xs.1", "o.y", "s", "gone", "w", "u", "")])


def operations(inner):
    pair, some = st.tuples(inner, inner).map(list), st.lists(inner, min_size=1, max_size=3)
    # Not division: of null by null the library makes 0, of 0 by 0 an error, as this engine does of both.
    names = ["==", "!=", "===", "<", ">=", "in", "and", "or", "+", "-", "*", "cat", "merge", "??"]
    return (
        st.builds(lambda name, args: {name: args}, st.sampled_from(names), pair)
        | st.builds(lambda name, args: {name: args}, st.sampled_from(["if", "try", "and", "cat", "+", "max"]), some)
        | st.builds(lambda name, arg: {name: [arg]}, st.sampled_from(["!", "!!", "type", "length", "upper"]), inner)
        | st.builds(
            lambda name, body: {name: [{"var": "xs"}, body]},
            st.sampled_from(["map", "filter", "all", "some", "none"]), inner,
        )
        | st.builds(lambda body: {"reduce": [{"var": "ys"}, body, 0]}, inner)
    )  # fmt: skip


@given(operations(st.recursive(leaves, operations, max_leaves=10)))
def test_any_rule_has_the_same_outcome(rule):
    # Of a failure only its sort: the library leaves out constant parts, and then names places of the shorter rule.
    plain, library = outcome(PLAIN, rule), outcome(LIBRARY, rule)
    if isinstance(plain, tuple) and isinstance(library, tuple):
        plain, library = plain[0], library[0]
    assert plain == library


numbers = st.integers(-(2**66), 2**66) | st.floats(-1e300, 1e300) | st.floats(-1, 1)


@given(numbers, st.sampled_from([
    {"cat": {"var": "v"}}, {"cat": {"var": "o"}}, {"map": [{"var": "o"}, {"var": ""}]}, {"entries": {"var": "o"}},
    {"group_by": [{"var": "o.a"}, {"var": "k"}]}, {"var": "o"}, {"throw": {"var": "o"}},
    *({name: [{"var": "v"}, 7]} for name in ("+", "-", "*", "/", "%", "max", "<", "==", "===")),
    *({name: [{"var": "v"}]} for name in ("-", "floor", "ceil", "abs", "type")),
]))  # fmt: skip
def test_numbers_are_written_and_computed_in_the_same_way(number, rule):
    # Of two shortest texts of a number, which have the same distance to it, the two may choose differently.
    assume(float(number).is_integer() or not 2**49 <= abs(number) < 2**53)
    context = {"v": number, "o": {"z": number, "a": [number, {"k": number, "b": [number]}]}}
    assert outcome(PLAIN, rule, context) == outcome(LIBRARY, rule, context)


@given(operations(st.recursive(leaves, operations, max_leaves=10)))
def test_the_reads_of_a_rule_are_known_or_marked_as_incomplete(rule):
    library, plain = LIBRARY.compile(rule).facts(), PLAIN.compile(rule).facts()
    missed = [path for path in library["reads"] if path not in plain["reads"]]
    assert not missed or not plain["reads_complete"]


def mapped(*path):
    """Return a rule that reads a path from within the items of a list."""
    return {"map": [{"var": "xs"}, {"val": [*path]}]}


LEVELS = [[[level], *keys] for level in (-3, -1, 0, 1, 2, 3, 4, 5) for keys in (["index"], ["key"], ["a"], ["a", "b"])]


@pytest.mark.parametrize("rule", [
    *({name: path} for name in ("var", "val", "exists") for path in ("a", ["a"], ["a", "b"], ["a.b"])),
    *({name: path} for name in ("var", "val") for path in ([], None, [None])),
    {"var": 1}, {"val": ["xs", 1]}, {"val": ["a", 2.5]}, {"val": [-1]},
    *({"missing": paths} for paths in ("a.b", ["a.b", "n"], [["a", "b.c"], "s"], [{"var": "a"}])),
    *({"missing_some": [1, paths]} for paths in ("a", ["a.b", "s"], {"var": "a"})),
    {"var": ["a.b", "n"]}, {"var": ["", 1]}, {"var": {"var": "a"}}, {"+": [{"var": "a.b"}, {"val": ["f"]}]},
    {"map": [{"var": "xs"}, {"val": ["a", "b"]}]},
    *({name: [{"var": "rows"}, {"var": "k"}, *([0] if name == "reduce" else [])]}
      for name in ("map", "filter", "reduce", "all", "some", "none", "group_by")),
    *({"sort": [{"var": "rows"}, order, {"var": "k"}]} for order in ({"var": "n"}, None, True, False, 0, 1, "desc")),
    *({"reduce": [{"var": "rows"}, {name: path}, 0]} for name in ("val", "exists", "missing")
      for path in ("k", "current", "accumulator", ["current", "k"], ["k", "current"], "gone")),
    {"try": [{"val": "a"}, {"val": "type"}]}, {"try": [{"val": "a"}, {"val": [[1], "n"]}]}, {"try": [{"val": "a"}]},
    *({"val": path} for path in LEVELS), *({"map": [{"val": "xs"}, {"val": path}]} for path in LEVELS),
    *({"map": [{"var": "xs"}, {"filter": [{"val": [[2], "ys"]}, {"val": path}]}]} for path in LEVELS),
])  # fmt: skip
def test_a_rule_reads_the_same_values_as_the_library(rule):
    def facts(engine):
        facts = engine.compile(rule).facts()
        return sorted(facts["reads"]), facts["reads_complete"]

    assert facts(PLAIN) == facts(LIBRARY)
    context = {**CONTEXT, "index": 5, "key": "k"}
    assert outcome(PLAIN, rule, context) == outcome(LIBRARY, rule, context)


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%", "max", "min", "cat"])
@pytest.mark.parametrize("more", [[], [1]])
def test_the_first_of_two_failures_is_the_same(name, more):
    for fault in ({"length": [0.8]}, {"throw": "q"}, {"/": [1, 0]}):
        for other in ("x", 0, [1], {"var": "w"}):
            for arguments in ([1, other, fault, *more], [other, fault, *more], [fault, other, *more]):
                rule = {name: arguments}
                assert outcome(PLAIN, rule)[0] == outcome(LIBRARY, rule)[0], rule


VALUES = [
    *(None, True, False, 0, 3, -2, 2.5, 1e300, "", "0", "12", "héllo", "l", [], [3, 1, 2], ["héllo", ""], [{"k": 2}]),
    *({}, {"y": 2, "a": {"b": 1}}),
]
OPERATORS = {
    name: (row["min_args"] or 0, 99 if row["max_args"] is None else row["max_args"])
    for row in PLAIN.operators() for name in (row["name"], *row["aliases"])
}  # fmt: skip


def compare(rule, contexts):
    """Check that both engines give the same for a rule on each context."""
    outcomes = []
    for engine in (PLAIN, LIBRARY):
        compiled, results = engine.compile(rule), []
        for context in contexts:
            try:
                results.append(repr(compiled.evaluate(json.dumps(context))))
            except (EvaluateError, RuleError) as error:
                results.append((error.error_type, (error.path or [{}])[-1].get("json_pointer")))
        outcomes.append(results)
    for context, plain, library in zip(contexts, *outcomes, strict=True):
        assert plain == library, (rule, context)


@pytest.mark.parametrize("name", OPERATORS)
def test_values_of_all_types_give_the_same_with_each_operator(name):
    least, most = OPERATORS[name]
    for count in range(least, min(most, 2) + 1):
        contexts = [dict(zip("ab", values, strict=False)) for values in product(VALUES, repeat=count)]
        compare({name: [{"var": key} for key in "ab"[:count]]}, contexts)
    if most > 2:
        chosen = [None, True, 3, 0.5, "12", [3, 1, 2], {"y": 2}] if name not in ("/", "%") else [True, 3, 0.5, "12"]
        contexts = [dict(zip("abc", values, strict=True)) for values in product(chosen, repeat=3)]
        compare({name: [{"var": key} for key in "abc"]}, contexts)


@pytest.mark.parametrize("name", ["/", "%"])
def test_a_division_of_several_by_zero_gives_the_same(name):
    numbers = [None, True, 3, 2.5, "3", 0, 0.0]
    for zero in (None, 0, "0", False, 0.0, ""):
        contexts = [
            {"a": first, "b": second} for first, second in product(numbers, ["w", [1], {}, 2, "2", None, 0, 0.5])
        ]
        compare({name: [{"var": "a"}, zero, {"var": "b"}]}, contexts)
        compare({name: [{"var": "a"}, {"var": "b"}, zero]}, contexts)
        compare({name: [{"var": "a"}, zero]}, contexts)
        compare({name: [{"var": "b"}, 0.5, zero]}, contexts)


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%", "max", "min"])
def test_arithmetic_with_a_computed_list_gives_the_same(name):
    items = [None, True, 0, 2, 2.5, "3", "x", []]
    lists = [[*items_] for count in (0, 1, 2) for items_ in product(items, repeat=count)]
    lists += [[2, 0, "x"], ["2", 0, "x"], [2, None, 3], ["3", 2, 0], [3, 2, 0], [1, 2, 3, 4]]
    compare({name: {"var": "a"}}, [{"a": value} for value in lists])
    compare({name: [{"var": "a"}]}, [{"a": value} for value in lists])


@pytest.mark.parametrize("least", [0.5, 1.0, 1.5, 2.5, "2", True, None, 3, -1, 1e300, "x", [1]])
def test_so_many_of_some_keys_are_missing(least):
    contexts = [{"least": least, "a": 1, "b": 2}, {"least": least, "a": None}, {"least": least}]
    for names in (["a", "b"], ["a"], ["g", "h"], ["a", "g"], ["a", "g", "h"], []):
        compare({"missing_some": [{"var": "least"}, names]}, contexts)


@pytest.mark.parametrize("name", ["map", "filter", "all", "some", "none", "group_by"])
@pytest.mark.parametrize("body", [{"var": ""}, {"val": [[0], "index"]}, {"val": [[1], "key"]}, {"var": "k"}, 1, None])
def test_operators_of_items_give_the_same_for_values_of_all_types(name, body):
    lists = [[value] for value in VALUES] + [VALUES, {"x": 1, "y": {}}, {"k": {"k": 0}}, {"a": None}]
    compare({name: [{"var": "a"}, body]}, [{"a": value} for value in [*VALUES, *lists]])


@pytest.mark.parametrize("body", [{"var": "current"}, {"+": [{"var": "current"}, {"var": "accumulator"}]}, {"var": ""}])
@pytest.mark.parametrize("start", [[], [0], [{"var": "start"}]])
def test_reducing_values_of_all_types_gives_the_same(body, start):
    contexts = [{"a": value, "start": 5} for value in [*VALUES, [1, 2.5], {"x": 1, "y": 2}]]
    compare({"reduce": [{"var": "a"}, body, *start]}, contexts)


@pytest.mark.parametrize("keys", [*product(["", "a", None, 1], repeat=2), ("", "", ""), ("a", "b"), ("a", "", "b")])
def test_keys_of_a_path_lead_to_the_same(keys):
    context = {
        "a": {"b": 1, "": 2},
        "": {"": 5, "a": 6},
        "l": ["x", "y"],
        **{f"k{at}": key for at, key in enumerate(keys)},
    }
    computed = [{"var": f"k{at}"} for at in range(len(keys))]
    for rule in (
        {"val": [*keys]},
        {"val": computed},
        {"val": [keys[0], *computed[1:]]},
        {"val": [[*keys]]},
        {"val": ["l", *keys]},
    ):
        compare(rule, [context])


@pytest.mark.parametrize("upwards", [True, False])
def test_values_of_all_types_are_sorted_in_the_same_order(upwards):
    rule = {"sort": [{"var": "all"}, upwards]}
    context = {"all": [{"a": 1}, [1], "x", 2, True, None, {"b": 0}, [0], False, "a", 1.5, {}, []]}
    assert outcome(PLAIN, rule, context) == outcome(LIBRARY, rule, context)


def test_date_operators_are_rejected_with_the_available_ones(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datalogic_py", None)
    for cached in (conditions._get_engine, conditions._get_operators):
        cached.cache_clear()
    try:
        assert to_condition({"<": [{"var": "n"}, 3]})({"n": 2}) is True
        with pytest.raises(ExecutionError, match="X310"):
            to_condition({"<": [{"var": "n"}, 3]})({"m": 2})
        with pytest.raises(Exception, match="R313"):
            to_condition({"datetime": ["2020-01-02"]})
    finally:
        for cached in (conditions._get_engine, conditions._get_operators):
            cached.cache_clear()
