"""test_sandbox: hostile templates are stopped, by what they ask for and by what they would do."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.errors import ExecutionError
from agentnb.expressions import sandbox
from agentnb.expressions.templates import compile_template


class Token:
    secret = "public by mistake"
    _hidden = "hidden"

    def drop(self):
        raise AssertionError("a template called it")


NAMES = {
    "s": "a" * 1_000_000,
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
def test_too_much_is_refused_before_it_is_done(text):
    assert code_of(text) == "X322"


def test_what_a_template_only_reads_may_be_of_any_size():
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
def test_what_may_not_be_touched(text):
    assert code_of(text) == "X323"


@pytest.mark.parametrize(
    "text", ["{{ ''['__class__'] }}", "{{ token['secret'] }}", "{{ d['__class__'] }}", "{{ d.keyss }}", "{{ s.name }}"]
)
def test_an_item_is_never_an_attribute(text):
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
def test_what_is_missing_has_no_parts_and_is_told_by_its_name(text, name):
    with pytest.raises(ExecutionError) as caught:
        compile_template(text).render(NAMES)
    (problem,) = caught.value.problems
    assert problem.code == "X321"
    assert repr(name) in problem.what


def test_attributes_of_mapped_items_are_not_reached():
    assert compile_template("{{ [token]|map(attribute='_hidden')|select('defined')|list }}").render(NAMES) == []


def test_public_values_of_objects_are_seen():
    assert compile_template("{{ token.secret }}").render(NAMES) == "public by mistake"


def test_the_work_of_one_rendering_is_not_charged_to_the_next():
    spend = compile_template("{% for a in xs %}{{ xs|sum }}{% endfor %}")
    small = compile_template("{{ d.k ~ 1 }}")
    with pytest.raises(ExecutionError):
        spend.render(NAMES)
    assert small.render(NAMES) == "v1"


def test_a_value_that_holds_itself_is_a_problem_and_no_hang():
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


def test_lazy_results_become_lists_and_containers_copies():
    inner = [1]
    settled = sandbox.settled({"a": inner, "b": (x for x in "xy"), "c": (inner, {1})})
    assert settled == {"a": [1], "b": ["x", "y"], "c": ([1], {1})}
    assert settled["a"] is not inner
    assert settled["c"][0] is settled["a"]


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_weight_is_not_far_from_the_length_of_the_text(value):
    assert sandbox.weigh(value) <= 2 * len(str(value)) + 2
    assert sandbox.weighed(value) is value
