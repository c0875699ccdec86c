"""JsonLogic as data: checked with pointers, worded, and made ready to run."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pytest

from agentnb.errors import Place, RecipeError
from agentnb.expressions.conditions import to_condition
from agentnb.expressions.jsonlogic import Operator, check_rule, format_rule, make_ready, normalize

OPERATORS = {
    **{name: Operator(2, None) for name in ("==", "!=", "<", ">", "and", "or", "+")},
    **{name: Operator(0, 1) for name in ("!", "!!")},
    **{name: Operator(0, None) for name in ("var", "missing", "throw", "??")},
    "filter": Operator(2, 2),
    "in": Operator(2, 2),
}


@dataclass
class Hidden:
    var: str


def problems(rule):
    return [(problem.code, problem.where) for problem in check_rule(rule, OPERATORS, Place("r.yaml", 3, 9, "when"))]


def test_every_mistake_is_reported_with_its_pointer():
    rule = {"and": [{"<": [{"var": "a"}]}, {"a/b": 1}, {"==": [{}, {"var": "x", "y": 1}]}, [{"nope": 2}]]}
    assert problems(rule) == [
        ("R314", "r.yaml:3:9, when, /and/0"),
        ("R313", "r.yaml:3:9, when, /and/1"),
        ("R312", "r.yaml:3:9, when, /and/2/==/0"),
        ("R312", "r.yaml:3:9, when, /and/2/==/1"),
        ("R313", "r.yaml:3:9, when, /and/3/0"),
    ]


def test_a_pointer_shows_the_beginning_of_a_long_key():
    assert problems({"a" * 210: 1, "b": 2}) == [("R312", "r.yaml:3:9, when, /")]
    long_key = Operator(0, None)
    (problem,) = check_rule({"/" * 210: [{"nope": 1}]}, {**OPERATORS, "/" * 210: long_key}, None)
    assert problem.where == f"<rule>, /{'~1' * 199}…/0"


@pytest.mark.parametrize("value", [float("nan"), object(), b"x", Hidden("x"), {1}])
def test_values_that_json_lacks_are_rejected(value):
    assert problems({"==": [{"var": "x"}, value]}) == [("R312", "r.yaml:3:9, when, /==/1")]


def test_an_unknown_operator_is_reported_with_a_suggestion():
    (problem,) = check_rule({"fliter": [1, 2]}, OPERATORS, None)
    assert problem.do == "did you mean 'filter'?"
    assert problem.where == "<rule>, /"


@pytest.mark.parametrize("name", ["now", "distinct"])
def test_values_that_are_not_rules_are_rejected(name):
    (problem,) = check_rule({name: []}, {**OPERATORS, name: Operator(0, None)}, None)
    assert problem.code == "R313"


def nested(levels):
    rule = {"var": "x"}
    for _ in range(levels):
        rule = {"!": [rule]}
    return rule


def test_the_nesting_of_operators_is_limited_to_64():
    assert problems(nested(63)) == []
    for levels in (64, 20_000):
        (problem,) = check_rule(nested(levels), OPERATORS, None)
        assert (problem.code, problem.what) == ("R311", "the rule is nested too deeply")


def test_a_rule_that_contains_itself_is_rejected():
    rule = {"and": []}
    rule["and"] += [rule, rule]
    assert [code for code, _ in problems(rule)] == ["R311"]


def test_a_rule_with_too_many_parts_is_rejected():
    (problem,) = check_rule({"and": [1] * 10_001}, OPERATORS, None)
    assert (problem.code, problem.what) == ("R311", "the rule has too many parts")


def test_values_from_yaml_become_json():
    assert normalize({"==": ({"var": "d"}, dt.date(2020, 1, 2))}) == {"==": [{"var": "d"}, "2020-01-02"]}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"<": [{"var": "a.b"}, 3]}, "a.b < 3"),
        ({"<": [1, {"var": "a"}, 3]}, "1 < a < 3"),
        ({"and": [{"or": [{"var": "a"}, {"var": "b"}]}, {"!": {"var": "c"}}]}, "(a or b) and not c"),
        ({"!!": [{"var": "a"}]}, "a"),
        ({"var": ["a", 0]}, "a|default(0)"),
        ({"var": ""}, "this"),
        ({"in": ["x", {"var": "xs"}]}, "'x' in xs"),
        ({"if": [{"var": "a"}, 1, {"var": "b"}, 2, 3]}, "1 if a else 2 if b else 3"),
        ({"if": [{"var": "a"}, 1]}, "1 if a else none"),
        ({"filter": [{"var": "xs"}, {">": [{"var": ""}, 1]}]}, "filter(xs, this > 1)"),
        ({"==": [{"var": "a"}, "{{ b }}"]}, "a == {{ b }}"),
        ({"==": [{"var": "a"}, [True, None]]}, "a == [true, none]"),
        (True, "true"),
        ({}, "{}"),
        ({"==": [{"var": "a"}, {}]}, "a == {}"),
        ({"a": 1, "b": 2}, "{'a': 1, 'b': 2}"),
    ],
)
def test_rules_have_a_readable_form(rule, text):
    assert format_rule(rule) == text


def test_templates_in_a_rule_are_rendered_with_the_board():
    ready = make_ready({"==": [{"var": "a"}, "{{ b.c }}"]}, strict=True, place=None)
    ((key, template),) = ready.slots.items()
    assert template.reads == (("b", "c"),)
    assert key not in str(template.text)
    with pytest.raises(RecipeError) as caught:
        make_ready({"==": ["{{ a| }}", "{{ b.__x }}"]}, strict=True, place=None)
    assert [problem.code for problem in caught.value.problems] == ["R301", "R304"]


def test_only_ordered_comparisons_are_checked_and_only_in_strict_mode():
    rule = {"and": [{"<": [{"var": "a"}, 3]}, {">": [{"+": [{"var": "b"}, 1]}, 3]}, {"==": [{"var": "c"}, 1]}]}
    assert [operand for operand, _ in make_ready(rule, strict=True, place=None).guards] == ["a", "b"]
    assert make_ready(rule, strict=False, place=None).guards == []


@pytest.mark.parametrize("name", ["if", "?:"])
def test_an_empty_if_is_null(name):
    assert list(check_rule({name: []}, {name: Operator(1, None)}, None)) == []
    assert normalize({"!": [{name: []}]}) == {"!": [None]}
    assert to_condition({"==": [{name: []}, None]})({}) is True
    assert to_condition({name: []})({}) is None


def test_a_rule_may_have_ten_thousand_parts():
    assert problems({"and": [1] * 9_998}) == []
    assert [code for code, _ in problems({"and": [1] * 9_999})] == ["R311"]


@pytest.mark.parametrize(
    ("rule", "sides"),
    [
        ({"==": [{"var": "a.b"}, 1]}, [(("a", "b"), None), (None, 1)]),
        ({"<": [{"var": ["a"]}, {"var": "b"}]}, [(("a",), None), (("b",), None)]),
        ({"<": [1, {"var": "a"}, 3]}, None),
        ({"==": [{"var": ""}, 1]}, None),
        ({"==": [{"var": ["a", 0]}, 1]}, None),
        ({"==": [{"+": [{"var": "a"}, 1]}, 1]}, None),
        ({"==": [{"var": "{{ a }}"}, 1]}, None),
        ({"==": [{"var": "a"}, "{{ b }}"]}, None),
        ({"==": [{"var": "a"}, [1]]}, None),
        ({"filter": [{"var": "xs"}, {"==": [{"var": "n"}, 1]}]}, None),
    ],
)
def test_comparisons_of_paths_and_literals_are_recognized(rule, sides):
    pairs = make_ready(rule, strict=True, place=None).pairs
    assert [[tuple(side) for side in pair[:2]] for pair in pairs] == ([] if sides is None else [sides])
    assert [pair[2] for pair in pairs] == ([] if sides is None else [format_rule(rule)])
    assert make_ready(rule, strict=False, place=None).pairs == []


def test_after_a_filter_a_path_starts_at_the_board_again():
    rule = {"and": [{"some": [{"var": "xs"}, {"==": [{"var": "n"}, 1]}]}, {"==": [{"var": "n"}, 2]}]}
    assert [pair[2] for pair in make_ready(rule, strict=True, place=None).pairs] == ["n == 2"]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"==": [1]}, "it takes 2 or more"),
        ({"in": [1]}, "it takes 2 to 2"),
        ({"in": [1, 2, 3]}, "it takes 2 to 2"),
        ({"!": [1, 2]}, "it takes 0 to 1"),
    ],
)
def test_too_few_or_too_many_arguments_are_reported_with_how_many(rule, said):
    (problem,) = check_rule(rule, OPERATORS, None)
    ((name, arguments),) = rule.items()
    assert (problem.code, problem.why) == ("R314", said)
    assert problem.what == f"{name!r} has {len(arguments)} arguments"


@pytest.mark.parametrize("rule", [{"!": [1]}, {"!": 1}, {"!": []}, {"in": [1, 2]}, {"==": [1, 2, 3]}])
def test_a_valid_number_of_arguments_is_accepted(rule):
    assert problems(rule) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"val": [[1], "a"]}, "val([1], 'a')"),
        ({"+": [{"var": "a"}]}, "+(a)"),
        ({"if": [{"var": "a"}]}, "if(a)"),
        ({"-": [{"var": "a"}, {"if": [{"var": "b"}, 1, 2]}]}, "a - (1 if b else 2)"),
        ({"??": [{"var": "a"}, {"var": "b"}]}, "a ?? b"),
        ({"!": [{"and": [{"var": "a"}, {"var": "b"}]}]}, "not (a and b)"),
        ({"missing": ["a", "b"]}, "missing('a', 'b')"),
        ({"val": []}, "this"),
        ([1, None], "[1, none]"),
    ],
)
def test_readable_rules_have_parentheses_where_needed(rule, text):
    assert format_rule(rule) == text
