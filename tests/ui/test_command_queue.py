from __future__ import annotations

import asyncio
import threading
import time
from math import inf

import pytest

from agentnb.ui import command_queue as desk_module
from agentnb.ui.command_queue import CommandQueue, Request, to_problems
from tests.session.shape_sessions import asking, to_where_it_waits
from tests.ui import ticket_recipe


class Painter:
    """Counts the pictures and keeps where the session stood in each."""

    def __init__(self, session):
        self.session, self.places = session, []

    def __call__(self):
        self.places.append((self.session.position, self.session.status))


def make_queue(session):
    painter = Painter(session)
    return CommandQueue(session, painter), painter


def codes(desk):
    return [problem.code for problem in desk.problems]


async def settled(desk):
    """Wait until every command is carried out and the last picture is painted."""
    await asyncio.sleep(0)
    while desk._queue or desk._task is not None or desk._due < inf:  # noqa: ASYNC110  (a desk has nothing to wait for)
        await asyncio.sleep(0.005)


def in_loop(check, **options):
    async def main():
        session = ticket_recipe.session(**options)
        desk, painter = make_queue(session)
        await check(session, desk, painter)
        desk.close()

    asyncio.run(main())


def test_without_an_event_loop_a_command_is_executed_at_once():
    session = ticket_recipe.session("hello")
    desk, painter = make_queue(session)
    done = []
    desk.ask(Request("step", done=lambda: done.append(session.position)))
    assert done == [1]
    desk.ask(Request("run"))
    assert painter.places[-1] == (3, "finished")
    desk.ask(Request("goto", 1))
    desk.ask(Request("back"))
    assert painter.places[-1] == (0, "ready")
    desk.ask(Request("reset"))
    assert len(session.trace) == 0


def test_an_answer_commits_the_step_of_its_node():
    session = ticket_recipe.session()
    desk, _ = make_queue(session)
    desk.ask(Request("run"))
    desk.ask(Request("answer", "yes", "ask"))
    assert session.board["decision"] == "yes"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (Request("goto", 99), "X111"),
        (Request("dance"), "U301"),
        (Request("goto", "far"), "U302"),
        (Request("answer", "x"), "X115"),
    ],
)
def test_an_error_is_shown_until_the_next_command(command, code):
    session = ticket_recipe.session()
    desk, _ = make_queue(session)
    desk.ask(command)
    assert codes(desk) == [code]
    desk.ask(Request("step"))
    assert codes(desk) == []


def test_an_unexpected_error_is_a_complete_problem_too():
    (problem,) = to_problems(RuntimeError("out of paper"), "step")
    assert problem.why == "out of paper"
    assert "session.step" in problem.do


def test_after_close_nothing_is_received():
    session = ticket_recipe.session()
    desk, painter = make_queue(session)
    desk.close()
    session.step()
    assert painter.places == []


def test_a_command_from_another_thread_is_executed_on_the_event_loop():
    async def check(session, desk, painter):
        seen = []
        session.subscribe(lambda _: seen.append(threading.current_thread()))
        thread = threading.Thread(target=desk.ask, args=(Request("step"),))
        thread.start()
        thread.join()
        await settled(desk)
        assert seen == [threading.main_thread()]
        assert painter.places[-1] == (1, "paused")

    in_loop(check)


def test_commands_keep_their_order_and_slider_moves_are_merged():
    async def check(session, desk, painter):
        session.run()
        painter.places.clear()
        done = []
        for place in (1, 2, 0, 2):
            desk.ask(Request("goto", place, done=lambda place=place: done.append(place)))
        desk.ask(Request("back"))
        await settled(desk)
        assert session.position == 1
        assert done == [1, 2, 0, 2]
        assert (0, "ready") not in painter.places

    in_loop(check, ticket="hello")


def test_a_run_continues_in_the_background_and_pause_takes_precedence():
    async def check(session, desk, painter):
        gate = asyncio.Event()
        session = hanging(gate)
        desk, painter = make_queue(session)
        desk.ask(Request("run"))
        await settled(desk)
        assert session.status == "running"
        desk.ask(Request("pause"))
        await asyncio.sleep(0)
        assert painter.places[-1] == (0, "pausing")
        gate.set()
        await session.wait(10)
        await settled(desk)
        assert painter.places[-1] == (1, "paused")

    in_loop(check)


def hanging(gate):
    """Return a session whose first node waits for a gate."""

    async def wait(ticket):
        await gate.wait()
        return {"category": "other"}

    recipe = ticket_recipe.recipe()
    recipe.nodes["classify"].params["function"] = wait
    return ticket_recipe.Session(recipe, {"ticket": "x"}, validate_inputs=False)


def test_a_long_step_is_shown_as_running_until_it_ends():
    async def check(*_):
        gate = asyncio.Event()
        session = hanging(gate)
        seen = asyncio.Event()
        desk = CommandQueue(session, lambda: seen.set() if desk.at_work else None)
        desk.ask(Request("step"))
        await asyncio.wait_for(seen.wait(), 10)
        assert session.position == 0
        gate.set()
        await settled(desk)
        assert (session.position, desk.at_work) == (1, False)

    in_loop(check)


@pytest.mark.parametrize("away", [Request("goto", 0), Request("reset")])
def test_moving_does_not_wait_for_a_step_in_flight(away):
    async def check(*_):
        session = hanging(asyncio.Event())
        desk, _ = make_queue(session)
        desk.ask(Request("step"))
        await asyncio.sleep(0.01)
        desk.ask(away)
        await asyncio.wait_for(settled(desk), 10)
        assert session.position == 0
        assert desk.problems == ()
        assert session.current == "classify"

    in_loop(check)


def test_many_changes_are_few_updates_and_the_last_one_is_always_sent():
    async def check(session, desk, painter):
        session.step()
        painter.places.clear()
        for _ in range(200):
            session.goto(0)
            session.goto(1)
        session.goto(0)
        await settled(desk)
        assert painter.places[-1] == (0, "ready")
        assert len(painter.places) < 200

    in_loop(check)


def test_slow_updates_are_sent_less_often(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(desk_module.time, "monotonic", lambda: now[0])

    def paint():
        now[0] += 1.0

    desk = CommandQueue(ticket_recipe.session(), paint)
    desk.refresh()
    assert desk._rest == pytest.approx(19.0)


def test_the_end_is_shown_soon_despite_slow_updates():
    async def check(*_):
        session = ticket_recipe.session("hello")
        desk, painter = make_queue(session)
        session.run()
        desk._painted, desk._rest = time.monotonic(), 10**6
        session.start()
        session.goto(1)
        await settled(desk)
        assert painter.places[-1] == (1, "paused")

    in_loop(check)


@pytest.mark.parametrize(
    ("typed", "said"),
    [("yes", {"approved": True, "reason": ""}), ("no, too dear", {"approved": False, "reason": "too dear"})],
)
def test_approvals_are_granted_or_denied_by_typed_text(typed, said):
    session = to_where_it_waits(asking("cycle", "approval"))
    desk, _ = make_queue(session)
    desk.ask(Request("answer", "perhaps", "again"))
    assert (codes(desk), session.status) == (["X124"], "waiting")
    desk.ask(Request("answer", typed, "again"))
    assert (codes(desk), session.board["said"]) == ([], {**said, "by": None})


def test_a_query_is_answered_during_a_step_and_sends_no_update():
    async def check(*_):
        gate = asyncio.Event()
        session = hanging(gate)
        desk, painter = make_queue(session)
        desk.ask(Request("goto", 99))
        await settled(desk)
        desk.ask(Request("step"))
        await asyncio.sleep(0.01)
        painter.places.clear()
        results = []
        look = Request("query", "key", target="ticket")
        look.done = lambda: results.append(look.result["field"]["text"])
        desk.ask(look)
        desk.ask(Request("stop_at", target="tell"))
        await asyncio.sleep(0.01)
        assert (results, [row.node for row in session.breakpoints]) == (["x"], ["tell"])
        gate.set()
        await settled(desk)
        assert session.position == 1

    in_loop(check)


def test_a_query_keeps_the_problems_of_the_last_command():
    session = ticket_recipe.session()
    desk, painter = make_queue(session)
    desk.ask(Request("goto", 99))
    painter.places.clear()
    desk.ask(Request("query", "key", target="ticket"))
    assert (codes(desk), painter.places) == (["X111"], [])


def test_stop_abandons_a_step_in_flight():
    async def check(*_):
        session = hanging(asyncio.Event())
        desk, _ = make_queue(session)
        desk.ask(Request("step"))
        await asyncio.sleep(0.01)
        desk.ask(Request("stop"))
        await asyncio.wait_for(settled(desk), 10)
        assert (session.current, desk.at_work, desk.problems) == ("classify", False, ())

    in_loop(check)


def test_stop_ends_a_run_that_continues_by_itself():
    async def check(*_):
        session = hanging(asyncio.Event())
        desk, _ = make_queue(session)
        desk.ask(Request("run"))
        await settled(desk)
        desk.ask(Request("stop"))
        await asyncio.wait_for(settled(desk), 10)
        await session.wait(10)
        assert (session.status in ("ready", "paused"), session.current) == (True, "classify")

    in_loop(check)


@pytest.mark.parametrize("verb", ["step", "into", "over", "out"])
def test_an_interrupt_of_the_kernel_ends_a_command_and_not_the_event_loop(verb):
    def interrupted(ticket):
        raise KeyboardInterrupt

    async def check(*_):
        recipe = ticket_recipe.recipe()
        recipe.nodes["classify"].params["function"] = interrupted
        session = ticket_recipe.Session(recipe, {"ticket": "x"}, validate_inputs=False)
        desk, painter = make_queue(session)
        desk.ask(Request(verb))
        await asyncio.wait_for(settled(desk), 10)
        assert (session.position, session.current) == (0, "classify")
        desk.ask(Request("goto", 0))
        await settled(desk)
        assert painter.places

    in_loop(check)
