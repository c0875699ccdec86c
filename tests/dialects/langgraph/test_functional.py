"""Entrypoints and tasks: values, questions, failures and the calls of each task, with the package as the judge."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import NodeTimeoutError
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime  # noqa: TC002  (LangGraph reads the annotations)
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy, interrupt

import agentnb as nb
from agentnb.dialects.langgraph.api import load_graph
from agentnb.load import load
from agentnb.recipe.model import to_graph
from agentnb.session import Session

LOG: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls():
    LOG.clear()


async def in_langgraph(workflow: Any, given: Any, is_async: bool) -> tuple[str, Any, list[Any]]:
    """Run an entrypoint in LangGraph, answering what it asks; return how it ended, its result and the questions."""
    workflow = workflow.copy(update={"checkpointer": InMemorySaver()})
    # A thread for each task: by default there are a few, and tasks that wait for tasks inside them wait there for ever.
    config, questions = {"configurable": {"thread_id": "one"}, "max_concurrency": 64}, []
    try:
        while True:
            result = await workflow.ainvoke(given, config) if is_async else workflow.invoke(given, config)
            if not isinstance(result, dict) or "__interrupt__" not in result:
                return "finished", result, questions
            questions += [question.value for question in result["__interrupt__"]]
            given = Command(resume={each.id: f"re {each.value}" for each in result["__interrupt__"]})
    except Exception as error:  # noqa: BLE001  (how it ended)
        return type(error).__name__, None, questions


def in_agentnb(workflow: Any, given: Any, store: Path | None = None) -> tuple[str, Any, list[Any], Session]:
    """Do the same in agentnb; with a store, open the run again before each answer."""
    session, questions = Session(load(workflow), {"__start__": given}, store=store), []
    session.run()
    while session.status == "waiting":
        questions.append(session.pending[0].arguments["prompt"])
        if store is not None:
            session.close()
            session = nb.open(store, session.run_id, recipe=load(workflow))
        session.answer(f"re {questions[-1]}")
    return session.status, dict(session.board).get("__end__"), questions, session


def compare(workflow: Any, given: Any = 1, is_async: bool = False) -> Session:
    """Assert that an entrypoint runs alike, with the same calls of its tasks, and that a replay calls none of them."""
    LOG.clear()
    theirs, calls = asyncio.run(in_langgraph(workflow, given, is_async)), Counter(LOG)
    LOG.clear()
    ended, result, questions, session = in_agentnb(workflow, given)
    if theirs[0] == "finished":
        assert (ended, result, questions) == theirs
        assert Counter(LOG) == calls
    else:  # LangGraph's other threads may end before their tasks have begun
        assert session.status == "failed"
        assert theirs[0] in str(session.error)
        assert questions == theirs[2]
        assert Counter(LOG) >= calls
    LOG.clear()
    assert session.replay().ok
    assert not [line for line in LOG if line != "body"]
    return session


@task
def double(n: int) -> int:
    LOG.append(f"double {n}")
    return 2 * n


@task
async def later(n: int) -> int:
    LOG.append(f"later {n}")
    await asyncio.sleep(0)
    return 2 * n


@task
def confirm(what: str) -> str:
    LOG.append(f"confirm {what}")
    answer = interrupt(f"{what}?")
    LOG.append(f"confirmed {what}")
    return f"{what}: {answer}"


def test_tasks_are_calls_with_arguments_and_results():
    @entrypoint()
    def workflow(n):
        LOG.append("body")
        first, second = double(n), double(n=n + 1)
        return {"sum": second.result() + first.result()}

    session = compare(workflow, 3)
    assert session.board["__end__"] == {"sum": 14}
    calls = session.trace.frames.calls
    assert list(calls.kind) == ["task", "task"]
    assert list(calls.arguments) == [{"n": 3}, {"n": 4}]
    assert [record["value"] for record in calls.result] == [6, 8]
    assert session.who_wrote("__end__") == 1


def test_async_tasks_run_together():
    @entrypoint()
    async def workflow(n):
        started = asyncio.Event()

        @task
        async def wait():
            await asyncio.wait_for(started.wait(), 5)
            return "met"

        @task
        async def meet():
            started.set()

        results = await asyncio.gather(wait(), meet(), later(n), double(n))
        later(9)  # nobody reads its result
        return results

    compare(workflow, 3, is_async=True)


def test_an_entrypoint_accepts_inputs_of_any_type_and_saved_values():
    @entrypoint()
    def counter(step, *, previous: Any = None):
        total = (previous or 0) + step
        return entrypoint.final(value=f"total {total}", save=total)

    first = Session(load(counter), 2)
    first.run()
    assert first.replay().ok
    assert dict(first.board) == {"__end__": "total 2", "__previous__": 2}
    second = Session(load(counter), {"__start__": 3, "__previous__": first.board["__previous__"]})
    second.run()
    assert second.board["__end__"] == "total 5"


def test_a_mapping_is_the_input_itself():
    @entrypoint()
    def greet(person: dict):
        return f"Hello {person['name']}"

    session = Session(load(greet), {"name": "Ada"})
    session.run()
    assert session.board["__end__"] == "Hello Ada"
    assert session.recipe.name == "greet"


def test_a_task_may_ask_and_finished_tasks_are_not_called_again():
    @entrypoint()
    def workflow(n):
        LOG.append("body")
        doubled, answers = double(n), [confirm(name) for name in ("a", "b")]
        answer = interrupt("own?")
        return [doubled.result(), answer, *(future.result() for future in answers)]

    compare(workflow)


def test_tasks_can_call_tasks():
    @task
    def outer(n):
        LOG.append("outer")
        return [double(n).result(), confirm("inner").result(), interrupt("outer?")]

    @entrypoint()
    def workflow(n):
        LOG.append("body")
        return outer(n).result()

    session = compare(workflow)
    assert set(session.trace.frames.calls.name[session.trace.frames.calls.kind == "task"]) == {"outer"}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fails", [1, 2, 3])
@pytest.mark.parametrize("of_task", [False, True])
def test_retry_policies_of_tasks_and_entrypoints_apply(is_async, fails, of_task):
    quick = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=3, retry_on=ValueError)

    def made():
        left = [fails]

        def flaky(n):
            LOG.append("flaky")
            left[0] -= 1
            if left[0] >= 0:
                raise ValueError("flaky")
            return n

        async def aflaky(n):
            return flaky(n)

        flaky_task = task(aflaky if is_async else flaky, retry_policy=quick if of_task else None)

        def body(n):
            LOG.append("body")
            return [double(n).result(), flaky_task(n).result()]

        async def abody(n):
            LOG.append("body")
            return [await double(n), await flaky_task(n)]

        return entrypoint(retry_policy=None if of_task else quick)(abody if is_async else body)

    theirs, calls = asyncio.run(in_langgraph(made(), 1, is_async)), Counter(LOG)
    LOG.clear()
    ended, result, _, session = in_agentnb(made(), 1)
    assert (ended == "finished", result) == (theirs[0] == "finished", theirs[1])
    assert Counter(LOG) == calls
    if ended == "finished":
        assert [event.type for event in session.events] == ["retry"] * fails


def test_nodes_of_a_graph_call_tasks():
    def node(state: dict) -> dict:
        return {"n": double(state["n"]).result(), "said": confirm("sure").result()}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    session = Session(load(graph), {"__root__": {"n": 2}})
    session.run()
    session.answer("yes")
    session.run()
    assert session.board["__root__"] == {"n": 4, "said": "sure: yes"}
    assert LOG == ["double 2", "confirm sure", "confirm sure", "confirmed sure"]
    assert session.replay().ok


def test_an_entrypoint_can_be_a_node():
    @entrypoint()
    def inner(state):
        return {"n": double(state["n"]).result()}

    graph = StateGraph(dict)
    graph.add_node("node", inner)
    graph.add_edge(START, "node")
    assert graph.compile().invoke({"n": 2}) == {"n": 4}
    session = Session(load(graph), {"__root__": {"n": 2}})
    session.run()
    assert session.board["__root__"] == {"n": 4}
    assert [step.node_id for step in session.trace.steps] == ["node", "node/inner", "node"]
    assert dict(to_graph(session.recipe).nodes(data="label")) == {"node": "node", "node/inner": "inner"}


def test_store_writer_and_config_reach_tasks_and_streamed_output_is_replayed():
    @task
    def note(word: str, runtime: Runtime, config: RunnableConfig) -> str:
        get_stream_writer()({"noted": word})
        runtime.store.put(("notes",), word, {"by": config["configurable"]["user"]})
        return runtime.store.get(("notes",), word).value["by"]

    @entrypoint()
    def workflow(word: str, *, runtime: Runtime):
        author = note(word).result()
        runtime.stream_writer({"by": author})
        return [author, runtime.store.get(("notes",), word).value]

    recipe = load_graph(workflow, config={"configurable": {"user": "Ada"}}, store=InMemoryStore())
    session = Session(recipe, {"__start__": "w"})
    session.run()
    assert session.error is None, session.error
    assert session.board["__end__"] == ["Ada", {"by": "Ada"}]
    assert [event.payload for event in session.events] == [{"noted": "w"}, {"by": "Ada"}]
    assert session.replay().ok


@entrypoint()
def review(n):
    LOG.append("body")
    doubled = double(n).result()
    try:
        return [doubled, double("x" if n == 0 else n + 1).result()]
    except ValueError:
        return "refused"


def test_arguments_and_results_of_a_task_can_be_edited():
    session = Session(load(review), {"__start__": 1})
    session.breakpoints.add(call="task")
    session.run()
    session.change(session.pending[0].id, arguments={"n": 10})
    session.run()
    assert session.status == "in_flight"
    session.change(session.pending[0].id, answer=99)
    session.run()
    assert session.board["__end__"] == [20, 99]
    assert Counter(LOG)["double 10"] == 1
    assert session.replay().ok


def test_a_reopened_run_calls_no_finished_task(tmp_path):
    @entrypoint()
    def workflow(n):
        return [double(n).result(), interrupt("on?"), double(n + 1).result()]

    session = Session(load(workflow), {"__start__": 1}, store=tmp_path / "runs.db")
    session.run()
    assert session.status == "waiting"
    session.close()
    LOG.clear()
    opened = nb.open(tmp_path / "runs.db", recipe=load(workflow))
    opened.answer("yes")
    opened.run()
    assert opened.board["__end__"] == [2, "yes", 4]
    assert LOG == ["double 2"]


def test_an_async_task_cannot_be_called_by_a_sync_function():
    @entrypoint()
    def calls_async(n):
        return later(n).result()

    compare(calls_async)


# -- policies ----------------------------------------------------------------------------------------------------------


def doubles(is_async, **words):
    """Return a task, with these policies, that doubles and logs."""

    def now(n):
        LOG.append(f"double {n}")
        return 2 * n

    async def soon(n):
        return now(n)

    return task(soon if is_async else now, name="doubles", **words)


def twice_of(made, is_async, **words):
    """Return an entrypoint that calls a task twice."""

    def now(n):
        return [made(n).result(), made(n + 1).result()]

    async def soon(n):
        return [await made(n), await made(n + 1)]

    return entrypoint(**words)(soon if is_async else now)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("first", ["there", "here"])
@pytest.mark.parametrize("by", ["task", "entrypoint"])
def test_a_cache_of_tasks_is_shared_with_langgraph(is_async, first, by):
    policy = CachePolicy(key_func=lambda *given: str(given))
    entry = doubles(is_async, cache_policy=policy if by == "task" else None)
    workflow = twice_of(entry, is_async, cache=InMemoryCache(), cache_policy=policy if by == "entrypoint" else None)

    def there():
        return asyncio.run(workflow.ainvoke(1)) if is_async else workflow.invoke(1)

    def here():
        session = Session(load(workflow), {"__start__": 1})
        session.run()
        assert session.error is None, session.error
        replay = session.replay()
        assert replay.ok, replay
        return session.board["__end__"]

    courses = [there, here] if first == "there" else [here, there]
    assert [course() for course in courses] == [[2, 4]] * 2
    assert LOG == ["double 1", "double 2"]


def test_nodes_call_cached_tasks():
    workflow, graph = doubles(is_async=False, cache_policy=CachePolicy()), StateGraph(dict)
    graph.add_node("a", lambda state: {"n": [workflow(1).result(), workflow(1).result()]})
    graph.add_edge(START, "a")
    session = Session(load(graph.compile(cache=InMemoryCache())), {"__root__": {}})
    session.run()
    assert session.board["__root__"] == {"n": [2, 2]}
    assert LOG == ["double 1"]


def slow(seconds, timeout, **words):
    """Return an entrypoint whose task takes this long, and may take as long as its timeout says."""

    @task(timeout=timeout, **words)
    async def waits():
        LOG.append("waits")
        await asyncio.sleep(seconds)
        return "in time"

    @entrypoint()
    async def run(n):
        try:
            return await waits()
        except NodeTimeoutError as error:
            return type(error).__name__

    return run


@pytest.mark.parametrize(
    "workflow",
    [
        slow(0, 30),
        slow(30, 0.02),
        slow(30, TimeoutPolicy(idle_timeout=0.02)),
        slow(30, 0.02, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False)),
    ],
)
def test_a_timeout_of_a_task_cancels_it(workflow):
    compare(workflow, is_async=True)


def test_a_timeout_of_an_entrypoint_cancels_it():
    @entrypoint(timeout=0.05)
    async def waits(n):
        first = await later(n)
        await asyncio.sleep(30)
        return first

    assert asyncio.run(in_langgraph(waits, 1, is_async=True))[0] == "NodeTimeoutError"
    assert "NodeTimeoutError" in str(in_agentnb(waits, 1)[3].error)
    assert LOG == ["later 1"] * 2


# -- random programs ---------------------------------------------------------------------------------------------------


def plain(function: Any) -> Any:
    """Return a function that is not async, of an async one that waits for nothing but results."""

    def run(n: int) -> Any:
        try:
            function(n).send(None)
        except StopIteration as ended:
            return ended.value

    return run


def task_of(name: str, plan: dict[str, Any], inner: Any, read: Any) -> Any:
    """Return the function of a task, which may call another one, ask and fail."""

    async def run(n: int) -> list[Any]:
        values = [] if inner is None else [await read(inner(n + 1))]
        LOG.append(f"{name} {n}")
        values += [interrupt(f"{name} {n} {number}?") for number in range(plan["asks"])]
        if plan["fails"] == n % 3:
            raise ValueError(name)
        return [name, n, *values]

    return run


def body_of(steps: list[tuple[str, Any]], tasks: dict[str, Any], read: Any) -> Any:
    """Return the function of an entrypoint, which starts tasks, reads their results in any order, asks and fails."""

    async def run(n: int) -> list[Any]:
        LOG.append("body")
        futures, results = [], []
        for verb, value in steps:
            if verb == "start":
                futures.append(tasks[value](len(futures)))
            elif verb == "ask":
                results.append(interrupt(f"body {value}?"))
            elif verb == "fail":
                raise KeyError(value)
            elif futures:
                try:
                    results.append(await read(futures[value % len(futures)]))
                except ValueError as error:
                    results.append(str(error))
        return results

    return run


async def awaited(future: Any) -> Any:
    return await future


async def at_once(future: Any) -> Any:
    return future.result()


def workflow_of(plan: dict[str, Any], is_async: bool) -> Any:
    """Return the entrypoint of a plan."""
    read, tasks = awaited if is_async else at_once, {}
    for name, each in plan["tasks"].items():
        run = task_of(name, each, tasks.get(each["calls"]), read)
        tasks[name] = task(run if is_async else plain(run), name=name)
    run = body_of(plan["body"], tasks, read)
    return entrypoint()(run if is_async else plain(run))


NAMES = ["a", "b", "c"]
PLANS = st.fixed_dictionaries({
    "tasks": st.fixed_dictionaries({
        name: st.fixed_dictionaries({
            "asks": st.integers(0, 4).map(lambda n: max(0, n - 2)),
            "fails": st.integers(0, 11),
            "calls": st.sampled_from([None, None, *NAMES[:number]]),
        })
        for number, name in enumerate(NAMES)
    }),
    "body": st.lists(
        st.one_of(
            st.tuples(st.just("start"), st.sampled_from(NAMES)),
            st.tuples(st.just("start"), st.sampled_from(NAMES)),
            st.tuples(st.just("read"), st.integers(0, 5)),
            st.tuples(st.just("read"), st.integers(0, 5)),
            st.tuples(st.sampled_from(["ask", "ask", "fail"]), st.integers(0, 5)),
        ),
        max_size=8,
    ),
})  # fmt: skip


NESTED = {
    "tasks": {
        "a": {"asks": 1, "fails": 0, "calls": None},
        "b": {"asks": 0, "fails": 0, "calls": "a"},
        "c": {"asks": 0, "fails": 0, "calls": None},
    },
    "body": [("start", "a"), ("start", "a"), ("start", "b"), ("read", 2), ("ask", 0)],
}


@given(plan=PLANS, is_async=st.booleans())
@example(plan=NESTED, is_async=False)  # a replay performs no task, and yet an answer is for the one inside another
def test_random_programs_run_as_in_langgraph(plan, is_async):
    compare(workflow_of(plan, is_async), 1, is_async)


ASKS_INSIDE = {
    "tasks": {
        "a": {"asks": 0, "fails": 1, "calls": None},
        "b": {"asks": 1, "fails": 1, "calls": "a"},
        "c": {"asks": 0, "fails": 1, "calls": "b"},
    },
    "body": [("start", "c"), ("read", 0), ("ask", 0)],
}


FAILS_AROUND = {
    "tasks": {
        "a": {"asks": 0, "fails": 5, "calls": None},
        "b": {"asks": 0, "fails": 5, "calls": None},
        "c": {"asks": 0, "fails": 0, "calls": "a"},
    },
    "body": [("start", "c"), ("ask", 0)],
}


@given(plan=PLANS, is_async=st.booleans())
@example(plan=FAILS_AROUND, is_async=False)  # `a` has succeeded inside `c`, which fails, before the question
@example(plan=FAILS_AROUND, is_async=True)
@example(plan=ASKS_INSIDE, is_async=False)  # `a` has succeeded inside `b`, which asks inside `c`
@example(plan=ASKS_INSIDE, is_async=True)
def test_random_programs_reopened_at_each_question_call_no_task_twice(plan, is_async):
    workflow = workflow_of(plan, is_async)
    LOG.clear()
    *expected, _ = in_agentnb(workflow, 1)
    calls = Counter(line for line in LOG if line != "body")
    if expected[2]:  # it asks
        LOG.clear()
        with tempfile.TemporaryDirectory() as folder:
            *results, session = in_agentnb(workflow, 1, Path(folder) / "runs.db")
            assert results == expected
            assert Counter(line for line in LOG if line != "body") == calls
            LOG.clear()
            assert session.replay().ok
            assert not [line for line in LOG if line != "body"]
            session.close()


def test_tasks_of_an_async_function_are_paused_and_edited():
    performed: list[int] = []

    @task
    async def double(number: int) -> int:
        performed.append(number)
        return 2 * number

    @entrypoint()
    async def total(numbers: list) -> int:
        return sum(await asyncio.gather(*(double(number) for number in numbers)))

    session = Session(load(total), {"__start__": [1, 2]})
    session.breakpoints.add(call="task")
    for number in (1, 2):
        session.run()
        assert session.status == "in_flight", session.error
        assert session.pending[0].arguments == {"number": number}
        session.change(session.pending[0].id, arguments={"number": 10 * number})
    session.run()
    assert session.status == "finished", session.error
    assert (session.board["__end__"], performed) == (60, [10, 20])
    assert session.replay().ok
    assert len(performed) == 2
