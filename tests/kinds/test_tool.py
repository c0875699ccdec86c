from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from agentnb.clock import FrozenClock
from tests.dialects.agentruntime.agent_files import ran, stepped, text, write
from tests.session.small_sessions import calling, graph, session


def flaky(times):
    """Return a tool that fails so many times, and the list of its calls."""
    calls = []

    def look(word):
        calls.append(word)
        if len(calls) <= times:
            raise OSError("no line")
        return {"found": word}

    return look, calls


def test_its_result_is_written_like_that_of_a_function():
    run = session(calling(), {"word": "rain"})
    run.step(2)
    assert run.board["look"] == "about rain"
    run = session(calling(lambda word: {"a": word}), {"word": "rain"})
    run.step(2)
    assert run.board["a"] == "rain"


def test_each_attempt_is_a_row_of_the_calls():
    look, calls = flaky(2)
    run = session(calling(look, attempts=3, backoff=0.5), {"word": "rain"}, clock=FrozenClock())
    run.run()
    assert (run.status, calls) == ("finished", ["rain"] * 3)
    rows = run.trace.frames.calls
    assert rows["attempt"].tolist() == [1, 2, 3]
    assert rows["backoff_seconds"].tolist() == [0.0, 0.5, 0.5]
    assert rows["error"].isna().tolist() == [False, False, True]


def test_it_fails_after_the_last_attempt():
    look, calls = flaky(9)
    run = session(calling(look, attempts=2), {"word": "rain"})
    run.run()
    assert (run.status, run.current, len(calls)) == ("failed", "look", 2)
    assert "no line" in run.error.what
    assert isinstance(run.cause, OSError)


def test_a_slow_tool_is_a_timeout_with_its_own_edges():
    async def slow(word):
        await asyncio.Event().wait()

    built_graph = calling(slow, timeout=0.001)
    built_graph.add_node("late", kind="noop")
    built_graph.add_node("wrong", kind="noop")
    built_graph.add_edge("look", "wrong", kind="error")
    built_graph.add_edge("look", "late", kind="timeout")
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert [step.node_id for step in run.trace.steps] == ["before", "look", "late"]
    assert "took longer than 0.001 s" in run.trace.steps[1].error


def test_without_a_timeout_edge_the_error_edge_is_not_taken():
    async def slow(word):
        await asyncio.Event().wait()

    built_graph = calling(slow, timeout=0.001)
    built_graph.add_node("wrong", kind="noop")
    built_graph.add_edge("look", "wrong", kind="error")
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert (run.status, run.current) == ("failed", "look")


def test_a_failure_takes_the_error_edge_and_not_the_others():
    look, _ = flaky(9)
    built_graph = calling(look)
    built_graph.add_node("wrong", kind="noop")
    built_graph.add_edge("look", "wrong", kind="error")
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert [step.node_id for step in run.trace.steps] == ["before", "look", "wrong"]
    assert run.status == "finished"


def test_without_inputs_it_receives_the_board_which_is_not_recorded():
    built_graph = graph("look", look=lambda board: board["word"])
    built_graph.nodes["look"]["kind"] = "tool"
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert run.board["look"] == "rain"
    assert run.trace.frames.calls["arguments"].tolist() == [{}]


@pytest.mark.parametrize("name", ["look", None])
def test_its_call_is_named_as_bound_or_by_its_function(name):
    def search(word):
        return word

    built_graph = calling(search if name is None else name)
    run = session(built_graph, {"word": "rain"}, tools={"look": search})
    run.run()
    assert run.trace.frames.calls["name"].tolist() == [name or "search"]


@pytest.mark.parametrize("timeout", [0, 30])
@pytest.mark.parametrize("inputs", [{"word": "word"}, None])
def test_its_options_apply_to_every_kind_of_call(timeout, inputs):
    look, calls = flaky(1)
    built_graph = calling(look if inputs else lambda: look("rain"), attempts=2, timeout=timeout)
    built_graph.nodes["look"]["inputs"] = inputs
    run = session(built_graph, {"word": "rain"})
    run.run()
    assert (run.status, run.board["found"], calls) == ("finished", "rain", ["rain"] * 2)


# -- with inputs that are templates, and a map ----------------------------------------------------------------------


def run_tool(
    tmp_path,
    inputs="{}",
    rest="",
    *,
    uses="echo",
    tools=None,
    config="",
    mapped="{set: {a: '{{ result.result }}'}}",
    **options,
):
    tool = f'  - {{id: own, kind: python, impl: "tools.py#echo", config: {config or "{}"}}}\ngraph:\n'
    content = text(f"nodes:\n  - {{id: call, type: tool, uses: {uses}, inputs: {inputs}, map: {mapped}{rest}}}")
    return ran(tmp_path, content.replace("graph:\n", tool, 1), tool_overrides=tools, **options)


def test_its_inputs_are_rendered_and_keep_their_type(tmp_path):
    done = run_tool(tmp_path, "{q: '{{ x }}', text: 'about {{ x }}', deep: [{k: '{{ log }}'}], plain: 1.5}")
    assert done.state["a"] == {"q": 1, "text": "about 1", "deep": [{"k": []}], "plain": 1.5}
    assert done.session.trace.steps[0].inputs == done.state["a"]


def test_config_is_passed_too_and_inputs_take_precedence(tmp_path):
    done = run_tool(tmp_path, "{k: 2}", uses="own", config="{k: 1, more: [1]}")
    assert done.state["a"] == {"k": 2, "more": [1]}


def test_overrides_receive_the_config_too(tmp_path):
    done = run_tool(
        tmp_path,
        "{k: 2}",
        uses="own",
        config="{k: 1, more: [1]}",
        tools={"own": lambda k, more: {"result": (k, *more)}},
    )
    assert list(done.state["a"]) == [2, 1]


@pytest.mark.parametrize(
    ("answer", "result", "text_"),
    [
        ("hello", "hello", "hello"),
        (None, None, None),
        (7, 7, None),
        ([1], [1], None),
        ({"result": 1, "text": "t"}, 1, "t"),
    ],
)
def test_a_result_that_is_not_a_mapping_is_under_result(tmp_path, answer, result, text_):
    done = run_tool(
        tmp_path, mapped="{set: {a: '{{ result.result }}', b: '{{ result.text }}'}}", tools={"echo": lambda: answer}
    )
    assert (done.state["a"], done.state["b"]) == (result, text_)


def test_a_function_without_timeout_parameter_gets_none(tmp_path):
    seen = []
    done = run_tool(tmp_path, rest=", timeout: {seconds: 60}", tools={"echo": lambda: seen.append(None) or "fine"})
    assert (done.state["a"], len(seen) > 0) == ("fine", True)


def test_a_function_with_timeout_parameter_gets_it(tmp_path):
    done = run_tool(tmp_path, rest=", timeout: {seconds: 60}", tools={"echo": lambda timeout=None: timeout})
    assert done.state["a"] == 60
    done = run_tool(tmp_path, "{timeout: 5}", ", timeout: {seconds: 60}", tools={"echo": lambda timeout=None: timeout})
    assert done.state["a"] == 5


def test_a_slow_sync_tool_is_a_timeout_and_takes_the_error_edge(tmp_path):
    gate = threading.Event()
    try:
        done = run_tool(
            tmp_path,
            rest=", timeout: {seconds: 0.02}, on_error: {resume: true}",
            tools={"echo": lambda: gate.wait(None)},
        )
    finally:
        gate.set()
    assert done.path == ["call error"]
    assert "took longer than 0.02 s" in done.session.trace.steps[0].error


def test_each_attempt_has_the_full_timeout(tmp_path):
    gate, calls = threading.Event(), []

    def slow_at_first():
        calls.append(None)
        if len(calls) == 1:
            gate.wait()
        return "fine"

    content = text("nodes:\n  - {id: call, type: tool, uses: echo, timeout: {seconds: 0.05}, "
                   "retry: {max_attempts: 2, backoff: 3}, map: {set: {a: '{{ result.text }}'}}}")  # fmt: skip
    try:
        done = stepped(write(tmp_path, content), {"x": 1}, tool_overrides={"echo": slow_at_first})
    finally:
        gate.set()
    assert (done.status, done.board["a"]) == ("finished", "fine")
    rows = done.trace.frames.calls
    assert (rows["attempt"].tolist(), rows["backoff_seconds"].tolist()) == ([1, 2], [0, 3])
    assert "TimeoutError" in rows["error"].iloc[0]


@pytest.mark.parametrize("fault", [{"error": "busy"}, OSError("no line")])
def test_reported_and_raised_errors_are_retried(tmp_path, fault):
    calls = []

    def flaky_tool():
        calls.append(None)
        if len(calls) < 3 and isinstance(fault, Exception):
            raise fault
        return fault if len(calls) < 3 else "fine"

    content = text("nodes:\n  - {id: call, type: tool, uses: echo, retry: {max_attempts: 3, backoff_seconds: 4}, "
                   "map: {set: {a: '{{ result.text }}'}}}")  # fmt: skip
    done = stepped(write(tmp_path, content), {"x": 1}, tool_overrides={"echo": flaky_tool})
    assert (done.status, done.board["a"], len(calls)) == ("finished", "fine", 3)
    assert done.trace.frames.calls["backoff_seconds"].tolist() == [0, 4, 4]


def test_an_error_in_its_mapping_is_not_retried(tmp_path):
    calls = []
    content = text("nodes:\n  - {id: call, type: tool, uses: echo, retry: {max_attempts: 3, backoff: 0}, "
                   "map: {set: {a: '{{ result.gone.deeper }}'}}}")  # fmt: skip
    done = stepped(write(tmp_path, content), {"x": 1}, tool_overrides={"echo": lambda: calls.append(None)})
    assert (done.status, len(calls)) == ("failed", 1)


def test_an_async_tool_is_awaited(tmp_path):
    async def later(q):
        return {"result": q + 1}

    assert run_tool(tmp_path, "{q: '{{ x }}'}", tools={"echo": later}).state["a"] == 2


def test_changes_to_arguments_by_a_tool_do_not_change_the_board(tmp_path):
    done = run_tool(
        tmp_path, "{items: '{{ log }}'}", tools={"echo": lambda items: items.append(1) or {"result": items}}
    )
    assert (done.state["a"], done.state["log"]) == ([1], [])


def test_an_interrupted_attempt_is_repeated_without_a_delay():
    class Waiting(FrozenClock):
        async def sleep(self, seconds):
            waits.append((attempts[-1], seconds))

    attempts, waits = [], []
    ends = iter([ArithmeticError("no"), KeyboardInterrupt(), OSError("no"), KeyboardInterrupt(), None])

    def look(word):
        attempts.append(len(attempts) + 1)
        if end := next(ends):
            raise end
        return word

    run = session(calling(look, attempts=3, backoff=0.5), {"word": "rain"}, clock=Waiting())
    for _ in range(3):
        with suppress(KeyboardInterrupt):
            run.run()
    calls = run.trace.frames.calls
    assert (run.status, calls["attempt"].tolist(), calls["backoff_seconds"].tolist()) == (
        "finished", attempts, [0, 0.5, 0, 0.5, 0]
    )  # fmt: skip
    assert (attempts, waits) == ([1, 2, 3, 4, 5], [(1, 0.5), (3, 0.5)])
