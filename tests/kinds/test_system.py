from __future__ import annotations

import agentnb as nb
from agentnb.dialects.polaris import Graph, Out, Res, SystemContext, system
from tests.dialects.polaris.polaris_graphs import PLAN, Plan, Result, note, plan, tell


def run(graph, **options):
    session = nb.Session(nb.load(graph), **options)
    session.run()
    return session


def test_an_output_is_stored_by_its_type_and_none_stores_nothing():
    @system
    def silent(plan: Out[Plan]):
        pass

    session = run(Graph().add_system(plan).add_system(silent).add_system(note))
    assert dict(session.board) == {PLAN: Plan("tea"), "builtins.str": "noted"}


def test_a_dict_is_an_output_like_any_other():
    @system
    def found() -> dict:
        return {"a": 1}

    assert dict(run(Graph().add_system(found)).board) == {"builtins.dict": {"a": 1}}


def test_inputs_are_copies():
    @system
    def careless(plan: Out[Plan]):
        plan.goal = "coffee"

    session = run(Graph().add_system(plan).add_system(careless))
    assert session.board[PLAN] == Plan("tea")


def test_an_optional_input_is_none_or_the_default():
    @system
    def one(plan: Out[Plan] | None, result: Out[Result] = Result("none"), price: Res[int] | None = 3) -> str:  # noqa: B008
        return f"{plan} {result.text} {price}"

    assert run(Graph().add_system(one)).board["builtins.str"] == "None none 3"


def test_a_missing_resource_is_reported_with_the_remedy():
    @system
    def one(price: Res[int]) -> str:
        return str(price)

    graph = Graph()
    graph.set_retry(graph.add_system_node(one), 3)
    session = run(graph)
    assert (session.status, session.error.code) == ("failed", "X451")
    assert "resources={int: ...}" in session.error.do
    assert len(session.trace.frames.calls) == 1  # another attempt would not find it either


def test_possible_producers_of_an_output_exclude_the_system_itself():
    @system
    def grow(plan: Out[Plan]) -> Plan:
        return plan

    session = run(Graph().add_system(grow).add_system(plan))
    assert (session.error.code, session.error.do) == ("X450", "run 'plan' before it")


def test_a_missing_output_leads_to_the_error_handler_like_any_failure():
    graph = Graph()
    graph.add_error_handler(graph.add_system_node(tell), note)
    assert run(graph).board["builtins.str"] == "noted"


def test_each_attempt_has_its_own_context():
    seen = []

    @system
    def one(ctx: SystemContext) -> str:
        seen.append(ctx)
        if len(seen) == 1:
            raise ValueError("again")
        return "fine"

    graph = Graph()
    graph.set_retry(graph.add_system_node(one), 2)
    run(graph)
    assert seen[0] is not seen[1]


def test_changes_to_arguments_in_one_attempt_are_not_visible_in_the_next():
    @system
    def careless(plan: Out[Plan]) -> str:
        plan.done += 1
        if plan.done > 1:
            return "it has seen the change"
        raise ValueError("again")

    graph = Graph().add_system(plan)
    graph.set_retry(graph.add_system_node(careless), 3)
    assert run(graph).status == "failed"


def test_reads_through_a_context_are_recorded():
    @system
    def one(ctx: SystemContext) -> str:
        return ctx.output(Plan).goal

    session = run(Graph().add_system(plan).add_system(one))
    assert [read.key for read in session.trace.steps[-1].reads] == [PLAN]
    assert session.replay(strict="reads").ok


def test_edited_arguments_of_a_paused_call_reach_the_system():
    session = nb.Session(nb.load(Graph().add_system(plan).add_system(tell)))
    session.breakpoints.add(call="tell")
    session.run()
    session.change(session.pending[0].id, arguments={"plan": Plan("milk", 3)})
    session.run()
    assert session.board["tests.dialects.polaris.polaris_graphs.Result"] == Result("milk 3")
