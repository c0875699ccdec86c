"""asking: any client, asked outside a run: awaited or not, its answer as a whole or piece by piece.

    client = as_client("openai:gpt-4o")
    request = LLMRequest((LLMMessage("user", "Hello"),))
    complete(client, request).content          # also where a loop is running already
    (await acomplete(client, request)).content
    for piece in Pieces(client, request): ...  # or `async for`

The seconds that an answer may take (`timeout` of the request, else its setting `request_timeout`) hold for every
client. A client that blocks is called in a thread where it must not hold up a loop, or may be given up.
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
from agentnb.world.llm.base import LLMClient, LLMRequest, LLMResponse
from agentnb.world.llm.wording import in_words

_END: Final = object()


def limit_of(request: LLMRequest) -> float | None:
    """Return the seconds that an answer may take; None: as long as it likes."""
    seconds = request.timeout or request.settings.get("request_timeout")
    return None if seconds is None else float(seconds)


def complete(client: LLMClient, request: LLMRequest) -> LLMResponse:
    """Return the answer to one request; the caller waits for it.

    Raises: TimeoutError: there was none in time; and what the client itself raises
    """
    if limit_of(request) is None:
        answer = client.complete(request)
        return _Apart(lambda: _awaited(answer)).result() if inspect.isawaitable(answer) else _response(answer)
    return _Apart(lambda: acomplete(client, request)).result()


async def acomplete(client: LLMClient, request: LLMRequest) -> LLMResponse:
    """Return the answer to one request.

    Raises: TimeoutError: there was none in time; and what the client itself raises
    """
    limit = limit_of(request)
    scope = asyncio.timeout(limit)
    try:
        async with scope:
            answer, error = await _called(client, request)
            if error is not None:
                raise error
            return await _awaited(answer)
    except TimeoutError:
        if not scope.expired():
            raise
    provider, model = getattr(client, "provider", None), request.model or getattr(client, "model", None)
    who = f"{provider}:{model}" if provider and model else "the model"
    raise TimeoutError(f"{who} has not answered within {limit:g} s")


class Pieces(Iterator[str], AsyncIterator[str]):
    """The pieces of an answer as they arrive, for `for` or for `async for`; joined they are the whole answer.

    Nothing is asked before the first piece is. A client that does not stream gives its answer as one piece. What fails
    is raised where the next piece was asked for. Whoever asks for no more ends the request: by `close` or `aclose`, or
    by letting go of this object.

    Raises: AgentRuntimeError: X466, the client told other pieces than its answer has; and what it raises itself
    """

    def __init__(self, client: LLMClient, request: LLMRequest) -> None:
        self._end = _End(request)
        self._now: Generator[str] = _pieces(client, self._end)
        self._later: AsyncGenerator[str] = _apieces(client, self._end)

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
        """End the request, where it is still going on."""
        self._now.close()

    async def aclose(self) -> None:
        """End the request, where it is still going on."""
        await self._later.aclose()


@dataclass(slots=True)
class _End:
    """What becomes of an answer that comes in pieces. It knows nobody, so that who lets go of them ends the request."""

    request: LLMRequest
    response: LLMResponse | None = None
    left: bool = False

    def telling(self, put: Callable[[str], None]) -> LLMRequest:
        """Return the request as it is sent: each piece is put where it is waited for."""
        heard = self.request.tell

        def tell(piece: str) -> None:
            if self.left:  # the only way to end a client that blocks
                raise asyncio.CancelledError("nobody waits for this answer any more")
            if heard is not None:
                heard(piece)
            put(piece)

        return replace(self.request, tell=tell)

    def rest(self, response: LLMResponse, told: list[str]) -> str:
        """Return what an answer has beyond the pieces that were told."""
        self.response, so_far = response, "".join(told)
        text = "" if response.content is None else in_words(response.content)
        if isinstance(response.content, str) and not text.startswith(so_far):
            raise AgentRuntimeError(
                Problem("X466", "a model told other pieces than its answer has", "a stream of its answer",
                        f"{len(so_far)} characters were told, and the answer does not begin with them",
                        "mend the client: `request.tell` is given the text of the answer, in order")
            )  # fmt: skip
        return text[len(so_far) :] if isinstance(response.content, str) or not told else ""


def _pieces(client: LLMClient, end: _End) -> Generator[str]:
    queue: SimpleQueue[Any] = SimpleQueue()
    request, told = end.telling(queue.put), list[str]()
    asked = _Apart(lambda: acomplete(client, request))
    asked.outcome.add_done_callback(lambda _: queue.put(_END))
    try:
        while (piece := queue.get()) is not _END:
            told.append(piece)
            yield piece
        if rest := end.rest(asked.outcome.result(), told):
            yield rest
    finally:
        end.left = True
        asked.end()


async def _apieces(client: LLMClient, end: _End) -> AsyncGenerator[str]:
    loop, queue, told = asyncio.get_running_loop(), asyncio.Queue[Any](), list[str]()
    request = end.telling(lambda piece: _in(loop, queue.put_nowait, piece))
    asked = loop.create_task(acomplete(client, request))
    asked.add_done_callback(lambda _: queue.put_nowait(_END))
    try:
        while (piece := await queue.get()) is not _END:
            told.append(piece)
            yield piece
        if rest := end.rest(asked.result(), told):
            yield rest
    finally:
        end.left = True
        asked.cancel()
        await asyncio.wait([asked])  # what it has opened is closed then
        if not asked.cancelled():
            asked.exception()  # it was told, or nobody waits for it


async def _called(client: LLMClient, request: LLMRequest) -> tuple[Any, BaseException | None]:
    """Call a client in a thread; return its answer, or what it raised."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((answer, error))
        elif inspect.iscoroutine(answer):  # it was given up meanwhile
            answer.close()

    def call() -> None:
        try:
            answer, error = client.complete(request), None
        except BaseException as raised:  # noqa: BLE001  (raised again where it is waited for)
            answer, error = None, raised
        _in(loop, settle, answer, error)
        del answer, error  # an error knows this frame, and would keep what it is about alive

    threading.Thread(target=contextvars.copy_context().run, args=(call,), name="agentnb-ask", daemon=True).start()
    return await outcome


def _in(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *given: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(function, *given)


async def _awaited(answer: Any) -> LLMResponse:
    return _response(await answer if inspect.isawaitable(answer) else answer)


def _response(answer: Any) -> LLMResponse:
    return answer if isinstance(answer, LLMResponse) else LLMResponse(answer)


class _Apart:
    """A coroutine in a loop of its own, in a thread of its own: it can be waited for, and ended, from outside."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, LLMResponse]]) -> None:
        self.outcome: Future[LLMResponse] = Future()
        self._begun = threading.Event()
        self._going: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run, work), name="agentnb-ask", daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Coroutine[Any, Any, LLMResponse]]) -> None:
        async def main() -> LLMResponse:
            task = asyncio.current_task()
            assert task is not None
            self._going = asyncio.get_running_loop(), task
            self._begun.set()
            return await work()

        try:
            self.outcome.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            self.outcome.set_exception(error)
        finally:
            self._begun.set()

    def result(self) -> LLMResponse:
        """Wait for what came of it; an interrupt ends it."""
        try:
            return self.outcome.result()
        finally:
            self.end()

    def end(self) -> None:
        """Cancel it, where it is still going on, and wait until it has ended."""
        self._begun.wait()
        if self._going is not None:
            loop, task = self._going
            _in(loop, task.cancel)
        self._thread.join()
