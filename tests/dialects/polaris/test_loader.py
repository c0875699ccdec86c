from __future__ import annotations

from dataclasses import dataclass, make_dataclass

import pandas as pd
import pytest
from pydantic import BaseModel

import agentnb as nb
from agentnb.board.values import thaw
from agentnb.clock import FrozenClock
from agentnb.dialects.polaris import Graph, Out, Res, SystemContext, system
from agentnb.dialects.polaris.loader import load, make_initial_board, make_recipe, recognize
from agentnb.dialects.polaris.schema import JoinNode, SequentialEdge
from agentnb.sources import Source
from tests.dialects.polaris.polaris_graphs import PLAN, RESULT, Plan, Result, fail, fix, note, path, plan, tell, work


def session_of(graph, **options):
    return nb.Session(nb.load(graph), **options)


def test_a_graph_is_recognized_and_none_of_it_runs():
    def never() -> Plan:
        raise AssertionError

    graph = Graph("kept").add_system(never)
    assert recognize(graph)
    recipe, problems = load(Source(graph))
    assert (recipe.name, recipe.dialect, problems) == ("kept", "polaris", [])


def test_nodes_read_and_write_keys_named_after_types():
    recipe = nb.load(
        Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done > 1, work).add_system(tell)
    )
    assert {node.id: (node.kind, node.reads, node.writes) for node in recipe.nodes.values()} == {
        "plan": ("system", (), (PLAN,)), "again": ("loop", (PLAN,), ()), "work": ("system", (PLAN,), (PLAN,)),
        "tell": ("system", (PLAN,), (RESULT,)),
    }  # fmt: skip


def test_every_type_of_node_can_be_stepped_and_undone():
    graph = Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done == 2, work)
    graph.add_conditional_branch("ask", Plan, lambda plan: plan.done > 5, note, tell)
    graph.add_switch("route", Result, lambda result: result.text, {"tea 2": note}, fix)
    graph.add_parallel("both", [fix, note]).add_system(tell)
    session = session_of(graph)
    boards = [dict(session.board)]
    while session.step() is not None:
        boards.append({key: thaw(value) for key, value in session._parts.run.root.scope.visible_items().items()})
    assert path(session) == [
        "plan", "again enter", "work", "again again", "work", "again leave", "ask enter", "tell", "ask leave",
        "route enter", "note_2", "route leave", "both enter", "fix_2", "note_3", "both leave", "both_join", "tell_2",
    ]  # fmt: skip
    assert session.status == "finished"
    assert session.board[PLAN] == Plan("tea", 2)
    assert session.board[f"{PLAN}.done"] == 2
    for step in reversed(range(len(boards))):
        session.goto(step)
        assert {key: thaw(value) for key, value in session._parts.run.root.scope.visible_items().items()} == boards[
            step
        ]
    session.goto(14).run()
    assert session.board[RESULT] == Result("tea 2")


def test_inside_branches_the_frames_are_shown_and_another_branch_can_be_chosen():
    graph = (
        Graph()
        .add_system(plan)
        .add_parallel(
            "both", [lambda g: g.add_system(tell).add_system(note), lambda g: g.add_system(fix).add_system(work)]
        )
    )
    session = session_of(graph)
    session.step(3)
    assert [(entry.node, entry.branch, entry.depth) for entry in session.frontier] == [("note", 0, 1), ("fix", 1, 1)]
    assert session.stack[-1].region == "both.branch 1"
    session.set_next("fix").step()
    assert session.trace.steps[-1].branch == 1
    assert session.back().current == "fix"
    session.run()
    assert session.board[RESULT] == Result("fixed tea")
    assert session.replay().ok


def test_a_branch_reads_outputs_from_before_the_parallel_node_and_not_those_of_other_branches():
    @system
    def seen(ctx: SystemContext) -> str:
        return f"{ctx.output(Plan)} {ctx.output(Result)}"

    session = session_of(Graph().add_system(plan).add_parallel("both", [tell, seen]))
    session.run()
    assert session.board["builtins.str"] == "Plan(goal='tea', done=0) None"


def test_branches_cancelled_by_a_failure_run_again_on_retry():
    ran = []

    @system
    def once(plan: Out[Plan]) -> str:
        ran.append(1)
        if len(ran) == 1:
            raise ValueError("not yet")
        return "fine"

    session = session_of(Graph().add_system(plan).add_parallel("both", [once, tell]))
    session.step(3)
    assert session.status == "failed"
    session.step(2)
    session.run()
    assert path(session)[2:] == ["once error", "tell cancelled", "once", "tell", "both leave", "both_join"]
    assert (session.status, session.board["builtins.str"]) == ("finished", "fine")
    assert session.replay().ok


def failing(resume):
    graph = Graph().add_system(plan)
    risky = graph.add_system_node(fail)
    return graph.add_error_handler(risky, lambda g: g.add_system(fix).add_system(note), resume=resume).add_system(tell)


def test_after_a_handler_the_level_ends():
    session = session_of(failing(resume=False))
    session.run()
    assert (path(session), session.status) == (["plan", "fail error", "fix", "note"], "finished")


def test_with_resume_the_run_continues_after_the_failed_system():
    session = session_of(failing(resume=True))
    session.run()
    assert path(session) == ["plan", "fail error", "fix", "note", "tell"]


def test_after_a_handler_in_a_body_the_loop_continues_with_its_next_iteration():
    def body(graph):
        risky = graph.add_system_node(fail)
        graph.add_error_handler(risky, fix).add_system(note)

    session = session_of(Graph().add_system(plan).add_loop_n("again", 2, body).add_system(tell))
    session.run()
    rounds = ["fail error", "fix"]
    assert path(session) == ["plan", "again enter", *rounds, "again again", *rounds, "again leave", "tell"]


def test_a_handler_may_fail_and_have_its_own_handler():
    def handler(graph):
        risky = graph.add_system_node(fail)
        graph.add_error_handler(risky, fix, resume=True).add_system(note)

    graph = Graph().add_system(plan)
    graph.add_error_handler(graph.add_system_node(fail), handler, resume=True).add_system(tell)
    session = session_of(graph)
    session.run()
    assert path(session) == ["plan", "fail error", "fail_2 error", "fix", "note", "tell"]


def test_an_unhandled_failure_leaves_every_enclosing_control_node():
    def body(graph):
        graph.add_conditional_branch("ask", Plan, lambda _: True, fail)

    session = session_of(Graph().add_system(plan).add_loop_n("again", 2, body).add_system(tell))
    session.run()
    assert (session.status, session.current) == ("failed", "fail")


def test_classes_with_one_name_have_separate_keys():
    first, second = (make_dataclass("Same", [("n", int)]) for _ in range(2))

    @system
    def one() -> first:
        return first(1)

    @system
    def two(before: Out[first]) -> second:
        return second(before.n + 1)

    session = session_of(Graph().add_system(one).add_system(two))
    session.run()
    key = f"{first.__module__}.Same"  # `types` before Python 3.12, this module since
    assert [(name, value.n) for name, value in session.board.items()] == [(key, 1), (f"{key}~2", 2)]


def test_fields_of_models_and_dataclasses_are_paths():
    class Order(BaseModel):
        total: float

    @dataclass
    class Priced:
        order: Order
        tax: float

    @system
    def order() -> Order:
        return Order(total=10)

    @system
    def priced(order: Out[Order]) -> Priced:
        return Priced(order, order.total / 5)

    session = session_of(Graph().add_system(order).add_system(priced))
    session.run()
    key = next(key for key in session.board if key.endswith("Priced"))
    assert session.board[f"{key}.order.total"] == 10
    assert list(session.trace.wide([f"{key}.tax"])[f"{key}.tax"].dropna()) == [2.0]
    fields = {"order": {"total": 10}, "tax": 2.0}
    frames = session.trace.frames
    assert frames.writes.new[1] == session.trace.wide(key)[key][1] == frames.calls.result[1] == fields
    assert frames.steps.outputs[1] == {key: fields}
    assert frames.calls.arguments[1] == {"order": {"total": 10}}
    assert pd.json_normalize(frames.writes.new[1:]).to_dict("records") == [{"order.total": 10, "tax": 2.0}]
    session.edit({f"{key}.tax": 3.0})
    assert session.board[key].tax == 3.0
    assert session.who_wrote(f"{key}.order") == 2


@pytest.mark.parametrize(
    "when",
    [f"state['{PLAN}'].done > 1", {">": [{"var": f"{PLAN}.done"}, 1]}, lambda board: board.get(PLAN, plan()).done > 1],
)
def test_conditions_of_users_know_the_keys_of_types(when):
    session = session_of(Graph().add_system(plan).add_loop_n("again", 5, work))
    session.breakpoints.add(when=when)
    session.run()
    assert (session.position, session.board[PLAN].done) == (5, 2)


def test_resources_come_from_the_session_and_are_not_recorded():
    @dataclass
    class Price:
        cents: int

    @system
    def buy(price: Res[Price]) -> int:
        return price.cents

    session = session_of(Graph().add_system(buy), resources={Price: Price(5)})
    session.run()
    assert session.board["builtins.int"] == 5
    assert dict(session.trace.frames.calls.arguments[0]) == {}
    assert session.replay().ok


def test_a_system_is_not_run_again_by_a_replay():
    ran = []

    @system
    def once() -> Plan:
        ran.append(1)
        return Plan("tea")

    session = session_of(Graph().add_system(once).add_system(tell))
    session.run()
    assert session.replay().ok
    assert len(ran) == 1


def test_a_stored_run_continues_in_a_reopened_session(tmp_path):
    def recipe():
        graph = Graph("kept").add_system(plan).add_loop("again", Plan, lambda plan: plan.done == 3, work)
        return nb.load(graph.add_system(tell))

    store = tmp_path / "runs.db"
    session = nb.Session(recipe(), store=store)
    session.step(4)
    session.close()
    opened = nb.open(store, recipe=recipe())
    opened.run()
    assert (opened.status, opened.board[RESULT]) == ("finished", Result("tea 3"))


def handled(graph):
    """Build a branch in which a system fails, whose handler has two nodes, and that goes on behind it."""
    failed = graph.add_system_node(fail)
    graph.add_error_handler(failed, lambda g: g.add_system(fix).add_system(note), resume=True).add_system(tell)


def test_a_stored_run_continues_from_every_step(tmp_path):
    def one_round(graph):
        graph.add_parallel(
            "both", [handled, lambda g: g.add_switch("route", Plan, lambda plan: plan.goal, {"tea": work})]
        )

    recipe = nb.load(Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done == 2, one_round))
    full_run = nb.Session(recipe)
    while full_run.step():
        pass
    for steps in range(len(full_run.trace)):
        store = tmp_path / f"{steps}.db"
        session = nb.Session(recipe, store=store)
        for _ in range(steps):
            session.step()
        session.close()
        opened = nb.open(store, recipe=recipe)
        assert opened.replay(strict="reads").ok
        while opened.step():
            pass
        assert (opened.status, path(opened), dict(opened.board)) == ("finished", path(full_run), dict(full_run.board))


def test_a_replay_needs_no_resources_because_no_system_runs(tmp_path):
    @system
    def buy(price: Res[int], plan: Out[Plan]) -> str:
        return f"{plan.goal} {price}"

    recipe = nb.load(Graph().add_system(plan).add_system(buy).add_system(buy))
    session = nb.Session(recipe, resources={int: 5}, store=tmp_path / "runs.db")
    session.step(2)
    session.close()
    opened = nb.open(tmp_path / "runs.db", recipe=recipe)
    assert opened.replay(strict="reads").ok
    opened.run()
    assert (opened.status, opened.error.code) == ("failed", "X451")  # a system that runs needs them again
    assert opened.replay(strict="reads").ok


def test_required_inputs_are_declared_and_checked():
    recipe = nb.load(Graph().given(Plan).add_system(tell))
    with pytest.raises(nb.RecipeError, match="R205"):
        nb.Session(recipe)
    session = nb.Session(recipe, make_initial_board(Graph().given(Plan), {Plan: Plan("tea", 7)}))
    session.run()
    assert session.board[RESULT] == Result("tea 7")


def test_equal_graphs_have_equal_fingerprints_and_another_predicate_changes_it():
    def graph(most):
        return make_recipe(Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done > most, work))

    def other():
        return make_recipe(Graph().add_system(plan).add_loop("again", Plan, lambda plan: plan.done > 77, work))

    assert graph(1).fingerprint == graph(1).fingerprint
    assert graph(1).fingerprint != other().fingerprint


def test_loops_have_the_limit_of_the_caller():
    graph = Graph().add_system(plan).add_loop("again", Plan, bool, work)
    graph.add_loop("short", Plan, bool, work, max_iterations=3)
    assert [make_recipe(graph, 7).nodes[id].params["max"] for id in ("again", "short")] == [7, 3]
    assert make_recipe(graph).nodes["again"].params["max"] == 1000


def test_a_graph_is_drawn_without_edges_from_and_to_missing_nodes():
    graph = Graph().add_system(plan).add_system(work)
    graph.edges += [SequentialEdge("odd", "ghost", "plan"), SequentialEdge("more", "plan", "ghost")]
    assert {finding.kind for finding in graph.validate().errors} == {"InvalidEdgeSource", "InvalidEdgeTarget"}
    assert [(edge.source, edge.target) for edge in make_recipe(graph).edges] == [("plan", "work")]
    assert "ghost" not in graph.draw().dot


@pytest.mark.parametrize(
    ("retry", "params"),
    [
        (None, {}),
        ((1,), {}),
        ((1, 5), {}),
        ((2,), {"attempts": 2, "backoff": 0.0}),
        ((3, 1), {"attempts": 3, "backoff": 1.0}),
        ((3, 0.5), {"attempts": 3, "backoff": 0.5}),
    ],
)
def test_a_system_has_the_attempts_and_the_delay_of_its_retry(retry, params):
    graph = Graph().add_system(plan)
    if retry is not None:
        graph.set_retry("plan", *retry)
    made = nb.load(graph).nodes["plan"].params
    assert {key: value for key, value in made.items() if key in ("attempts", "backoff")} == params
    assert made["timeout"] is None
    assert nb.load(graph.set_timeout("plan", 1)).nodes["plan"].params["timeout"] == 1.0


@pytest.mark.parametrize("delay", [0, 1, 2.5])
def test_a_retry_waits_for_its_delay(delay):
    failures = iter([ValueError("one"), ValueError("two")])

    @system
    def third() -> Plan:
        for failure in failures:
            raise failure
        return Plan("tea")

    graph = Graph()
    graph.set_retry(graph.add_system_node(third), 3, delay)
    session = session_of(graph, clock=FrozenClock())
    session.run()
    assert session.status == "finished"
    assert session.trace.frames.calls["backoff_seconds"].tolist() == [0, delay, delay]


def every_kind():
    """Return a graph with each kind of node, and with handlers."""
    graph = Graph("every").given(str).add_system(plan)
    graph.add_conditional_branch("ask", Plan, bool, tell, lambda g: g.add_system(note).add_system(fix))
    graph.add_conditional_branch("only", Plan, bool, note)
    graph.add_switch("route", Plan, str, {"a": tell, 2: note}, default=fix).add_switch("bare", Plan, str, {"a": tell})
    graph.add_parallel("both", [tell, note])
    graph.add_loop("again", Plan, bool, work).add_loop("short", Plan, bool, work, max_iterations=3)
    graph.add_loop_n("twice", 2, note)
    risky = graph.add_system_node(fail)
    graph.set_timeout(risky, 2.5).add_error_handler(risky, lambda g: g.add_system(fix).add_system(note), resume=True)
    return graph.add_timeout_handler(risky, tell).add_system(plan)


def test_each_kind_of_node_has_its_params_and_regions():
    graph = every_kind()
    recipe = nb.load(graph)
    nodes, regions = recipe.nodes, recipe.regions
    kinds = {"plan": "system", "ask": "decision", "route": "switch", "both": "parallel", "both_join": "join"}
    assert {id: nodes[id].kind for id in (*kinds, "again")} == {**kinds, "again": "loop"}
    assert nodes["ask"].params["branches"] == {"true": "ask.true", "false": "ask.false"}
    assert nodes["only"].params["branches"] == {"true": "only.true", "false": None}
    assert nodes["route"].params["cases"] == (("a", "route.case 'a'"), (2, "route.case 2"))
    assert nodes["route"].params["default"] == "route.default"
    assert "default" not in nodes["bare"].params
    assert nodes["both"].params == {}
    limits = {id: (nodes[id].params.get("max"), nodes[id].params.get("times")) for id in ("again", "short", "twice")}
    assert limits == {"again": (1000, None), "short": (3, None), "twice": (None, 2)}
    assert {id: node.bodies for id, node in nodes.items() if node.bodies} == {
        "ask": ("ask.true", "ask.false"), "only": ("only.true",), "bare": ("bare.case 'a'",),
        "route": ("route.case 'a'", "route.case 2", "route.default"),
        "both": ("both.branch 1", "both.branch 2"), "again": ("again.body",), "short": ("short.body",),
        "twice": ("twice.body",),
    }  # fmt: skip
    for id, node in nodes.items():
        assert node.place.path == f"nodes[{id!r}]"
        assert node.place.file == "<graph 'every'>"
        for region in node.bodies:
            assert (regions[region].owner, regions[region].title) == (id, region.removeprefix(f"{id}."))
            assert nodes[regions[region].entry[0]].scope == region
    reads = {id: nodes[id].reads for id in ("ask", "route", "again", "twice", "both", "tell")}
    assert reads == {"ask": (PLAN,), "route": (PLAN,), "again": (PLAN,), "twice": (), "both": (), "tell": (PLAN,)}
    assert (list(recipe.inputs), recipe.meta["required"]) == (["builtins.str"], ("builtins.str",))
    assert (recipe.entry, regions["root"].title) == (("plan",), "every")
    assert [nodes[id].label for id in ("plan", "plan_2", "both_join")] == ["", "plan", "join"]


def test_handlers_have_their_edges_and_areas():
    recipe = nb.load(every_kind())
    edges = {(edge.source, edge.target): (edge.kind, edge.condition) for edge in recipe.edges if not edge.inner}
    handler = next(target for (source, target), (kind, _) in edges.items() if kind == "error")
    timeout = next(target for (source, target), (kind, _) in edges.items() if kind == "timeout")
    assert edges["fail", handler] == ("error", "")
    assert edges["fail", timeout] == ("timeout", "2.5 s")
    assert edges["fail", "plan_2"] == ("sequential", "")
    last = next(target for (source, target) in edges if source == handler)
    assert edges[last, "plan_2"] == ("sequential", "")  # it resumes where the failed system leads
    assert timeout not in {source for source, _ in edges}
    areas = recipe.meta["areas"]
    assert {name: (area.entry, area.title, area.owner) for name, area in areas.items()} == {
        "fail.error": ((handler,), "error of fail", "fail"),
        "fail.timeout": ((timeout,), "timeout of fail", "fail"),
    }
    assert dict(recipe.meta["area_of"]) == {handler: "fail.error", last: "fail.error", timeout: "fail.timeout"}
    for source, target in edges:
        place = next(edge.place for edge in recipe.edges if (edge.source, edge.target) == (source, target))
        assert place.path == f"edges[{source!r}, {target!r}]"


def test_warnings_that_every_recipe_gets_are_reported_once():
    graph = Graph().add_system(plan).add_parallel("both", [tell, fix])
    graph.nodes.append(JoinNode("alone", sources=["plan"]))
    graph.edges.append(SequentialEdge("back", "both_join", "plan"))
    recipe, problems = load(Source(graph))
    assert {finding.kind for finding in graph.validate().warnings} == {
        "ConflictingParallelOutputs",
        "Unreachable",
        "Cycle",
    }
    assert [finding.kind for finding in problems] == ["ConflictingParallelOutputs"]
    graph.get_node("both").join = None
    recipe, problems = load(Source(graph))
    assert recipe is None
    assert [finding.severity for finding in problems] == ["error", "warning"]
