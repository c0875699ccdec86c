"""Calls that a node's function makes by itself: LangChain's chat models and tools become effects of the step.

Callbacks cannot answer in a model's place, as a replay must. So the methods through which each call of a model or of a
tool goes are wrapped once; outside the step of a node the wrappers do nothing.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid4

from agentnb.board.values import thaw
from agentnb.dialects.langgraph.errors import breakpoints_inside
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.plain_values import from_plain_command, to_plain_command
from agentnb.errors import ExecutionError
from agentnb.world.effect import Effect
from agentnb.world.llm.base import LLMResponse, Usage
from agentnb.world.world import count_earlier_calls

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work

_ATOMS: Final = (str, int, float, bool, type(None))


class Suspended(BaseException):
    """Raised through a node's function when a call is held; it runs again with the results of its earlier calls."""

    def __init__(self, key: int | str, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self.key, self.coroutine, self.waits_for = key, coroutine, waits_for


class Ended(NamedTuple):
    """How a call has ended."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass
class Calls:
    """The calls of a node's function in one attempt of its step. The function may run several times in it.

    It runs again after a call was held, with the results of all earlier calls (`ended`: by number, those of tasks by
    attempt), and after a question, with those of the tasks that have succeeded (`finished`, by path). `answers` are
    those to the questions of the function (at "") and of its tasks (by path). `apart` are the tasks that an async
    function has started. `sent` is what the function has written by itself, not by what it returns: LangGraph's
    writes, as those of `push_message`.
    """

    work: Work
    ended: dict[int | str, Ended] = field(default_factory=dict)
    finished: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, list[Any]] = field(default_factory=lambda: {"": []})
    apart: set[asyncio.Task[Any]] = field(default_factory=set)
    sent: list[tuple[str, Any]] = field(default_factory=list)
    made: int = 0
    lock: RLock = field(default_factory=RLock)

    def call(self, effect: Effect, attempt: str | None = None) -> Any:
        """Perform an effect at once, from a function that cannot await. `attempt` is that of a task."""
        with self.lock:  # a node may call several tools in threads
            key = self._make_key(attempt)
            if key not in self.ended:
                self.ended[key] = self._perform(effect, key)
                _repeat_stream(self.work)
            return self.ended[key].result()

    async def acall(self, effect: Effect, attempt: str | None = None) -> Any:
        """Perform an effect from a coroutine."""
        key = self._make_key(attempt)
        if key not in self.ended:
            self.ended[key] = await _drive_to_end(self.work.call(effect))
            _repeat_stream(self.work)
        return self.ended[key].result()

    async def resume(self, suspended: Suspended) -> None:
        """Wait for the end of a held call; the function can run again after it."""
        self.ended[suspended.key] = await _drive_to_end(_await_rest(suspended))
        _repeat_stream(self.work)
        self.made = 0

    async def ask(self, asked: Any) -> None:
        """Ask a person what the function or one of its tasks has interrupted for; the function can run again after it.

        Its calls are made again then, as in LangGraph, except for the tasks that have succeeded.
        """
        if not asked.args or not asked.args[0]:
            raise ExecutionError(breakpoints_inside(f"node {self.work.node.id!r}"))
        question = asked.args[0][0]
        answer = thaw(await self.work.call(Effect("human", self.work.node.id, {"prompt": question.value})))
        self.answers[question.id if question.id in self.answers else ""].append(answer)
        self.ended.clear()
        self.made = 0

    async def wait(self) -> None:
        """Wait until the tasks that the function has started have ended, too."""
        while self.apart:
            await asyncio.wait(self.apart)

    def cancel(self) -> None:
        """Cancel the tasks that the function has started."""
        for task in self.apart:
            with suppress(RuntimeError):  # their loop is closed
                task.cancel()

    def _make_key(self, attempt: str | None) -> int | str:
        if attempt is not None:
            return attempt
        self.made += 1
        return self.made

    def _perform(self, effect: Effect, key: int | str) -> Ended:
        run, coroutine = self.work.run, self.work.call(effect)
        threaded, run.threaded = run.threaded, False  # the function blocks its thread anyway
        try:
            waits_for = coroutine.send(None)
        except StopIteration as ended:
            return Ended(ended.value)
        except Exception as error:  # noqa: BLE001  (raised where the function made the call)
            return Ended(error=error)
        finally:
            run.threaded = threaded
        raise Suspended(key, coroutine, waits_for)


async def _drive_to_end(coroutine: Coroutine[Any, Any, Any]) -> Ended:
    try:
        return Ended(await coroutine)
    except Exception as error:  # noqa: BLE001  (raised where the function made the call)
        return Ended(error=error)


CALLS: ContextVar[Calls | None] = ContextVar("CALLS", default=None)
PERFORMED: ContextVar[str | None] = ContextVar("PERFORMED", default=None)  # the name of the call being performed


@types.coroutine
def _await_rest(suspended: Suspended) -> Generator[Any, Any, Any]:
    """Await the rest of a suspended call."""
    waits_for = suspended.waits_for
    while True:
        reply = yield waits_for
        try:
            waits_for = suspended.coroutine.send(reply)
        except StopIteration as ended:
            return ended.value


# -- models ------------------------------------------------------------------------------------------------------------


def _request(messages: Any, stop: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"messages": lg.messages_to_dict(list(messages))}
    if stop:
        found["stop"] = list(stop)
    return found | {name: value for name, value in kwargs.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return isinstance(value, _ATOMS) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))


def _to_response(model: Any, result: Any) -> LLMResponse:
    """Return what a model answered, as it is recorded."""
    message = result.generations[0].message
    used = getattr(message, "usage_metadata", None) or {}
    usage = Usage(used.get("input_tokens"), used.get("output_tokens"))
    return LLMResponse(lg.message_to_dict(message), _name_of(model), usage, provider=type(model).__name__)


def _name_of(model: Any) -> str:
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__


def _to_model_result(response: Any) -> Any:
    """Return what the model's caller expects, from an answer that was given now, recorded, or changed by a person."""
    said = getattr(response, "content", response)
    message = lg.messages_from_dict([said])[0] if isinstance(said, Mapping) else lg.AIMessage(str(said))
    return lg.ChatResult(generations=[lg.ChatGeneration(message=message)])


class Tokens(lg.BaseCallbackHandler, lg.StreamingCallbackHandler):  # type: ignore[misc]  # classes without types
    """Passes what a model streams to the run's listener; LangChain's models stream if such a handler is there."""

    def __init__(self, calls: Calls, model: str) -> None:
        work = calls.work
        self.work, self.heard, self.model = work, work.run.tell, model
        self.of_node = count_earlier_calls(work, "llm", work.node.id)

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        """Pass on a piece of text."""
        if isinstance(token, str) and token and self.heard is not None and not self.work.dead:
            self.heard(self.work.node.id, token, 1, self.of_node, self.model)

    def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
        """Return an iterator as it is."""
        return output

    def tap_output_iter(self, run_id: Any, output: Any) -> Any:
        """Return an iterator as it is."""
        return output


def _to_chunk(calls: Calls, model: Any, manager: Any) -> Any:
    """Return the manager of a model's callbacks, with the run's listener among them, if there is one."""
    if manager is not None and calls.work.run.tell is not None:
        manager.handlers = [*manager.handlers, Tokens(calls, _name_of(model))]
    return manager


def _wrap_model(cls: Any) -> None:
    generate, agenerate, should_stream = cls._generate_with_cache, cls._agenerate_with_cache, cls._should_stream

    def run_generate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return generate(self, messages, stop, run_manager, **kwargs)

        def ask(messages: Any, stop: Any = None, **changed: Any) -> Any:
            with outside(_name_of(self)):
                read = lg.messages_from_dict(messages)
                heard = _to_chunk(calls, self, run_manager)
                return _to_response(self, generate(self, read, stop, heard, **{**kwargs, **changed}))

        arguments = _request(messages, stop, kwargs)
        return _to_model_result(calls.call(Effect("llm", _name_of(self), arguments, target=ask)))

    async def run_agenerate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return await agenerate(self, messages, stop, run_manager, **kwargs)

        async def ask(messages: Any, stop: Any = None, **changed: Any) -> Any:
            with outside(_name_of(self)):
                read = lg.messages_from_dict(messages)
                heard = _to_chunk(calls, self, run_manager)
                return _to_response(self, await agenerate(self, read, stop, heard, **{**kwargs, **changed}))

        arguments = _request(messages, stop, kwargs)
        return _to_model_result(await calls.acall(Effect("llm", _name_of(self), arguments, target=ask)))

    def streams(self: Any, *args: Any, **kwargs: Any) -> bool:
        return CALLS.get() is None and should_stream(self, *args, **kwargs)  # in a step, an answer comes as a whole

    cls._generate_with_cache, cls._agenerate_with_cache, cls._should_stream = run_generate, run_agenerate, streams


@contextmanager
def outside(name: str) -> Iterator[None]:
    """Perform the call with this name: it makes no effects of its own, so a tool that asks a model is one call."""
    calls, performed = CALLS.set(None), PERFORMED.set(name)
    try:
        yield
    finally:
        PERFORMED.reset(performed)
        CALLS.reset(calls)


def stream(work: Work, chunk: Any) -> None:
    """Emit what a function or one of its calls has streamed; its actor is the call, if one is being performed."""
    work.emit("custom", chunk, PERFORMED.get())


def _repeat_stream(work: Work) -> None:
    """Emit what recorded calls have streamed: they are not performed again."""
    while (
        work.run.recorded is not None
        and (event := work.run.recorded.next_event(work)) is not None
        and event.type == "custom"
        and event.actor != work.node.id
    ):
        work.emit("custom", thaw(event.payload), event.actor)


# -- tools -------------------------------------------------------------------------------------------------------------


def _parse_arguments(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"input": given}
    return {str(name): value for name, value in given.items() if _is_plain(value)}


def _replace_fields(given: Any, changed: Mapping[str, Any]) -> Any:
    return {**given, **changed} if isinstance(given, Mapping) else changed["input"]


def to_recorded(answer: Any) -> Any:
    """Return what is recorded of the answer of a tool or a task."""
    if isinstance(answer, lg.Command):
        return {"command": to_plain_command(answer)}
    return {"message": lg.message_to_dict(answer)} if isinstance(answer, lg.BaseMessage) else {"value": answer}


def to_question(asked: Any, path: str = "") -> dict[str, Any]:
    """Return what is recorded of a tool or a task that has interrupted; `path` is that of the task."""
    return {"asks": asked.args[0][0].value, "by": path}


def answer_in(found: Any) -> Any:
    """Return the answer of a tool or a task: one that was given now, recorded, or changed by a person.

    Raises:
        GraphInterrupt: it asks a person.
    """
    if isinstance(found, Mapping):
        if "asks" in found:
            raise lg.GraphInterrupt((lg.Interrupt(value=found["asks"], id=found.get("by", "")),))
        if "message" in found:
            return lg.messages_from_dict([found["message"]])[0]
        if "command" in found:
            return from_plain_command(found["command"])
        if "value" in found:
            return found["value"]
    return found


def _wrap_tool(cls: Any) -> None:
    run, arun = cls.run, cls.arun

    def ran(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return run(self, tool_input, *args, **kwargs)

        def call(**changed: Any) -> Any:
            with outside(self.name):
                try:
                    return to_recorded(run(self, _replace_fields(tool_input, changed), *args, **kwargs))
                except lg.GraphInterrupt as asked:
                    return to_question(asked)

        return answer_in(calls.call(Effect("tool", self.name, _parse_arguments(tool_input), target=call)))

    async def aran(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return await arun(self, tool_input, *args, **kwargs)

        async def call(**changed: Any) -> Any:
            with outside(self.name):
                try:
                    return to_recorded(await arun(self, _replace_fields(tool_input, changed), *args, **kwargs))
                except lg.GraphInterrupt as asked:
                    return to_question(asked)

        return answer_in(await calls.acall(Effect("tool", self.name, _parse_arguments(tool_input), target=call)))

    cls.run, cls.arun = ran, aran


class _Ids:
    """Random ids of messages, in place of the module `uuid`: what a function causes is drawn again in a replay."""

    def uuid4(self) -> UUID:
        """Return a random id."""
        calls = CALLS.get()
        return uuid4() if calls is None else UUID(int=calls.work.random.getrandbits(128), version=4)


def _install() -> Callable[[], None]:
    done: list[bool] = []

    def install() -> None:
        """Wrap the methods of LangChain's models and tools, and the ids of messages, the first time."""
        if not done:
            done.append(True)
            _wrap_model(lg.BaseChatModel)
            _wrap_tool(lg.BaseTool)
            lg.message_module.uuid = _Ids()

    return install


install = _install()
