"""test_grammar: which templates there are, and what is said of the others."""

from __future__ import annotations

import pytest

from agentnb.expressions.grammar import MAX_LENGTH, Refused, compile_text


def refusals(text, *, bare=False):
    with pytest.raises(Refused) as caught:
        compile_text(text, bare=bare)
    return caught.value.refusals


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
        ("{{ '%9d'|format(1) }}", "R303"),
        ("{{ x is callable }}", "R303"),
        ("{{ x is nosuch }}", "R303"),
        ("{{ x.__class__ }}", "R304"),
        ("{{ _x }}", "R304"),
        ("{{ self }}", "R304"),
        ("{{ range(9) }}", "R304"),
        ("{{ lipsum(n=9) }}", "R304"),
        ("{{ '{:9d}'.format(1) }}", "R304"),
        ("{{ x.pop('k') }}", "R304"),
        ("{{ x['pop']('k') }}", "R305"),
        ("{{ x.get(*y) }}", "R305"),
        ("{{ x.get(**y) }}", "R305"),
        ("{{ x|join(*y) }}", "R305"),
        ("{{ 10 ** 10 ** 7 }}", "R305"),
        ("{% set x = 1 %}", "R305"),
        ("{% set x %}a{% endset %}", "R305"),
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
def test_what_is_refused(text, code):
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
        ("{{> a/b }}", "a partial is not known here: put its text in"),
    ],
)
def test_a_slip_is_answered_with_what_to_write(text, do):
    assert [refusal.do for refusal in refusals(text)] == [do]


def test_every_mistake_is_told_with_its_line():
    found = refusals("{{ a.__x }}\n{{ b|nosuch }}\n{% set c = 1 %}")
    assert [(refusal.code, refusal.line) for refusal in found] == [("R304", 1), ("R303", 2), ("R305", 3)]


def test_an_expression_stands_alone():
    assert compile_text("a.b > 3", bare=True).reads == (("a", "b"),)
    assert "one word too many" in refusals("a b", bare=True)[0].what
    assert refusals("", bare=True)[0].code == "R301"


@pytest.mark.parametrize(
    ("text", "native"), [("{{ x }}", True), ("\n {{ x }} \n", True), ("{{ x }}.", False), ("{{ x }}{{ y }}", False)]
)
def test_one_expression_is_native(text, native):
    assert compile_text(text, bare=False).native is native


def test_nothing_runs_while_a_template_is_compiled():
    compiled = compile_text("{{ 'a' * 1000000000 }}{{ 'x'|replace('x', 'y' * 1000000000) }}", bare=False)
    assert compiled.reads == ()
