from __future__ import annotations

from textwrap import dedent

import pytest
import yaml

from agentnb.dialects.agentruntime import AgentRuntimeError, NodeExecutionError, build_agent_from_yaml
from agentnb.dialects.agentruntime.loader import recognize
from agentnb.errors import ExecutionError, RecipeError
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.agentruntime.agent_files import (
    HEAD,
    back_and_forth,
    codes,
    edges,
    line,
    path,
    problems,
    ran,
    stepped,
    text,
    write,
)
from tests.dialects.marked_texts import read_marks


def test_it_is_recognized_by_its_keys_or_by_its_class(tmp_path):
    content = yaml.safe_load(text(line("a")))
    assert recognize(content)
    assert recognize(build_agent_from_yaml(content, tmp_path))
    assert load(build_agent_from_yaml(content, tmp_path)).dialect == "agentruntime"
    assert not recognize({"graph": {}})


def test_loading_imports_no_tool(tmp_path):
    recipe = load(write(tmp_path, text(line("a"))))
    (tmp_path / "tools.py").write_text("raise RuntimeError('imported')")
    assert [spec.impl for spec in recipe.tools.values()] == [
        f"tools.py#{name}" for name in ("echo", "add", "failing", "raising")
    ]
    with pytest.raises(RecipeError, match="imported"):
        Session(recipe, {"x": 1})


def test_tools_are_searched_beside_the_file_or_in_the_base_path(tmp_path):
    content = text(
        "nodes: [{id: call, type: tool, uses: echo, inputs: {text: hello}, map: {set: {a: '{{ result.text }}'}}}]"
    )
    assert ran(tmp_path, content).state["a"] == "hello"
    with pytest.raises(RecipeError, match=r"tools\.py"):
        build_agent_from_yaml(yaml.safe_load(content), tmp_path / "elsewhere").run({"x": 1})


def test_an_overridden_tool_is_not_imported(tmp_path):
    content = text("nodes: [{id: call, type: tool, uses: echo, map: {set: {a: '{{ result.n }}'}}}]")
    only_echo = content.replace(content[content.index("  - {id: add") : content.index("graph:")], "")
    agent = build_agent_from_yaml(yaml.safe_load(only_echo), tmp_path)  # there is no tools.py
    assert agent.run({"x": 1}, tool_overrides={"echo": lambda: {"n": 5}})["a"] == 5
    with pytest.raises(ExecutionError, match=r"X146(.|\n)*did you mean 'echo'"):
        agent.run({"x": 1}, tool_overrides={"echo": lambda: {"n": 5}, "ecoh": lambda: {"n": 5}})


# -- the document's own examples ----------------------------------------------------------------------------------


def test_the_documented_mapping_works_as_printed(tmp_path):
    graph = """
    nodes:
      - id: find
        type: tool
        uses: echo
        inputs: {text: hello, items: [1, 2]}
        map:
          set:
            output.answer: "{{ result.text }}"
          merge:
          history: { values: "{{ result['items'] }}" }
          delete:
            - temp_field
    """
    head = HEAD.replace("c: any}", "c: any, temp_field: any, history: any}")
    state = ran(tmp_path, text(graph, head=head), {"x": 1}).state
    assert (state["output"], state["history"]) == ({"answer": "hello"}, {"values": [1, 2]})
    assert "temp_field" not in state


# -- failures -----------------------------------------------------------------------------------------------------

AFTER = line("next", "rescue").removeprefix("nodes:\n").replace("[next]}}", "[next]}}, on_error: {to: rescue}")


def handled(on_error, uses="failing", when=""):
    return f"""
nodes:
  - id: try
    type: tool
    uses: {uses}
    inputs: {{q: 1}}
    map: {{set: {{a: "{{{{ result.text }}}}"}}}}
    on_error: {on_error}
{AFTER}
edges:
  - {{from: try, to: next{when}}}
"""


@pytest.mark.parametrize("uses", ["failing", "raising"])
@pytest.mark.parametrize(
    ("on_error", "way"),
    [("{to: rescue}", ["rescue"]), ("{resume: true}", ["next"]), ("{to: rescue, resume: true}", ["rescue", "next"])],
)
def test_a_failure_follows_its_handler_or_continues_or_both(tmp_path, uses, on_error, way):
    done = ran(tmp_path, text(handled(on_error, uses)))
    assert done.path == ["try error", *way]
    assert (done.state["log"], done.state["a"]) == (way, None)  # a failed node's map is not applied


@pytest.mark.parametrize(
    ("on_error", "way"),
    [
        ("{to: rescue}", ["rescue"]),
        ("{resume: true}", ["next", "second"]),
        ("{to: rescue, resume: true}", ["rescue", "next", "second"]),
    ],
)
def test_the_handler_of_a_failure_goes_to_the_front_of_the_queue(tmp_path, on_error, way):
    graph = handled(on_error).replace("nodes:", "nodes:\n  - {id: start, type: noop}", 1)
    graph = graph.replace(
        "edges:",
        "  - {id: beside, type: noop}\n  - {id: second, type: noop}\n  - {id: last, type: noop}\nedges:\n"
        "  - {from: start, to: try}\n  - {from: start, to: beside}\n  - {from: start, to: last}",
    )
    graph += "  - {from: try, to: second}\n"
    assert ran(tmp_path, text(graph)).path == ["start", "try error", *way, "beside", "last"]


def test_the_edges_of_a_subgraph_that_failed_go_to_the_front_too(tmp_path):
    graph = """
    nodes:
      - {id: start, type: noop}
      - {id: try, type: subgraph, graph: inner, on_error: {resume: true}}
      - {id: beside, type: noop}
      - {id: next, type: noop}
    edges: [{from: start, to: try}, {from: start, to: beside}, {from: try, to: next}]
    """
    inner = "subgraphs: {inner: {inputs: [x], outputs: [x], nodes: [{id: breaks, type: tool, uses: raising}]}}"
    path = ran(tmp_path, text(graph, inner)).path
    assert [step for step in path if "try" not in step] == ["start", "breaks error", "next", "beside"]


def test_the_rules_of_the_edges_see_the_failure(tmp_path):
    when = ', when: {"==": [{var: result.error.type}, %s]}'
    assert ran(tmp_path, text(handled("{resume: true}", when=when % "quota"))).path == ["try error", "next"]
    assert ran(tmp_path, text(handled("{resume: true}", when=when % "other"))).path == ["try error"]


def test_rules_see_the_error_of_a_tool_as_an_exception(tmp_path):
    when = ', when: {in: ["it broke", {var: result.exception}]}'
    assert ran(tmp_path, text(handled("{resume: true}", "raising", when))).path == ["try error", "next"]


def test_a_failed_node_writes_nothing_to_the_board(tmp_path):
    state = ran(tmp_path, text(handled("{to: rescue}"))).state
    assert state == {"n": 0, "log": ["rescue"], "x": 1, "a": None, "b": None, "c": None}


def test_an_error_in_a_mapping_is_a_failure_of_its_node(tmp_path):
    graph = handled("{to: rescue}", "echo").replace("result.text", "result.text.deeper.still")
    done = ran(tmp_path, text(graph))
    assert (done.path, done.state["a"]) == (["try error", "rescue"], None)


@pytest.mark.parametrize("uses", ["failing", "raising"])
def test_without_a_handler_the_run_ends_there(tmp_path, uses):
    graph = handled("{to: rescue}", uses).replace("    on_error: {to: rescue}\n", "")
    file = write(tmp_path, text(graph))
    session = stepped(file, {"x": 1})
    assert (session.status, session.current) == ("failed", "try")
    back_and_forth(session)


def test_a_fallback_may_fail_and_have_its_own_fallback(tmp_path):
    graph = """
    nodes:
      - {id: one, type: tool, uses: failing, on_error: {to: two}}
      - {id: two, type: tool, uses: raising, on_error: {to: three}}
      - {id: three, type: noop}
    """
    assert ran(tmp_path, text(graph)).path == ["one error", "two error", "three"]


# -- steps --------------------------------------------------------------------------------------------------------

CYCLE = """
nodes:
  - {id: start, type: noop}
  - {id: add, type: tool, uses: add, inputs: {n: "{{ n }}"}, map: {set: {n: "{{ result.result }}"}}}
  - id: route
    type: router
    cases: [{when: {"<": [{var: state.n}, 3]}, to: add}]
    default: done
  - {id: done, type: noop}
edges: [{from: start, to: add}, {from: add, to: route}]
"""


def test_a_router_that_leads_back_forms_a_cycle(tmp_path):
    done = ran(tmp_path, text(CYCLE))
    assert done.path == ["start", *["add", "route"] * 3, "done"]
    assert done.state["n"] == 3


def test_max_steps_ends_an_endless_cycle(tmp_path):
    forever = CYCLE.replace('{"<": [{var: state.n}, 3]}', '{"==": [1, 1]}')
    agent = build_agent_from_yaml(yaml.safe_load(text(forever + "max_steps: 9")), write(tmp_path, text(forever)).parent)
    with pytest.raises(AgentRuntimeError, match=r"X420.*max_steps"):
        agent.run({"x": 1})
    assert len(agent.trace.steps) == 9
    with pytest.raises(AgentRuntimeError, match="max_steps"):
        agent.run({"x": 1}, max_steps=4)
    assert len(agent.trace.steps) == 4
    with pytest.raises(AgentRuntimeError, match="max_steps"):
        agent.run({"x": 1}, max_steps=0)  # the graph's own
    assert len(agent.trace.steps) == 9


def test_a_run_of_exactly_max_steps_finishes(tmp_path):
    chain = "\n".join([line("a", "b", "c"), edges("a-b", "b-c")])
    assert ran(tmp_path, text(chain), max_steps=3).path == ["a", "b", "c"]
    with pytest.raises(AgentRuntimeError, match="max_steps"):
        ran(tmp_path, text(chain), max_steps=2)


def test_the_default_limit_of_a_graph_is_200_steps(tmp_path):
    assert load(write(tmp_path, text(line("a")))).limits["max_steps"] == 200


def test_iterations_of_a_loop_count_once_and_steps_of_a_subgraph_count(tmp_path):
    rounds = text(line("w", "end") + "\n  - {id: l, type: loop, body: w, max_iterations: 5}\n" + edges("l-end"))
    assert ran(tmp_path, rounds, max_steps=2).state["log"] == ["w"] * 5 + ["end"]
    with pytest.raises(AgentRuntimeError, match="max_steps"):
        ran(tmp_path, rounds, max_steps=1)
    inner = "subgraphs:\n  one:\n    inputs: [x]\n    outputs: [log]\n    max_steps: 1\n    " + "\n    ".join(
        "\n".join([line("p", "q"), edges("p-q")]).splitlines()
    )
    nested = text("nodes: [{id: s, type: subgraph, graph: one}]", inner)
    assert ran(tmp_path, nested, max_steps=3).path == ["s enter", "p", "q", "s leave"]
    with pytest.raises(AgentRuntimeError, match="max_steps"):
        ran(tmp_path, nested, max_steps=2)


# -- what is read, and told ---------------------------------------------------------------------------------------


def test_the_graph_has_a_time_limit():
    assert load(text(line("a") + "\ntimeout: {seconds: 7}")).limits["max_seconds"] == 7


def test_tracing_does_nothing_and_is_reported_once():
    head = HEAD.replace("{name: t}", "{name: t, defaults: {tracing: {enabled: true}}}")
    assert problems(text(line("a"), head=head)) == [("R170", "warning")]


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_memory_of_another_kind_is_reported(kind):
    assert "R186" in codes(text(line("a"), f"memory: {{enabled: true, kind: {kind}, dsn: some}}"))


def test_a_disabled_memory_does_nothing():
    assert load(text(line("a"), "memory: {enabled: false, kind: redis}")).finish is None


SUBGRAPH_TOOL = """
subgraphs:
  inner: {inputs: [q], outputs: [found], nodes: [{id: say, type: noop, map: {set: {found: "{{ q }}!"}}}]}
"""


def test_a_tool_may_be_a_subgraph(tmp_path):
    graph = "nodes: [{id: call, type: tool, uses: deep, inputs: {q: '{{ x }}'}, map: {set: {a: '{{ result.found }}'}}}]"
    content = text(graph, SUBGRAPH_TOOL).replace("graph:\n", "  - {id: deep, kind: subgraph, impl: inner}\ngraph:\n", 1)
    done = ran(tmp_path, content, {"x": "sky"})
    assert (done.state["a"], done.path) == ("sky!", ["call enter", "say", "call leave"])
    done = ran(tmp_path, content, {"x": "sky"}, tool_overrides={"deep": lambda q: {"found": f"no {q}"}})
    assert (done.state["a"], done.path) == ("no sky", ["call"])


def test_a_tool_may_not_be_a_missing_subgraph():
    content = text("nodes: [{id: call, type: tool, uses: deep}]", SUBGRAPH_TOOL)
    assert "R185" in codes(content.replace("graph:\n", "  - {id: deep, kind: subgraph, impl: iner}\ngraph:\n", 1))


def test_a_failing_tool_raises_what_a_caller_expects(tmp_path):
    file = write(tmp_path, text("nodes: [{id: call, type: tool, uses: failing}]"))
    with pytest.raises(NodeExecutionError):
        build_agent_from_yaml(yaml.safe_load(file.read_text()), tmp_path).run({"x": 1})


def test_a_file_and_its_dict_are_the_same_recipe(tmp_path):
    file = write(tmp_path, text(CYCLE))
    agent = build_agent_from_yaml(yaml.safe_load(file.read_text()), tmp_path)
    assert agent.recipe.fingerprint == load(file).fingerprint
    assert path(stepped(file, {"x": 1}).trace)[0] == "start"


# -- what is told of tools and models, and does not keep a file from loading -----------------------------------------


def find_problems(content, code):
    return [problem for problem in load(content).check() if problem.code == code]


def test_duplicate_tool_ids_are_reported_and_the_last_one_is_used(tmp_path):
    graph = "nodes: [{id: a, type: tool, uses: echo, inputs: {n: 1}, map: {set: {a: '{{ result.result }}'}}}]"
    content = text(graph).replace("tools:\n", 'tools:\n  - {id: echo, kind: python, impl: "tools.py#raising"}\n')
    (problem,) = find_problems(content, "R240")
    assert (problem.severity, ", tools[0].id" in problem.where, ", tools[1].id" in problem.why) == (
        "warning",
        True,
        True,
    )
    assert ran(tmp_path, content).state["a"] == {"n": 1}
    assert find_problems(text(graph), "R240") == []


MODELS = "{name: t, defaults: {llm: '%s'}, providers: {%s}}"


def meta(llm, providers):
    return text(line("a"), head=HEAD.replace("{name: t}", MODELS % (llm, providers)))


@pytest.mark.parametrize("llm", ["opnai:gpt", "opnai"])
def test_a_default_model_whose_provider_is_not_listed_is_reported(llm):
    (problem,) = find_problems(meta(llm, "openai: {model: m}"), "R241")
    assert (problem.severity, problem.do) == ("warning", "did you mean 'openai'?")
    assert problem.where.endswith(", meta.defaults.llm")
    assert "'opnai'" in problem.what
    assert find_problems(meta("openai:gpt", "openai: {model: m}"), "R241") == []
    assert find_problems(meta(":gpt", "openai: {}"), "R241") == []


def test_a_missing_provider_is_reported_too():
    (problem,) = find_problems(meta("ours:m", ""), "R241")
    assert problem.do == "add 'ours' under meta.providers"


@pytest.mark.parametrize(
    ("settings", "path"), [("{type: opnai}", "meta.providers.ours.type"), ("{}", "meta.providers.ours")]
)
def test_an_unknown_kind_of_provider_is_reported_at_its_place(settings, path):
    (problem,) = find_problems(meta("ours:m", f"ours: {settings}"), "R242")
    assert (problem.severity, problem.where.split(", ")[-1]) == ("warning", path)
    assert find_problems(meta("ours:m", "ours: {type: openai_compatible}"), "R242") == []


def test_an_unknown_setting_is_reported_at_its_place():
    content = meta("openai:m", "openai: {tempratur: 1, temperature: 1, kwargs: {tempratur: 1}}, claude: {modle: x}")
    first, second = find_problems(content, "R243")
    assert (first.severity, first.do) == ("warning", "did you mean 'temperature'?")
    assert (first.where.split(", ")[-1], second.where.split(", ")[-1]) == (
        "meta.providers.openai.tempratur",
        "meta.providers.claude.modle",
    )
    assert second.do == "did you mean 'model'?"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{type: nobody}", "X330"),
        ("{}", "X332"),
        ("{api_key: '{{env.NOPE_X}}'}", "X333"),
        ("{model: 5}", "X334"),
        ("{client_kwargs: {profile: p}}", "X367"),
        ("{base_url: 'http://127.0.0.1:9'}", "X368"),
    ],
)
def test_errors_of_a_provider_are_reported_at_their_place(tmp_path, monkeypatch, settings, code):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AgentRuntimeError, match=code) as caught:
        Session(load(write(tmp_path, meta("openai:m", f"openai: {settings}"))), {"x": 1})
    assert "agent.yaml:1:" in caught.value.problems[0].where
    assert ", meta.providers.openai" in caught.value.problems[0].where


def test_a_prompt_that_names_a_variable_which_is_not_set_is_reported_at_its_place(tmp_path, monkeypatch):
    monkeypatch.delenv("NOPE_X", raising=False)
    content = text("nodes: [{id: a, type: llm, prompt: ask}]", "prompts: {templates: {ask: {user: '{{env.NOPE_X}}'}}}")
    with pytest.raises(AgentRuntimeError, match="X333") as caught:
        Session(load(write(tmp_path, content)), {"x": 1}, llm=["fine"])
    assert caught.value.problems[0].where.endswith(", prompts.templates.ask.user")


def test_an_endless_loop_is_reported_in_terms_of_its_file(tmp_path):
    graph = """
    nodes:
      - {id: go, type: loop, body: a, until: {"==": [{var: state.n}, 1]}, max_iterations: 3}
      - {id: a, type: noop}
    """
    error = stepped(write(tmp_path, text(graph)), {"x": 1}).error
    assert error.code == "X401"
    assert "max_iterations" in error.why
    assert "on_exhausted" in error.do
    assert "`max`" not in str(error)


STATE = """
meta: {{name: t}}
state:
  reducer: {reducer}
  shape: {{b: any, a: any, x: any, log: any}}
  init: {{log: [], a: {a}}}
"""


def begun(tmp_path, given, *, reducer="deepmerge", a="[1]", inputs="[a]"):
    head = STATE.format(reducer=reducer, a=a)
    return ran(tmp_path, text("nodes:\n  - {id: only, type: noop}", head=head, inputs=inputs), given).state


def test_initial_values_come_first_and_then_the_other_declared_keys(tmp_path):
    state = begun(tmp_path, {"a": None})
    assert list(state.items()) == [("log", []), ("a", [1]), ("b", None), ("x", None)]


@pytest.mark.parametrize(
    ("init", "given", "merged"),
    [
        ("[1]", [2, 3], [1, 2, 3]),
        ("{k: 1, deep: {l: [1]}}", {"deep": {"l": [2], "m": 3}}, {"k": 1, "deep": {"l": [1, 2], "m": 3}}),
        ("1", None, 1),
        ("1", 2, 2),
        ("[1]", "text", "text"),
        ("{k: 1}", {"k": None}, {"k": 1}),
        ("null", {"k": None}, {"k": None}),
    ],
)
def test_an_input_is_merged_into_the_existing_value(tmp_path, init, given, merged):
    assert begun(tmp_path, {"a": given}, a=init)["a"] == merged


@pytest.mark.parametrize("given", [[2], None, {"k": 1}])
def test_an_input_can_replace_the_existing_value(tmp_path, given):
    assert begun(tmp_path, {"a": given}, reducer="replace")["a"] == given


def test_an_undeclared_input_is_a_key_too(tmp_path):
    state = begun(tmp_path, {"other": 5}, inputs="[other]")
    assert (state["other"], list(state)[-1]) == (5, "other")


def test_undeclared_inputs_are_visible_as_inputs_only(tmp_path):
    graph = """
    nodes:
      - {id: look, type: noop, map: {set: {a: "{{ inputs.extra }}", b: "{{ inputs.x }}"}}}
    """
    with pytest.warns(UserWarning, match="R220: input 'extra' is not known"):
        state = ran(tmp_path, text(graph), {"x": 1, "extra": [4]}).state
    assert (state["a"], state["b"], "extra" in state) == ([4], 1, False)


def test_missing_inputs_are_all_named(tmp_path):
    agent = ran(tmp_path, text(line("a"), inputs="[x, y, z]"), {"x": 1, "y": 2, "z": 3}).agent
    with pytest.raises(AgentRuntimeError, match=r"X419.*y, z"):
        agent.run({"x": 1})


def test_a_session_names_missing_inputs_too_and_uses_initial_values(tmp_path):
    with pytest.raises(ValueError, match="'x'"):
        Session(load(write(tmp_path, text(line("a")))), {})
    assert Session(load(write(tmp_path, text(line("a"), inputs="[n]"))), {}).board["n"] == 0


def test_values_of_the_caller_are_not_changed(tmp_path):
    inputs = {"x": {"deep": [1]}}
    graph = "nodes:\n  - {id: put, type: noop, map: {merge: {x: {deep: [2]}}}}"
    state = ran(tmp_path, text(graph), inputs).state
    assert (inputs, state["x"]) == ({"x": {"deep": [1]}}, {"deep": [1, 2]})


def test_an_agent_can_run_again_and_starts_over(tmp_path):
    agent = ran(tmp_path, text(line("a")), {"x": 1}).agent
    assert agent.run({"x": 2}) == {**agent.run({"x": 3}), "x": 2}
    assert agent.run({"x": 1})["log"] == ["a"]


@pytest.mark.parametrize(
    ("defaults", "provider"),
    [
        ("llm: 'openai:gpt'", ("openai:gpt", {"model": "m"}, 0.3)),
        ("llm: openai, temp: 0", ("openai:", {"model": "m"}, 0)),
        ("llm: ':gpt', temp: 1.5", ("openai:gpt", {"model": "m"}, 1.5)),
        ("llm: gone", None),
        ("temp: 1", None),
    ],
)
def test_the_model_of_a_recipe_is_that_of_its_defaults(defaults, provider):
    name = f"{{name: t, defaults: {{{defaults}}}, providers: {{other: {{}}, «»openai: {{model: m}}}}}}"
    whole, ((_, spot),) = read_marks(text(line("a"), head=HEAD.replace("{name: t}", name)))
    expected = provider and (*provider, f"<text>:{spot}, meta.providers.openai")
    assert load(whole).meta["provider"] == expected


def test_inputs_without_an_initial_value_are_required():
    head = HEAD.replace("c: any}", "c: any, d: any}").replace("init: {n: 0", "init: {n: 0, b: null, c: 1, d: false")
    recipe = load(text(line("a"), head=head, inputs="[x, n, a, b, c, d]"))
    assert recipe.meta["required"] == ("x", "a", "b")
    assert list(recipe.inputs) == ["x", "n", "a", "b", "c", "d"]
    assert (recipe.outputs, recipe.timeouts, recipe.routing, recipe.finish) == (("log",), "error", "all", None)
    assert dict(recipe.init) == {"n": 0, "b": None, "c": 1, "d": False, "log": []}
    assert dict(recipe.limits) == {"max_steps": 200, "max_subgraph_depth": 8}


def test_a_tool_has_the_settings_of_its_file():
    tools = """
    tools:
      - {id: one, kind: langchain, impl: "m#C", mode: class, config: {init: {n: 1}, k: 2}, timeout: 5}
      - {id: two, kind: http, impl: "m#f"}
    """
    graph = text(line("a")).replace("\ntools:", dedent(tools), 1)
    one, two = (tool for tool in load(graph).tools.values() if tool.id in ("one", "two"))
    assert (one.kind, one.impl, one.mode, dict(one.config), one.timeout) == (
        *("langchain", "m#C", "class"),
        {"init": {"n": 1}, "k": 2},
        5,
    )
    assert (two.kind, two.impl, two.mode, dict(two.config), two.timeout) == ("http", "m#f", "callable", {}, None)
