from __future__ import annotations

import asyncio
import threading
import time

import pytest

import agentnb as nb
from agentnb.dialects.polaris import (
    ExecutionError,
    Graph,
    GraphExecutor,
    HooksAPI,
    Out,
    Res,
    SystemContext,
    system,
)
from agentnb.errors import AgentNbError
from tests.dialects.polaris.polaris_graphs import (
    Plan,
    Result,
    execute,
    fail,
    fix,
    nested,
    note,
    nothing,
    plan,
    refused,
    tell,
    work,
)


def test_a_result_has_the_outputs_the_nodes_that_ran_and_the_trace():
    graph = Graph().add_system(plan).add_loop_n("again", 2, work).add_parallel("both", [tell, note])
    result = execute(graph)
    # plan, again, work twice, both, tell, note, and the join
    assert (result.nodes_executed, result.output(Plan), result.output(Result)) == (8, Plan("tea", 2), Result("tea 2"))
    assert (result.output(int), result.has_output(int), result.has_output(str)) == (None, False, True)
    assert len(result.trace) == 11
    assert result.run_id == result.session.run_id
    assert result.duration > 0


def test_failed_systems_that_are_handled_and_their_handlers_count():
    graph = Graph().add_system(plan)
    graph.add_error_handler(graph.add_system_node(fail), fix, resume=True).add_system(note)
    assert execute(graph).nodes_executed == 4


def test_a_context_provides_resources_and_outputs_and_receives_the_outputs():
    @system
    def priced(plan: Out[Plan], cents: Res[int]) -> Result:
        return Result(f"{plan.goal} {cents}")

    ctx = SystemContext().insert(5).insert_output(Plan("milk"))
    assert execute(Graph().add_system(priced), ctx).output(Result) == Result("milk 5")
    assert ctx.output(Result) == Result("milk 5")


def test_resources_inserted_at_the_top_level_are_in_the_context_and_those_of_a_branch_are_not():
    @system
    def shared(ctx: SystemContext):
        ctx.insert(3)

    @system
    def own(ctx: SystemContext, number: Res[int]) -> Result:
        ctx.insert(2.5)
        return Result(f"{number} {ctx.resource(float)}")

    ctx = SystemContext()
    result = execute(Graph().add_system(shared).add_parallel("both", [own, note]), ctx)
    assert result.output(Result) == Result("3 2.5")
    assert ctx.resource(int) == 3
    with pytest.raises(Exception, match="X451"):
        ctx.resource(float)


def endless():
    """Return a graph whose loop never ends by itself; should its limit not hold, the test fails and does not hang."""
    requests = []

    def is_done(_plan):
        requests.append(1)
        if len(requests) > 1500:
            raise KeyboardInterrupt("the limit of the loop does not hold")
        return False

    return Graph().add_system(plan).add_loop("again", Plan, is_done, work)


@pytest.mark.parametrize(
    ("graph", "kind", "node"),
    [
        (Graph(), "EmptyGraph", None),
        (Graph().add_system(plan).add_system(fail), "SystemError", "fail"),
        (Graph().add_system(tell), "SystemError", "tell"),
        (Graph().add_conditional_branch("ask", Plan, bool, note), "PredicateError", "ask"),
        (Graph().add_system(plan).add_conditional_branch("ask", Plan, lambda _: 1 / 0, note), "PredicateError", "ask"),
        (Graph().add_system(plan).add_conditional_branch("ask", Plan, bool, nothing, note), "MissingBranch", "ask"),
        (Graph().add_conditional_branch("ask", Plan, None, note), "MissingPredicate", "ask"),
        (Graph().add_switch("route", Plan, None, {"a": note}), "MissingDiscriminator", "route"),
        (Graph().add_system(plan).add_switch("route", Plan, lambda _: "b", {"a": note}), "NoMatchingCase", "route"),
        (endless(), "MaxIterationsExceeded", "again"),
        (nested(65), "RecursionLimitExceeded", "level1"),
    ],
)
def test_a_failed_run_reports_a_kind_and_a_node_id(graph, kind, node):
    assert refused(graph) == (kind, node)


def test_the_limits_are_those_of_the_executor():
    assert refused(endless(), default_max_iterations=3) == ("MaxIterationsExceeded", "again")
    session = GraphExecutor(default_max_iterations=3).session(endless())
    session.run()
    assert (session.status, session.error.code) == ("failed", "X401")
    assert "has run 3 times without ending" in session.error.what
    assert session.error.why == "its predicate is still false, and its max_iterations is reached"
    assert "default_max_iterations" in session.error.do
    assert [step.node_id for step in session.trace.steps].count("work") == 3
    assert execute(nested(64)).nodes_executed == 66
    assert refused(nested(65))[0] == "RecursionLimitExceeded"
    assert execute(nested(65), max_recursion_depth=65).nodes_executed == 67
    assert refused(nested(3), max_recursion_depth=2) == ("RecursionLimitExceeded", "level1")


def test_a_missing_output_is_reported_with_type_node_and_possible_producers():
    graph = Graph().add_conditional_branch("ask", Plan, bool, note)
    graph.add_error_handler(graph.add_system_node(note), tell)
    with pytest.raises(ExecutionError) as caught:
        execute(graph)
    problem = caught.value.problems[0]
    assert "'Plan'" in problem.what
    assert "'ask'" in problem.what
    with pytest.raises(ExecutionError, match="it could come from: tell"):
        execute(Graph().add_system(needs_result).add_system(tell))


@system
def needs_result(result: Out[Result]) -> str:
    return result.text


def test_the_error_has_its_cause_and_the_steps_up_to_the_failure():
    with pytest.raises(ExecutionError) as caught:
        execute(Graph().add_system(plan).add_system(fail))
    assert isinstance(caught.value.__cause__, ValueError)
    assert [step.node_id for step in caught.value.trace.steps] == ["plan", "fail"]


def test_empty_bodies_only_count_iterations_and_empty_parallel_nodes_continue():
    assert execute(Graph().add_loop_n("again", 3, nothing)).nodes_executed == 1
    assert execute(Graph().add_parallel("both", [nothing]).add_system(plan)).nodes_executed == 3
    assert execute(Graph().add_system(plan).add_loop("again", Plan, lambda _: True, nothing)).nodes_executed == 2
    hollow = Graph().add_system(plan).add_loop("again", Plan, lambda _: False, nothing)
    assert refused(hollow) == ("MaxIterationsExceeded", "again")


def test_an_invalid_graph_is_reported_as_by_validate():
    graph = Graph().add_system(plan)
    graph.entry = "gone"
    assert refused(graph) == ("InvalidEntryPoint", "gone")


# -- time ------------------------------------------------------------------------------------------------------------


@system
async def waits() -> Result:
    await asyncio.sleep(60)
    return Result("late")


def blocked(gate):
    @system
    def blocks() -> Result:
        gate.wait(60)
        return Result("late")

    return blocks


@pytest.mark.parametrize("sort", ["async", "sync"])
def test_timeouts_lead_to_their_own_handler(sort):
    gate = threading.Event()
    slow = waits if sort == "async" else blocked(gate)
    graph = Graph()
    id = graph.add_system_node(slow)
    graph.set_timeout(id, 0.02).add_error_handler(id, tell).add_timeout_handler(id, note, resume=True).add_system(plan)
    try:
        result = execute(graph)
    finally:
        gate.set()
    assert [step.node_id for step in result.trace.steps] == [id, "note", "plan"]
    assert result.output(Result) is None


def test_a_timeout_without_a_handler_ends_the_run_even_if_errors_are_handled():
    graph = Graph()
    id = graph.add_system_node(waits)
    graph.set_timeout(id, 0.01).add_error_handler(id, note)
    assert refused(graph) == ("Timeout", "waits")


def test_an_unhandled_failure_names_what_would_handle_it():
    graph = Graph()
    id = graph.add_system_node(waits)
    session = nb.Session(nb.load(graph.set_timeout(id, 0.01)))
    session.run()
    assert session.error.why == "no edge of kind 'timeout' handles this timeout (in polaris: add_timeout_handler)"
    for handled in (graph.add_error_handler(id, note), Graph().add_loop_n("again", 2, graph)):
        session = nb.Session(nb.load(handled))
        session.run()
        assert session.error.why.endswith("; the error edge of 'waits' does not: a timeout is another failure")
    graph = Graph().add_system(plan)
    graph.add_timeout_handler(graph.add_system_node(fail), note)
    session = nb.Session(nb.load(graph))
    session.run()
    assert session.error.why.startswith("nothing in the recipe handles this failure (no error edge leads on)")
    assert session.error.why.endswith("; the timeout edge of 'fail' handles only timeouts")


def test_a_system_that_raises_a_timeout_error_of_its_own_has_failed_and_not_timed_out():
    @system
    def impatient() -> Plan:
        raise TimeoutError("the line is dead")

    graph = Graph()
    id = graph.add_system_node(impatient)
    graph.set_timeout(id, 60).add_timeout_handler(id, note)
    assert refused(graph) == ("SystemError", "impatient")
    assert execute(graph.add_error_handler(id, plan)).output(Plan) == Plan("tea")


def test_each_attempt_has_its_own_timeout_and_the_last_result_decides():
    ran = []

    @system
    async def twice() -> Plan:
        ran.append(1)
        if len(ran) < 3:
            await asyncio.sleep(60)
        raise ValueError("still broken")

    graph = Graph()
    id = graph.add_system_node(twice)
    graph.set_timeout(id, 0.01).set_retry(id, 3).add_timeout_handler(id, note).add_error_handler(id, plan)
    result = execute(graph)
    assert [step.node_id for step in result.trace.steps] == ["twice", "plan"]
    assert list(result.trace.frames.calls.attempt) == [1, 2, 3, 1]


def test_a_retry_that_succeeds_is_one_step():
    ran = []

    @system
    def second() -> Plan:
        ran.append(1)
        if len(ran) == 1:
            raise ValueError("not yet")
        return Plan("tea")

    graph = Graph()
    graph.set_retry(graph.add_system_node(second), 2)
    assert execute(graph).nodes_executed == 1


# -- at the same time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ["async", "sync"])
def test_branches_run_concurrently(sort):
    gate = threading.Barrier(10)

    @system
    def meets() -> Plan:
        gate.wait(30)  # nobody goes on before all ten have come
        return Plan("met")

    waiting, started = [], asyncio.Event()

    @system
    async def ameets() -> Plan:
        waiting.append(1)
        if len(waiting) == 10:
            started.set()
        await started.wait()
        return Plan("met")

    graph = Graph().add_parallel("ten", [meets if sort == "sync" else ameets] * 10)
    assert execute(graph).nodes_executed == 12


def test_the_first_failure_cancels_the_other_branches_and_nothing_is_merged():
    started = threading.Event()

    @system
    async def never() -> Plan:
        started.set()
        await asyncio.sleep(60)
        raise AssertionError

    @system
    def breaks():
        started.wait(30)
        raise ValueError("it broke")

    graph = Graph().add_parallel("both", [note, never, breaks])
    with pytest.raises(ExecutionError) as caught:
        execute(graph)
    assert (caught.value.kind, caught.value.node_id) == ("SystemError", "breaks")
    steps = [(step.node_id, step.status, step.branch) for step in caught.value.trace.steps]
    failed = steps.index(("breaks", "error", 2))  # `note` has ended before, or is cancelled, too
    assert ("never", "cancelled", 1) in steps[failed + 1 :]
    assert caught.value.trace.state_at(len(steps)) == {}


def test_outputs_are_merged_in_branch_order_whatever_the_timing():
    done = threading.Event()

    @system
    def first() -> Plan:
        done.wait(30)
        return Plan("first")

    @system
    def last() -> Plan:
        done.set()
        return Plan("last")

    assert execute(Graph().add_parallel("both", [first, last])).output(Plan) == Plan("last")
    done.clear()
    assert execute(Graph().add_parallel("both", [last, first])).output(Plan) == Plan("first")


def test_hooks_are_called():
    api, seen = HooksAPI(), []
    api.register(["OnGraphStart", "OnGraphComplete"], "seen", lambda event: seen.append(event.schedule))
    execute(Graph().add_system(plan), hooks=api)
    assert seen == ["OnGraphStart", "OnGraphComplete"]


def test_a_session_of_the_executor_can_be_stepped():
    session = GraphExecutor().session(Graph().add_system(plan).add_system(tell))
    assert session.step().node_id == "plan"
    with pytest.raises(ExecutionError, match="X456: a dict is not a graph") as caught:
        GraphExecutor().session({"no": "graph"})
    assert (caught.value.kind, caught.value.node_id, caught.value.trace) == ("NotAGraph", None, None)
    with pytest.raises(ExecutionError, match="X456: the graph is empty"):
        GraphExecutor().session(Graph())


def test_late_inserts_of_an_abandoned_thread_are_rejected():
    gate, messages = threading.Event(), []

    @system
    def late(ctx: SystemContext) -> Plan:
        gate.wait(30)
        try:
            ctx.insert(3)
        except AgentNbError as error:
            messages.append(str(error))
        return Plan("late")

    graph = Graph()
    id = graph.add_system_node(late)
    graph.set_timeout(id, 0.01)
    ctx = SystemContext()
    assert refused(graph, ctx) == ("Timeout", "late")
    gate.set()
    for _ in range(3000):
        if messages:
            break
        time.sleep(0.01)
    assert "X455" in messages[0]
