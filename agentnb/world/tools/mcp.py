"""Tools of MCP servers (`kind: mcp`), through the official SDK, which is imported only here.

A server is started at the first call and has its own thread with an event loop: a session may be stepped from any loop
or from none, and a connection belongs to the loop in which it was made. It ends with `close_tools`, when the tools are
no longer referenced, or when Python exits.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import tempfile
import threading
import weakref
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AsyncExitStack, suppress
from typing import IO, TYPE_CHECKING, Any, Final

from agentnb.errors import ExecutionError, Problem, did_you_mean, format_error
from agentnb.recipe.model import ToolSpec
from agentnb.text import LONGEST_TEXT, safe_str
from agentnb.world.tools.allow_list import Allowed
from agentnb.world.tools.invocation import LISTS, Tool, find_items, name_tool
from agentnb.world.tools.mcp_config import Settings, get_tool_name, make_settings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

START_SECONDS: Final = 30.0  # time limit for a server's first response
END_SECONDS: Final = 6.0  # how long Python's exit waits for a server
_GONE: Final = -32000  # the SDK's error for a closed connection


class Servers:
    """The MCP servers of one session: each runs once, however many of its tools are used."""

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed
        self._rows: dict[Settings, Server] = {}

    def tool(self, spec: ToolSpec, config: Mapping[str, Any]) -> Tool:
        """Return the tool that calls a server's tool with the inputs as its arguments.

        Its result has text, json (the server's structured content), items, result (json or, without it, text),
        `content` if there is more than text, and error.

        Raises:
            RecipeError: R164, the config names no server, or the SDK is not installed; R165, its command may not run.
        """
        settings = make_settings(spec, config, self.allowed)
        where = str(spec.place or f"tool {spec.id!r}")
        server = self._rows.setdefault(settings, Server(settings, where))
        name, fixed, seconds = get_tool_name(spec, config), dict(config.get("arguments") or {}), config.get("timeout")

        async def call(**inputs: Any) -> dict[str, Any]:
            return await server.call(name, {**fixed, **inputs}, seconds, where)

        return name_tool(call, spec, takes=False, close=server.close)


class Server:
    """One server: started by its first call, and restarted by the next call after it has ended."""

    def __init__(self, settings: Settings, where: str) -> None:
        self.settings, self.where = settings, where  # of the first tool that names it
        self._line: _Connection | None = None
        self._end: weakref.finalize[[], Server] | None = None
        self._lock = threading.Lock()

    async def call(self, name: str, arguments: dict[str, Any], seconds: float | None, where: str) -> dict[str, Any]:
        """Call one of the server's tools. If the call is cancelled here, the request is also cancelled at the server.

        Raises:
            ExecutionError: X350, the server cannot be reached; X351, it has no such tool.
            TimeoutError: it took longer than `seconds`.
        """
        line = self._open()
        pending = line.ask(line.call(name, arguments, seconds, where))
        try:
            return await asyncio.wrap_future(pending)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling() or not line.ended:
                raise
            raise line.make_failure() from None

    def close(self) -> None:
        """Stop the server, if it is running."""
        with self._lock:
            if self._end is not None:
                self._end()
            if self._line is not None:
                self._line.wait()
            self._line = self._end = None

    def _open(self) -> _Connection:
        with self._lock:
            if self._line is None or self._line.ended:
                if self._end is not None:
                    self._end.detach()
                self._line = _Connection(self.settings, self.where)
                self._end = weakref.finalize(self, self._line.end)
            return self._line


class _Connection:
    """A connection and its thread.

    It has no reference to its Server, so that an unused server is garbage-collected and stopped.
    """

    def __init__(self, settings: Settings, where: str) -> None:
        self.settings, self.where, self.process = settings, where, os.getpid()
        self.loop = asyncio.new_event_loop()
        self.stop = asyncio.Event()
        self.ready: Future[Client] = Future()
        self.ended = self.over = False  # `ended`: no more calls; `over`: the thread has ended, too
        self.asked: set[Future[Any]] = set()
        self.thread = threading.Thread(target=self._run, name="agentnb-mcp", daemon=True)
        _LINES.add(self)
        self.thread.start()

    def ask(self, call: Coroutine[Any, Any, dict[str, Any]]) -> Future[dict[str, Any]]:
        """Run a coroutine in this connection's loop.

        After the connection has ended, coroutines not yet started never run.
        """
        try:
            pending = asyncio.run_coroutine_threadsafe(call, self.loop)
        except RuntimeError:  # the loop is closed
            call.close()
            raise self.make_failure() from None
        self.asked.add(pending)
        pending.add_done_callback(self.asked.discard)
        if self.over:
            self._drop()
        return pending

    def _drop(self) -> None:
        for pending in list(self.asked):
            with suppress(InvalidStateError):
                pending.set_exception(self.make_failure())

    def make_failure(self) -> BaseException:
        """Return why a call failed: why the server did not start, or that it has ended."""
        never = self.ready.exception() if self.ready.done() else None
        return never or _make_unreachable_error(self, "it was ended meanwhile")

    def end(self) -> None:
        """Tell the server to stop, without waiting."""
        self.ended = True
        if self.process != os.getpid():  # a forked process has none of the threads
            return
        try:
            self.loop.call_soon_threadsafe(self.stop.set)
        except RuntimeError:
            return  # the loop is closed: it has ended

    def wait(self) -> None:
        """Wait a limited time until the server has ended."""
        if self.process == os.getpid() and self.thread is not threading.current_thread():
            self.thread.join(END_SECONDS)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.run(self._serve())
        finally:
            self.ended = self.over = True
            _LINES.discard(self)
            self._drop()

    async def _serve(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(START_SECONDS):
                        client = await _connect(self.settings, stack, errors)
                    self.ready.set_result(client)
                    await self.stop.wait()
            except Exception as error:  # noqa: BLE001  (the caller gets it)
                self.ended = True
                self._fail(error, errors)
            finally:
                self.ended = True
                if not self.ready.done():
                    self.ready.set_exception(_make_unreachable_error(self, "it was ended before it had begun"))

    def _fail(self, error: Exception, errors: IO[str]) -> None:
        if self.ready.done():  # it could not stop cleanly; nothing depends on that
            return
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        text = f"it did not answer within {START_SECONDS:g} s" if isinstance(error, TimeoutError) else ""
        errors.seek(0)
        last = [line.strip() for line in errors.read()[-4000:].splitlines() if line.strip()][-1:]
        why = "; ".join([text or f"{type(error).__name__}: {format_error(error)}", *last])
        self.ready.set_exception(_make_unreachable_error(self, why))

    async def call(self, name: str, arguments: dict[str, Any], seconds: float | None, where: str) -> dict[str, Any]:
        """Call a tool, in this connection's own loop."""
        from mcp import MCPError

        client = await asyncio.shield(asyncio.wrap_future(self.ready))
        try:
            async with asyncio.timeout(seconds):
                answer = await client.call_tool(name, arguments)
        except TimeoutError:
            if seconds is None:
                raise
            raise TimeoutError(f"{where} took longer than {seconds:g} s") from None
        except MCPError as error:
            if error.code == _GONE:
                self.end()
                raise _make_unreachable_error(self, format_error(error)) from error
            await _check_name(client, name, where)
            return _make_failure(format_error(error))
        if answer.is_error:
            await _check_name(client, name, where)
        return _make_result(answer)


_LINES: Final[set[_Connection]] = set()


@atexit.register
def _close_all() -> None:
    lines = list(_LINES)
    for line in lines:
        line.end()
    for line in lines:
        line.wait()


async def _connect(settings: Settings, stack: AsyncExitStack, errors: IO[str]) -> Client:
    """Return a connected client; `stack` closes it, together with the server's process."""
    import httpx2
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if settings.url:
        seconds = httpx2.Timeout(START_SECONDS, read=None)  # the effect's timeout ends a read that takes too long
        client = httpx2.AsyncClient(headers=dict(settings.headers), timeout=seconds)
        http = await stack.enter_async_context(client)
        return await stack.enter_async_context(Client(streamable_http_client(settings.url, http_client=http)))
    parameters = StdioServerParameters(
        command=settings.command, args=list(settings.args), env=dict(settings.env), cwd=settings.cwd
    )
    return await stack.enter_async_context(Client(stdio_client(parameters, errlog=errors)))  # type: ignore[arg-type]  # any text file that has a number


def _make_unreachable_error(line: _Connection, why: str) -> ExecutionError:
    """X350: an MCP server cannot be reached."""
    title, url = line.settings.title, line.settings.url
    order = "see that it runs at that address" if url else "run its command in a terminal to see its output"
    return ExecutionError(Problem("X350", f"the MCP server {title!r} cannot be reached", line.where, why, order))


async def _check_name(client: Client, name: str, where: str) -> None:
    """Raise an error for a tool that the server does not have.

    X351: an MCP server has no such tool.
    """
    known, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        known += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if not cursor or len(known) > 1000:
            break
    if name not in known:
        raise ExecutionError(
            Problem("X351", f"the MCP server has no tool {name!r}", where, f"it has: {', '.join(known) or 'none'}",
                    did_you_mean(name, known, "name one of these in `config.tool`"))
        )  # fmt: skip


def _make_result(answer: CallToolResult) -> dict[str, Any]:
    texts = [text for block in answer.content if isinstance(text := getattr(block, "text", None), str)]
    text = "\n".join(texts) if texts else None
    if answer.is_error:
        return _make_failure(safe_str(text or "the server reported a failure", LONGEST_TEXT), text)
    json = answer.structured_content
    # Servers wrap results that are not mappings in one.
    value = json["result"] if isinstance(json, dict) and set(json) == {"result"} else json
    result = {"status": 200, "json": json, "text": text, "items": find_items(value, LISTS),
              "result": text if value is None else value, "error": None}  # fmt: skip
    if len(texts) < len(answer.content):
        result["content"] = [block.model_dump(mode="json", exclude_none=True) for block in answer.content]
    return result


def _make_failure(error: str, text: str | None = None) -> dict[str, Any]:
    return {"status": None, "json": None, "text": text, "items": None, "result": None, "error": error}
