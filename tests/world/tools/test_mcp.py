from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentnb.errors import ExecutionError
from agentnb.world.tools import close_tools, load_tools
from agentnb.world.tools.invocation import find_failure
from tests.session.small_sessions import graph, session
from tests.world.tools import mcp_server
from tests.world.tools.tool_samples import spec, write

pytestmark = pytest.mark.starts_programs

HERE = Path(__file__).parent
SERVER = {"command": "python", "args": ["mcp_server.py"]}
NAMES = ("add", "find", "say", "pid", "fail", "refuse", "two", "picture", "variable", "wait", "crash", "finf")


def loaded(*names, folder=HERE, **config):
    rows = {name: spec("", id=name, kind="mcp", config={**SERVER, **config}) for name in names}
    return load_tools(rows, folder=folder, allow=[], passed={})


@pytest.fixture(scope="module")
def shared():
    """The tools of one server that all tests of this file may call."""
    rows = [spec("", id=name, kind="mcp", config=SERVER) for name in NAMES]
    rows.append(spec("", id="fixed", kind="mcp", config={**SERVER, "tool": "add", "arguments": {"a": 1, "b": 5}}))
    tools = load_tools({row.id: row for row in rows}, folder=HERE, allow=[], passed={})
    yield tools
    close_tools(tools)


@pytest.fixture
def own():
    """Make tools of servers of one's own; these end with the test."""
    results = []

    def make(*names, **words):
        results.append(loaded(*names, **words))
        return results[-1]

    yield make
    for tools in results:
        close_tools(tools)


def call(tool, **inputs):
    return asyncio.run(tool(**inputs))


def alive(pid):
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text() if Path("/proc").exists() else ") R"
    except (ProcessLookupError, FileNotFoundError):  # it may end between the two
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def comes(condition):
    """Wait until something holds, for long enough on any machine."""
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def problem(tool, **inputs):
    with pytest.raises(ExecutionError) as caught:
        call(tool, **inputs)
    return caught.value.problems[0]


def test_the_result_of_a_server_has_the_common_keys(shared):
    keys = {"status": 200, "json": {"result": 3}, "text": "3", "items": None, "result": 3, "error": None}
    assert call(shared["add"], a=1, b=2) == keys
    answer = call(shared["find"], query="x", most=1)
    assert (answer["json"], answer["items"]) == ({"query": "x", "items": ["x 0"]}, ["x 0"])
    reply = call(shared["say"], text="grüße")
    assert (reply["json"], reply["text"], reply["result"]) == (None, "grüße", "grüße")
    assert call(shared["two"])["text"] == "one\ntwo"
    assert "content" not in reply


def test_content_that_is_not_text_is_kept(shared):
    (block,) = call(shared["picture"])["content"]
    assert (block["type"], block["mime_type"]) == ("image", "image/png")


def test_a_failure_in_the_server_is_a_failure_of_the_tool(shared):
    assert "fail" in find_failure(call(shared["fail"], why="no such city"))
    assert find_failure(call(shared["refuse"])) == "the server reported a failure"
    assert "validation error" in find_failure(call(shared["add"], a="x", b=1))


def test_a_tool_that_the_server_does_not_have_is_reported(shared):
    message = problem(shared["finf"])
    assert (message.code, message.do) == ("X351", "did you mean 'find'?")


def test_arguments_may_be_in_the_config(shared):
    assert call(shared["fixed"], a=2)["result"] == 7


def test_one_server_serves_all_tools_from_any_loop(shared):
    seen = [call(shared["pid"])["result"] for _ in range(3)]

    async def many():
        return await asyncio.gather(*(shared["pid"]() for _ in range(5)))

    assert {*seen, *(result["result"] for result in asyncio.run(many()))} == {seen[0]}
    assert alive(seen[0])


def test_each_session_has_its_own_server_that_ends_with_it(shared, own):
    tools = own("pid")
    first = call(tools["pid"])["result"]
    assert first != call(shared["pid"])["result"]
    close_tools(tools)
    assert not alive(first)
    close_tools(tools)
    second = call(tools["pid"])["result"]  # a call after that starts it again
    assert second not in {first, call(shared["pid"])["result"]}


def test_a_server_without_references_ends():
    tools = loaded("pid")
    pid = call(tools["pid"])["result"]
    assert alive(pid)
    del tools
    gc.collect()
    assert comes(lambda: not alive(pid))


def test_nothing_is_started_before_the_first_call(tmp_path):
    mark = tmp_path / "mark"
    write(tmp_path, "mcp_server.py", f"open({str(mark)!r}, 'w').close()\nraise SystemExit('no database')")
    tools = loaded("any", folder=tmp_path)
    assert not mark.exists()
    message = problem(tools["any"])
    assert mark.exists()
    assert message.code == "X350"
    assert "no database" in message.why  # the server's own last words


def test_a_missing_command_is_reported(tmp_path):
    rows = {"t": spec("", kind="mcp", config={"command": "agentnb-no-such-program"})}
    tools = load_tools(rows, folder=tmp_path, allow=["agentnb-no-such-program"], passed={})
    message = problem(tools["t"])
    assert (message.code, message.where) == ("X350", "tool 't'")
    assert "FileNotFoundError" in message.why


def test_a_server_that_ends_during_a_call_is_reported_and_restarted_by_the_next(own):
    tools = own("crash", "pid")
    first = call(tools["pid"])["result"]
    assert problem(tools["crash"]).code == "X350"
    assert call(tools["pid"])["result"] != first


def test_a_cancelled_call_is_cancelled_in_the_server(shared, tmp_path):
    async def briefly():
        await asyncio.wait_for(shared["wait"](mark=str(tmp_path / "mark")), 0.5)

    with pytest.raises(TimeoutError):
        asyncio.run(briefly())
    assert comes((tmp_path / "mark").exists)
    assert call(shared["add"], a=1, b=1)["result"] == 2


def test_a_slow_call_times_out(own, tmp_path):
    tools = own("wait", "pid", timeout=0.5)
    with pytest.raises(TimeoutError, match=r"took longer than 0.5 s"):
        call(tools["wait"], mark=str(tmp_path / "mark"))
    assert call(tools["pid"])["result"]


def test_a_server_that_is_closed_during_a_call_is_reported(own, tmp_path):
    tools = own("wait", "pid")
    call(tools["pid"])

    async def closed():
        waits = asyncio.ensure_future(tools["wait"](mark=str(tmp_path / "mark")))
        await tools["pid"]()
        await asyncio.to_thread(close_tools, tools)
        return await waits

    with pytest.raises(ExecutionError) as caught:
        asyncio.run(closed())
    assert caught.value.problems[0].code == "X350"


def test_a_server_sees_only_its_own_environment_variables(own, monkeypatch):
    monkeypatch.setenv("AGENTNB_OURS", "s3cr3t-4711")
    tools = own("variable", env={"AGENTNB_ITS_KEY": "given"})
    assert call(tools["variable"], name="AGENTNB_ITS_KEY")["text"] == "given"
    assert call(tools["variable"], name="AGENTNB_OURS")["text"] == "not set"


def test_a_session_steps_such_a_tool_without_an_event_loop(shared):
    built_graph = graph("sum", sum=shared["add"])
    built_graph.nodes["sum"].update(kind="tool", inputs={"a": "a", "b": "b"})
    run = session(built_graph, {"a": 1, "b": 2})
    run.run()
    assert run.status == "finished"
    assert run.board["result"] == 3


def test_python_exits_with_a_running_server():
    program = (
        "import asyncio\n"
        "from tests.world.tools.test_mcp import loaded\n"
        "tools = loaded('pid')\n"
        "print(asyncio.run(tools['pid']())['result'])\n"
    )
    root = HERE.parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=root, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not alive(int(done.stdout))


def test_a_server_is_reached_by_its_url():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, mcp_server.__file__, str(port)], stderr=subprocess.DEVNULL)
    try:
        config = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer abc-4711"}, "tool": "add"}
        tools = load_tools({"t": spec("", kind="mcp", config=config)}, folder=None, allow=[], passed={})
        assert comes(lambda: listens(port))
        assert call(tools["t"], a=1, b=2)["result"] == 3
        close_tools(tools)
    finally:
        process.terminate()
        process.wait()
    assert problem(tools["t"], a=1, b=2).code == "X350"
    close_tools(tools)
