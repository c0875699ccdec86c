from __future__ import annotations

import pytest

from agentnb.dialects.agentruntime.parts.prompts import compile_prompts
from agentnb.dialects.agentruntime.schema import PromptsConfig
from agentnb.errors import ExecutionError
from agentnb.sources import make_plain_source, read_text


def compiled(text="", partials=None, **template):
    """Return the prompt "p" as compiled pairs, and what is wrong with it."""
    config = {"partials": partials or {}, "templates": {"p": template or {"user": text}}}
    prompts, problems = compile_prompts(PromptsConfig.model_validate(config), make_plain_source({"prompts": config}))
    return prompts["p"], problems


def only(text, **partials):
    """Return the one text of a prompt that has nothing wrong."""
    pairs, problems = compiled(text, {name.replace("__", "/"): partial for name, partial in partials.items()})
    assert problems == []
    return pairs[0][1]


def render_text(text, context=(), **partials):
    return only(text, **partials).render(dict(context))


def codes(text, **partials):
    return [problem.code for problem in compiled(text, partials)[1]]


def test_roles_come_in_their_order_and_with_their_keys():
    messages = [{"role": "user", "content": "4"}, {"role": "assistant", "content": "5"}]
    pairs, _ = compiled(messages=messages, user="2", assistant="3", system="1")
    assert [(role, prompt.key, prompt.render({})) for role, prompt in pairs] == [
        ("system", "system", "1"),
        ("user", "user", "2"),
        ("assistant", "assistant", "3"),
        ("user", "messages[0]#user", "4"),
        ("assistant", "messages[1]#assistant", "5"),
    ]


def test_an_empty_role_is_left_out():
    assert [role for role, _ in compiled(system="", user="x")[0]] == ["user"]


@pytest.mark.parametrize(("value", "text"), [(3, "3"), ([1, 2], "[1, 2]"), ({"a": 1}, "{'a': 1}"), ("1e5", "1e5")])
def test_a_lone_expression_is_text_too(value, text):
    assert render_text("{{ x }}", {"x": value}) == text
    assert render_text(" {{ x }} ", {"x": value}) == f" {text} "


@pytest.mark.parametrize("end", ["", "{{ x }}", "{% if x %}y{% endif %}"])
def test_one_newline_at_the_end_is_taken_off(end):
    value = {"x": "y"}
    rendered = "y" if end else ""
    assert render_text(f"a{end}\n", value) == f"a{rendered}"
    assert render_text(f"a{end or 'b'}c\n\n", value) == f"a{rendered or 'b'}c\n"


def test_lines_with_blocks_render_no_empty_lines():
    text = "Facts:\n  {% for fact in facts %}\n- {{ fact }}\n  {% endfor %}\nEnd"
    assert render_text(text, {"facts": ["a", "b"]}) == "Facts:\n- a\n- b\nEnd"


def test_the_reads_of_a_prompt_are_known():
    prompt = only("{{ a.b }} {{> p }} {{ partial('q', {'x': c}) }}", p="{{ d }}", q="{{ x }}{{ e }}")
    assert set(prompt.reads) == {("a", "b"), ("c",), ("d",), ("e",)}


def test_two_prompts_differ_by_their_partials():
    assert only("{{> p }}", p="a").source != only("{{> p }}", p="b").source


# ------------------------------------------------------------------------------------------------------------- partials


@pytest.mark.parametrize(
    "mark",
    ["{{> base/top-1.x }}", "{{>base/top-1.x}}", '{{ partial("base/top-1.x") }}', "{{partial('base/top-1.x')}}",
     "{{ partial('base/top-1.x', {}) }}"],
)  # fmt: skip
def test_a_partial_is_included(mark):
    pairs, problems = compiled(f"A {mark} B", {"base/top-1.x": "be {{ how }}\n"})
    assert problems == []
    assert pairs[0][1].render({"how": "kind"}) == "A be kind B"


def test_partials_include_partials():
    assert render_text("{{> a }}", a="1{{> b }}", b="2{{> c }}{{> c }}", c="3") == "1233"


def test_a_partial_in_a_block_sees_what_the_block_binds():
    assert render_text("{% for x in xs %}{{> row }}{% endfor %}", {"xs": [1, 2]}, row="[{{ x }}]") == "[1][2]"


def test_a_block_in_a_partial_keeps_the_surrounding_lines():
    assert render_text("a\n{{> p }}\nb", {"x": 1}, p="{% if x %}yes{% endif %}\n") == "a\nyes\nb"


def test_whitespace_around_a_partial_can_be_trimmed():
    assert render_text("a  {{-> p -}}  b", p=" x ") == "a x b"


def test_arguments_shadow_the_board_in_one_partial():
    text = '{{ partial("p", {"x": x + 1, "y": z}) }} {{> p }}'
    assert render_text(text, {"x": 1, "y": "b", "z": "c"}, p="{{ x }}{{ y }}") == "2c 1b"


def test_arguments_shadow_the_board_in_nested_partials_too():
    assert render_text('{{ partial("a", {"x": 1}) }}', {"x": 0}, a="{{> b }}", b="{{ x }}") == "1"


def test_arguments_shadow_the_board_in_a_block():
    text = '{% for i in xs %}{{ partial("p", overrides={"x": {"n": i ~ "}"}}) }};{% endfor %}'
    assert render_text(text, {"xs": [1, 2]}, p="{{ x.n }}") == "1};2};"


def test_an_include_in_a_comment_or_in_raw_text_is_ignored():
    assert render_text("{# {{> nope }} #}a{% raw %}{{> nope }}{% endraw %}") == "a{{> nope }}"


def test_included_values_are_not_rendered_again():
    assert render_text("{{ x }}", {"x": "{{> p }}{{ y }}"}, p="!") == "{{> p }}{{ y }}"


def test_an_unknown_partial_is_reported_with_a_suggestion():
    problem = compiled("{{> bse }}", {"base": "x"})[1][0]
    assert (problem.code, problem.do) == ("R171", "did you mean 'base'?")
    assert codes('{{ partial("nope") }}') == ["R171"]


@pytest.mark.parametrize(
    "mark", ["{{> a b }}", "{{ partial(x) }}", '{{ partial("p") | upper }}', "{% if partial('p') %}{% endif %}"]
)
def test_a_partial_with_an_invalid_reference_is_reported(mark):
    assert codes(mark, p="x") == ["R172"]


@pytest.mark.parametrize("length", [40, 41])
def test_a_long_reference_is_shown_cut(length):
    reference = f"{{{{> {'a' * length}"[: length - 4] + " b }"
    (problem,) = compiled(f"{reference}\n{{{{> a b }}}}")[1]  # what follows may belong to it
    assert len(reference) == length
    text = reference if length == 40 else f"{reference[:39]}…"
    assert problem.what == f"a reference to a partial cannot be parsed: {text!r}"
    assert problem.where == "<dict>, prompts.templates.p.user, line 1 of the template"


def test_mistakes_of_jinja_are_reported_before_those_of_arguments():
    assert codes('{{ x | uper }}{{ partial("p", {1: 2}) }}', p="x") == ["R303"]
    assert codes('{{ partial("p", {1: 2}) }}{{ partial("p", {3: 4}) }}', p="x") == ["R174", "R174"]
    assert codes('{{> nope }}{{ partial("p", {1: 2}) }}{{ x | uper }}', p="x") == ["R171"]


def test_a_name_may_be_bound_twice():
    assert render_text('{{ partial("p", {"x": 1, "x": 2, "y": 3}) }}', p="{{ x }}{{ y }}") == "23"


@pytest.mark.parametrize("reference", ["{{>\np }}", "{{ partial(\n'p'\n) }}", "{{ partial('p', {'n':\n1}\n) }}"])
def test_a_problem_after_a_reference_of_several_lines_has_its_line(reference):
    text = f"a\n{reference}\n{{{{ x | uper }}}}"
    (problem,) = compiled(text, {"p": "x"})[1]
    assert problem.where.endswith(f"line {text.count(chr(10)) + 1} of the template")


@pytest.mark.parametrize("laid", ["{1: 2}", '{"a b": 1}', "{x: 1}", '{"loop": 1}'])
def test_invalid_argument_names_are_reported(laid):
    assert codes(f'{{{{ partial("p", {laid}) }}}}', p="x") == ["R174"]


def test_a_cycle_of_partials_is_reported_once():
    assert codes("{{> a }}{{> b }}", a="{{> b }}", b="{{> c }}", c="{{> a }}") == ["R175"]
    assert codes("x", a="{{> a }}") == ["R175"]


def test_the_depth_of_partials_is_limited():
    chain = {f"p{n}": f"{{{{> p{n + 1} }}}}" for n in range(40)}
    assert codes("{{> p0 }}", **chain, p40="x") == ["R175"]


@pytest.mark.parametrize(("count", "reported"), [(32, []), (33, ["R175"])])
def test_partials_may_be_nested_to_a_limit(count, reported):
    chain = {f"p{n}": f"{{{{> p{n + 1} }}}}" for n in range(count - 1)}
    assert codes("x", **chain, **{f"p{count - 1}": "x"}) == reported


def test_the_size_of_partials_is_limited():
    chain = {f"p{n}": f"{{{{> p{n + 1} }}}}" * 10 for n in range(12)}
    actual = codes("{{> p0 }}", **chain, p12="x" * 100)
    assert actual
    assert set(actual) == {"R302"}


def test_a_mistake_in_a_partial_is_reported_once_where_it_is():
    problems = compiled("{{> p }}{{> p }}", {"p": "{{ x | uper }}"})[1]
    assert [(p.code, p.where, p.do) for p in problems] == [
        ("R303", "<dict>, prompts.partials.p", "did you mean 'upper'?")
    ]


def test_a_partial_closes_its_own_blocks():
    assert codes("{{> a }}x{{> b }}", a="{% if x %}", b="{% endif %}") == ["R301", "R301"]


def test_a_partial_with_names_counts_as_a_loop():
    loops = "{% for a in xs %}{% for b in xs %}{{ partial('p', {'x': a}) }}{% endfor %}{% endfor %}"
    assert codes(loops, p="{{ x }}") == ["R305"]


@pytest.mark.parametrize(
    "bomb", ['{{ partial("a", {' * 1200, "{#" * 9000 + "{{ x }}", "{% raw %}" * 2000, "{{>" * 6000, "{% " * 6000]
)
def test_a_hostile_prompt_leads_to_problems(bomb):
    assert codes(bomb)


# ---------------------------------------------------------------------------------------------------- the environment


def test_a_variable_of_the_environment_replaces_it():
    prompt = only("Key {{env.KEY}}, {{ env.OTHER }}, {{env.KEY}}; {{ x }}")
    assert prompt.needs == ("KEY", "OTHER")
    assert prompt.reads == (("x",),)
    substituted = prompt.with_env({"KEY": "k", "OTHER": "{{ x }}"})
    assert substituted.render({"x": 1, "env": {"KEY": "the board's"}}) == "Key k, {{ x }}, k; 1"


def test_the_value_of_a_variable_is_not_shown_with_the_prompt():
    substituted = only("{{env.KEY}}").with_env({"KEY": "k-123456"})
    assert "123456" not in f"{substituted!r} {substituted.text} {substituted.source}"


def test_a_variable_in_a_partial_or_block_is_required_too():
    assert only("{% if x %}{{> p }}{% endif %}", p="{{env.KEY}}").needs == ("KEY",)


@pytest.mark.parametrize(
    "text", ["{{ env.KEY | lower }}", "{% if env.KEY %}a{% endif %}", "{{ env }}", "{{ env['KEY'] }}"]
)
def test_an_environment_variable_may_be_a_whole_prompt(text):
    assert codes(text) == ["R173"]


def test_a_key_of_the_board_that_is_called_env_is_reached_by_state():
    assert render_text("{{ state.env.x }}", {"state": {"env": {"x": 1}}}) == "1"


# --------------------------------------------------------------------------------------------------- what is not there


@pytest.mark.parametrize("text", ["{{ x }}", "a {{ x }}", "{{ x.y.z }}"])
def test_a_missing_name_is_an_error(text):
    with pytest.raises(ExecutionError) as caught:
        only(text).render({})
    assert caught.value.problems[0].code == "X321"
    assert "'x'" in caught.value.problems[0].what


def test_a_lone_undefined_expression_is_none_if_not_strict():
    prompt = only("{{ x }}").with_strictness(strict=False)
    assert prompt.render({}) == ""
    assert "undefined" in prompt.warning
    assert prompt.render({"x": None}) == "None"
    assert prompt.warning == ""
    with pytest.raises(ExecutionError):
        prompt.with_strictness(strict=True).render({})
    with pytest.raises(ExecutionError):
        only("a {{ x }}").with_strictness(strict=False).render({})


def test_a_warning_does_not_outlast_its_rendering():
    prompt = only("{{ x }}").with_strictness(strict=False)
    assert (prompt.render({}), prompt.warning != "") == ("", True)
    again = prompt.with_strictness(strict=True)
    assert (again.render({"x": 1}), again.warning) == ("1", "")
    assert prompt.with_strictness(strict=False) is prompt


def test_only_a_lone_expression_may_be_undefined():
    for text in ("{{ x }}{{ y }}", " a{{ x }}", "{% if x %}{% endif %}{{ x }}"):
        with pytest.raises(ExecutionError):
            only(text).with_strictness(strict=False).render({"y": 1})
    assert only(" \n{{ x }} ").with_strictness(strict=False).render({}) == ""


def test_strictness_and_environment_can_be_combined():
    prompt = only("{{env.KEY}}").with_env({"KEY": "k"}).with_strictness(strict=False)
    assert prompt.render({}) == "k"


# --------------------------------------------------------------------------------------------------------------- places

FILE = """\
prompts:
  templates:
    p:
      system: |
        One.
          {{ x | uper }}
      user: "{{ y | uper }}"
      assistant: |
        {{> q }}

        {{> nope }}
  partials:
    q: |-
      fine
      {{ z is od }}
"""


def test_a_problem_in_a_block_has_its_line():
    source = read_text(FILE)
    _, problems = compile_prompts(PromptsConfig.model_validate(source.content["prompts"]), source)
    assert [(p.code, p.where) for p in problems] == [
        ("R303", "<text>:15:7, prompts.partials.q, line 2 of the template"),
        ("R303", "<text>:6:9, prompts.templates.p.system, line 2 of the template"),
        ("R303", "<text>:7:13, prompts.templates.p.user"),
        ("R171", "<text>:11:9, prompts.templates.p.assistant, line 3 of the template"),
    ]


def test_a_cycle_of_partials_is_reported_at_one_of_the_names():
    source = read_text(
        "prompts:\n  templates: {p: {user: x}}\n  partials:\n    first: '{{> second }}'\n    second: '{{> first }}'\n"
    )
    _, problems = compile_prompts(PromptsConfig.model_validate(source.content["prompts"]), source)
    assert [(p.code, p.where) for p in problems] == [("R175", "<text>:4:5, prompts.partials.first")]


WITH_PARTIALS = """
prompts:
  templates:
    p:
      system: |
        Hello
        {{ partial("sig", {"n":
           one}) }} and {{ two }}
        {{> sig }}{{ three }}
      user: "a\\n\\n{{ four }}"
  partials:
    sig: |
      first

      {{ n }}{{> deep }}
      {{ five }}
    deep: |
      {% if six %}
      {{ seven }}
      {% endif %}
"""
NUMBERS = ("n", "one", "two", "three", "four", "five", "six", "seven")


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("two", "8:9, prompts.templates.p.system, line 3"),
        ("n", "15:7, prompts.partials.sig, line 3"),
        ("three", "9:9, prompts.templates.p.system, line 4"),
        ("four", "10:13, prompts.templates.p.user, line 3"),
        ("five", "16:7, prompts.partials.sig, line 4"),
        ("six", "18:7, prompts.partials.deep, line 1"),
        ("seven", "19:7, prompts.partials.deep, line 2"),
    ],
)
def test_a_failure_has_its_line_in_the_source(name, where):
    source = read_text(WITH_PARTIALS)
    prompts, problems = compile_prompts(PromptsConfig.model_validate(source.content["prompts"]), source)
    assert problems == []
    context = {each: each for each in NUMBERS if each != name}
    with pytest.raises(ExecutionError) as caught:
        _ = [prompt.render(context) for _, prompt in prompts["p"]]
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("X321", f"<text>:{where} of the template")
    assert f"reads {name!r}" in problem.what


def test_partials_render_no_extra_lines():
    source = read_text(WITH_PARTIALS)
    prompts, _ = compile_prompts(PromptsConfig.model_validate(source.content["prompts"]), source)
    texts = [prompt.render(dict(zip(NUMBERS, NUMBERS, strict=True))) for _, prompt in prompts["p"]]
    inside = "first\n\n{}seven\n\nfive"
    assert texts == [
        f"Hello\n{inside.format('one')} and two\n{inside.format('n')}three",
        "a\n\nfour",
    ]
