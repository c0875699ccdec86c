from __future__ import annotations

import math
import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.secrets import hide
from agentnb.world.tools.short_parameters import MISSING, TYPES, iter_errors, read_parameters, to_json_schema


def read(source):
    parameters, problems = read_parameters(source, "schema")
    assert not problems, problems
    return parameters


def faults(source, value):
    return [(each["path"], each["message"]) for each in iter_errors(read(source), value, "t")]


def wrong(source):
    return [(each.code, each.where, each.what) for each in read_parameters(source, "schema")[1]]


def of(kind, value):
    return faults({"p": {"type": kind, "required": True}}, {"p": value})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a", "string"),
        (1, "number"),
        (1.5, "number"),
        (math.nan, "number"),
        (True, "boolean"),
        (None, "object"),
        ({}, "object"),
        ([], "array"),
        ((1,), "array"),
        (date(2026, 1, 1), "date"),
    ],
)
def test_a_value_matches_its_type_and_any(value, kind):
    for expected in TYPES:
        fits = expected in {kind, "any"}
        answers = [("t.p", f"Invalid type. Expected {expected} but received {kind}.")]
        assert of(expected, value) == ([] if fits else answers)


def test_only_required_parameters_must_be_present():
    source = {"a": {"type": "string", "required": True}, "b": {"type": "string"}}
    assert faults(source, {"b": "x"}) == faults(source, None) == [("t.a", MISSING)]
    assert faults(source, {"a": "x", "more": object()}) == []


def test_lengths_and_patterns_of_texts_are_reported_at_once():
    source = {"p": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]*$"}}
    assert faults(source, {"p": "ab"}) == []
    assert faults(source, {"p": "A"}) == [
        ("t.p", "String is too short. Minimum length: 2"),
        ("t.p", "String does not match the pattern: ^[a-z]*$"),
    ]
    assert faults(source, {"p": "abcd"}) == [("t.p", "String is too long. Maximum length: 3")]
    assert faults({"p": {"type": "any", "minLength": 5}}, {"p": "x"}) == []  # lengths are asked of texts


def test_paths_lead_into_objects_and_lists():
    source = {
        "meta": {"type": "object", "objectSchema": {"role": {"type": "string", "required": True}}},
        "tags": {"type": "array", "arrayItemSchema": {"type": "string"}},
        "list": {
            "type": "array",
            "arrayItemSchema": {"type": "object", "objectSchema": {"x": {"type": "number", "required": True}}},
        },
    }
    assert [path for path, _ in faults(source, {"meta": {}, "tags": [1, "a"], "list": [{"x": "1"}, {}]})] == [
        "t.meta.role",
        "t.tags[0]",
        "t.list[0].x",
        "t.list[1].x",
    ]
    assert faults(source, {"meta": None}) == [("t.meta.role", MISSING)]


def test_expected_and_received_values_are_reported():
    source = {"p": {"type": "string", "pattern": "^a"}, "q": {"type": "number", "required": True}}
    assert [(each["expected"], each["received"]) for each in iter_errors(read(source), {"p": "b"}, "t")] == [
        ("pattern: ^a", "'b'"),
        ("number", "undefined"),
    ]


def test_a_secret_is_not_reported():
    source = {"api_key": {"type": "string", "pattern": "^a"},
              "token": {"type": "object", "objectSchema": {"inner": {"type": "string", "pattern": "^a"}}},
              "p": {"type": "string", "pattern": "^a"}}  # fmt: skip
    hide("hush-hush-1")
    values = {"api_key": "xyzzy-1", "token": {"inner": "xyzzy-2"}, "p": "hush-hush-1"}
    errors = str(list(iter_errors(read(source), values, "t")))
    assert "xyzzy" not in errors
    assert "hush" not in errors


def test_an_ambiguous_pattern_is_bounded_or_rejected():
    assert faults({"p": {"type": "string", "pattern": "^(a+)+$"}}, {"p": "a" * 5000 + "!"}) != []
    assert [code for code, *_ in wrong({"p": {"type": "string", "pattern": r"(?=(a+)+b)(a|aa)+$"}})] == ["R190"]
    assert "too long" in faults({"p": {"type": "string", "pattern": "^a"}}, {"p": "a" * 20_000})[0][1]


def test_a_compiled_pattern_keeps_its_flags():
    source = {"p": {"type": "string", "pattern": re.compile("^abc$", re.IGNORECASE)}}
    assert faults(source, {"p": "ABC"}) == []
    assert faults(source, {"p": "ABD"}) != []


def test_keywords_may_be_written_in_snake_case():
    source = {"p": {"type": "array", "array_item_schema": {"type": "string", "min_length": 2}}}
    assert faults(source, {"p": ["a"]}) == [("t.p[0]", "String is too short. Minimum length: 2")]


@pytest.mark.parametrize(
    ("parameter", "where", "what"),
    [
        ("string", "schema.p", "a parameter is described by a str"),
        ({}, "schema.p", "a parameter has no type"),
        ({"type": "integer"}, "schema.p", "'integer' is not a type of a parameter"),
        ({"type": ["string"]}, "schema.p", "['string'] is not a type of a parameter"),
        ({"type": "string", "required": "yes"}, "schema.p", "`required` is neither true nor false"),
        ({"type": "string", "minLength": -1}, "schema.p", "`minLength` is -1"),
        ({"type": "string", "maxLength": True}, "schema.p", "`maxLength` is True"),
        ({"type": "string", "pattern": "("}, "schema.p", "the pattern '(' cannot be used"),
        ({"type": "string", "pattern": 5}, "schema.p", "a pattern is an int"),
        ({"type": "string", "enum": ["a"]}, "schema.p", "'enum' is not a rule of a parameter"),
        ({"type": "object", "objectSchema": []}, "schema.p", "`objectSchema` is not a mapping"),
        ({"type": "object", "objectSchema": {"q": {}}}, "schema.p.objectSchema.q", "a parameter has no type"),
        ({"type": "array", "arrayItemSchema": 5}, "schema.p.arrayItemSchema", "a parameter is described by an int"),
    ],
)
def test_mistakes_are_reported_with_their_place(parameter, where, what):
    assert wrong({"p": parameter}) == [("R190", where, what)]


def test_all_mistakes_are_reported_at_once():
    assert len(wrong({1: {}, "p": {"type": "text", "minLength": "x"}, "q": {}})) == 4
    circle = {"type": "object"}
    circle["objectSchema"] = {"p": circle}
    assert [message for *_, message in wrong({"p": circle})] == ["the input schema is nested too deeply"]


def test_it_converts_to_a_json_schema():
    rules = {"minLength": 1, "maxLength": 9, "pattern": "^a"}
    source = {
        "who": {"type": "string", "required": True, **rules, "description": "a name"},
        "what": {"type": "any", "default": 3},
        "meta": {"type": "object", "objectSchema": {"role": {"type": "string", "required": True}}},
        "tags": {"type": "array", "arrayItemSchema": {"type": "number"}},
    }  # fmt: skip
    assert to_json_schema(read(source)) == {
        "type": "object",
        "properties": {
            "who": {"type": "string", **rules, "description": "a name"},
            "what": {"default": 3},
            "meta": {"type": "object", "properties": {"role": {"type": "string"}}, "required": ["role"]},
            "tags": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["who"],
    }


# -- against a naive model -------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
RULES = st.deferred(
    lambda: st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["number", "boolean", "any", "object", "array"])}, optional=WHEN
        ),
        st.fixed_dictionaries({"type": st.just("string")}, optional={**WHEN, **LENGTHS, "pattern": PATTERNS}),
        st.fixed_dictionaries({"type": st.just("object"), "objectSchema": FORMS}, optional=WHEN),
        st.fixed_dictionaries({"type": st.just("array"), "arrayItemSchema": RULES}, optional=WHEN),
    )
)
FORMS = st.dictionaries(NAMES, RULES, max_size=3)
WHEN = {"required": st.booleans()}
LENGTHS = {"minLength": st.integers(0, 3), "maxLength": st.integers(0, 3)}
PATTERNS = st.sampled_from(["^a", "b$", "^[ab]{2}$"])
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab", max_size=4)
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


def naive(form, value, path):
    """Say the paths of all violations, each as often as there are, by the words of the form alone."""
    results = []
    for name, rule in form.items():
        if value is None or name not in value:
            results += [f"{path}.{name}"] if rule.get("required") else []
        else:
            results += naive_one(rule, value[name], f"{path}.{name}")
    return results


def naive_one(rule, value, path):
    match value:
        case bool():
            kind = "boolean"
        case str():
            kind = "string"
        case int() | float():
            kind = "number"
        case list():
            kind = "array"
        case _:
            kind = "object"
    if rule["type"] == "any":
        return []
    if kind != rule["type"]:
        return [path]
    if kind == "string":
        short, long = len(value) < rule.get("minLength", 0), len(value) > rule.get("maxLength", 99)
        return [path] * (short + long + (re.search(rule.get("pattern", ""), value) is None))
    if kind == "object":
        return naive(rule.get("objectSchema", {}), value, path)
    if kind == "array" and "arrayItemSchema" in rule:
        items = enumerate(value)
        return [each for at, item in items for each in naive_one(rule["arrayItemSchema"], item, f"{path}[{at}]")]
    return []


@given(FORMS, st.dictionaries(NAMES, VALUES, max_size=4) | st.none())
def test_every_violation_is_found_at_its_path(form, value):
    assert [path for path, _ in faults(form, value)] == naive(form, value, "t")
