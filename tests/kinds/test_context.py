from __future__ import annotations

import pytest

from agentnb.expressions.conditions import to_condition
from agentnb.kinds.context import AROUND, ContextCondition, list_board_reads, make_strict
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.agentruntime.agent_files import HEAD, ran, stepped, text, write


def value_of(tmp_path, template, inputs=None, head=HEAD, **options):
    graph = f"nodes:\n  - {{id: look, name: Look, type: noop, map: {{set: {{a: {template!r}}}}}}}"
    return ran(tmp_path, text(graph, head=head), inputs or {"x": 1}, **options).state["a"]


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ x }}", 1),
        ("{{ state.x }}", 1),
        ("{{ state['x'] }}", 1),
        ("{{ inputs.x }}", 1),
        ("{{ inputs }}", {"x": 1}),
        ("{{ result }}", {}),
        ("{{ output }}", {}),
        ("{{ node.type }}", "noop"),
        ("{{ state.log }}", []),
        ("{{ state }}", {"n": 0, "log": [], "x": 1, "a": None, "b": None, "c": None}),
    ],
)
def test_templates_see_the_documented_names(tmp_path, template, value):
    assert value_of(tmp_path, template) == value


STATE = "{'n': 0, 'log': [], 'x': {'k': [1]}, 'a': None, 'b': None, 'c': None}"


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("State: {{ state }}", f"State: {STATE}"),
        ("{{ state }}{{ state }}", STATE * 2),
        ("{{ [state] | string }}", f"[{STATE}]"),
        ("{{ 'as text: ' ~ state }}", f"as text: {STATE}"),
        ("{% for key, value in state.items() %}{{ key }}={{ value }};{% endfor %}",
         "n=0;log=[];x={'k': [1]};a=None;b=None;c=None;"),
        ("Inputs: {{ inputs }}", "Inputs: {'x': {'k': [1]}}"),
        ("All: {{ env }}", "All: {}"),
    ],
)  # fmt: skip
def test_a_mapping_in_a_text_is_a_dict(tmp_path, template, value):
    graph = f"nodes:\n  - {{id: look, type: noop, map: {{set: {{a: {template!r}}}}}}}"
    session = Session(load(write(tmp_path, text(graph))), {"x": {"k": [1]}})
    reads = {read.key for read in session.step().reads}
    assert session.board["a"] == value
    assert reads == ({"n", "log", "x", "a", "b", "c"} if "state" in template else set())


def test_a_key_named_node_is_the_node_of_templates(tmp_path):
    head = HEAD.replace("shape: {", "shape: {node: any, ").replace("init: {", "init: {node: {id: mine}, ")
    graph = """
nodes:
  - {id: look, type: noop, map: {set: {a: "{{ node.id }} {{ node }} {{ state.node.id }}"}}}
  - {id: forget, type: noop, map: {delete: [node]}}
  - {id: again, type: noop, map: {set: {b: "{{ node.id }}"}}}
edges: [{from: look, to: forget, when: {"==": [{var: node.id}, look]}}, {from: forget, to: again}]
"""
    session = Session(load(write(tmp_path, text(graph, head=head))), {"x": 1})
    assert "node" in {read.key for read in session.step().reads}
    assert session.board["a"] == "mine {'id': 'mine'} mine"
    assert "node.id" in session.recipe.nodes["look"].reads
    session.run()
    assert session.board["b"] == "again"


@pytest.mark.parametrize("key", ["result", "output", "inputs", "state"])
def test_state_keys_with_reserved_names_are_read_through_state(tmp_path, key):
    head = HEAD.replace("shape: {", f"shape: {{{key}: any, ").replace("init: {", f"init: {{{key}: mine, ")
    assert value_of(tmp_path, f"{{{{ state.{key} }}}}", head=head) == "mine"
    assert value_of(tmp_path, f"{{{{ {key} }}}}", head=head) != "mine"


def test_a_mapping_is_named_by_its_key(tmp_path):
    assert value_of(tmp_path, "{{ x.items }}", {"x": {"items": [1]}}) == [1]
    assert value_of(tmp_path, "{{ x.items() | list }}", {"x": {"k": 1}}) == [("k", 1)]


def test_a_literal_key_with_a_dot_takes_precedence_over_the_path(tmp_path):
    head = HEAD.replace("shape: {", "shape: {b.c: any, ").replace("init: {", "init: {b.c: key, b: {c: path}, ")
    assert value_of(tmp_path, "{{ state['b.c'] }}", head=head) == "key"
    assert value_of(tmp_path, "{{ state.b.c }}", head=head) == "path"
    head = HEAD.replace("init: {", "init: {b: {c: path}, ")
    assert value_of(tmp_path, "{{ state['b.c'] }}", head=head) == "path"


def test_several_expressions_give_text(tmp_path):
    assert value_of(tmp_path, "{{ x }} and {{ x }}", {"x": 1}) == "1 and 1"


def test_an_undefined_expression_alone_is_none_in_run_and_a_problem_in_a_strict_session(tmp_path):
    assert value_of(tmp_path, "{{ gone }}", strict=False) is None
    assert value_of(tmp_path, "{{ inputs.gone }}", strict=False) is None
    graph = "nodes:\n  - {id: look, type: noop, map: {set: {a: '{{ gone }}'}}}"
    session = stepped(write(tmp_path, text(graph)), {"x": 1})
    assert (session.status, session.error.code) == ("failed", "X321")
    assert "'gone'" in session.error.what


@pytest.mark.parametrize("template", ["a {{ gone }}", "{{ gone.deeper }}"])
def test_an_undefined_expression_elsewhere_is_an_error(tmp_path, template):
    graph = f"nodes:\n  - {{id: look, type: noop, map: {{set: {{a: {template!r}}}}}, on_error: {{resume: true}}}}"
    assert ran(tmp_path, text(graph)).path == ["look error"]


# -- rules --------------------------------------------------------------------------------------------------------


def holds(tmp_path, rule, inputs=None, **options):
    graph = f"""
nodes:
  - {{id: look, type: tool, uses: echo, inputs: {{text: hello}}, map: {{set: {{a: 5}}}}}}
  - {{id: then, type: noop, map: {{merge: {{log: [then]}}}}}}
edges: [{{from: look, to: then, when: {rule}}}]
"""
    return ran(tmp_path, text(graph), inputs or {"x": 1}, **options).state["log"] == ["then"]


@pytest.mark.parametrize(
    "rule",
    [
        '{"==": [{var: node.id}, look]}',
        '{"==": [{var: node.type}, tool]}',
        '{"==": [{var: state.x}, 1]}',
        '{"==": [{var: inputs.x}, 1]}',
        '{"==": [{var: result.text}, hello]}',
        '{"==": [{var: output.text}, hello]}',
        '{"==": [{var: state.a}, 5]}',
        '{"==": ["{{ x }}", 1]}',
        '{"==": ["{{ state.a + x }}", 6]}',
        '{"!!": [{var: result.text}]}',
        '{"if": [true, true, false]}',
        '{"==": [{var: [state.gone, 3]}, 3]}',
        '{"===": [1, 1]}',
        '{"missing": [state.gone]}',
    ],
)
def test_rules_see_the_documented_names(tmp_path, rule):
    assert holds(tmp_path, rule)


UNSET = "env.AGENT_TEST_UNSET"


@pytest.mark.parametrize(
    "node",
    [
        f"type: noop, map: {{set: {{a: '{{{{ {UNSET} }}}}'}}}}",
        f"type: noop, map: {{delete: ['{{{{ {UNSET} }}}}']}}",
        f"type: tool, uses: echo, inputs: {{text: ['say {{{{ {UNSET} }}}}']}}",
        f"type: router, cases: [{{when: {{'==': [{{var: {UNSET}}}, 1]}}, to: end}}]",
        f"type: router, cases: [{{when: {{'==': ['{{{{ {UNSET} }}}}', 1]}}, to: end}}]",
    ],
)
def test_an_unset_variable_is_reported_with_its_node_and_file(tmp_path, monkeypatch, node):
    monkeypatch.delenv("AGENT_TEST_UNSET", raising=False)
    path = write(tmp_path, text(f"nodes:\n  - {{id: here, {node}}}\n  - {{id: end, type: noop}}"))
    session = stepped(path, {"x": 1})
    assert (session.status, session.error.code) == ("failed", "X333")
    number = path.read_text().splitlines().index(f"    - {{id: here, {node}}}") + 1
    assert session.error.where.startswith(f"step 1, {path}:{number}:")
    assert "graph.nodes[0]" in session.error.where


def test_equality_is_that_of_jsonlogic_and_comparing_text_with_a_number_is_reported(tmp_path):
    assert holds(tmp_path, '{"==": [{var: state.x}, 1]}', {"x": "1"})
    assert not holds(tmp_path, '{"===": [{var: state.x}, 1]}', {"x": "1"})


def test_a_missing_value_in_an_ordered_comparison_is_a_problem_in_strict_sessions_only(tmp_path):
    rule = '{"<": [{var: state.gone}, 3]}'
    assert holds(tmp_path, rule, strict=False)
    with pytest.raises(AssertionError, match="X310"):
        holds(tmp_path, rule)


def test_a_condition_evaluated_with_a_plain_board_sees_that_alone():
    condition = ContextCondition(to_condition({"==": [{"var": "state.x"}, 1]}))
    assert condition({"x": 1})
    assert not condition({"x": 2})
    assert condition.reads == (("x",),)
    assert not ContextCondition(to_condition({"==": [{"var": "result.text"}, "a"]}))({"x": 1})
    assert condition.explain(condition.context({"x": 1}))[-1] == ("state.x == 1", True)


def test_a_context_contains_exactly_the_keys_that_it_returns():
    board = {"x": 1, "b.c": 2, "state": 3, "result": 4, "state.x": 5, "results": 6}
    context = ContextCondition(to_condition({"var": "x"})).context(board)
    values = {}
    for key in [*board, *AROUND, "gone", "gone.x", "node.id"]:
        try:
            values[key] = context[key]
        except KeyError:
            assert key not in context
        else:
            assert key in context
    assert values.keys() == {*AROUND, "x", "b.c", "results"}
    assert dict(context) == values
    assert len(context) == len(values)


def test_strictness_can_be_changed():
    condition = ContextCondition(to_condition({"<": [{"var": "state.gone"}, 3]}))
    assert make_strict(condition, strict=True) is condition
    assert make_strict(condition, strict=False)({})
    assert make_strict(None, strict=False) is None


def test_reads_are_reported_as_paths_of_the_board():
    paths = (("state", "a", "b"), ("a", "b"), ("inputs", "x"), ("result", "y"), ("node", "id"), ("c",), ("state",))
    assert list_board_reads(paths) == (("a", "b"), ("c",))


def test_reads_are_recorded_in_the_step(tmp_path):
    graph = "nodes:\n  - {id: look, type: noop, map: {set: {a: '{{ x }} {{ state.n }}'}}}"
    session = Session(load(write(tmp_path, text(graph))), {"x": 1})
    assert {read.key for read in session.step().reads} == {"x", "n"}
    assert session.recipe.nodes["look"].reads == ("x", "n")


def test_warnings_are_recorded_in_the_step(tmp_path):
    graph = """
    nodes:
      - {id: none, type: noop, map: {set: {a: "{{ gone }}"}}}
      - {id: call, type: tool, uses: echo, inputs: {q: "{{ gone }}"}}
      - {id: route, type: router, cases: [{when: {"==": [{var: state.x}, 1]}, to: end}]}
      - {id: end, type: noop}
    edges: [{from: none, to: call}, {from: call, to: route}]
    """
    done = ran(tmp_path, text(graph), {"x": "1"}, strict=False)
    none, call, _, end = done.agent.trace.steps
    assert none.thought.startswith("odd: ")
    assert "'{{ gone }}'" in none.thought
    assert "'{{ gone }}'" in call.thought
    assert end.thought is None
    strict = "\n".join(row for row in text(graph).splitlines() if "gone" not in row).replace(
        "{from: none, to: call}, {from: call, to: route}", ""
    )
    session = stepped(write(tmp_path, strict), {"x": "1"})
    assert session.trace.steps[0].thought == (
        "state.x == 1 holds: go to end - odd: state.x == 1 compares text with a number"
    )
    assert "odd: state.x == 1 compares" in repr(session.goto(1).why())


def test_a_node_is_referenced_by_its_id_and_not_by_its_name(tmp_path):
    inner = (
        "subgraphs: {one: {inputs: [x], outputs: [a], nodes: [{id: same, name: In, map: {set: {a: '{{ node.id }}'}}}]}}"
    )
    graph = """
    nodes:
      - {id: same, name: Out, map: {set: {b: "{{ node.id }}"}}}
      - {id: s, graph: one}
    """
    done = ran(tmp_path, text(graph, inner))
    assert (done.state["a"], done.state["b"], "one/same" in done.path) == ("same", "same", True)
