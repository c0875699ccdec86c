from __future__ import annotations

import asyncio

import pytest

import agentnb as nb
from tests.magics.magic_texts import wrong
from tests.session.small_sessions import broken, calling, looping


def test_forwards_and_back(agent):
    assert agent("step") == "paused after step 1, next check"
    assert agent("step 2") == "paused after step 3, next check"
    assert agent("back") == "paused after step 2, next add"
    assert agent("back 2") == "ready after step 0, next add"
    assert agent("run") == "finished after step 7"
    assert agent("goto 3") == "paused after step 3, next check"


def test_over_into_and_out(agent, shell):
    session = nb.Session(
        nb.load(looping(calling("look"), times=2)), {"word": "rain"}, tools={"look": lambda word: word}
    )
    shell.user_ns["session"] = session
    assert agent("over") == "paused after step 9, next done"
    agent("goto 1")
    assert agent("out") == "paused after step 9, next done"
    agent("goto 2")
    assert agent("into") == "in_flight after step 2, next look, held before tool call 'look' of 'look'"
    assert agent("step") == "paused after step 3, next after"


@pytest.mark.parametrize(("until", "position"), [("check", 1), ("4", 4), ("n == 2", 3), ("n == 2 and n > 1", 3)])
def test_run_stops_at_until(agent, shell, until, position):
    agent(f"run {until}")
    assert shell.user_ns["session"].position == position


def test_a_failure_is_reported_with_its_problem(agent):
    agent("board", broken())
    output = agent("run")
    assert output.startswith("failed after step 2, next middle\nX100")
    assert "retry()" in output


def test_start_and_pause_name_run_where_no_loop_runs(agent):
    assert "session.run()" in wrong(agent, "start").do
    assert agent("pause") == "ready after step 0, next add"


def test_start_runs_in_the_background(agent, shell):
    async def main():
        assert agent("start") == "running after step 0, next add"
        await shell.user_ns["session"].wait()

    asyncio.run(main())
    assert shell.user_ns["session"].status == "finished"


def test_back_goes_to_a_step_and_to_the_start(agent):
    agent("run")
    assert agent("runback n == 2") == "paused after step 4, next add"
    assert agent("runback") == "ready after step 0, next add"


def test_stop_and_reset(agent, shell):
    session = nb.Session(
        nb.load(looping(calling("look"), times=2)), {"word": "rain"}, tools={"look": lambda word: word}
    )
    shell.user_ns["session"] = session
    agent("step 2")
    agent("into")
    assert agent("stop") == "paused after step 2, next look"
    assert agent("reset") == "ready after step 0, next again"


def test_a_failed_node_is_retried_or_skipped(agent):
    agent("board", broken())
    agent("run")
    assert agent("retry").startswith("failed after step 3")
    assert agent("skip").startswith("paused after step 4")
    assert agent("next middle").startswith("paused after step 4, next middle")
    assert wrong(agent, "next").code == "U401"


def test_start_accepts_a_speed(agent, shell):
    assert agent("speed 3") == "3 steps per second"
    assert shell.user_ns["session"].speed == 3
    assert agent("speed full") == "full speed"
    assert wrong(agent, "speed fast").code == "U401"
    assert wrong(agent, "speed 0").code == "X128"


def test_start_runs_until_a_node(agent, shell):
    async def main():
        agent("start check")
        await shell.user_ns["session"].wait()

    asyncio.run(main())
    assert shell.user_ns["session"].current == "check"
