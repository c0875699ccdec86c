"""Hostile templates are stopped, by what they ask for and by what they would do."""

from __future__ import annotations

import math
import reprlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.errors import ExecutionError, RecipeError
from agentnb.expressions import sandbox
from agentnb.expressions.conditions import to_condition
from agentnb.expressions.templates import compile_expression, compile_template


class Token:
    secret = "public by mistake"
    _hidden = "hidden"

    def drop(self):
        raise AssertionError("a template called it")


NAMES = {
    "s": "a" * 1_000_000,
    "longer": "bb" + "a" * 999_999,
    "xs": list(range(99_000)),
    "ys": list(range(99_000)),
    "d": {"k": "v"},
    "n": 10**300,
    "token": Token(),
    "math": math,
    "Token": Token,
    "f": len,
}


def code_of(text):
    with pytest.raises(ExecutionError) as caught:
        compile_template(text).render(NAMES)
    return caught.value.problems[0].code


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ 1000000000 * 'a' }}",
        "{{ [0] * 1000000000 }}",
        "{{ [[0] * 1000] * 1000 }}",
        "{{ xs + xs }}",
        "{{ s ~ s }}",
        "{{ s + s }}",
        "{{ n * n * n * n * n * n * n * n * n * n * n * n }}",
        "{{ s|replace('a', 'bb') }}",
        "{{ longer|replace('bb', '') }}",
        "{{ 'a'|replace('', 'b' * 999999) }}",
        "{{ 'a'.replace('', 'b' * 999999) }}",
        "{{ xs|join('x' * 100000) }}",
        "{{ 'xx'.join(xs|map('string')|list) ~ s }}",
        "{{ xs|tojson(indent=100) }}",
        "{{ xs|tojson(indent=1000000000) }}",
        "{{ 'a'|indent('  ' * 1000) }}",
        "{{ 1|round(1000000000, 'ceil') }}",
        "{{ s|escape }}",
        "{{ [" + ",".join(["('a'*999999)|upper"] * 300) + "]|length }}",
        "{% for a in xs %}{% for b in xs %}{% endfor %}{% endfor %}",
        "{% for a in xs %}{% if '" + "x" * 1000 + "'|replace('x', 'yz')|length %}{% endif %}{% endfor %}",
        "{% for a in xs %}{{ s|upper|length }}{% endfor %}",
        "{% for a in xs %}{{ s.split('b')|length }}{% endfor %}",
        "{% for a in xs %}{{ xs[1:]|length }}{% endfor %}",
        "{% for a in xs %}{{ -1 in xs }}{% endfor %}",
        "{% for a in xs %}{{ xs == ys }}{% endfor %}",
        "{% for a in xs %}{{ [[ys]] == [[xs]] }}{% endfor %}",
        "{% for a in xs %}{{ a is in ys }}{% endfor %}",
        "{% for a in xs %}{{ xs|select('eq', 1)|list|length }}{% endfor %}",
        "{% for a in xs %}{{ xs|sum }}{% endfor %}",
        "{% for a in xs %}" + "{% if a and a and a %}{% endif %}" * 300 + "{% endfor %}",
    ],
)
def test_excessive_work_is_rejected_before_it_is_done(text):
    assert code_of(text) == "X322"


@pytest.mark.parametrize(
    "text",
    [
        "{{ ('f' * 5000)|int(base=16) }}",
        "{{ ('1' * 20000)|int(0, 2) }}",
        "{{ '-' ~ 'z' * 4000 }}{{ ('-' ~ 'f' * 5000)|int(base=16) }}",
        "{{ ['f' * 5000]|map('int', base=16)|list }}",
        "{{ ('f' * 2400)|int(base=16) * 10 + 0 * n + ('f' * 2500)|int(base=16) * 1000 }}",
        "{{ [huge, huge]|sum }}",
        "{{ huge + 1 }}",
        "{{ huge - 1 }}",
        "{{ huge // 2 }}",
        "{{ ('f' * 2500)|int(base=16) + ('f' * 2500)|int(base=16) }}",
        "{{ part * part }}",
        "{{ huge|round }}",
        "{{ huge|abs }}",
    ],
)
def test_numbers_built_by_a_template_are_limited(text):
    with pytest.raises(ExecutionError) as caught:
        compile_template(text).render({"n": 1, "huge": 2**10_001, "part": Fraction(1, 3**4_000)})
    assert caught.value.problems[0].code == "X322"


@pytest.mark.parametrize(
    "text", ["0x" + "f" * 3000, "0b" + "1" * 12_000, "0o" + "7" * 5000, "[1, -0x" + "f" * 3000 + "]"]
)
def test_literal_numbers_are_limited(text):
    for compiled in (compile_expression, lambda text: compile_template(f"{{{{ {text} }}}}"), to_condition):
        with pytest.raises(RecipeError) as caught:
            compiled(text)
        assert caught.value.problems[0].code == "R302"


def test_a_condition_builds_no_larger_number_than_a_template():
    with pytest.raises(ExecutionError, match="more than 10,000 bits"):
        to_condition("('f' * 5000)|int(base=16) > 1")({})


TEXT, ITEMS, BITS = 1_000_000, 100_000, 10_000


@pytest.mark.parametrize(
    ("text", "most", "more"),
    [
        ("{{ 'a' * x }}", TEXT, TEXT + 1),
        ("{{ x * 'a' }}", TEXT, TEXT + 1),
        ("{{ 'ab' * x }}", TEXT // 2, TEXT // 2 + 1),
        ("{{ x + 'a' }}", "a" * (TEXT - 1), "a" * TEXT),
        ("{{ x ~ 'a' }}", "a" * (TEXT - 1), "a" * TEXT),
        ("a{{ x }}", "a" * (TEXT - 1), "a" * TEXT),
        ("{{ [x, 'a']|join('-') }}", "a" * (TEXT - 2), "a" * (TEXT - 1)),
        ("{{ [x, 'a']|join('--') }}", "a" * (TEXT - 3), "a" * (TEXT - 2)),
        ("{{ [0] * x }}", ITEMS, ITEMS + 1),
        ("{{ x * [0] }}", ITEMS, ITEMS + 1),
        ("{{ x + [1] }}", [0] * (ITEMS - 1), [0] * ITEMS),
        ("{{ [1] + x }}", [0] * (ITEMS - 1), [0] * ITEMS),
        ("{{ [x] * 1000 }}", "a" * 401, "a" * 402),  # four characters inside of a list count as an item
        ("{{ x|list }}", range(ITEMS), range(ITEMS + 1)),
        ("{% for a in x %}{% endfor %}", range(ITEMS), range(ITEMS + 1)),
        ("{% for a in x %}{% endfor %}{% for a in x %}{% endfor %}", range(ITEMS // 2), range(ITEMS // 2 + 1)),
        ("{{ range(x) }}", ITEMS, ITEMS + 1),
        ("{{ range(0, x, 2) }}", 2 * ITEMS, 2 * ITEMS + 1),
        ("{{ range(x, 0, -1) }}", ITEMS, ITEMS + 1),
        ("{{ x + 0 }}", 2**BITS - 1, 2**BITS),
        ("{{ x + 0 }}", Fraction(1, 2 ** (BITS - 1)), Fraction(1, 2**BITS)),
        ("{{ x + 0 }}", Fraction(2 ** (BITS - 1), 3), Fraction(2**BITS, 3)),
        ("{{ x * x }}", 2 ** (BITS // 2 - 1), 2 ** (BITS // 2)),
        ("{{ 2 ** x }}", BITS // 2, BITS // 2 + 1),
        ("{{ 1 ** x }}", BITS, BITS + 1),
    ],
    ids=reprlib.repr,
)
def test_a_limit_is_reached_and_not_exceeded(text, most, more):
    template = compile_template(text)
    template.render({"x": most})
    with pytest.raises(ExecutionError, match="X322"):
        template.render({"x": more})


def test_powers_that_do_not_grow_are_computed():
    assert compile_template("{{ [2 ** -5, 2 ** 0, 2.0 ** 500, x ** -1] }}").render({"x": 2**200}) == [
        2**-5,
        1,
        2.0**500,
        2.0**-200,
    ]
    with pytest.raises(ExecutionError, match="expected a number, not str"):
        compile_template("{{ 'a' ** 2 }}").render({})


def test_a_list_repeated_once_or_never_is_not_limited():
    assert compile_template("{{ [x * 1, 0 * x] }}").render({"x": ["a" * 900_000]}) == [["a" * 900_000], []]


def in_a_thread(function):
    """Return what a function returns in a new thread, whose rendering has spent nothing yet."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_the_work_of_one_rendering_is_limited():
    def spend():
        sandbox.charge(2_999_999)
        sandbox.charge(1)
        with pytest.raises(sandbox.Limit, match="more than 3,000,000 operations"):
            sandbox.charge(1)
        return True

    assert in_a_thread(spend)


@pytest.mark.parametrize(
    ("value", "work"),
    [
        ("a" * 160, 10),
        (b"a" * 160, 10),
        ([1, 2, 3], 3),
        ((1, 2), 2),
        ({1, 2}, 2),
        (frozenset({1}), 1),
        ({"a": [1, 2], "b": "a" * 160}, 4),
        ([[1, 2], [3]], 5),
        (7, 0),
    ],
)
def test_searched_values_are_charged_by_their_length(value, work):
    def left():
        sandbox.charge(3_000_000 - work)
        sandbox.charge_length(value)
        with pytest.raises(sandbox.Limit):
            sandbox.charge(1)
        return True

    assert in_a_thread(left)


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("abc", 3),
        (b"abc", 3),
        (1, 1),
        (2**30, 11),
        (1.5, 8),
        (None, 8),
        ([], 0),
        ([1, 2], 6),
        ((1,), 3),
        ({1}, 3),
        ({"ab": 1}, 7),
        ({"a": {"b": [1]}}, 13),
    ],
)
def test_a_value_weighs_about_as_much_as_its_text(value, length):
    assert sandbox.weigh(value) == length


def test_a_value_heavier_than_the_longest_text_is_rejected():
    assert sandbox.weigh("a" * TEXT) == TEXT
    with pytest.raises(sandbox.Limit, match="more than 1,000,000 characters of text"):
        sandbox.weigh("a" * (TEXT + 1))


def test_a_number_of_any_size_can_be_read():
    assert compile_template("{{ huge }}").render({"huge": 2**10_000}) == 2**10_000
    assert to_condition("huge > 1 and [huge, 1]|max == huge")({"huge": 2**10_000}) is True


def test_values_that_a_template_only_reads_may_have_any_size():
    assert compile_template("{{ s }}").render({"s": "a" * 3_000_000}) == "a" * 3_000_000
    assert compile_template("{{ xs|length }}").render({"xs": [0] * 300_000}) == 300_000


@pytest.mark.parametrize(
    "text",
    [
        "{{ f }}",
        "a {{ f }}",
        "{{ [f] }}",
        "{{ token.drop }}",
        "{{ Token.secret }}",
        "{{ Token }}",
        "{{ math.pi }}",
        "{{ xs.append }}",
        "{{ '%999999999d' % 1 }}",
        "{{ s % 1 }}",
        "{{ xs|map('_called', 'append')|list }}",
        "{{ d.upper() }}",
        "{% for a in [1] %}{{ loop }}{% endfor %}",
    ],
)
def test_private_attributes_are_rejected(text):
    assert code_of(text) == "X323"


@pytest.mark.parametrize(
    "text", ["{{ ''['__class__'] }}", "{{ token['secret'] }}", "{{ d['__class__'] }}", "{{ d.keyss }}", "{{ s.name }}"]
)
def test_items_are_never_read_as_attributes(text):
    assert code_of(text) == "X321"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{{ gone.k > 5 }}", "gone"),
        ("{{ gone['k'] > 5 }}", "gone"),
        ("{{ gone[0].k }}", "gone"),
        ("{{ d.gone.more }}", "d.gone"),
        ("{{ d.gone['more'] }}", "d.gone"),
        ("{{ gone.k is defined }}", "gone"),
    ],
)
def test_a_missing_value_has_no_parts_and_is_reported_by_its_name(text, name):
    with pytest.raises(ExecutionError) as caught:
        compile_template(text).render(NAMES)
    (problem,) = caught.value.problems
    assert problem.code == "X321"
    assert repr(name) in problem.what


def test_attributes_of_mapped_items_are_not_reached():
    assert compile_template("{{ [token]|map(attribute='_hidden')|select('defined')|list }}").render(NAMES) == []


def test_public_values_of_objects_are_seen():
    assert compile_template("{{ token.secret }}").render(NAMES) == "public by mistake"


def test_the_work_of_one_rendering_does_not_count_for_the_next():
    spend = compile_template("{% for a in xs %}{{ xs|sum }}{% endfor %}")
    small = compile_template("{{ d.k ~ 1 }}")
    with pytest.raises(ExecutionError):
        spend.render(NAMES)
    assert small.render(NAMES) == "v1"


def test_a_value_that_contains_itself_is_a_problem():
    held = []
    held.append(held)
    with pytest.raises(ExecutionError, match="X322"):
        compile_template("{{ x }}").render({"x": held})
    with pytest.raises(ExecutionError, match="X322"):
        compile_template("-{{ x }}").render({"x": held})


def test_reading_does_not_change_the_context():
    held = defaultdict(list, k=[1])
    assert compile_template("{{ x.other is defined }} {{ x['more'] is defined }}").render({"x": held}) == "False False"
    assert held == {"k": [1]}


def test_results_of_value_columns_become_lists_and_containers_are_copied():
    inner = [1]
    settled = sandbox.settle({"a": inner, "b": (x for x in "xy"), "c": (inner, {1})})
    assert settled == {"a": [1], "b": ["x", "y"], "c": ([1], {1})}
    assert settled["a"] is not inner
    assert settled["c"][0] is settled["a"]


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_weight_approximates_the_length_of_the_text(value):
    assert sandbox.weigh(value) <= 2 * len(str(value)) + 2
    assert sandbox.charge_length(value) is value
