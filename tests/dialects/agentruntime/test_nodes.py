from __future__ import annotations

import pytest

from agentnb.load import load
from agentnb.recipe.model import Rescue
from agentnb.world.call_arguments import get_options as options
from tests.dialects.agentruntime.agent_files import HEAD, codes, line, ran, text

OPTIONS = {
    "node": {"retry": "{max_attempts: 2, backoff: 0.2}", "timeout": "{seconds: 2}"},
    "tool": {"retry": "{max_attempts: 3, backoff_seconds: 0.3}", "timeout": "{seconds: 3}"},
    "graph": {"retry": "{max_attempts: 4, backoff: 0.4}", "timeout": "{seconds: 4}"},
    "defaults": {"retry": "{max_attempts: 5}", "timeout": "{seconds: 5}"},
}
PROMPTS = "prompts: {templates: {ask: {user: hello}}}"


def options_of(*levels, node="type: tool, uses: own"):
    """Return timeout, attempts and backoff of a node where these levels say something of them."""

    def said(level):
        return ", ".join(f"{word}: {value}" for word, value in OPTIONS[level].items()) if level in levels else ""

    head = HEAD.replace("{name: t}", f"{{name: t, defaults: {{{said('defaults')}}}}}")
    node_options = said("node")
    graph = f"nodes:\n  - {{id: call, {node}{', ' if node_options else ''}{node_options}}}\n"
    graph += "".join(f"{row.strip()}\n" for row in said("graph").split("}, ") if row).replace("0.4\n", "0.4}\n")
    tool = f'  - {{id: own, kind: python, impl: "tools.py#echo"{", " if said("tool") else ""}{said("tool")}}}\ngraph:\n'
    recipe = load(text(graph, PROMPTS, head=head).replace("graph:\n", tool, 1))
    params = recipe.nodes["call"].params
    return params.get("timeout"), params.get("attempts"), params.get("backoff")


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        (("node", "tool", "graph", "defaults"), (2, 2, 0.2)),
        (("tool", "graph", "defaults"), (3, 3, 0.3)),
        (("graph", "defaults"), (4, 4, 0.4)),
        (("defaults",), (5, 5, 1.0)),
        ((), (None, None, None)),
        (("node", "defaults"), (2, 2, 0.2)),
    ],
)
def test_retry_and_timeout_come_from_node_tool_graph_and_defaults_in_this_order(levels, found):
    assert options_of(*levels) == found


@pytest.mark.parametrize(
    ("node", "tool", "found"),
    [("", "", None), ("", "true", True), ("false", "true", False), ("true", "false", True), ("true", "", True)],
)
def test_the_node_or_else_its_tool_declares_whether_a_call_is_repeatable(node, tool, found):
    option, its = (f", repeatable: {word}" if word else "" for word in (node, tool))
    tools = f'  - {{id: own, kind: python, impl: "tools.py#echo"{its}}}\ngraph:\n'
    graph = (
        f"nodes:\n  - {{id: call, type: tool, uses: own{option}}}\n  - {{id: say, type: llm, prompt: ask{option}}}\n"
    )
    nodes = load(text(graph, PROMPTS).replace("graph:\n", tools, 1)).nodes
    assert nodes["call"].params.get("repeatable") is found
    assert nodes["say"].params.get("repeatable") is {"": None, "true": True, "false": False}[node]
    assert [options(nodes["call"]).get("repeatable")] == [found]


def test_settings_of_a_model_node_skip_the_tool():
    asks = "type: llm, prompt: ask"
    assert options_of("tool", "graph", node=asks) == (4, 4, 0.4)
    assert options_of("tool", "defaults", node=asks) == (5, 5, 1.0)


def test_each_setting_is_resolved_separately():
    head = HEAD.replace("{name: t}", "{name: t, defaults: {timeout: {seconds: 5}}}")
    node = load(text("nodes: [{id: a, type: tool, uses: echo, retry: {max_attempts: 2}}]", head=head)).nodes["a"]
    assert (node.params["timeout"], node.params["attempts"], node.params["backoff"]) == (5, 2, 1.0)


def test_a_graph_uses_its_own_defaults_and_not_the_outer_ones():
    one = """
    subgraphs:
      one: {inputs: [x], outputs: [a], retry: {max_attempts: 9}, nodes: [{id: in, type: tool, uses: echo}]}
    """
    recipe = load(text("nodes: [{id: a, type: tool, uses: echo}, {id: s, type: subgraph, graph: one}]", one))
    assert (recipe.nodes["in"].params["attempts"], "attempts" in recipe.nodes["a"].params) == (9, False)


def test_retries_of_a_node_without_calls_do_nothing(tmp_path):
    graph = """
    nodes:
      - id: a
        type: noop
        retry: {max_attempts: 3}
        timeout: {seconds: 1}
        map: {set: {a: "{{ x.y.z }}"}}
        on_error: {resume: true}
    """
    assert ran(tmp_path, text(graph)).path == ["a error"]


def test_a_node_has_a_name_reads_and_writes():
    graph = """
    nodes:
      - id: a
        name: Look it up
        type: tool
        uses: echo
        inputs: {q: "{{ state.x }}", deep: ["{{ log[0] }}"]}
        map: {set: {b.c: "{{ result.text }} {{ n }}"}, merge: {a: 1}, history: {h: 1}}
    """
    node = load(text(graph)).nodes["a"]
    assert (node.label, node.kind, node.scope, node.counted) == ("Look it up", "tool", "root", True)
    assert {"x", "n"} <= set(node.reads)
    assert node.writes == ("b.c", "a", "history.h")


def test_the_type_of_a_node_may_follow_from_its_keys():
    graph = """
    nodes:
      - {id: a, uses: echo}
      - {id: b, prompt: ask}
      - {id: c, cases: [{when: true, to: e}]}
      - {id: d, body: f}
      - {id: e}
      - {id: f, graph: one}
    """
    one = "subgraphs: {one: {inputs: [x], outputs: [a], nodes: [{id: in}]}}"
    kinds = {node.id: node.kind for node in load(text(graph, PROMPTS, one)).nodes.values()}
    assert kinds == {"a": "tool", "b": "llm", "c": "router", "d": "loop", "e": "noop", "f": "subgraph", "in": "noop"}


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ("{id: a, type: tool, uses: echo, inputs: {q: '{{ x '}}", "R301"),
        ("{id: a, type: noop, map: {set: {a: '{{ x. }}'}}}", "R301"),
        ("{id: a, type: router, cases: [{when: {gone: 1}, to: b}]}", "R313"),
        ("{id: a, type: router, cases: [{when: {}, to: b}]}", "R312"),
        ("{id: a, type: router, cases: [{when: {'==': [1, 1], '<': [1, 2]}, to: b}]}", "R312"),
        ("{id: a, type: loop, body: b, until: {'==': [1]}}", "R314"),
        ("{id: a, type: noop, map: {}}", "R114"),
    ],
)
def test_mistakes_in_templates_and_rules_are_reported_when_it_is_loaded(node, code):
    assert code in codes(text(f"{line('b')}\n  - {node}"))


def test_all_mistakes_are_reported_at_once():
    graph = """
    nodes:
      - {id: a, type: noop, map: {set: {a: "{{ x. }}"}}}
      - {id: b, type: noop, map: {set: {a: "{{ x. }}"}}}
    edges: [{from: a, to: b, when: {gone: 1}}]
    """
    assert codes(text(graph)) == ["R301", "R301", "R313"]


EVERY_TYPE = """
meta: {name: t}
state: {shape: {x: any}}
prompts: {templates: {ask: {system: "{{ a.b }}", user: "{{ x }} {{ c }}"}}}
tools:
  - {id: own, kind: python, impl: "tools.py#echo"}
  - {id: timed, kind: python, impl: "tools.py#echo", config: {timeout: 5}}
  - {id: deep, kind: subgraph, impl: one}
graph:
  inputs: [x]
  outputs: [x]
  nodes:
    - {id: tool, uses: own, inputs: {q: "{{ x.y }}"}, map: {set: {a: "{{ b }}"}, history: {h: "{{ c }}"}, delete: [d]}}
    - {id: timed, uses: timed}
    - {id: llm, prompt: ask, map: {merge: {e.f: "{{ result.text }}"}}}
    - id: route
      cases: [{when: {var: state.g}, to: tool}, {when: {"==": [{var: state.h.i}, 1]}, to: llm}]
      default: timed
    - {id: loop, body: body, until: {var: state.j}, max_iterations: 4}
    - {id: body, name: Body, cases: [{when: true, to: tool}], default: tool}
    - {id: sub, graph: one, inputs: {q: "{{ k }}"}, map: {set: {l: "{{ result.o }}"}}, on_error: {resume: true}}
    - {id: call, uses: deep, inputs: {q: "{{ m }}"}, on_error: {to: sub}}
    - {id: noop, map: {set: {n: "{{ inputs.z }}", x: "{{ x }}"}}}
subgraphs:
  one:
    inputs: [q]
    outputs: [o, p]
    nodes: [{id: noop, map: {set: {o: "{{ q }} {{ x }}"}}}]
"""
# id -> kind, label, scope, reads, writes, bodies, whether it counts as a step, whether failures are continued
TRANSLATED = {
    "tool": ("tool", "", "root", ("x.y", "b", "c"), ("a", "history.h"), (), True, False),
    "timed": ("tool", "", "root", (), (), (), True, False),
    "llm": ("llm", "", "root", ("a.b", "x", "c"), ("e.f",), (), True, False),
    "route": ("router", "", "root", ("g", "h.i"), (), (), True, False),
    "loop": ("loop", "", "root", ("j",), (), ("loop",), True, False),
    "body": ("router", "Body", "loop", (), (), (), False, False),
    "sub": ("subgraph", "", "root", ("k",), ("l", "o", "p"), ("one",), True, True),
    "call": ("subgraph", "", "root", ("m",), ("o", "p"), ("one",), True, False),
    "noop": ("noop", "", "root", ("x",), ("n", "x"), (), True, False),
    "one/noop": ("noop", "noop", "one", ("x",), ("o",), (), True, False),
}


def test_each_type_of_node_has_its_kind_its_reads_and_its_writes():
    recipe = load(EVERY_TYPE)
    assert {
        id: (
            *(node.kind, node.label, node.scope, node.reads, node.writes, node.bodies, node.counted),
            node.rescue == Rescue(),
        )
        for id, node in recipe.nodes.items()
    } == TRANSLATED
    assert {id: node.params["own_id"] for id, node in recipe.nodes.items() if "own_id" in node.params} == {
        "one/noop": "noop"
    }
    assert {id: (region.title, region.owner) for id, region in recipe.regions.items()} == {
        "root": ("t", ""),
        "one": ("one", "sub"),
        "loop": ("", "loop"),
    }


def test_each_type_of_node_has_its_params():
    nodes = load(EVERY_TYPE).nodes
    assert nodes["tool"].params.keys() == {"function", "given", "tells_timeout", "map"}
    assert (nodes["tool"].params["function"], nodes["tool"].params["tells_timeout"]) == ("own", True)
    assert nodes["tool"].params["map"].keys() == {"set", "history", "delete"}
    assert nodes["timed"].params.keys() == {"function", "given"}  # its config has its own timeout
    assert nodes["llm"].params.keys() == {"prompt", "template", "map"}
    assert [role for role, _ in nodes["llm"].params["prompt"]] == ["system", "user"]
    assert [target for _, target in nodes["route"].params["cases"]] == ["tool", "llm"]
    assert nodes["route"].params["default"] == "timed"
    assert [target for _, target in nodes["body"].params["cases"]] == [""]  # the loop decides how it continues
    assert nodes["body"].params["default"] == ""
    assert {key: value for key, value in nodes["loop"].params.items() if key not in ("until", "cure")} == {
        "tells": True,
        "max": 4,
        "limit": "max_iterations",
    }
    assert nodes["sub"].params.keys() == {"given", "outputs", "map"}
    assert nodes["call"].params.keys() == {"function", "tells_timeout", "given", "outputs"}
    assert nodes["call"].params["outputs"] == ("o", "p")


@pytest.mark.parametrize(
    ("loop", "params"),
    [
        ("", {"tells": True, "times": 10}),
        ("until: {}, max_iterations: 3", {"tells": True, "times": 3}),
        ("on_exhausted: error", {"tells": True, "max": 10}),
        ("until: false, on_exhausted: continue", {"tells": True, "times": 10, "until": False}),
        ("until: false", {"tells": True, "max": 10, "until": False}),
    ],
)
def test_a_loop_ends_at_its_limit_or_fails_there(loop, params):
    graph = f"{line('a')}\n  - {{id: l, type: loop, body: a{', ' if loop else ''}{loop}}}"
    made = dict(load(text(graph)).nodes["l"].params)
    if "until" in made:
        made["until"] = made["until"]({})
    assert {key: value for key, value in made.items() if key not in ("limit", "cure")} == params
