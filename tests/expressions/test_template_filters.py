"""What a template may do to a value."""

from __future__ import annotations

import json
import reprlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.errors import ExecutionError
from agentnb.expressions.template_filters import FILTERS, METHODS, TESTS
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
def test_filters_return_the_documented_values(expression, found):
    assert value(expression) == found


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_tojson_is_json(held):
    assert json.loads(value("x|tojson", x=held)) == held


@given(st.text(), st.text(), st.text(), st.none() | st.integers(-1, 5))
def test_replace_works_as_in_python(text, old, new, count):
    assert value("x|replace(a, b, n)", x=text, a=old, b=new, n=count) == text.replace(
        old, new, -1 if count is None else count
    )


@pytest.mark.parametrize(
    "expression",
    ["['a']|sum", "'a'|round", "'%s' is even", "5 is divisibleby '%s'", "','.join([1])", "d.get(rows)", "1|first"],
)
def test_invalid_values_are_problems(expression):
    with pytest.raises(ExecutionError, match="X324"):
        value(expression)


@pytest.mark.parametrize(
    "expression", ["x|upper", "x|sum", "x|join", "x|int", "x.get('k')", "x is even", "x|tojson", "-x", "x ~ 'a'", "[x]"]
)
def test_an_undefined_value_is_reported_by_its_name(expression):
    with pytest.raises(ExecutionError, match="X321") as caught:
        value(expression)
    assert "'x'" in caught.value.problems[0].what


TEXT, ITEMS = 1_000_000, 100_000


@pytest.mark.parametrize(
    ("expression", "most", "more"),
    [
        ("x|upper", "a" * TEXT, "a" * (TEXT + 1)),
        ("x|replace('a', 'bb', 1)", "a" * (TEXT - 1), "a" * TEXT),
        ("x|replace('a', 'bb')", "a" * (TEXT // 2), "a" * (TEXT // 2 + 1)),
        ("x|replace('a', 'bb', -1)", "a" * (TEXT // 2), "a" * (TEXT // 2 + 1)),
        ("x|escape", "a" * (TEXT // 6), "a" * (TEXT // 6 + 1)),
        ("'a\nb'|indent(x)", 100, 101),
        ("'a\nb'|indent(x)", "-" * 100, "-" * 101),
        ("x|indent(1)", "a" * (TEXT - 2), "a" * (TEXT - 1)),
        ("1.5|round(x)", 100, 101),
        ("1.5|round(x)", -100, -101),
        ("[1]|tojson(indent=x)", 100, 101),
        ("[1]|batch(x)", ITEMS, ITEMS + 1),
        ("[1]|slice(x)", ITEMS, ITEMS + 1),
        ("x|striptags", "a" * TEXT, "a" * (TEXT + 1)),
        ("x|urlencode", "a" * (TEXT // 12), "a" * (TEXT // 12 + 1)),
        ("{'k': x}|xmlattr", "a" * (TEXT // 6 - 5), "a" * (TEXT // 6 - 4)),
        ("x|pprint", "a" * 50_000, "a" * 50_001),
        ("x|wordwrap", "a" * 50_000, "a" * 50_001),
        ("('%' ~ x ~ 'd')|format(1)", 1_000, 1_001),
        ("('%.' ~ x ~ 'f')|format(1)", 1_000, 1_001),
        ("('{:' ~ x ~ '}').format(1)", 1_000, 1_001),
        ("('{:' ~ x ~ '}').format(1)", "0999", "00999"),
        ("'1'.zfill(x)", 1_000, 1_001),
        ("('{' ~ x ~ '}').format(" + ", ".join(["1"] * 10) + ")", "009", "0009"),
        ("x.split('b')", "b" * (ITEMS - 1), "b" * ITEMS),
        ("x.splitlines()", "\n" * ITEMS, "\n" * (ITEMS + 1)),
        ("x.keys()", dict.fromkeys(range(ITEMS)), dict.fromkeys(range(ITEMS + 1))),
        ("x|map('string')", range(ITEMS), range(ITEMS + 1)),
        ("range(x)", ITEMS, ITEMS + 1),
        ("range(x, 2, -2)", 2 * ITEMS + 1, 2 * ITEMS + 3),
    ],
    ids=reprlib.repr,
)
def test_a_limit_is_reached_and_not_exceeded(expression, most, more):
    value(expression, x=most)
    with pytest.raises(ExecutionError, match=r"X32[24]"):
        value(expression, x=more)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'a\n\nb'|indent", "a\n\n    b"),
        ("'a\n\nb'|indent(1, true)", " a\n\n b"),
        ("'a\n\nb'|indent(1, false, true)", "a\n \n b"),
        ("''|indent(2)", ""),
        ("''|indent(2, true)", "  "),
        ("'aXb'|replace('X', '-', 0)", "aXb"),
        ("'aXbX'|replace('X', '-', -1)", "a-b-"),
        ("2.5|round", 2.0),
        ("2.55|round(1, 'floor')", 2.5),
        ("[1, 2, 3]|batch(2)", [[1, 2], [3]]),
        ("[1, 2, 3]|batch(2, 0)", [[1, 2], [3, 0]]),
        ("[1, 2]|batch(0)", [[1], [2]]),
        ("[1, 2, 3, 4, 5]|slice(3)", [[1, 2], [3, 4], [5]]),
        ("[1, 2, 3, 4, 5]|slice(3, 0)", [[1, 2], [3, 4], [5, 0]]),
        ("[1, 2, 3, 4]|slice(2, 0)", [[1, 2, 0], [3, 4, 0]]),
        ("'<b>a</b> <!-- > -->  c &lt; d'|striptags", "a c < d"),
        ("'a < b'|striptags", "a < b"),
        ("'a <!-- b > c'|striptags", "a <!-- b > c"),
        ("'a b&c'|urlencode", "a%20b%26c"),
        ("{'id': 'a', 'no': none}|xmlattr", ' id="a"'),
        ("{'id': 'a'}|xmlattr(false)", 'id="a"'),
        ("'aa bb cc'|wordwrap(5)", "aa bb\ncc"),
        ("'aa-bb cc\nd'|wordwrap(3, true, '|', false)", "aa-|bb|cc|d"),
        ("'abcdef'|wordwrap(3, false)", "abcdef"),
        ("'%s is %d%%'|format('a', 5)", "a is 5%"),
        ("'%(a)s %(b)05.1f'|format(a=[1], b=2)", "[1] 002.0"),
        ("'{} {}'.format('a', 2)", "a 2"),
        ("'{1} {0} {n:>4} {m!s:>3}'.format('a', 'b', n=1.5, m=7)", "b a  1.5   7"),
        ("{'a': 1}|pprint", "{'a': 1}"),
        ("{'b': 1, 'a': [2]}|tojson", '{"a": [2], "b": 1}'),
        ("[1]|tojson(indent=1)", "[\n 1\n]"),
        ("[]|sum", 0),
        ("range(3, 0, -1)", [3, 2, 1]),
        ("range(0)", []),
        ("range(1)", [0]),
        ("dict(a=1)", {"a": 1}),
        ("'a,b,c'.split(',', 1)", ["a", "b,c"]),
        ("'a\nb'.splitlines(true)", ["a\n", "b"]),
        ("'7'.zfill(3)", "007"),
        ("d.get('x')", None),
        ("d.get('b')", 1),
    ],
)
def test_filters_have_the_documented_options(expression, found):
    assert value(expression) == found


@pytest.mark.parametrize(
    "expression",
    [
        "'%s %(a)s'|format('x', a=1)",
        "'%*d'|format(5, 1)",
        "'%.*f'|format(5, 1)",
        "'%y'|format(1)",
        "'%'|format(1)",
        "'{0.real}'.format(1)",
        "'{0[0]}'.format('a')",
        "'{!r}'.format(1)",
        "'{:{}}'.format(1, 2)",
        "'{a b}'.format(1)",
        "['a', 1]|sum",
        "[1]|sum(start='a')",
        "['%s']|select('odd')",
    ],
)
def test_formats_and_sums_of_other_values_are_rejected(expression):
    with pytest.raises(ExecutionError, match="X324"):
        value(expression)


def test_filters_that_fill_the_memory_or_leave_the_sandbox_are_absent():
    omitted = {"attr", "center", "filesizeformat", "random", "urlize"}
    assert not omitted & set(FILTERS)
    assert not {"callable", "filter", "test"} & set(TESTS)
    assert not {"format_map", "center", "ljust", "pop", "update", "mro"} & set(METHODS)


@pytest.mark.parametrize(
    "filter", ["capitalize", "lower", "title", "trim", "trim('[')", "truncate(9)", "upper", "wordcount"]
)
def test_a_value_that_is_long_as_text_is_rejected_by_text_filters(filter):
    assert value(f"xs|{filter}|string|length", xs=[1, 2]) > 0
    with pytest.raises(ExecutionError, match="X322"):
        value(f"xs|{filter}|string|length", xs=["x" * 1000] * 2000)
