from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentnb.dialects.agentruntime.parts.settings import Defaults, MemoryConfig, RetryConfig
from agentnb.dialects.agentruntime.schema import AgentDefinition, MapConfig, PromptTemplate, infer_type, read
from agentnb.sources import make_plain_source, read_text

HEAD = """\
meta: {name: t}
state: {shape: {a: str}}
"""
DOCUMENTED = """\
set:
  output.answer: "{{ result.text }}"
merge:
history: { values: "{{ result['items'] }}" }
delete:
  - temp_field
"""


def content(*nodes, **more):
    graph = {"inputs": ["a"], "outputs": ["a"], "nodes": list(nodes) or [{"id": "n"}]}
    return {"meta": {"name": "t"}, "state": {"shape": {"a": "str"}}, "graph": graph, **more}


def node(**fields):
    """Return the node of a definition that has just this one."""
    return AgentDefinition.model_validate(content({"id": "n", **fields})).graph.nodes[0]


def list_problems(source):
    """Return (code, severity, where) of all that is wrong with a text or a dict."""
    source = read_text(source) if isinstance(source, str) else make_plain_source(source)
    return [(problem.code, problem.severity, problem.where) for problem in read(source)[1]]


def first(source):
    source = read_text(source) if isinstance(source, str) else make_plain_source(source)
    return read(source)[1][0]


def test_nothing_can_be_changed():
    agent = AgentDefinition.model_validate(content())
    with pytest.raises(ValidationError):
        agent.graph.max_steps = 3


def test_missing_fields_have_the_defaults_of_the_system():
    agent = AgentDefinition.model_validate(content())
    assert (agent.meta.schema_version, agent.meta.defaults.temp, agent.meta.defaults.llm) == (1, 0.3, None)
    assert (agent.state.reducer, agent.state.init) == ("deepmerge", {})
    assert (agent.prompts.templates, agent.memory, agent.tools, agent.subgraphs) == ({}, None, [], {})
    assert (agent.graph.edges, agent.graph.max_steps, agent.graph.timeout) == ([], 200, None)


NODE_DEFAULTS = {"name": None, "description": None, "retry": None, "timeout": None, "on_error": None}


@pytest.mark.parametrize(
    ("fields", "defaults"),
    [
        ({"type": "tool", "uses": "t"}, {"inputs": {}, "map": None, "repeatable": None}),
        ({"type": "llm", "prompt": "p"}, {"map": None, "repeatable": None}),
        ({"type": "router", "cases": [{"when": True, "to": "b"}]}, {"default": None}),
        ({"type": "loop", "body": "b"}, {"until": None, "max_iterations": 10, "on_exhausted": None}),
        ({"type": "subgraph", "graph": "g"}, {"inputs": {}, "map": None}),
        ({"type": "noop"}, {"map": None}),
    ],
)
def test_a_node_has_the_defaults_of_its_type(fields, defaults):
    assert node(**fields).model_dump() == {"id": "n", **fields, **NODE_DEFAULTS, **defaults}


def test_the_other_parts_have_their_defaults():
    tool = {"id": "t", "kind": "python", "impl": "m#f"}
    agent = AgentDefinition.model_validate(content(tools=[tool], subgraphs={"s": content()["graph"]}))
    rest = {"mode": "callable", "config": {}, "retry": None, "timeout": None, "repeatable": None}
    assert agent.tools[0].model_dump() == {**tool, **rest}
    for graph in (agent.graph, agent.subgraphs["s"]):
        assert (graph.edges, graph.max_steps, graph.retry, graph.timeout) == ([], 200, None, None)
    assert (agent.meta.providers, agent.prompts.partials) == ({}, {})
    assert MapConfig(set={"a": 1}).model_dump() == {"set": {"a": 1}, "merge": {}, "delete": [], "history": {}}
    assert PromptTemplate(user="x").model_dump() == {"system": None, "user": "x", "assistant": None, "messages": []}


LEFT_EMPTY = """\
meta: {name: t, defaults: , providers: }
state: {shape: {a: str}, init: }
prompts: {partials: , templates: {p: {user: x, messages: }}}
memory: {config: }
tools: [{id: t, kind: python, impl: "m#f", config: }]
graph:
  inputs: [a]
  outputs: [a]
  nodes: [{id: n, uses: t, inputs: , map: {set: {a: 1}, merge: , delete: , history: }}, {id: m, graph: s, inputs: }]
subgraphs: {s: {inputs: [a], outputs: [a], nodes: [{id: n}], edges: }}
"""


def test_any_mapping_or_list_may_be_left_empty():
    definition, problems = read(read_text(LEFT_EMPTY))
    assert problems == []
    spare = LEFT_EMPTY
    for empty in (
        "defaults",
        "providers",
        "init",
        "partials",
        "messages",
        "config",
        "inputs",
        "merge",
        "delete",
        "history",
    ):
        spare = spare.replace(f", {empty}: ", "").replace(f"{{{empty}: }}", "{}").replace(f"{empty}: , ", "")
    assert definition == read(read_text(spare))[0]
    assert read(read_text(LEFT_EMPTY.replace("{partials: , templates: {p: {user: x, messages: }}}", "{templates: }")))[
        0
    ]


NUMBERS = {
    # path -> the values at and beyond its bounds: (accepted, rejected)
    "meta.schema_version": ([1, 2], [0, -1, 1.5]),
    "meta.defaults.temp": ([0, 0.5, 7], [-0.1, float("inf"), float("nan")]),
    "meta.defaults.retry.max_attempts": ([1, 2], [0]),
    "meta.defaults.retry.backoff": ([0, 0.1], [-0.1, float("inf")]),
    "meta.defaults.timeout.seconds": ([0.1], [0, -1, float("inf")]),
    "meta.defaults.tracing.sample": ([0, 0.5, 1], [-0.1, 1.1]),
    "memory.k": ([1, 2], [0]),
    "graph.max_steps": ([1, 2], [0]),
}


@pytest.mark.parametrize("path", NUMBERS)
def test_numbers_have_bounds(path):
    def place(value):
        *around, last = path.split(".")
        whole = content(memory={})
        inner = whole
        for key in around:
            inner = inner.setdefault(key, {})
        inner[last] = value
        return list_problems(whole)

    accepted, rejected = NUMBERS[path]
    for value in accepted:
        assert {code for code, _, _ in place(value)} <= {"R170"}
    for value in rejected:
        assert place(value) == [("R114", "error", f"<dict>, {path}")]


@pytest.mark.parametrize(
    "path",
    [
        "meta.name",
        "meta.defaults.llm",
        "memory.session_key",
        "graph.inputs[0]",
        "graph.outputs[0]",
        "graph.nodes[0].id",
        "graph.nodes[0].on_error.to",
        "graph.edges[0].from",
        "graph.edges[0].to",
        "graph.nodes[1].uses",
        "graph.nodes[2].prompt",
        "graph.nodes[3].cases[0].to",
        "graph.nodes[3].default",
        "graph.nodes[4].body",
        "graph.nodes[5].graph",
        "tools[0].id",
        "tools[0].impl",
        "prompts.templates.p.messages[0].role",
    ],
)
@pytest.mark.parametrize("name", ["", "n"])
def test_a_name_is_not_empty(path, name):
    nodes = [
        {"id": "n", "on_error": {"to": "b", "resume": True}},
        {"id": "t", "type": "tool", "uses": "t"},
        {"id": "l", "type": "llm", "prompt": "p"},
        {"id": "r", "type": "router", "cases": [{"when": True, "to": "n"}], "default": "n"},
        {"id": "o", "type": "loop", "body": "n"},
        {"id": "s", "type": "subgraph", "graph": "g"},
    ]
    whole = content(
        *nodes,
        memory={"session_key": "s"},
        tools=[{"id": "t", "kind": "python", "impl": "m#f"}],
        prompts={"templates": {"p": {"messages": [{"role": "user", "content": ""}]}}},
    )
    whole["meta"]["defaults"] = {"llm": "m"}
    whole["graph"]["edges"] = [{"from": "n", "to": "t"}]
    *around, last = path.replace("[", ".").replace("]", "").split(".")
    inner = whole
    for key in around:
        inner = inner[int(key) if key.isdigit() else key]
    inner[int(last) if last.isdigit() else last] = name
    assert list_problems(whole) == ([] if name else [("R114", "error", f"<dict>, {path}")])


def test_a_section_that_is_left_empty_counts_as_left_out():
    text = HEAD + "prompts:\ntools:\nsubgraphs:\nmemory:\ngraph: {inputs: [a], outputs: [a], nodes: [{id: n}], edges: }"
    definition, problems = read(read_text(text))
    assert problems == []
    assert definition.tools == []
    assert definition.prompts.templates == {}


@pytest.mark.parametrize(
    ("fields", "type"),
    [
        ({"uses": "search"}, "tool"),
        ({"prompt": "ask"}, "llm"),
        ({"cases": [{"when": True, "to": "a"}]}, "router"),
        ({"body": "a"}, "loop"),
        ({"graph": "inner"}, "subgraph"),
        ({}, "noop"),
        ({"uses": "search", "prompt": "ask"}, "tool"),
        ({"type": "noop", "uses": "search"}, "noop"),
    ],
)
def test_a_node_without_a_type_has_the_first_matching_type(fields, type):
    assert node(**fields).type == type
    assert infer_type({"id": "n", **fields}) == type


def test_the_documented_mapping_is_valid_as_printed():
    text = read_text(DOCUMENTED)
    actual = MapConfig.model_validate(text.content)
    assert actual.set == {"output.answer": "{{ result.text }}"}
    assert actual.merge == {}
    assert actual.history == {"values": "{{ result['items'] }}"}
    assert actual.delete == ["temp_field"]


@pytest.mark.parametrize("empty", [{}, {"set": {}}, {"merge": None}, {"delete": [], "history": {}}])
def test_an_empty_mapping_node_is_an_error(empty):
    assert list_problems(content({"id": "n", "map": empty})) == [("R114", "error", "<dict>, graph.nodes[0].map")]


def test_settings_that_are_not_given_have_their_defaults():
    assert RetryConfig().model_dump() == {"max_attempts": 1, "backoff": 1.0}
    assert Defaults().model_dump(exclude_none=True) == {"temp": 0.3}
    assert MemoryConfig().model_dump(exclude_none=True) == {
        "enabled": False, "type": "langchain_history", "kind": "inmemory", "session_key": "session_id", "config": {},
    }  # fmt: skip


@pytest.mark.parametrize(("given", "seconds"), [(3, 3.0), (0.5, 0.5), ({"seconds": 2}, 2.0)])
def test_a_timeout_is_a_number_or_a_mapping_with_seconds(given, seconds):
    assert node(timeout=given).timeout.seconds == seconds


@pytest.mark.parametrize("given", [0, -1, True, "soon", {"seconds": 0}, {"seconds": float("inf")}, [3]])
def test_an_invalid_timeout_is_reported_once(given):
    problems = list_problems(content({"id": "n", "timeout": given}))
    assert [code for code, _, _ in problems] == ["R114"]
    assert problems[0][2].startswith("<dict>, graph.nodes[0].timeout")


@pytest.mark.parametrize("word", ["backoff", "backoff_seconds"])
def test_both_names_for_the_seconds_between_attempts_are_accepted(word):
    assert list_problems(content({"id": "n", "uses": "x", "retry": {"max_attempts": 3, word: 0.5}})) == []
    retry = node(retry={"max_attempts": 3, word: 0.5}).retry
    assert (retry.max_attempts, retry.backoff) == (3, 0.5)


def test_the_default_backoff_is_one_second():
    assert node(retry={"max_attempts": 3}).retry.backoff == 1.0


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({}, "continue"),
        ({"until": None}, "continue"),
        ({"until": {}}, "continue"),
        ({"until": {"var": "state.a"}}, "error"),
        ({"until": {"var": "state.a"}, "on_exhausted": "continue"}, "continue"),
        ({"on_exhausted": "error"}, "error"),
    ],
)
def test_the_end_of_a_loop_can_be_configured(fields, end):
    assert node(body="b", **fields).exhausted == end


@pytest.mark.parametrize("rule", [{"var": "state.a"}, True, False])
def test_a_rule_is_a_mapping_or_a_boolean(rule):
    assert node(cases=[{"when": rule, "to": "b"}]).cases[0].when == rule


@pytest.mark.parametrize("rule", ["state.a > 3", 3, ["a"]])
def test_a_rule_of_another_type_is_reported(rule):
    problem = first(content({"id": "n", "cases": [{"when": rule, "to": "b"}]}))
    assert (problem.code, problem.where) == ("R114", "<dict>, graph.nodes[0].cases[0].when")
    assert problem.do.startswith('write it as {"==":')


@pytest.mark.parametrize(
    ("fields", "code", "where"),
    [
        ({"type": "router", "cases": []}, "R114", ".cases"),
        ({"type": "router"}, "R113", ""),
        ({"type": "loop", "body": "b", "max_iterations": 0}, "R114", ".max_iterations"),
        ({"type": "loop", "body": "b", "on_exhausted": "stop"}, "R114", ".on_exhausted"),
        ({"type": "tool"}, "R113", ""),
        ({"type": "llm", "prompt": 3}, "R114", ".prompt"),
        ({"type": "tol"}, "R114", ".type"),
        ({"on_error": {}}, "R114", ".on_error"),
        ({"on_error": {"resume": False}}, "R114", ".on_error"),
        ({"id": ""}, "R114", ".id"),
    ],
)
def test_an_invalid_node_is_reported_once(fields, code, where):
    assert list_problems(content({"id": "n", **fields})) == [(code, "error", f"<dict>, graph.nodes[0]{where}")]


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"meta": {}}, "R113", "meta"),
        ({"state": {"shape": {}}}, "R114", "state.shape"),
        ({"state": {"shape": {"a": 1}, "init": {"b": 1}}}, "R114", "state.init.b"),
        ({"state": {"shape": {"a": 1}, "reducer": "deep"}}, "R114", "state.reducer"),
        ({"graph": {"inputs": [], "outputs": ["a"], "nodes": []}}, "R114", "graph.inputs"),
        ({"graph": {"inputs": ["a"], "nodes": []}}, "R113", "graph"),
        ({"prompts": {"templates": {"p": {}}}}, "R114", "prompts.templates.p"),
        ({"prompts": {"templates": {"p": {"messages": [{"role": "user"}]}}}}, "R113",
         "prompts.templates.p.messages[0]"),
        ({"prompts": {"templates": {"p": {"messages": [{"role": "user", "content": None}]}}}}, "R114",
         "prompts.templates.p.messages[0].content"),
        ({"tools": [{"id": "t", "kind": "python"}]}, "R113", "tools[0]"),
        ({"tools": [{"id": "t", "kind": "pyton", "impl": "x#y"}]}, "R114", "tools[0].kind"),
        ({"tools": [{"id": "t", "kind": "http", "impl": "x#y", "mode": "class"}]}, "R114", "tools[0]"),
        ({"subgraphs": {"s": {"inputs": ["a"], "outputs": ["a"]}}}, "R113", "subgraphs.s"),
    ],
)  # fmt: skip
def test_an_invalid_part_is_reported_with_its_place(changes, code, where):
    assert list_problems(content(**changes)) == [(code, "error", f"<dict>, {where}")]


def test_prompts_may_be_left_out():
    assert list_problems(content()) == []
    assert list_problems(content(prompts={})) == []


@pytest.mark.parametrize("kind", ["python", "langchain"])
def test_a_tool_may_be_a_class(kind):
    tool = {"id": "t", "kind": kind, "impl": "m.py#C", "mode": "class", "config": {"init": {"n": 1}}}
    assert AgentDefinition.model_validate(content(tools=[tool])).tools[0].config == {"init": {"n": 1}}


def test_a_prompt_has_at_least_one_text():
    assert PromptTemplate(user="x").system is None
    with pytest.raises(ValidationError, match="A prompt requires one of"):
        PromptTemplate(user="", messages=[])


def test_an_unknown_key_is_a_warning_and_the_file_loads():
    definition, problems = read(make_plain_source(content({"id": "n", "uses": "t", "input": {}})))
    assert definition is not None
    assert [(p.code, p.severity, p.do) for p in problems] == [("R112", "warning", "did you mean 'inputs'?")]


@pytest.mark.parametrize(
    "free",
    [
        {"meta": {"name": "t", "providers": {"openai": {"anything": 1, "kwargs": {"deep": 2}}}}},
        {"state": {"shape": {"a": {"type": "x"}}, "init": {"a": {"b": 1}}}},
        {"tools": [{"id": "t", "kind": "python", "impl": "m#f", "config": {"anything": {"deep": 1}}}]},
        {"memory": {"config": {"anything": 1}}},
    ],
)
def test_free_mappings_take_any_key(free):
    assert list_problems(content(**free)) == []


def test_an_unknown_key_of_a_node_without_a_type_has_a_suggestion():
    problem = first(content({"id": "n", "use": "search"}))
    assert (problem.severity, problem.do) == ("warning", "did you mean 'uses'?")
    assert "uses, prompt, cases, body, graph" in problem.why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"meta": {"name": "t", "zzz": 1}}, "the keys here are: schema_version, name, defaults, providers"),
        ({"state": {"shape": {"a": 1}, "zzz": 1}}, "the keys here are: shape, reducer, init"),
        (
            {"tools": [{"id": "t", "kind": "python", "impl": "m#f", "zzz": 1}]},
            "the keys here are: id, kind, impl, mode, config, retry, timeout, repeatable",
        ),
        ({}, "a node is defined by its 'type', or by one of: uses, prompt, cases, body, graph"),
        (
            {"type": "noop"},
            "the keys here are: id, name, description, retry, timeout, on_error, type, map",
        ),
        (
            {"uses": "t"},
            "the keys here are: id, name, description, retry, timeout, on_error, type, uses, inputs, map, repeatable",
        ),
    ],
)
def test_an_unknown_key_is_explained_by_the_keys_of_its_part(change, why):
    is_node = not change or change.keys() & {"type", "uses"}
    problem = first(content({"id": "n", "zzz": 1, **change}) if is_node else content(**change))
    assert (problem.code, problem.why) == ("R112", why)


def test_a_required_key_is_found_under_its_alias():
    problems = read(make_plain_source(content({"id": "n", "type": "tool", "use": "t"})))[1]
    assert [(p.code, p.do) for p in problems] == [
        ("R112", "did you mean 'uses'?"),
        ("R113", "write 'uses' instead of 'use'"),
    ]


def test_a_key_named_like_the_type_is_not_part_of_the_place():
    assert list_problems(content({"id": "n", "type": "tool", "tool": "t"})) == [
        ("R112", "warning", "<dict>, graph.nodes[0].tool"),
        ("R113", "error", "<dict>, graph.nodes[0]"),
    ]


def test_a_place_has_the_line_of_the_file():
    text = HEAD + "graph:\n  inputs: [a]\n  outputs: [a]\n  nodes:\n    - {id: n, timeout: -3}\n    - words\n"
    assert list_problems(text) == [
        ("R114", "error", "<text>:7:24, graph.nodes[0].timeout"),
        ("R114", "error", "<text>:8:7, graph.nodes[1]"),
    ]


def test_edges_have_from_and_to():
    edges = [{"from": "a", "to": "b", "when": {}}]
    graph = {"inputs": ["a"], "outputs": ["a"], "nodes": [{"id": "a"}, {"id": "b"}], "edges": edges}
    edge = AgentDefinition.model_validate(content(graph=graph)).graph.edges[0]
    assert (edge.source, edge.target, edge.when) == ("a", "b", {})
    graph["edges"] = [{"form": "a", "to": "b"}]
    assert [code for code, _, _ in list_problems(content(graph=graph))] == ["R112", "R113"]


def test_tracing_is_read_and_reported_once():
    definition, problems = read(
        make_plain_source(content(meta={"name": "t", "defaults": {"tracing": {"enabled": True}}}))
    )
    assert definition.meta.defaults.tracing.sample == 1.0
    assert [(p.code, p.severity) for p in problems] == [("R170", "warning")]
