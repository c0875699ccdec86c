"""Which writes, reads, conditions and calls led to a value."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentnb as nb
from agentnb.analysis.slices import Slices
from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge, Node, Recipe, Region
from tests.analysis.random_recipes import INPUTS, KEYS, programs


def two_inputs():
    graph = nx.DiGraph(name="two", entry="left")
    graph.add_node("left", function=lambda a: {"x": a * 2}, inputs={"a": "a"})
    graph.add_node("right", function=lambda b: {"y": b * 3}, inputs={"b": "b"})
    graph.add_node("join", function=lambda board: {"sum": board["x"] + 1})
    graph.add_edge("left", "right")
    graph.add_edge("right", "join")
    session = nb.Session(nb.load(graph), {"a": 1, "b": 2})
    session.run()
    return session


def rows(found):
    return {(row.step, row.node, row.key, row.via) for row in found.rows}


def test_only_what_led_to_the_value_is_in_the_slice():
    value_slice = two_inputs().slice("sum")
    assert value_slice.steps == [0, 1, 3]
    assert rows(value_slice) == {
        (3, "join", "sum", "write"), (3, "join", "x", "read"), (1, "left", "x", "write"), (1, "left", "a", "read"),
        (0, None, "a", "write"),
    }  # fmt: skip


def test_the_frame_has_its_columns_and_the_value_comes_first():
    frame = two_inputs().slice("sum").to_frame()
    assert list(frame.columns) == ["step", "node", "key", "via", "distance", "inferred"]
    assert frame.iloc[0].to_dict() == {
        "step": 3, "node": "join", "key": "sum", "via": "write", "distance": 0, "inferred": False,
    }  # fmt: skip
    assert frame["distance"].is_monotonic_increasing


def test_it_slices_the_value_after_a_given_step():
    session = two_inputs()
    session.edit({"x": 9})
    assert session.slice("x").steps == [3]
    assert session.slice("x", at=2).steps == [0, 1]
    assert rows(session.slice("x")) == {(3, None, "x", "write")}


def test_a_condition_that_decided_whether_a_node_ran_is_in_its_slice():
    graph = nx.DiGraph(name="choice", entry="look")
    graph.add_node("look", function=lambda a: {"seen": a}, inputs={"a": "a"})
    graph.add_node("yes", function=lambda board: {"out": 1})
    graph.add_node("no", function=lambda board: {"out": 0})
    graph.add_node("end", function=lambda board: {"done": True})
    graph.add_edge("look", "yes", when="flag > 1")
    graph.add_edge("look", "no")
    graph.add_edge("yes", "end")
    graph.add_edge("no", "end")
    session = nb.Session(nb.load(graph), {"a": 1, "flag": 3})
    session.run()
    assert (1, "look", "flag", "condition") in rows(session.slice("out"))
    assert session.slice("out").steps == [0, 1, 2]
    # Both branches lead to `end`, so that nothing decides whether it runs.
    assert rows(session.slice("done")) == {(3, "end", "done", "write")}


def test_a_call_is_in_the_slice_of_its_answer():
    graph = nx.DiGraph(name="calls", entry="ask")
    graph.add_node("ask", kind="tool", function="look_up", inputs={"word": "word"})
    session = nb.Session(nb.load(graph), {"word": "x"}, tools={"look_up": lambda word: {"meaning": word * 2}})
    session.run()
    assert (1, "ask", "look_up", "call") in rows(session.slice("meaning"))


def test_a_branch_of_a_parallel_node_is_followed_into_its_own_scope():
    nodes = [
        Node("fan", "parallel", bodies=("l", "r")),
        Node("left", "function", scope="l", params={"function": lambda a: {"x": a + 1}}, inputs={"a": ("a",)}),
        Node("right", "function", scope="r", params={"function": lambda b: {"y": b + 1}}, inputs={"b": ("b",)}),
        Node("end", "function", params={"function": lambda y: {"out": y}}, inputs={"y": ("y",)}),
    ]
    regions = {"l": Region("l", ("left",), owner="fan"), "r": Region("r", ("right",), owner="fan")}
    recipe = Recipe("fan", "networkx", {node.id: node for node in nodes}, (Edge("fan", "end"),), ("fan",),
                    regions=regions)  # fmt: skip
    session = nb.Session(recipe, {"a": 1, "b": 2})
    session.run()
    value_slice = session.slice("out")
    assert value_slice.nodes == ["end", "fan", "right"]
    assert {row.key for row in value_slice.rows if row.step == 0} == {"b"}
    assert not any(row.inferred for row in value_slice.rows)


def test_the_condition_of_a_loop_is_in_the_slice_of_its_body():
    session = nb.Session(nb.samples("refine"), {}, validate_inputs=False)
    session.run()
    value_slice = session.slice("root")
    assert "condition" in {row.via for row in value_slice.rows}
    assert len([row for row in value_slice.rows if row.via == "write" and row.key == "guess"]) > 2


def test_a_read_that_may_be_due_to_the_condition_alone_is_marked_as_inferred():
    graph = nx.DiGraph(name="mixed", entry="add")
    graph.add_node("add", function=lambda board: {"n": board["step"] + 1})
    graph.add_node("end", function=lambda board: {"out": board["n"]})
    graph.add_edge("add", "end", when="limit > 0")
    session = nb.Session(nb.load(graph), {"step": 1, "limit": 1})
    session.run()
    inferred = {(row.key, row.via): row.inferred for row in session.slice("out").rows if row.node == "add"}
    assert inferred == {
        ("n", "write"): False, ("step", "read"): False, ("limit", "read"): True, ("limit", "condition"): False,
    }  # fmt: skip


def test_a_delivered_event_leads_back_to_the_step_that_emitted_it():
    session = nb.Session(nb.samples("team"))
    session.emit("goal.created", {"goal": "batteries"})
    session.run()
    assert len(session.trace) > 2
    wrote = session.trace.frames.writes
    value_slice = session.slice(str(wrote["key"].iloc[-1]).split(".")[0])
    assert len(value_slice.steps) > 1
    assert "read" in set(value_slice.to_frame()["via"])


def test_its_drawing_and_its_repr_contain_no_secrets():
    graph = nx.DiGraph(name="secret", entry="sign")
    graph.add_node("sign", function=lambda password: {"out": len(password)}, inputs={"password": "password"})
    session = nb.Session(nb.load(graph), {"password": "hunter2-hunter2"})
    session.run()
    value_slice = session.slice("out")
    shown = [repr(value_slice), value_slice.draw().svg, value_slice.draw().dot, value_slice.to_frame().to_string()]
    assert all("hunter2" not in text for text in shown)
    assert "in-slice" in value_slice.draw().svg
    assert set(value_slice._repr_mimebundle_()) >= {"image/svg+xml", "text/plain"}


def test_mistakes_are_reported():
    session = two_inputs()
    with pytest.raises(ExecutionError, match="X145"):
        session.slice("summ")
    with pytest.raises(ExecutionError, match="X111"):
        session.slice("sum", at=9)


@pytest.mark.parametrize(("name", "key"), [("refine", "root"), ("fanout", "offer"), ("document", "draft")])
def test_an_opened_run_has_the_same_slice(tmp_path, name, key):
    session = nb.Session(nb.samples(name), {}, validate_inputs=False)
    session.run()
    session.save(tmp_path / "run.db")
    session.trace.to_json(tmp_path / "run.json")
    assert rows(nb.open(tmp_path / "run.db").slice(key)) == rows(session.slice(key))
    assert rows(nb.open(tmp_path / "run.json").slice(key)) == rows(session.slice(key))


def naive_steps(session, key, at):
    """Return the steps of a value's data flow by a search over the tables of writes and reads."""
    writes, reads = session.trace.frames.writes, session.trace.frames.reads
    steps, border = set(), [(key, at)]
    while border:
        key_wanted, before = border.pop()
        matching = writes[(writes["key"] == key_wanted) & (writes["step"] <= before)]
        if not len(matching):
            continue
        step = int(matching["step"].iloc[-1])
        if step not in steps:
            steps.add(step)
            border += [(str(read), step - 1) for read in reads[reads["step"] == step]["key"]] if step else []
        else:
            border += []
    return steps


@given(programs(branches=False), st.sampled_from(KEYS))
def test_without_conditions_it_equals_the_data_flow_of_the_tables(program, key):
    session = program.session()
    assert set(session.slice(key).steps) == naive_steps(session, key, session.position)


def choosers(lines):
    """Return the nodes whose conditions decide whether a node runs, for each: by their numbers, from the definition.

    One of the two nodes that a condition may lead to is always followed by the node, and the condition's node is not.
    """
    size = len(lines)
    targets = [[*([line.target] if line.asks else []), number + 1] for number, line in enumerate(lines)]

    def always_leads(start, node):
        border, seen = [start], set()
        while border:
            node_number = border.pop()
            if node_number == size:
                return False  # the end, without the node
            if node_number != node and node_number not in seen:
                seen.add(node_number)
                border += targets[node_number]
        return True

    return {
        node: {source for source, line in enumerate(lines) if line.asks
               and any(always_leads(target, node) for target in targets[source])
               and not (source != node and always_leads(source, node))}
        for node in range(size)
    }  # fmt: skip


def naive_slice(program, session, key):
    """Return the steps of a value's slice: its data flow, and the conditions that decided whether its nodes ran."""
    lines, deciding = program.lines, choosers(program.lines)
    nodes = [None, *(int(step.node_id[1:]) for step in session.trace.steps)]
    steps, done, border = set(), set(), [("value", key, len(nodes) - 1)]

    def decide(step):
        earlier = [at for at in range(1, step) if nodes[at] in deciding[nodes[step]]]
        return [("choice", "", earlier[-1])] if earlier else []

    while border:
        entry = border.pop()
        if entry in done:
            continue
        done.add(entry)
        kind, name, step = entry
        line = lines[nodes[step]] if step else None
        if kind == "value":
            wrote = [at for at in range(1, step + 1) if lines[nodes[at]].writes == name]
            steps.add(wrote[-1] if wrote else 0)
            border += [("step", "", wrote[-1])] if wrote else []
        elif kind == "step":
            # Without declared inputs it is not recorded whether the function or the condition has read a key.
            also = [line.asks] if line.asks and (line.by_board or not line.reads) else []
            border += [("value", read, step - 1) for read in [*line.reads, *also]] + decide(step)
        else:
            steps.add(step)
            border += [("value", line.asks, step), *decide(step)]
    return steps


@given(programs(), st.sampled_from(KEYS))
def test_with_conditions_it_equals_the_result_of_a_naive_search(program, key):
    session = program.session()
    assert set(session.slice(key).steps) == naive_slice(program, session, key)


@given(programs(), st.sampled_from(KEYS), st.sampled_from(KEYS))
def test_an_input_outside_the_slice_does_not_change_the_value(program, key, changed):
    """The oracle runs the program again with one input changed; a changed route is the affair of the conditions."""
    session = program.session()
    value_slice = session.slice(key)
    if any(row.step == 0 and row.key == changed for row in value_slice.rows):
        return
    other = program.session({**INPUTS, changed: INPUTS[changed] + 29})
    if [step.node_id for step in other.trace.steps] == [step.node_id for step in session.trace.steps]:
        assert other.board[key] == session.board[key]


@given(programs(), st.sampled_from(KEYS), st.integers(0, 6))
def test_a_node_outside_the_slice_may_compute_another_value(program, key, number):
    session = program.session()
    if f"n{number}" in Slices(session).of_path(key, session.position).nodes:
        return
    other = program.session(change=number)
    if [step.node_id for step in other.trace.steps] == [step.node_id for step in session.trace.steps]:
        assert other.board[key] == session.board[key]


def test_a_run_without_rows_has_an_empty_slice():
    graph = nx.DiGraph(name="fresh", entry="add")
    graph.add_node("add", function=lambda board: {"out": 1})
    session = nb.Session(nb.load(graph))
    assert (session.slice("out").rows, session.slice("out").draw().svg[:4]) == ((), "<svg")
    session.run()
    assert session.slice("out").steps == [1]
