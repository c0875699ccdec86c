"""A node that is stepped into: it is held inside its code, plain or async, without a loop and inside one."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import ContextVar

import pytest

from agentnb.errors import ExecutionError
from agentnb.recipe.model import Edge
from agentnb.world.effect import Effect
from tests.engine.graph_shapes import Shape, leaf
from tests.session.shape_sessions import session_of

WORD = ContextVar("WORD", default="")


def line(does, **options):
    """Return a session of `node` and `after` in a line."""
    nodes = [leaf("node", does, **options), leaf("after", lambda work: {"after": True})]
    return session_of("line", Shape(nodes, [Edge("node", "after")], ("node",), [], {}))


def inner(session):
    """Step into the next node to its end; return where it was held."""
    results = []
    while session.step_into() is None:
        assert session.status == "in_flight"
        results.append(session.held_at.partition(" of ")[0])
    return results


def emitting(left=None):
    """Return a plain function that emits twice, from deep inside, and notes how it was left."""

    def deeper(work, word):
        work.emit(word, {"in": word})

    def does(work):
        try:
            deeper(work, "one")
            deeper(work, "two")
        except BaseException as error:
            if left is not None:
                left.append(type(error).__name__)
            raise
        return {"out": [event.type for event in work.events]}

    return does


async def talking(work):
    """Emit between awaits that need a loop: a future, a generator, a task of its own."""
    work.emit("plain")
    await work.loop()
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, "answer")
    work.emit("in a loop")
    answers = [await future]

    async def count():
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async for number in count():
        work.emit(f"number {number}")
        answers.append(number)

    async def beside():
        work.emit("beside")
        return "task"

    answers.append(await asyncio.create_task(beside()))
    return {"said": answers}


TALK = [f"at event evt_00{at} {word!r}" for at, word in
        enumerate(("plain", "in a loop", "number 0", "number 1", "number 2"), 1)]  # fmt: skip


def both_ways(test):
    """Run a test without a loop, and inside one, as a cell of a notebook does."""

    async def main():
        test()

    return [test, lambda: asyncio.run(main())]


def test_a_plain_function_is_held_at_each_event():
    session = line(emitting())
    assert inner(session) == ["at event evt_001 'one'", "at event evt_002 'two'"]
    assert session.board["out"] == ["one", "two"]
    assert [event.step for event in session.events] == [1, 1]


def test_an_emitted_event_is_visible_while_held_and_not_yet_part_of_the_run():
    session = line(emitting())
    session.step_into()
    assert [(event.id, event.step, dict(event.payload)) for event in session.events] == [
        ("evt_001", None, {"in": "one"})
    ]
    assert (session.pending, session.position, len(session.trace)) == ((), 0, 0)
    assert session._parts.run.history.events == []


@pytest.mark.parametrize("looped", [False, True])
def test_an_async_node_keeps_its_event_loop_futures_and_generators(looped):
    session, results = line(talking), []
    both_ways(lambda: results.append(inner(session)))[looped]()
    assert (results, session.board["said"]) == ([TALK], ["answer", 0, 1, 2, "task"])
    assert [event.type for event in session.events][-1] == "beside"  # of a task of its own: not held there
    assert "agentnb-home" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("stops", [1, 2, 4])
@pytest.mark.parametrize("verb", ["step", "run", "retry", "step_over", "step_out"])
def test_other_methods_let_the_node_finish(verb, stops, looped):
    session = line(talking)

    def test():
        for _ in range(stops):
            session.step_into()
        getattr(session, verb)()

    both_ways(test)[looped]()
    assert (session.held_at, session.board["said"]) == ("", ["answer", 0, 1, 2, "task"])
    assert session.position == (2 if verb in ("run", "step_out") else 1)


@pytest.mark.parametrize("stops", [1, 2, 4])
@pytest.mark.parametrize("verb", ["astep", "arun", "start"])
def test_async_methods_let_the_node_finish(verb, stops):
    session = line(talking)

    async def main():
        for _ in range(stops):
            session.step_into()
        if verb == "start":
            await session.start().wait()
        else:
            await getattr(session, verb)()

    asyncio.run(main())
    assert session.board["said"] == ["answer", 0, 1, 2, "task"]
    assert session.position == (1 if verb == "astep" else 2)


def test_run_with_max_steps_1_finishes_the_held_node():
    for limits in ({"max_steps": 1}, {"until": "after"}):
        session = line(talking)
        session.step_into()
        session.run(**limits)
        assert (session.position, session.status) == (1, "paused")
        other = line(talking)
        other.step_into()
        asyncio.run(other.arun(**limits))
        assert (other.position, other.status) == (1, "paused")


@pytest.mark.parametrize("verb", ["back", "stop", "reset", "skip"])
@pytest.mark.parametrize("stops", [1, 2])
def test_the_code_of_an_abandoned_node_ends_and_runs_again_later(verb, stops):
    left = []
    session = line(emitting(left))
    for _ in range(stops):
        session.step_into()
    getattr(session, verb)()
    assert (left, session.held_at) == (["GreenletExit"], "")
    if verb != "skip":
        assert (session.events, session.position) == ((), 0)
        session.run()
        assert session.board["out"] == ["one", "two"]


@pytest.mark.parametrize("stops", [1, 2, 4])
def test_an_async_node_can_be_abandoned_anywhere(stops):
    session = line(talking)

    async def main():
        for _ in range(stops):
            session.step_into()
        session.stop()

    asyncio.run(main())
    assert "agentnb-home" not in {thread.name for thread in threading.enumerate()}
    session.run()
    assert session.status == "finished"


def test_abandoned_code_cannot_act_any_more():
    refused = []

    def does(work):
        try:
            work.emit("one")
        finally:
            try:
                work.emit("late")
            except ExecutionError as error:
                refused.append(error.problems[0].code)

    session = line(does)
    session.step_into()
    session.stop()
    assert (refused, session.events) == (["X102"], ())


def test_calls_are_paused_before_and_after_and_can_be_edited():
    async def does(work):
        answer = await work.call(Effect("tool", "look", {"word": "rain"}, target=lambda word: f"about {word}"))
        work.emit("looked", answer)
        return {"out": answer}

    session = line(does)
    session.step_into()
    session.change(session.pending[0].id, arguments={"word": "snow"})
    session.step_into()
    assert session.pending[0].answer == "about snow"
    session.change(session.pending[0].id, answer="mine")
    session.step_into()
    assert (session.held_at, session.pending) == ("at event evt_001 'looked' of 'node'", ())
    assert session.step_into().outputs == {"out": "mine"}


def test_a_call_paused_by_a_breakpoint_is_resumed():
    async def does(work):
        answers = [await work.call(Effect("tool", name, {}, target=lambda: "said")) for name in "ab"]
        return {"out": answers}

    session = line(does)
    session.breakpoints.add(call="a")
    session.run()
    session.breakpoints.clear()
    assert inner(session) == ["after tool call 'a'", "before tool call 'b'", "after tool call 'b'"]


def test_a_person_is_asked_after_the_call_and_the_answer_ends_the_step():
    async def does(work):
        return {"out": await work.call(Effect("human", "ask", {}))}

    session = line(does)
    session.step_into()
    assert session.held_at == "before human call 'ask' of 'node'"
    assert (session.step_into(), session.status, session.step_into()) == (None, "waiting", None)
    assert session.answer("yes").outputs == {"out": "yes"}


def test_a_failure_inside_is_the_failure_of_the_step():
    def does(work):
        work.emit("one")
        raise ValueError("it broke")

    session = line(does)
    session.step_into()
    step = session.step_into()
    assert (step.status, session.status, str(session.cause)) == ("error", "failed", "it broke")
    session.step_into()  # it is tried again, and held again
    assert session.held_at == "at event evt_001 'one' of 'node'"


def test_an_interrupt_inside_leaves_the_session_at_the_previous_step():
    def does(work):
        work.emit("one")
        if not did:
            did.append(1)
            raise KeyboardInterrupt
        return {}

    did = []
    session = line(does)
    session.step_into()
    with pytest.raises(KeyboardInterrupt):
        session.step_into()
    assert (session.position, session.held_at, session.status) == (0, "", "ready")
    session.run()
    assert session.status == "finished"


@pytest.mark.parametrize("verb", ["step_into", "astep"])
def test_a_node_that_cancels_itself_behaves_as_without_step_into(verb):
    async def does(work):
        work.emit("one")
        await work.loop()
        await asyncio.sleep(0)
        raise asyncio.CancelledError("mine")

    async def main():
        session.step_into()
        with pytest.raises(asyncio.CancelledError, match="mine"):
            await session.astep() if verb == "astep" else session.step_into()

    session = line(does)
    asyncio.run(main())
    assert (session.position, session.held_at, session.status) == (0, "", "ready")


def test_context_variables_persist_from_one_await_to_the_next():
    async def does(work):
        WORD.set("inside")
        work.emit("one")
        await work.loop()
        await asyncio.sleep(0)
        return {"out": WORD.get()}

    session = line(does)
    inner(session)
    assert (session.board["out"], WORD.get()) == ("inside", "")


def test_a_held_node_continues_in_its_own_thread_only():
    session = line(emitting())
    thread = threading.Thread(target=session.step_into)
    thread.start()
    thread.join()
    for verb in ("step", "run", "step_into", "step_over"):
        with pytest.raises(ExecutionError, match="X122"):
            getattr(session, verb)()
    assert session.status == "in_flight"
    session.stop()
    session.run()
    assert session.board["out"] == ["one", "two"]


def test_step_into_enters_the_body_of_a_loop_each_time():
    from tests.session.small_sessions import calling, looping
    from tests.session.small_sessions import session as made

    session, results = made(looping(calling("look"), times=2), {"word": "rain"}, tools={"look": lambda word: word}), []
    while session.step_into() is not None or session.status == "in_flight":
        if session.held_at:
            results.append(session.held_at)
    assert results == ["before tool call 'look' of 'look'", "after tool call 'look' of 'look'"] * 2


def test_two_events_never_share_a_number():
    session = line(emitting())
    session.step_into()
    session.emit("meanwhile")
    session.step_into()
    session.run()
    assert [(event.id, event.type) for event in session.events] == [
        ("evt_001", "one"), ("evt_002", "meanwhile"), ("evt_003", "two"),
    ]  # fmt: skip
    assert session._parts.run.last_event() == 3
    session.emit("later")
    assert session.events[-1].id == "evt_004"


def test_without_greenlet_step_into_is_refused_before_anything_starts(monkeypatch):
    session = line(lambda work: {"x": 1})
    monkeypatch.setitem(sys.modules, "greenlet", None)
    with pytest.raises(ExecutionError, match="needs the package greenlet") as raised:
        session.step_into()
    (problem,) = raised.value.problems
    assert 'pip install "agentnb-kit[stepinto]"' in problem.do
    assert (session.position, session.status) == (0, "ready")
    assert session.step().writes is not None
    assert session.position == 1
