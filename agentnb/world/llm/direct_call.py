"""Calls of a client outside a run: blocking or awaited, with the answer as a whole or in pieces.

    client = as_client("openai:gpt-4o")
    request = LLMRequest((LLMMessage("user", "Hello"),))
    complete(client, request).content          # also while an event loop is running
    (await acomplete(client, request)).content
    for piece in Pieces(client, request): ...  # or `async for`

The time limit for an answer (`timeout` of the request, else its setting `request_timeout`) applies to every client. A
blocking client is called in a thread if it must not block a loop or may be cancelled.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Final

from agentnb.errors import AgentRuntimeError, Problem
from agentnb.threadless import has_threads, run_here
from agentnb.world.llm.base import LLMClient, LLMRequest, LLMResponse, prepare_client
from agentnb.world.llm.text import to_text

_END: Final = object()


def describe_limit(request: LLMRequest) -> float | None:
    """Return the timeout of an answer in seconds; None for no limit."""
    seconds = request.timeout or request.settings.get("request_timeout")
    return None if seconds is None else float(seconds)


def complete(client: LLMClient, request: LLMRequest) -> LLMResponse:
    """Return the response to one request; blocks until it has arrived.

    Raises:
        TimeoutError: it did not arrive in time; also any error raised by the client
    """
    if describe_limit(request) is None:
        answer = client.complete(request)
        return (
            _BackgroundCoroutine(lambda: _await_answer(answer)).result()
            if inspect.isawaitable(answer)
            else _to_response(answer)
        )
    return _BackgroundCoroutine(lambda: acomplete(client, request)).result()


async def acomplete(client: LLMClient, request: LLMRequest) -> LLMResponse:
    """Return the response to one request.

    Raises:
        TimeoutError: it did not arrive in time; also any error raised by the client
    """
    if (ready := prepare_client(client, lambda: request)) is not None:
        await ready
    limit = describe_limit(request)
    scope = asyncio.timeout(limit)
    try:
        async with scope:
            answer, error = await _call_client(client, request)
            if error is not None:
                raise error
            return await _await_answer(answer)
    except TimeoutError:
        if not scope.expired():
            raise
    provider, model = getattr(client, "provider", None), request.model or getattr(client, "model", None)
    model_name = f"{provider}:{model}" if provider and model else "the model"
    raise TimeoutError(f"{model_name} has not answered within {limit:g} s")


class Pieces(Iterator[str], AsyncIterator[str]):
    """The pieces of an answer as they arrive, for `for` or `async for`; joined they are the whole answer.

    The request is sent when the first piece is requested. A client that does not stream returns its answer as one
    piece. Errors are raised where the next piece is requested. `close`, `aclose`, or deleting this object ends the
    request early.

    Raises:
        AgentRuntimeError: X466, the streamed pieces differ from the client's answer; also any error of the client
    """

    def __init__(self, client: LLMClient, request: LLMRequest) -> None:
        self._end = _PieceReceiver(request)
        self._now: Generator[str] = _iter_pieces(client, self._end)
        self._later: AsyncGenerator[str] = _aiter_pieces(client, self._end)

    def __iter__(self) -> Pieces:
        return self

    def __aiter__(self) -> Pieces:
        return self

    def __next__(self) -> str:
        return next(self._now)

    async def __anext__(self) -> str:
        return await anext(self._later)

    @property
    def response(self) -> LLMResponse | None:
        """The whole answer, with its model and usage; None before the last piece has come."""
        return self._end.response

    def close(self) -> None:
        """End the request, if it is still running."""
        self._now.close()

    async def aclose(self) -> None:
        """End the request, if it is still running."""
        await self._later.aclose()


@dataclass(slots=True)
class _PieceReceiver:
    """The receiving end of a streamed answer.

    It has no reference to its Pieces, so that deleting them ends the request.
    """

    request: LLMRequest
    response: LLMResponse | None = None
    is_abandoned: bool = False

    def make_request(self, put: Callable[[str], None]) -> LLMRequest:
        """Return the request to send, with a listener that queues each piece."""
        on_token = self.request.on_token

        def tell(piece: str) -> None:
            if self.is_abandoned:  # the only way to end a client that blocks
                raise asyncio.CancelledError("this answer is no longer needed")
            if on_token is not None:
                on_token(piece)
            put(piece)

        return replace(self.request, on_token=tell)

    def get_rest(self, response: LLMResponse, pieces: list[str]) -> str:
        """Return the part of an answer that was not streamed."""
        self.response, so_far = response, "".join(pieces)
        text = "" if response.content is None else to_text(response.content)
        if isinstance(response.content, str) and not text.startswith(so_far):
            raise AgentRuntimeError(
                Problem("X466", "the streamed text differs from the model's answer", "a stream of its answer",
                        f"{len(so_far)} characters were streamed, and the answer does not begin with them",
                        "fix the client: pass `request.on_token` the text of the answer in order")
            )  # fmt: skip
        return text[len(so_far) :] if isinstance(response.content, str) or not pieces else ""


def _iter_pieces(client: LLMClient, end: _PieceReceiver) -> Generator[str]:
    queue: SimpleQueue[Any] = SimpleQueue()
    request, pieces = end.make_request(queue.put), list[str]()
    answering = _BackgroundCoroutine(lambda: acomplete(client, request))
    answering.outcome.add_done_callback(lambda _: queue.put(_END))
    try:
        while (piece := queue.get()) is not _END:
            pieces.append(piece)
            yield piece
        if rest := end.get_rest(answering.outcome.result(), pieces):
            yield rest
    finally:
        end.is_abandoned = True
        answering.end()


async def _aiter_pieces(client: LLMClient, end: _PieceReceiver) -> AsyncGenerator[str]:
    loop, queue, pieces = asyncio.get_running_loop(), asyncio.Queue[Any](), list[str]()
    request = end.make_request(lambda piece: _check_loop(loop, queue.put_nowait, piece))
    answering = loop.create_task(acomplete(client, request))
    answering.add_done_callback(lambda _: queue.put_nowait(_END))
    try:
        while (piece := await queue.get()) is not _END:
            pieces.append(piece)
            yield piece
        if rest := end.get_rest(answering.result(), pieces):
            yield rest
    finally:
        end.is_abandoned = True
        answering.cancel()
        await asyncio.wait([answering])  # this closes the resources that it has opened
        if not answering.cancelled():
            answering.exception()  # the exception was reported, or nothing waits for it


async def _call_client(client: LLMClient, request: LLMRequest) -> tuple[Any, BaseException | None]:
    """Call a client in a thread; return its answer, or its exception."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((answer, error))
        elif inspect.iscoroutine(answer):  # it was cancelled meanwhile
            answer.close()

    def call() -> None:
        try:
            answer, error = client.complete(request), None
        except BaseException as raised:  # noqa: BLE001  (raised again where it is waited for)
            answer, error = None, raised
        _check_loop(loop, settle, answer, error)
        del answer, error  # an error refers to this frame, and would keep its objects alive

    if has_threads():
        threading.Thread(target=contextvars.copy_context().run, args=(call,), name="agentnb-ask", daemon=True).start()
    else:
        call()
    return await outcome


def _check_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: nothing waits for the result
        loop.call_soon_threadsafe(function, *args)


async def _await_answer(answer: Any) -> LLMResponse:
    return _to_response(await answer if inspect.isawaitable(answer) else answer)


def _to_response(answer: Any) -> LLMResponse:
    return answer if isinstance(answer, LLMResponse) else LLMResponse(answer)


class _BackgroundCoroutine:
    """A coroutine in a separate event loop and thread, which can be awaited and cancelled from outside."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, LLMResponse]]) -> None:
        self.outcome: Future[LLMResponse] = Future()
        self._begun = threading.Event()
        self._going: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run, work), name="agentnb-ask", daemon=True)
        if has_threads():
            self._thread.start()
        else:
            run(self._run, work)

    def _run(self, work: Callable[[], Coroutine[Any, Any, LLMResponse]]) -> None:
        async def main() -> LLMResponse:
            task = asyncio.current_task()
            assert task is not None
            self._going = asyncio.get_running_loop(), task
            self._begun.set()
            return await work()

        try:
            self.outcome.set_result(asyncio.run(main()) if has_threads() else run_here(main()))
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            self.outcome.set_exception(error)
        finally:
            self._begun.set()

    def result(self) -> LLMResponse:
        """Wait for the result; an interrupt cancels it."""
        try:
            return self.outcome.result()
        finally:
            self.end()

    def end(self) -> None:
        """Cancel it, if it is still running, and wait until it has ended."""
        self._begun.wait()
        if self._going is not None:
            loop, task = self._going
            _check_loop(loop, task.cancel)
        if has_threads():
            self._thread.join()
