"""An agent stepped like any other graph: its prompt edited, its calls held, back, forked, replayed, kept."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agentnb as nb
from agentnb.board.values import thaw
from agentnb.clock import FrozenClock
from agentnb.dialects.symphony.api import make_result
from tests.dialects.symphony.symphony_agents import call, executor

ROOT = Path(__file__).parents[3]
NONE = {"tool_name": "none", "response": "bye"}


def ids(session: Any) -> list[str]:
    return [step.node_id for step in session.trace.steps]


def test_each_part_of_the_lifecycle_is_a_step() -> None:
    session = executor(call("ok", n=2)).session("double 2")
    session.run()
    assert ids(session) == ["system_prompt", "request", "llm", "parse", "check", "tool", "result"]
    assert session.status == "finished"


def test_the_loop_is_in_the_graph() -> None:
    agent = executor(call("ok", n=2), NONE, max_calls=2)
    kinds = {(edge.source, edge.target): edge.kind for edge in agent.recipe.edges}
    assert kinds["next_round", "request"] == "loop_back"
    assert "next_round" not in executor(call("ok")).recipe.nodes
    session = agent.session("double 2")
    session.run()
    assert ids(session).count("llm") == 2


def test_going_back_and_forward_again_gives_the_same_result() -> None:
    agent = executor(call("ok", n=2), call("bad"), NONE, max_calls=3)
    session = agent.session("go", clock=FrozenClock())
    session.run()
    end, steps = dict(session.board), len(session.trace)
    for position in (0, 3, 8, steps):
        session.goto(position)
        assert session.position == position
    session.back(steps)
    session.run()
    assert dict(session.board) == end
    assert session.board["result"]["tools_executed"][0]["result"] == {"twice": 4}


def test_run_times_of_tools_are_read_from_the_sessions_clock() -> None:
    clock = FrozenClock()
    session = executor(call("ok", n=2), call("bad"), NONE, max_calls=3).session("go", clock=clock)
    session.run()
    metrics = [tool["metrics"] for tool in session.board["tools_executed"]]
    assert metrics == [{"duration": 0.0, "start_time": clock.now(), "end_time": clock.now()}] * 2


def test_the_prompt_can_be_read_and_edited_before_the_model_is_asked() -> None:
    session = executor(NONE, directives="Be brief.").session("hi")
    session.step()
    assert session.board["system_prompt"].count("Be brief.") == 1
    assert session.trace.steps[0].observation == session.board["system_prompt"]
    session.edit({"system_prompt": "You are somebody else."})
    session.run()
    sent = session.trace.frames.calls.arguments.iloc[0]["messages"]
    assert sent[0] == {"role": "system", "content": "You are somebody else."}


def held(session: Any) -> Any:
    (question,) = session.pending
    return question


def test_each_call_can_be_paused_inspected_and_changed() -> None:
    session = executor(call("ok", n=2)).session("double 2")
    session.step(2)
    session.step_into()
    model = held(session)
    assert (session.status, model.node, model.kind) == ("in_flight", "llm", "call")
    arguments = thaw(model.arguments)
    arguments["messages"][1]["content"] = "double 5"
    session.change(model.id, arguments=arguments)
    session.step_into()
    assert held(session).answer.content == json.dumps(call("ok", n=2))
    session.change(held(session).id, answer=json.dumps(call("ok", n=50)))
    session.step(3)
    session.step_into()
    tool = held(session)
    assert (tool.name, dict(tool.arguments)) == ("ok", {"n": 50})
    session.change(tool.id, arguments={"n": 7})
    session.run()
    assert session.board["result"]["tools_executed"][0]["result"] == {"twice": 14}
    assert session.trace.frames.calls.arguments.tolist()[0]["messages"][1]["content"] == "double 5"


def test_a_breakpoint_on_a_tools_call_stops_before_it() -> None:
    session = executor(call("ok", n=2)).session("go")
    session.breakpoints.add(call="tool")
    session.run()
    assert held(session).name == "ok"


def test_an_unfinished_run_reports_its_position_and_the_exhausted_limit() -> None:
    session = executor(call("ok", n=2)).session("go", budget={"max_steps": 3})
    for until, why in ((0, "its status is ready after step 0"), (2, "its status is paused after step 2")):
        session.run(until=until)
        assert (make_result(session).success, make_result(session).error) == (False, why)
    session.run()
    done = make_result(session)
    assert (session.status, done.success, done.error) == ("exhausted", False, "max_steps is used up")


def test_a_tool_can_wait_for_a_persons_approval() -> None:
    agent = executor(call("ok", n=2), require_approval=True)
    yes = agent.session("go")
    yes.run()
    assert (yes.status, held(yes).kind, dict(held(yes).arguments)) == ("waiting", "approval", {"n": 2})
    no = yes.fork()
    no.run()
    yes.approve(held(yes).id)
    yes.run()
    assert make_result(yes).success
    no.deny(held(no).id, "too dear")
    no.run()
    done = make_result(no)
    assert not done.success
    assert "too dear" in done.error
    assert len(done.result.tools_executed) == 1


def test_a_fork_of_an_agent_may_ask_another_model() -> None:
    session = executor(call("bad")).session("go")
    session.run()
    other = session.fork(at=2, llm=[json.dumps(call("ok", n=1))])
    other.run()
    assert (session.board["result"]["success"], other.board["result"]["success"]) == (False, True)


@pytest.mark.parametrize("answers", [(call("ok", n=2),), (call("bad"),), ("words",), (call("nobody"),), (NONE,)])
def test_a_replay_finds_no_difference(answers: tuple[Any, ...]) -> None:
    session = executor(*answers).session("go")
    session.run()
    report = session.replay(strict="reads")
    assert report.ok, report


def test_a_replay_calls_no_tool_and_notifies_no_context() -> None:
    agent = executor(call("ok", n=2))
    notified: list[str] = []

    class Context:
        def update_learning_context(self, tool_name: str, **_: Any) -> None:
            notified.append(tool_name)

    agent.tools.context = Context()
    session = agent.session("go")
    session.run()
    assert notified == ["ok"]
    assert session.replay().ok
    assert notified == ["ok"]


def test_the_run_of_an_agent_is_stored_and_continues_in_another_process(tmp_path: Path) -> None:
    agent = executor(call("ok", n=2), NONE, max_calls=2)
    session = agent.session("go", store=tmp_path / "runs.db")
    session.run(until="tool")
    session.close()
    reopened = nb.open(tmp_path / "runs.db", recipe=agent.recipe)
    reopened.run()
    assert reopened.status == "finished"
    assert reopened.board["result"]["response"] == "bye"
    reopened.close()
    only_read = nb.open(tmp_path / "runs.db")
    only_read.back(3)
    assert only_read.current is not None


def test_unexpected_json_is_a_warning_and_missing_json_an_error() -> None:
    malformed = executor('{"answer": 42}').session("go")
    malformed.run()
    step = next(step for step in malformed.trace.steps if step.node_id == "parse")
    assert (step.status, step.thought) == ("ok", "odd: unexpected JSON: it has no 'tool_name'")
    broken = executor("I would rather talk").session("go")
    broken.run()
    step = next(step for step in broken.trace.steps if step.node_id == "parse")
    assert step.status == "error"
    assert "JSON" in str(step.error)
    assert broken.status == "finished"


def test_the_log_has_a_warning_for_the_one_and_an_error_for_the_other(caplog: pytest.LogCaptureFixture) -> None:
    executor('{"answer": 42}').execute_task("go")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    caplog.clear()
    executor("words").execute_task("go")
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("setup", ["", "import logging; logging.basicConfig()"])
@pytest.mark.starts_programs
def test_the_log_is_written_only_if_logging_is_configured(setup: str) -> None:
    lines = [setup, "from tests.dialects.symphony.symphony_agents import executor",
             "executor('{\"answer\": 42}').execute_task('go')", "executor('words').execute_task('go')"]  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=ROOT, check=True)
    log_lines = [line.split(":")[:2] for line in ran.stderr.splitlines() if "agentnb" in line]
    assert log_lines == ([["WARNING", "agentnb.run"], ["ERROR", "agentnb.run"]] if setup else [])


def test_a_tool_that_takes_too_long_is_a_failed_result_and_the_agent_may_continue() -> None:
    import threading

    never = threading.Event()
    agent = executor(call("slow"), NONE, tools=("slow",), max_calls=2)
    agent.tools.register_tool("slow", {"handler": lambda _given: never.wait(60), "timeout": 0.05, "retryCount": 1})
    done = agent.execute_task("go")
    never.set()
    assert (done.success, done.result.response) == (False, "bye")
    (tool,) = done.result.tools_executed
    assert "longer than 0.05 s" in tool.error
    rows = agent.trace.frames.calls.query("kind == 'tool'")
    assert rows.error.str.startswith("TimeoutError").tolist() == [True, True]


def test_a_learning_callback_is_notified_once_and_its_errors_are_ignored() -> None:
    notified: list[Any] = []

    class Context:
        def update_learning_context(self, **given: Any) -> None:
            notified.append(given)
            raise RuntimeError("no matter")

    agent = executor(call("ok", n=2))
    agent.tools.context = Context()
    done = agent.execute_task("go")
    assert done.success
    (notification,) = notified
    assert (notification["tool_name"], notification["parameters"], notification["success"]) == ("ok", {"n": 2}, True)


def test_timeouts_and_retries_of_a_tool_are_rows_of_its_call() -> None:
    tries: list[int] = []

    def flaky(_given: dict[str, Any]) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("try again")
        return "done"

    agent = executor(call("flaky"), tools=("flaky",))
    agent.tools.register_tool("flaky", {"handler": flaky, "retryCount": 2, "timeout": 30})
    done = agent.execute_task("go")
    assert done.success
    rows = agent.trace.frames.calls.query("kind == 'tool'")
    assert rows.attempt.tolist() == [1, 2, 3]
    assert rows.error.isna().tolist() == [False, False, True]


@pytest.mark.parametrize("value", [None, 5, "words", [], [5], {}, {"success": True}, nb.ABSENT])
@pytest.mark.parametrize("key", ["usage", "tools_executed", "decision", "failure", "answer", "result"])
def test_a_result_can_be_read_after_any_edit_of_the_board(key: str, value: Any) -> None:
    session = executor(call("ok", n=1)).session("go")
    session.run()
    for position in (6, 7):
        session.goto(position)
        session.edit({key: value})
        session.run()
        done = make_result(session)
        assert isinstance(done.success, bool)
        assert isinstance(done.result.response, str)


def test_no_secret_of_a_call_is_stored(tmp_path: Path) -> None:
    agent = executor(call("pay", api_key="sk-ours-4711"), {"tool_name": "none", "response": "sk-ours-4711, hunter-2"},
                     tools=("pay",), max_calls=2)  # fmt: skip
    inputs: list[Any] = []
    agent.tools.register_tool("pay", lambda parameters: inputs.append(parameters) or {"password": "hunter-2"})
    session = agent.session("pay", store=tmp_path / "runs.db")
    session.run()
    session.trace.to_json(tmp_path / "trace.json")
    session.close()
    assert inputs == [{"api_key": "sk-ours-4711"}]
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"pay" in content
    assert b"sk-ours-4711" not in content
    assert b"hunter-2" not in content


@pytest.mark.parametrize(("repeatable", "waits"), [(True, False), (False, True)])
@pytest.mark.starts_programs
def test_a_tool_call_is_repeated_after_a_crash_only_if_repeatable(
    tmp_path: Path, repeatable: bool, waits: bool
) -> None:
    script = """
import os, sys
from tests.dialects.symphony.symphony_agents import call, executor
agent = executor(call("pay"), tools=("pay",))
agent.tools.register_tool("pay", {"handler": lambda given: os._exit(9), "repeatable": sys.argv[2] == "True"})
agent.session("go", store=sys.argv[1]).run()
"""
    file = tmp_path / "runs.db"
    left = subprocess.run(
        [sys.executable, "-c", script, file, str(repeatable)], check=False, cwd=Path(__file__).parents[3]
    )
    assert left.returncode == 9
    agent = executor(tools=("pay",))
    agent.tools.register_tool("pay", {"handler": lambda given: "paid", "repeatable": repeatable})
    session = nb.open(file, recipe=agent.recipe)
    assert [each.node for each in session.pending] == (["tool"] if waits else [])
    if waits:
        session.change(held(session).id, answer="paid by hand")
    session.run()
    done = make_result(session)
    assert done.success
    assert done.result.tools_executed[0].result == ("paid by hand" if waits else "paid")
    session.close()
