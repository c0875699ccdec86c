from __future__ import annotations

import networkx as nx
import pytest

from agentnb.errors import AgentRuntimeError, NodeExecutionError
from tests.dialects.agentruntime.agent_files import ran, text
from tests.session.small_sessions import add, counter, graph, path, session


def inside(**attributes):
    inner = nx.DiGraph()
    inner.add_node("add", function=add, inputs={"n": "n"})
    inner.add_node("list", function=lambda board: {"keys": sorted(board)})
    inner.add_edge("add", "list")
    built_graph = nx.DiGraph()
    built_graph.add_node("sub", kind="subgraph", graph=inner, **attributes)
    built_graph.add_node("done", function=counter("done"))
    built_graph.add_edge("sub", "done")
    return built_graph


def test_without_inputs_and_outputs_it_shares_the_board():
    run = session(inside(), {"n": 1, "x": 0})
    run.run()
    assert dict(run.board) == {"n": 2, "x": 0, "keys": ["n", "x"], "done": 1}


def test_with_inputs_it_has_its_own_board():
    run = session(inside(inputs={"n": "deep.n"}, outputs={"result": "n"}), {"deep": {"n": 1}, "x": 0})
    run.step(3)
    assert dict(run.board) == {"deep": {"n": 1}, "x": 0}
    assert run.trace.steps[2].outputs == {"keys": ["n"]}
    run.run()
    assert dict(run.board) == {"deep": {"n": 1}, "x": 0, "result": 2, "done": 1}


def test_an_input_from_inside_a_value_is_a_read_of_its_key():
    run = session(inside(inputs={"n": "deep.n"}, outputs={"result": "n"}), {"deep": {"n": 1}, "x": 0})
    run.step()
    assert [(row.node, row.key) for row in run.trace.frames.reads.itertuples()] == [("sub", "deep")]


def test_the_board_is_that_of_the_next_node():
    run = session(inside(inputs={"n": "n"}, outputs={"m": "n"}), {"n": 1, "x": 0})
    assert dict(run.board) == {"n": 1, "x": 0}
    run.step()
    assert dict(run.board) == {"n": 1}
    run.step()
    assert dict(run.board) == {"n": 2}
    assert run.trace.state_at(2) == {"n": 1, "x": 0}


def test_an_edit_inside_changes_the_inner_board_alone():
    run = session(inside(inputs={"n": "n"}, outputs={"m": "n"}), {"n": 1})
    run.step()
    run.edit({"n": 10}).run()
    assert (run.board["n"], run.board["m"]) == (1, 11)


@pytest.mark.parametrize("outputs", [{"m": "gone"}, {}])
def test_a_missing_output_is_omitted(outputs):
    run = session(inside(inputs={"n": "n"}, outputs=outputs), {"n": 1})
    run.run()
    assert dict(run.board) == {"n": 1, "done": 1}


def test_a_missing_input_is_omitted_and_reported_where_it_is_needed():
    run = session(inside(inputs={"n": "gone"}, outputs={"m": "n"}), {"x": 1})
    run.run()
    assert (run.status, run.current) == ("failed", "add")


def test_subgraphs_can_be_nested():
    outer = nx.DiGraph()
    outer.add_node("outer", kind="subgraph", graph=inside(inputs={"n": "n"}, outputs={"n": "n"}), inputs={"n": "start"},
                   outputs={"end": "n"})  # fmt: skip
    run = session(outer, {"start": 5})
    run.run()
    assert path(run) == ["outer enter", "sub enter", "add", "list", "sub leave", "done", "outer leave"]
    assert dict(run.board) == {"start": 5, "end": 6}
    depths = [step.depth for step in run.trace.steps]
    assert depths == [0, 1, 2, 2, 1, 1, 0]
    for k in (4, 2, 6, 0, 3):
        run.goto(k)
        assert len(run.stack) == [1, 2, 3, 3, 2, 2, 1, 1][k]
    run.run()
    assert run.board["end"] == 6


def test_a_fork_inside_continues_inside():
    run = session(inside(inputs={"n": "n"}, outputs={"m": "n"}), {"n": 1})
    run.step(2)
    fork = run.fork(edit={"n": 7})
    run.run()
    fork.run()
    assert (run.board["m"], fork.board["m"]) == (2, 7)


def test_the_outer_node_can_catch_an_inner_failure():
    def breaks():
        raise ValueError("inside")

    built_graph = nx.DiGraph()
    built_graph.add_node("sub", kind="subgraph", graph=graph("a", a=breaks), inputs={}, outputs={"x": "a"})
    built_graph.add_node("rescue", function=lambda board: {"rescued": sorted(board)})
    built_graph.add_edge("sub", "rescue", kind="error")
    run = session(built_graph, {"n": 1})
    run.run()
    assert path(run) == ["sub enter", "a error", "sub leave error", "rescue"]
    assert run.board["rescued"] == ["n"]


# -- with inputs that are templates, over the state around it --------------------------------------------------------


def nested(tmp_path, inner, *, outputs="[a]", inputs="{k: '{{ x }}'}", node="", more="", x=1, graphs="", **options):
    """Run a subgraph of these nodes, then `after`, which looks at what is left of it."""
    nodes = "\n".join(f"      - {each}" for each in inner)
    graph = (
        f"nodes:\n  - {{id: sub, type: subgraph, graph: one, inputs: {inputs}{node}}}\n  - {{id: after, type: noop}}"
    )
    edge = f"\nedges:\n  - {{from: sub, to: after{more}}}\n  - {{from: sub, to: rescue, when: false}}"
    rescue = "\n  - {id: rescue, type: noop, map: {merge: {log: [rescue]}}}"
    graphs = f"subgraphs:\n  one:\n    inputs: [k]\n    outputs: {outputs}\n    nodes:\n{nodes}\n{graphs}"
    return ran(tmp_path, text(graph + rescue + edge, outputs="[x]") + graphs, {"x": x}, **options)


def noop(id, **written):
    return f"{{id: {id}, type: noop, map: {{set: {{{', '.join(f'{k}: {v}' for k, v in written.items())}}}}}}}"


def test_the_inner_board_has_the_mapped_inputs(tmp_path):
    done = nested(tmp_path, [noop("look", a="'{{ k }} {{ n }} {{ state.x }} {{ inputs.k }} {{ inputs.x }}'")])
    assert done.state["a"] == "1 0 1 1 1"
    done = nested(tmp_path, [noop("look", a="'{{ x }} {{ inputs.x }} {{ state.x }}'")], inputs="{x: over}")
    assert (done.state["a"], done.state["x"]) == ("over over over", 1)


def test_only_outputs_are_copied_out_and_they_replace_earlier_values(tmp_path):
    inner = ["{id: in, type: noop, map: {merge: {log: [in]}, set: {b: 2, own: 3}}}"]
    done = nested(tmp_path, inner, outputs="[log]")
    assert done.state == {"n": 0, "log": ["in"], "x": 1, "a": None, "b": None, "c": None}
    again = nested(tmp_path, ["{id: in, type: noop}"], outputs="[log]", inputs="{log: [1, 2]}")
    assert again.state["log"] == [1, 2]


def test_an_unwritten_output_is_none(tmp_path):
    done = nested(
        tmp_path, [noop("in", n="null")], outputs="[n, gone]", node=", map: {set: {b: '{{ result.outputs }}'}}"
    )
    assert (done.state["n"], done.state["b"], "gone" in done.state) == (None, {"n": None, "gone": None}, False)


def test_an_output_deleted_inside_is_deleted_outside(tmp_path):
    inner = ["{id: in, type: noop, map: {delete: [a, b]}}"]
    state = nested(tmp_path, inner).state
    assert "a" not in state
    assert "b" in state  # no output


def test_its_result_contains_the_outputs_and_the_inner_state(tmp_path):
    mapped = "{set: {b: '{{ result.a }}', c: '{{ result.outputs.a }} {{ result.state.own }} {{ output.outputs.a }}'}}"
    done = nested(tmp_path, [noop("in", a="5", own="6")], node=f", map: {mapped}")
    assert (done.state["a"], done.state["b"], done.state["c"]) == (5, 5, "5 6 5")


@pytest.mark.parametrize("path", ["result.a", "result.outputs.a", "result.state.a", "output.a", "state.a"])
def test_rules_of_its_edges_see_its_result(tmp_path, path):
    when = f', when: {{"==": [{{var: {path}}}, 5]}}'
    done = nested(tmp_path, [noop("in", a="5")], more=when)
    assert done.path[-1] == "after"
    done.session.goto(3)
    assert done.session.why().conditions[0].value is True


@pytest.mark.parametrize("path", ["result.outputs.a", "result.a", "result.state.own"])
def test_an_enclosing_loop_sees_its_result(tmp_path, path):
    graph = f"""
    nodes:
      - {{id: l, type: loop, body: sub, until: {{">=": [{{var: {path}}}, 2]}}, max_iterations: 5}}
      - {{id: sub, type: subgraph, graph: one, inputs: {{k: "{{{{ n }}}}"}}, map: {{set: {{n: "{{{{ result.a }}}}"}}}}}}
    """
    one = """
    subgraphs:
      one:
        inputs: [k]
        outputs: [a]
        nodes: [{id: i, type: noop, map: {set: {a: "{{ k + 1 }}", own: "{{ k + 1 }}"}}}]
    """
    assert ran(tmp_path, text(graph, one)).state["n"] == 2


def test_its_mapping_is_rendered_with_the_state_before_its_outputs(tmp_path):
    done = nested(tmp_path, [noop("in", n="7")], outputs="[n]", node=", map: {set: {b: '{{ n }} {{ result.n }}'}}")
    assert (done.state["n"], done.state["b"]) == (7, "0 7")


FAILS = ["{id: in, type: noop, map: {set: {a: 1}}}", "{id: bad, type: tool, uses: raising}"]


def test_an_inner_failure_fails_the_node_and_discards_the_inner_state(tmp_path):
    for node, rest in (
        ("{to: rescue}", ["rescue"]),
        ("{resume: true}", ["after"]),
        ("{to: rescue, resume: true}", ["rescue", "after"]),
    ):
        done = nested(tmp_path, FAILS, node=f", on_error: {node}, map: {{set: {{b: 1}}}}")
        assert done.path == ["sub enter", "in", "bad error", "sub leave error", *rest]
        assert (done.state["a"], done.state["b"], done.state["log"]) == (
            None,
            None,
            ["rescue"] if "rescue" in rest else [],
        )


def test_an_unhandled_inner_failure_names_both_nodes(tmp_path):
    with pytest.raises(NodeExecutionError, match=r"'bad' in 'sub' failed \(type=tool, tool=raising\).*it broke"):
        nested(tmp_path, FAILS)


def test_an_inner_failure_may_be_handled_inside(tmp_path):
    inner = ["{id: bad, type: tool, uses: raising, on_error: {to: fix}}", noop("fix", a="9")]
    assert nested(tmp_path, inner, node=", on_error: {to: rescue}").state["a"] == 9


def test_inputs_that_cannot_be_rendered_fail_the_node(tmp_path):
    done = nested(tmp_path, [noop("in", a="1")], inputs="{k: '{{ x.y.z }}'}", node=", on_error: {to: rescue}")
    assert done.path == ["sub error", "rescue"]


def test_one_graph_may_be_run_by_two_nodes(tmp_path):
    graph = """
    nodes:
      - {id: first, type: subgraph, graph: one, inputs: {k: 1}}
      - {id: second, type: subgraph, graph: one, inputs: {k: 2}}
    edges: [{from: first, to: second}]
    """
    one = """
    subgraphs:
      one: {inputs: [k], outputs: [log], nodes: [{id: in, type: noop, map: {merge: {log: ["{{ k }}"]}}}]}
    """
    done = ran(tmp_path, text(graph, one))
    assert done.state["log"] == [1, 2]
    assert done.path == ["first enter", "in", "first leave", "second enter", "in", "second leave"]


def test_it_may_contain_a_loop(tmp_path):
    inner = ["{id: l, type: loop, body: w, max_iterations: 3}", "{id: w, type: noop, map: {merge: {log: ['{{ k }}']}}}"]
    assert nested(tmp_path, inner, outputs="[log]").state["log"] == [1, 1, 1]


DEEP = """
subgraphs:
  one: {inputs: [x], outputs: [a], nodes: [{id: p, type: subgraph, graph: two, on_error: {resume: true}}]}
  two: {inputs: [x], outputs: [a], nodes: [{id: q, type: noop, map: {set: {a: 2}}}]}
"""


def test_the_nesting_limit_is_an_error_that_is_not_caught(tmp_path):
    content = text("nodes: [{id: s, type: subgraph, graph: one, on_error: {resume: true}}]") + DEEP
    assert ran(tmp_path, content, max_subgraph_depth=2).state["a"] == 2
    for depth in (1, 0):
        with pytest.raises(AgentRuntimeError, match=r"(?s)X418.*max_subgraph_depth is"):
            ran(tmp_path, content, max_subgraph_depth=depth)


def test_the_default_nesting_limit_is_eight(tmp_path):
    graphs = "\n".join(
        f"  g{n}: {{inputs: [x], outputs: [a], nodes: [{{id: s{n}, type: subgraph, graph: g{n + 1}}}]}}"
        for n in range(1, 9)
    )
    last = "\n  g9: {inputs: [x], outputs: [a], nodes: [{id: end, type: noop, map: {set: {a: 9}}}]}\n"
    with pytest.raises(AgentRuntimeError, match="X418"):
        ran(tmp_path, text("nodes: [{id: s, type: subgraph, graph: g1}]") + "subgraphs:\n" + graphs + last)
    enough = "nodes: [{id: s, type: subgraph, graph: g2}]"
    assert ran(tmp_path, text(enough) + "subgraphs:\n" + graphs.split("\n", 1)[1] + last).state["a"] == 9
