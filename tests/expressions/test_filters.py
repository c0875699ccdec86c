"""test_filters: what a template may do to a value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.errors import ExecutionError
from agentnb.expressions.filters import FILTERS, METHODS, TESTS
from agentnb.expressions.templates import compile_template

ROWS = [{"n": "b", "v": 2}, {"n": "a", "v": 1}, {"n": "c", "v": 2}]


def value(expression, **names):
    return compile_template(f"{{{{ {expression} }}}}").render(
        {"rows": ROWS, "d": {"b": 1, "a": 2}, "t": " Ab c "} | names
    )


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("rows|map(attribute='n')|join", "bac"),
        ("rows|join('-', attribute='n')", "b-a-c"),
        ("rows|map(attribute='v')|sum", 5),
        ("rows|sum(attribute='v', start=1)", 6),
        ("rows|sort(attribute='n')|first", {"n": "a", "v": 1}),
        ("rows|selectattr('v', 'gt', 1)|map(attribute='n')", ["b", "c"]),
        ("rows|rejectattr('v', 'gt', 1)|list|length", 1),
        ("[1, 2, 3]|select('odd')", [1, 3]),
        ("[1, 2, 3]|reject('odd')", [2]),
        ("[3, 1, 3]|unique", [3, 1]),
        ("[3, 1]|max", 3),
        ("d|dictsort", [("a", 2), ("b", 1)]),
        ("d|items", [("b", 1), ("a", 2)]),
        ("rows|groupby('v')|map('first')", [1, 2]),
        ("'abc'|reverse", "cba"),
        ("[1, 2]|reverse", [2, 1]),
        ("t|trim|upper", "AB C"),
        ("'<a>'|e", "&lt;a&gt;"),
        ("'a\nb'|indent(2)", "a\n  b"),
        ("'aXbX'|replace('X', '-', 1)", "a-bX"),
        ("2.567|round(1)", 2.6),
        ("'7'|int + 1", 8),
        ("'x'|int(5)", 5),
        ("nothing|default('d')", "d"),
        ("'abcdefgh'|truncate(5, true, '…', 0)", "abcd…"),
        ("5|string", "5"),
        ("4 is even and 3 is odd and 6 is divisibleby 3", True),
        ("d is mapping and rows is sequence and 1 is number", True),
        ("t.strip().lower().split(' ')", ["ab", "c"]),
        ("'-'.join(['a', 'b'])", "a-b"),
        ("d.get('x', 5) + d.get('a')", 7),
        ("d.keys()", ["b", "a"]),
        ("d.values()", [1, 2]),
        ("d.items()", [("b", 1), ("a", 2)]),
        ("t.startswith(' A') and not t.endswith('x')", True),
    ],
)
def test_what_they_do(expression, found):
    assert value(expression) == found


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_tojson_is_json(held):
    assert json.loads(value("x|tojson", x=held)) == held


@given(st.text(), st.text(), st.text(), st.none() | st.integers(-1, 5))
def test_replace_is_that_of_python(text, old, new, count):
    assert value("x|replace(a, b, n)", x=text, a=old, b=new, n=count) == text.replace(
        old, new, -1 if count is None else count
    )


@pytest.mark.parametrize(
    "expression",
    ["['a']|sum", "'a'|round", "'%s' is even", "5 is divisibleby '%s'", "','.join([1])", "d.get(rows)", "1|first"],
)
def test_wrong_values_are_problems(expression):
    with pytest.raises(ExecutionError, match="X324"):
        value(expression)


@pytest.mark.parametrize(
    "expression", ["x|upper", "x|sum", "x|join", "x|int", "x.get('k')", "x is even", "x|tojson", "-x", "x ~ 'a'", "[x]"]
)
def test_what_is_undefined_is_told_by_its_name(expression):
    with pytest.raises(ExecutionError, match="X321") as caught:
        value(expression)
    assert "'x'" in caught.value.problems[0].what


def test_nothing_that_fills_the_memory_or_leaves_the_sandbox_is_offered():
    gone = {
        "attr",
        "batch",
        "center",
        "filesizeformat",
        "format",
        "pprint",
        "random",
        "slice",
        "urlize",
        "wordwrap",
        "xmlattr",
        "safe",
    }
    assert not gone & set(FILTERS)
    assert not {"callable", "filter", "test"} & set(TESTS)
    assert not {"format", "format_map", "center", "ljust", "zfill", "pop", "update", "mro"} & set(METHODS)
