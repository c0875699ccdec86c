"""Text with {{ }} in it, rendered."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentnb.board.scopes import Board, Scope
from agentnb.board.values import freeze
from agentnb.errors import ExecutionError, Place, RecipeError
from agentnb.expressions.templates import (
    compile_expression,
    compile_structure,
    compile_template,
    has_markers,
    render_structure,
)

ODD_TEXTS = ["1e5", "[1]", "1_000", "0x10", "True", "None", "'quoted'", "(1)", '{"a":1}', "1+2j", "...", "1,2", "5 "]


def rendered(text, **names):
    return compile_template(text).render(names)


def failure(text, **names):
    with pytest.raises(ExecutionError) as caught:
        rendered(text, **names)
    (problem,) = caught.value.problems
    return problem


@given(st.text() | st.sampled_from(ODD_TEXTS))
def test_text_stays_text(text):
    assert rendered("{{ x }}", x=text) == text
    assert rendered("<{{ x }}>", x=text) == f"<{text}>"
    if not has_markers(text):
        assert rendered(text) == text


@pytest.mark.parametrize("text", [*ODD_TEXTS, "42", " padded ", "", "a } } b"])
def test_static_text_is_not_parsed(text):
    assert rendered(text) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_a_lone_expression_returns_its_value(value):
    actual = rendered(" {{ x }}\n", x=value)
    assert actual == value
    assert type(actual) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ n + 1 }}", 4),
        ("{{ [n, 'a'] }}", [3, "a"]),
        ("{{ result['items'] }}", [1]),
        ("{{ result.items }}", [1]),
        ("{{ xs|map('upper') }}", ["A", "B"]),
        ("{{ n }}{{ n }}", "33"),
        ("{{ n }}, {{ n }}", "3, 3"),
        ("{% for x in xs %}{{ x }}{% endfor %}", "ab"),
        ("{% for x in [] %}{{ x }}{% endfor %}", ""),
        ("{% if n > 2 %}yes{% else %}no{% endif %}", "yes"),
        ("{{ none }}", None),
        ("{{ 'a' ~ n }}", "a3"),
        ("{{ dotted['a.b'] }}", 1),
        ("{{ deep['a.b'] }}", 2),
        ("{{ xs[0] }}{{ xs[-1] }}", "ab"),
        ("{% for x in xs %}{{ loop.index }}{{ ',' if not loop.last else '' }}{% endfor %}", "1,2"),
        ("{{ n if missing is defined else 'none' }}", "none"),
        ("{{ missing|default('d') }}", "d"),
    ],
)
def test_expressions_have_values(text, value):
    names = {"n": 3, "xs": ["a", "b"], "result": {"items": [1]}, "dotted": {"a.b": 1}, "deep": {"a": {"b": 2}}}
    assert rendered(text, **names) == value


def test_values_of_the_board_are_never_compiled():
    assert rendered("{{ x }}", x="{{ 7 * 7 }}") == "{{ 7 * 7 }}"
    assert rendered("={{ x }}", x="{% set a = 1 %}") == "={% set a = 1 %}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{% set x | replace('a', b) %}a-{{ c }}{% endset %}{{ x }}", "B-C"),
        ("{% set x | upper | replace('A', b ~ c) %}a{% endset %}<{{ x }}>", "<BC>"),
        ("{% for i in [1, 2] %}{% set x | replace('n', i) %}n{{ i }}{% endset %}{{ x }}{% endfor %}", "1122"),
    ],
)
def test_the_filters_of_a_set_block_may_use_names(text, shown):
    assert rendered(text, b="B", c="C") == shown


def test_results_are_copies():
    names = {"x": {"a": [1]}}
    value = rendered("{{ x }}", **names)
    value["a"].append(2)
    assert names == {"x": {"a": [1]}}


def test_other_objects_are_returned_unchanged():
    held = object()
    assert rendered("{{ x }}", x=held) is held


def test_a_board_can_be_the_context():
    scope = Scope(0, "root")
    scope.data = {"order": freeze({"lines": [{"name": "tea"}]}), "flag": True}
    assert compile_template("{{ order.lines[0].name }}: {{ flag }}").render(Board(scope)) == "tea: True"
    assert compile_template("{{ order.lines }}").render(Board(scope)) == [{"name": "tea"}]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("plain", ()),
        ("{{ a.b['c'][0] }}", (("a", "b", "c", "0"),)),
        ("{{ a['b.c'] }} {{ a }}", (("a", "b", "c"), ("a",))),
        ("{% for x in xs if x.ok %}{{ x.y }}{{ z }}{{ loop.index }}{% endfor %}", (("xs",), ("z",))),
        ("{{ a.get('k', b) }}", (("a",), ("b",))),
        ("{{ a[b.c].d }}", (("a",), ("b", "c"))),
        ("{{ x|default(y) }}{{ z is in w }}", (("x",), ("y",), ("z",), ("w",))),
    ],
)
def test_reads_are_recorded(text, reads):
    assert set(compile_template(text).reads) == set(reads)


def test_a_missing_name_is_reported_with_the_existing_ones():
    problem = failure("Dear {{ order.costumer }}", order={"customer": "Ann"}, other=1)
    assert problem.code == "X321"
    assert "'order.costumer'" in problem.what
    assert problem.why == "'order' has: customer"
    assert problem.do == "did you mean 'customer'?"


def test_the_undefined_name_is_reported_and_not_one_with_a_default():
    assert "'second'" in failure("{{ first|default(1) ~ second }}").what


def test_an_if_without_else_has_no_value():
    assert rendered("{{ 'a' if ok }}", ok=True) == "a"
    assert failure("{{ 'a' if ok }}", ok=False).do == "add an else: x if test else ''"


def test_null_is_none_in_templates():
    assert failure("{{ x == null }}", x=1).do == "write none"


def test_a_lone_undefined_expression_is_none_if_not_strict():
    template = compile_template("{{ x.y }}", strict=False)
    assert template.render({"x": {}}) is None
    assert "undefined" in template.warning
    assert template.render({"x": {"y": 1}}) == 1
    assert template.warning == ""
    with pytest.raises(ExecutionError):
        compile_template("a {{ x }}", strict=False).render({})


def test_strictness_can_be_chosen_later():
    template = compile_template("{{ x }}")
    assert template.with_strictness(strict=False).render({}) is None
    assert template.with_strictness(strict=True) is template
    structure = compile_structure({"a": ["{{ x }}"]})
    assert structure.with_strictness(strict=False).render({}) == {"a": [None]}
    with pytest.raises(ExecutionError):
        structure.render({})


def test_problems_name_file_line_and_column():
    with pytest.raises(RecipeError) as caught:
        compile_template("one\n{{ x|nosuch }}\n{{ y.__class__ }}", place=Place("r.yaml", 4, 7, "inputs.a"))
    assert [problem.code for problem in caught.value.problems] == ["R303", "R304"]
    assert [problem.where for problem in caught.value.problems] == [
        "r.yaml:4:7, inputs.a, line 2 of the template",
        "r.yaml:4:7, inputs.a, line 3 of the template",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo {{ 1 / zero }}", 2),
        ("\n\n{{ 1 / zero }}", 3),
        ("{% for item in items %}\n{{ item.title }}\n{{ 1 / zero }}{% endfor %}", 3),
        ("{% if 1 %}\n{% elif 0 %}{% endif %}\n{% set x = 1 / zero %}", 3),
        ("a\r\nb\r\n{{ 1 / zero }}", 3),
        ("a\n{# one\ntwo #}\n{{ 1 / zero }}\n{{ 1 }}", 4),
        ("\n{{ 'a' * 10000000 }}", 2),
        ("\n{{ items.append }}", 2),
        ("a\n{{\n items\n [0]\n .nosuch }}", 5),
        ("{{ items[0].title }}\n{{ items[0].nosuch }}", 2),
        ("{{ items[0].nosuch|default('') }}\n{{ items[0].nosuch }}", 2),
    ],
)
def test_a_failure_names_its_line(text, line):
    context = {"zero": 0, "items": [{"title": "a"}]}
    assert failure(text, **context).where == f"<text>, line {line} of the template"
    with pytest.raises(ExecutionError) as caught:
        compile_template(text, place=Place("r.yaml", 4, 7, "a", (5, 3))).render(context)
    assert caught.value.problems[0].where == f"r.yaml:{line + 4}:3, a, line {line} of the template"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{% for item in items %}{{ item.title }}{{ item.snippet }}{% endfor %}", "'item.snippet'"),
        ("{% for item in items %}{{ item['snippet'] }}{% endfor %}", "\"item['snippet']\""),
        ("{% set first = items[0] %}{{ first.snippet.text }}", "'first.snippet'"),
        ("{{ items[n].snippet }}", "'items[n].snippet'"),
        ("{{ items[0][word] }}", "'items[0][word]'"),
        ("{{ (items|last).snippet }}", "'(items|last).snippet'"),
        ("{{ items[0].get('title').snippet }}", "'items[0].get(…).snippet'"),
        ("{{ items[4] }}", "'items[4]'"),
        ("{{ items|map(attribute='snippet')|join }}", "'snippet'"),
        ("{{ 1 + items[0].snippet|int }}", "'items[0].snippet'"),
        ("{{ nosuch.title }}", "'nosuch'"),
        ("{{ items[0].snippet|default(1) }}{% for item in items %}{{ item.snippet }}{% endfor %}", "'item.snippet'"),
        ("{% for a in items %}{% for b in items %}{{ a.x ~ b.x }}{% endfor %}{% endfor %}", "'a.x' or 'b.x'"),
    ],
)
def test_a_missing_expression_is_named_as_written(text, name):
    problem = failure(text, items=[{"title": "a"}], n=0, word="snippet")
    assert problem.code == "X321"
    assert problem.what.endswith(f" reads {name}, which is not defined")


def test_a_key_error_of_a_value_is_not_reported_as_a_missing_key():
    assert failure("{{ items[nosuch] }}", items={"a": 1}).code == "X321"


def test_a_missing_key_of_a_loop_item_is_reported_with_the_existing_ones():
    problem = failure("{% for item in items %}{{ item.snipet }}{% endfor %}", items=[{"snippet": "a"}])
    assert (problem.why, problem.do) == ("'item' has: snippet", "did you mean 'snippet'?")


def test_a_failure_names_the_template_and_its_place():
    with pytest.raises(ExecutionError) as caught:
        compile_template("{{ 1 / x }}", place=Place("r.yaml", 4, 7)).render({"x": 0})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("X324", "r.yaml:4:7")
    assert "ZeroDivisionError" in problem.why


def test_an_expression_is_written_without_braces():
    assert compile_expression("score > 3 and not done").render({"score": 4, "done": False}) is True
    with pytest.raises(RecipeError, match="unexpected '"):
        compile_expression("score > 3 done")


def test_structures_keep_their_form_and_their_keys():
    value = {"{{ key }}": ["{{ n }}", 1, {"deep": "n is {{ n }}"}], "t": "plain", "none": None}
    structure = compile_structure(value)
    before = deepcopy(value)
    assert structure.render({"n": 2}) == {"{{ key }}": [2, 1, {"deep": "n is 2"}], "t": "plain", "none": None}
    assert structure.reads == (("n",),)
    assert value == before
    assert render_structure(["{{ n }}"], {"n": [1]}) == [[1]]


def test_every_mistake_in_a_structure_is_reported_with_its_path():
    with pytest.raises(RecipeError) as caught:
        compile_structure(
            {"a": ["{{ ok }}", "{{ x| }}"], "b": "{{ y.z( }}"}, get_place=lambda path: Place("r.yaml", path=str(path))
        )
    wheres = [problem.where for problem in caught.value.problems]
    assert wheres == ["r.yaml, ('a', 1)", "r.yaml, ('b',)"]


def test_a_structure_that_contains_itself_is_a_problem():
    value = []
    value.append(value)
    with pytest.raises(RecipeError, match="R302"):
        compile_structure(value)


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"k": value}], ids=["list", "dict"])
def test_a_structure_may_be_64_levels_deep(wrap):
    template, expected = "{{ n }}", 1
    for _ in range(64):
        template, expected = wrap(template), wrap(expected)
    assert compile_structure(template).render({"n": 1}) == expected
    with pytest.raises(RecipeError, match="R302: values are nested more than 64 levels deep"):
        compile_structure(wrap(template))


def test_explain_reports_the_reads_and_the_result():
    template = compile_expression("n > 3")
    assert template.explain({"n": 5}) == [("n", 5), ("n > 3", True)]
    assert template.explain({})[0][1].startswith("fails: ")


def test_plain_text_does_not_import_jinja():
    program = (
        "import sys, agentnb.expressions.templates as t, agentnb.expressions.conditions\n"
        "t.compile_structure({'a': ['text']}).render({})\n"
        "print({'jinja2', 'datalogic_py'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
