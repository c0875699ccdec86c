"""Which templates there are, and what is said of the others."""

from __future__ import annotations

import pytest

from agentnb.expressions.template_grammar import MAX_LENGTH, TemplateRefused, compile_text, list_mentions


def refusals(text, *, bare=False):
    with pytest.raises(TemplateRefused) as caught:
        compile_text(text, bare=bare)
    return caught.value.refusals


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{ " + "9" * 5000 + " }}", 1),
        ("a\n{{ x", 2),
        ("\n\n{{ x|random }}", 3),
        ("\n{{ _x }}", 2),
        ("\n\n{% include 'x' %}", 3),
    ],
)
def test_a_refusal_names_the_line(text, line):
    assert [refusal.line for refusal in refusals(text)] == [line]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ x", "R301"),
        ("{{ }}", "R301"),
        ("{% for loop in [1] %}{% endfor %}", "R301"),
        ("{{ " + "9" * 5000 + " }}", "R301"),
        ("{{ 'x' }}" * 3000, "R302"),
        ("x" * MAX_LENGTH + "{{", "R302"),
        ("{{ " + "(" * 900 + "1" + ")" * 900 + " }}", "R302"),
        ("{{ " + "not " * 4900 + "1 }}", "R302"),
        ("{{ a" + ".a" * 9000 + " }}", "R302"),
        ("{{ x|center(10) }}", "R303"),
        ("{{ x|attr('y') }}", "R303"),
        ("{{ x|random }}", "R303"),
        ("{{ x is callable }}", "R303"),
        ("{{ x is nosuch }}", "R303"),
        ("{{ x.__class__ }}", "R304"),
        ("{{ _x }}", "R304"),
        ("{{ self }}", "R304"),
        ("{{ namespace(a=9) }}", "R304"),
        ("{{ cycler(9) }}", "R304"),
        ("{{ lipsum(n=9) }}", "R304"),
        ("{{ '{a}'.format_map(x) }}", "R304"),
        ("{% set _x = 1 %}", "R304"),
        ("{% set self = 1 %}", "R304"),
        ("{% set x.y = 1 %}", "R305"),
        ("{{ range(*y) }}", "R305"),
        ("{{ dict(**y) }}", "R305"),
        ("{{ x.pop('k') }}", "R304"),
        ("{{ x['pop']('k') }}", "R305"),
        ("{{ x.get(*y) }}", "R305"),
        ("{{ x.get(**y) }}", "R305"),
        ("{{ x|join(*y) }}", "R305"),
        ("{% macro x() %}{% endmacro %}", "R305"),
        ("{% include 'x' %}", "R305"),
        ("{% extends 'x' %}", "R305"),
        ("{% import 'x' as y %}", "R305"),
        ("{% block x %}{% endblock %}", "R305"),
        ("{% filter upper %}x{% endfilter %}", "R305"),
        ("{% call x() %}{% endcall %}", "R305"),
        ("{% autoescape true %}{% endautoescape %}", "R305"),
        ("{% for x in y recursive %}{% endfor %}", "R305"),
        ("{% for a in b %}{% for c in a %}{% for d in c %}{% endfor %}{% endfor %}{% endfor %}", "R305"),
    ],
)
def test_unsupported_syntax_is_rejected(text, code):
    assert [refusal.code for refusal in refusals(text)] == [code]


@pytest.mark.parametrize(
    ("text", "do"),
    [
        ("{{ x|uper }}", "did you mean 'upper'?"),
        ("{{ x is evn }}", "did you mean 'even'?"),
        ("{{ x.strp() }}", "did you mean 'strip'?"),
        ("{{ a && b }}", "write `and` for &&"),
        ("{{ a || b }}", "write `or` for ||"),
        ("{{ a === b }}", "write `==` for ==="),
        ("{{ a ? b : c }}", "write `a if test else b`"),
        ("{{ !a }}", "write `not x` for !x"),
        ("{{> a/b }}", "partials are not available here; insert the text of the partial"),
    ],
)
def test_a_common_mistake_is_reported_with_the_correction(text, do):
    assert [refusal.do for refusal in refusals(text)] == [do]


def test_every_mistake_is_reported_with_its_line():
    actual = refusals("{{ a.__x }}\n{{ b|nosuch }}\n{% block c %}{% endblock %}")
    assert [(refusal.code, refusal.line) for refusal in actual] == [("R304", 1), ("R303", 2), ("R305", 3)]


def test_an_expression_stands_alone():
    assert compile_text("a.b > 3", bare=True).reads == (("a", "b"),)
    assert "unexpected '" in refusals("a b", bare=True)[0].what
    assert refusals("", bare=True)[0].code == "R301"


@pytest.mark.parametrize(
    ("text", "native"), [("{{ x }}", True), ("\n {{ x }} \n", True), ("{{ x }}.", False), ("{{ x }}{{ y }}", False)]
)
def test_a_single_expression_returns_its_native_value(text, native):
    assert compile_text(text, bare=False).native is native


def test_nothing_runs_while_a_template_is_compiled():
    compiled = compile_text("{{ 'a' * 1000000000 }}{{ 'x'|replace('x', 'y' * 1000000000) }}", bare=False)
    assert compiled.reads == ()


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ("x" * (MAX_LENGTH - 8) + "{{ a }}.", "x" * (MAX_LENGTH - 7) + "{{ a }}."),
        ("{{ [" + "1," * 1_997 + "] }}", "{{ [" + "1," * 1_998 + "] }}"),
        ("{{ a" + ".a" * 38 + " }}", "{{ a" + ".a" * 39 + " }}"),
        (f"{{{{ {2**10_000 - 1:#x} }}}}", f"{{{{ {2**10_000:#x} }}}}"),
    ],
    ids=["characters", "parts", "levels", "bits"],
)
def test_a_template_may_be_as_large_as_its_limits(most, more):
    compile_text(most, bare=False)
    assert [(refusal.code, refusal.line) for refusal in refusals(more)] == [("R302", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in b %}{% for c in a %}{{ c }}{% endfor %}{% for d in a %}{{ d }}{% endfor %}{% endfor %}",
        "{{ x.get('k', default=1) }}{{ range(3) }}{{ dict(a=1) }}",
        "{% set x %}a{% endset %}{{ x }}",
        "{{ (-1 + 2 - 3) * 4 / 5 // 6 % 7 ** 8 ~ (not a or b and +c) }}{{ a[1:2] }}{{ 'x' if a else 'y' }}",
        "{{ x['_key'] }}",
    ],
)
def test_supported_syntax_is_accepted(text):
    compile_text(text, bare=False)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("{{ x.get(y, default=z.a) }}", {"x", "y", "z.a"}),
        ("{{ range(n.a, step=m) }}", {"n.a", "m"}),
        ("{{ a|join(b, attribute=c) }}", {"a", "b", "c"}),
        ("{{ a[b].c[1]['d.e'] }}", {"a", "b"}),
        ("{{ a[0]['b.c'].d }}", {"a.0.b.c.d"}),
        ("{{ a[-1] }}", {"a"}),
        ("{% for x in xs if x.ok and y %}{{ x.n }}{{ loop.index }}{{ z }}{% else %}{{ w }}{% endfor %}{{ x }}",
         {"xs", "y", "z", "w", "x"}),
        ("{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", {"d"}),
        ("{% if a %}{{ b }}{% elif c %}{{ d }}{% else %}{{ e }}{% endif %}", {"a", "b", "c", "d", "e"}),
        ("{% set x = a.b %}{{ x.c }}{{ d }}", {"a.b", "d"}),
        ("{% set x %}{{ a }}{% endset %}{{ x }}", {"a"}),
        ("{% set x | replace('a', b) %}{{ a }}{% endset %}{{ x }}", {"a", "b"}),
        ("{{ x }}{% set x = 1 %}{{ x }}", {"x"}),
        ("{% if a %}{% set x = 1 %}{{ x }}{% endif %}{{ x }}", {"a", "x"}),
    ],
)  # fmt: skip
def test_the_reads_of_a_template_are_known(text, reads):
    assert {".".join(path) for path in compile_text(text, bare=False).reads} == reads


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{ a.b['c'][0] }}", [("a.b['c'][0]", 1, 0, ("a", "b", "c", "0"), "a.b['c']")]),
        ("\\n{{ a[b] }}", [("a[b]", 2, None, None, "a"), ("b", 2, "b", ("b",), "")]),
        ("{{ (a|first).b }}", [("(a|first).b", 1, "b", None, "(a|first)")]),
        ("{{ a.get('k').b }}", [("a.get(…).b", 1, "b", None, "a.get(…)")]),
        ("{{ [1][k] }}", [("…[k]", 1, None, None, "…")]),
        ("{{ a.b|default(c) }}", [("c", 1, "c", ("c",), "")]),
        ("{{ a is defined and b|d }}", []),
        ("{% for x in xs %}{{ x.n }}{{ loop.index }}{% endfor %}", [("x.n", 1, "n", None, "x")]),
    ],
)
def test_the_names_in_a_template_are_known(text, found):
    text = text.replace("\\n", "\n")
    mentioned = [tuple(each) for each in list_mentions(text, bare=False)]
    for each in found:
        assert each in mentioned
    if not found:
        assert not any(each[0] in ("a", "b") for each in mentioned)


@pytest.mark.parametrize("text", ["a.nosuch(1)", "\n a.nosuch(1)"])
def test_a_mistake_in_an_expression_is_reported_with_its_line(text):
    (refusal,) = refusals(text, bare=True)
    assert refusal.line == 1 + text.count("\n")
    assert "get(), " in refusal.why
    assert refusal.why.startswith("a template may only call ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n && n > 2", "unexpected char '&' at 2"),
        ("n @ 3", "unexpected char '@' at 2"),
        ("n >", "it is incomplete after '>'"),
        ("n == 'open", "the quote at character 6 is not closed"),
        ('n == "open', "the quote at character 6 is not closed"),
    ],
)
def test_an_unexpected_character_is_named_and_only_a_quote_is_not_closed(text, message):
    assert message in refusals(text, bare=True)[0].what
