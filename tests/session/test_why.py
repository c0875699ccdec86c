from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb import load
from agentnb.dialects.polaris import Graph
from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge, Node, Recipe
from agentnb.samples import reactive, samples
from agentnb.secrets import hide
from agentnb.session import Session
from agentnb.session.why import DeliveredEvent, EvaluatedCondition
from tests.dialects.agentruntime.agent_files import edges, line, stepped, text, write
from tests.dialects.polaris.polaris_graphs import Plan, Result, note, plan, tell, work
from tests.session.small_sessions import counting, session

ROUTES = """
nodes:
  - {id: look, type: tool, uses: add, inputs: {n: "{{ n }}"}, map: {set: {n: "{{ result.result }}"}}}
  - id: route
    type: router
    cases:
      - {when: {">": [{var: state.n}, 5]}, to: a}
      - {when: {"and": [{"==": [{var: inputs.x}, 1]}, {"<": [{var: state.n}, "{{ 2 * x }}"]}]}, to: b}
    default: a
  - {id: a, type: noop}
  - {id: b, type: noop}
edges:
  - {from: look, to: route, when: {"==": [{var: result.result}, 1]}}
  - {from: look, to: a, when: {"==": [{var: node.id}, other]}}
"""


@pytest.fixture
def run(tmp_path):
    return stepped(write(tmp_path, text(ROUTES)), {"x": 1})


def test_before_the_first_step_there_is_nothing_to_explain(run):
    assert repr(run.goto(0).why()) == "nothing has run yet"
    assert (run.why().step, run.why().conditions) == (0, ())


def test_the_conditions_of_edges_are_reported_with_what_they_read(run):
    why = run.goto(1).why()
    assert (why.step, why.node, why.targets) == (1, "look", ("route",))
    taken, other = why.conditions
    assert (taken.condition, taken.target, taken.value, taken.taken) == ("result.result == 1", "route", True, True)
    assert taken.operands == (("result.result", 1),)
    assert (other.target, other.value, other.taken, other.operands) == ("a", False, False, (("node.id", "look"),))
    assert repr(why).splitlines() == [
        "step 1, 'look' went to route",
        "  -> route: result.result == 1 is True  (result.result = 1)",
        "     a: node.id == 'other' is False  (node.id = 'look')",
    ]


def test_each_case_of_a_router_is_reported(run):
    why = run.goto(2).why()
    assert (why.targets, [condition.value for condition in why.conditions]) == (("b",), [False, True])
    assert why.conditions[0].operands == (("state.n", 1),)
    assert {"inputs.x": 1, "state.n": 1}.items() <= dict(why.conditions[1].operands).items()
    assert dict(why.conditions[1].operands)["{{ 2 * x }}"] == 2
    assert "holds: go to b" in repr(why)


def test_a_step_without_successor_is_reported(run):
    assert repr(run.goto(3).why()) == "step 3, 'b' ended: no outgoing edge matched"


def test_a_diamond_reports_all_targets(tmp_path):
    stop = stepped(write(tmp_path, text("\n".join([line("a", "b", "c"), edges("a-b", "a-c")]))), {"x": 1})
    assert stop.goto(1).why().targets == ("b", "c")


def test_it_uses_the_board_after_the_node(run):
    run.goto(2).edit({"n": 99})
    assert run.why().conditions[0].operands == (("state.n", 1),)


def test_routes_by_a_value_are_reported_too():
    stop = Session(samples("triage"), answers=["approve"])
    stop.step(2)
    why = stop.why()
    assert (why.node, [(condition.target, condition.value, condition.taken) for condition in why.conditions]) == (
        "sort", [("check_order", True, True), ("find_bug", False, False)],
    )  # fmt: skip


def test_conditions_of_other_dialects_are_reported():
    stop = session(counting(), {"n": 0})
    stop.step(2)
    (condition,) = stop.why().conditions
    assert (condition.condition, condition.value, condition.taken) == ("n >= 3", False, False)
    stop.step(4)
    assert stop.why().conditions[0].value is True


def test_a_callable_is_reported_by_its_value():
    graph = nx.DiGraph()
    graph.add_node("a", kind="noop")
    graph.add_node("b", kind="noop")
    graph.add_edge("a", "b", when=lambda board: board["n"] > 1)
    stop = session(graph, {"n": 2})
    stop.step()
    assert [(condition.value, condition.taken) for condition in stop.why().conditions] == [(True, True)]


def test_a_failed_step_that_continues_is_reported_with_its_failure(tmp_path):
    graph = """
    nodes:
      - {id: try, type: tool, uses: failing, on_error: {resume: true}}
      - {id: a, type: noop}
    edges: [{from: try, to: a, when: {"==": [{var: result.error.type}, quota]}}]
    """
    stop = stepped(write(tmp_path, text(graph)), {"x": 1}).goto(1)
    assert stop.why().conditions[0].value is True


def test_inside_a_subgraph_it_uses_the_inner_board(tmp_path):
    inner = """
    subgraphs:
      one:
        inputs: [k]
        outputs: [a]
        nodes:
          - {id: r, type: router, cases: [{when: {"==": [{var: inputs.k}, 7]}, to: in}]}
          - {id: in, type: noop}
    """
    graph = "nodes: [{id: s, type: subgraph, graph: one, inputs: {k: 7}}]"
    stop = stepped(write(tmp_path, text(graph, inner)), {"x": 1}).goto(2)
    assert [(condition.value, condition.operands) for condition in stop.why().conditions] == [
        (True, (("inputs.k", 7),))
    ]
    fork = stop.fork(at=2)
    assert fork.why() == stop.why()


def test_secrets_are_masked_and_markup_is_escaped(tmp_path):
    hide("s3cr3t-4711")
    graph = """
    nodes:
      - {id: r, type: router, cases: [{when: {"==": [{var: state.x}, "<b>"]}, to: a}]}
      - {id: a, type: noop}
    """
    stop = stepped(write(tmp_path, text(graph)), {"x": "s3cr3t-4711"}).goto(1)
    assert "s3cr3t" not in repr(stop.why())
    assert "<b>" not in stop.why()._repr_html_()
    assert "&lt;b&gt;" in stop.why()._repr_html_()


def test_an_explanation_changes_nothing(run):
    before = (run.position, dict(run.board), len(run.trace.steps))
    run.why()
    assert (run.position, dict(run.board), len(run.trace.steps)) == before


def typed():
    graph = Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done == 1, work)
    graph.add_conditional_branch("ask", Plan, lambda plan: plan.done > 0, tell)
    return graph.add_switch("route", Result, lambda result: result.text, {"tea 1": note, "tea 2": tell}, note)


def to_rows(why):
    return [(evaluated.condition, evaluated.target, evaluated.value, evaluated.taken) for evaluated in why.conditions]


def test_a_decision_and_a_switch_are_explained_once_entered():
    stop = Session(load(typed()))
    stop.run(until="tell")
    why = stop.why()
    assert (why.node, why.targets) == ("ask", ("tell",))
    assert to_rows(why) == [("ask(Plan) is true", "tell", True, True), ("ask(Plan) is false", "", False, False)]
    assert why.conditions[0].operands == (("Plan", Plan("tea", 1)),)
    stop.run(until="note")
    assert to_rows(stop.why()) == [
        ("route(Result) == 'tea 1'", "note", True, True),
        ("route(Result) == 'tea 2'", "tell_2", False, False),
        ("route(Result) is anything else", "note_2", False, False),
    ]
    assert dict(stop.why().conditions[0].operands)["route(Result)"] == "tea 1"
    stop.run()
    assert "route(Result) is tea 1" in repr(stop.why())
    assert not stop.why().conditions  # what is inside may have changed what it was asked about


def test_a_loop_explains_why_it_continues_and_why_it_ends():
    stop = Session(load(typed()))
    stop.run(until="work")
    assert (stop.why().targets, stop.why().conditions[0].taken) == (("work",), False)
    stop.run(until="ask")
    assert (stop.why().targets, stop.why().conditions[0].taken) == (("ask",), True)


def test_a_failing_predicate_is_reported_and_not_raised():
    stop = Session(load(Graph().add_conditional_branch("ask", Plan, lambda plan: plan.done > 0, tell)))
    stop.run()
    assert stop.status == "failed"
    assert "no 'Plan' is stored" in repr(stop.why())


def test_a_stored_run_without_its_recipe_reports_the_targets(tmp_path):
    session = Session(load(typed()), store=tmp_path / "runs.db")
    session.run(until="note")
    session.close()
    why = nb.open(tmp_path / "runs.db").why()
    assert (why.node, why.targets, why.conditions) == ("route", ("note",), ())


def test_any_step_can_be_explained_from_any_position(run):
    steps = range(len(run.trace) + 1)
    reasons = [run.goto(step).why() for step in steps]
    run.goto(0)
    assert [run.why(step) for step in steps] == reasons


@pytest.mark.parametrize("step", [-1, 99, True, "1"])
def test_an_unknown_step_is_a_problem(run, step):
    with pytest.raises(ExecutionError, match="X111"):
        run.why(step)


def test_each_line_has_target_result_and_reads():
    evaluated = EvaluatedCondition("n > 1", "next", value=True, taken=True, operands=(("n", 2),))
    assert evaluated.line() == "-> next: n > 1 is True  (n = 2)"
    assert (
        EvaluatedCondition("", "", value=False, taken=False, warning="so it is").line()
        == "   the end: always is False  odd: so it is"
    )


def test_secrets_are_masked():
    assert (
        "sk-1" not in EvaluatedCondition("api_key", "x", value=True, taken=True, operands=(("api_key", "sk-1"),)).line()
    )


def incident():
    runtime = reactive.incident()
    for service, message in (("shop", "low memory"), ("mail", "slow"), ("shop", "no memory")):
        runtime.session.emit("alert.raised", {"service": service, "text": message})
    runtime.run_until_idle()
    return runtime.session


def test_a_delivery_is_explained_by_its_event_emitter_and_causes():
    why = incident().why()
    assert (why.step, why.node) == (7, "propose")
    assert (
        why.delivered_event.event,
        why.delivered_event.type,
        why.delivered_event.emitter,
        why.delivered_event.step,
    ) == (
        "evt_027",
        "patch.applied",
        "correlate",
        6,
    )
    assert why.delivered_event.causes == ("evt_013", "evt_003")
    assert repr(why).splitlines()[0] == (
        "step 7, 'propose' was triggered by event evt_027 'patch.applied', emitted by 'correlate' in step 6, "
        "after evt_013 <- evt_003"
    )


def test_each_clause_is_reported_with_its_value():
    operands = {each.condition: each.operands for each in incident().why().conditions}
    assert operands["on 'patch.applied'"] == (("type", "patch.applied"),)
    assert operands["where diff.alerts.new is 2"] == (("diff.alerts.new", 2),)
    ((text, actual),) = operands["pattern (a:alert)-[:part_of]->(i:incident {state: 'open'})"]
    assert (text, dict(actual[0])) == ("it fits", {"a": "alert#2", "i": "incident#6"})
    assert all(each.taken and each.value is True for each in incident().why().conditions)


def test_external_events_and_waiting_deliveries_are_reported():
    why = incident().why(1)
    assert (why.delivered_event.step, why.delivered_event.emitter, why.delivered_event.causes) == (None, "user", ())
    assert why.targets == ("correlate",)
    assert "emitted by 'user' from outside" in repr(why)
    assert repr(why).splitlines()[-1] == "  what it emitted triggers correlate"


def test_the_relation_of_a_delivery_is_named():
    runtime = reactive.team()
    runtime.run_goal("Write about swifts")
    operands = {each.condition: each.operands for each in runtime.session.why(6).conditions}
    assert operands["relation blocks"] == (("its id", "rel_002"),)


def test_operators_of_a_clause_are_reported_one_by_one_and_secrets_masked():
    node = Node("hears", "noop", on=("go",), params={"where": {"n": {">": 1, "<": 9}, "token": "abc"}})
    run = Session(Recipe("r", "test", {"hears": node}, (), ()))
    run.emit("go", {"n": 5, "token": "abc"}).run()
    conditions = [each.condition for each in run.why().conditions]
    assert conditions[:3] == ["on 'go'", "where n > 1", "where n < 9"]
    assert "abc" not in repr(run.why())


def test_a_node_that_listens_and_has_edges_reports_both():
    nodes = {"hears": Node("hears", "noop", on=("go",)), "next": Node("next", "noop")}
    run = Session(Recipe("r", "test", nodes, (Edge("hears", "next"),), ()))
    run.emit("go").run()
    assert (run.why(1).delivered_event.type, run.why(1).targets) == ("go", ("next",))
    assert run.why(2).delivered_event is None


def test_a_long_causal_chain_is_reported_by_its_nearest_events():
    event = DeliveredEvent("e99", "tick", "tick", 99, tuple(f"e{n}" for n in range(98, -1, -1)))
    assert str(event).endswith("after e98 <- e97 <- e96 <- e95 <- e94 <- e93 <- e92 <- e91 and 91 more before")
