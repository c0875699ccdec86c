"""Calls that a node's function makes by itself: LangChain's chat models and tools become effects of the step.

Callbacks cannot answer in a model's place, as a replay must. So the methods through which each call of a model or of a
tool goes are wrapped once; outside the step of a node the wrappers do nothing.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.langgraph.parts import package as lg
from agentnb.world.effect import Effect
from agentnb.world.llm.base import LLMResponse, Usage
from agentnb.world.world import count_earlier_calls

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work

_ATOMS: Final = (str, int, float, bool, type(None))


class Suspended(BaseException):
    """Raised through a node's function when a call is held; it runs again with the answers to its earlier calls."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self.coroutine, self.waits_for = coroutine, waits_for


@dataclass
class Calls:
    """The calls of one run of a node's function; `answers` are those of the runs before it, in order."""

    work: Work
    answers: list[Any] = field(default_factory=list)
    made: int = 0
    lock: RLock = field(default_factory=RLock)

    def call(self, effect: Effect) -> Any:
        """Perform an effect at once, from a function that cannot await."""
        with self.lock:  # a node may call several tools in threads
            self.made += 1
            if self.made <= len(self.answers):
                return self.answers[self.made - 1]
            run, coroutine = self.work.run, self.work.call(effect)
            threaded, run.threaded = run.threaded, False  # the function blocks its thread anyway
            try:
                waits_for = coroutine.send(None)
            except StopIteration as ended:
                self.answers.append(ended.value)
                return ended.value
            finally:
                run.threaded = threaded
            raise Suspended(coroutine, waits_for)

    async def acall(self, effect: Effect) -> Any:
        """Perform an effect from a coroutine."""
        return await self.work.call(effect)


CALLS: ContextVar[Calls | None] = ContextVar("CALLS", default=None)


@types.coroutine
def resumed(suspended: Suspended) -> Generator[Any, Any, Any]:
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


def _said(model: Any, result: Any) -> LLMResponse:
    """Return what a model answered, as it is recorded."""
    message = result.generations[0].message
    used = getattr(message, "usage_metadata", None) or {}
    usage = Usage(used.get("input_tokens"), used.get("output_tokens"))
    return LLMResponse(lg.message_to_dict(message), _name_of(model), usage, provider=type(model).__name__)


def _name_of(model: Any) -> str:
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__


def _result(response: Any) -> Any:
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


def _heard(calls: Calls, model: Any, manager: Any) -> Any:
    """Return the manager of a model's callbacks, with the run's listener among them, if there is one."""
    if manager is not None and calls.work.run.tell is not None:
        manager.handlers = [*manager.handlers, Tokens(calls, _name_of(model))]
    return manager


def _wrap_model(cls: Any) -> None:
    generate, agenerate, should_stream = cls._generate_with_cache, cls._agenerate_with_cache, cls._should_stream

    def generated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return generate(self, messages, stop, run_manager, **kwargs)

        def ask(messages: Any, stop: Any = None, **changed: Any) -> Any:
            with _outside():
                read = lg.messages_from_dict(messages)
                heard = _heard(calls, self, run_manager)
                return _said(self, generate(self, read, stop, heard, **{**kwargs, **changed}))

        arguments = _request(messages, stop, kwargs)
        return _result(calls.call(Effect("llm", _name_of(self), arguments, target=ask)))

    async def agenerated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return await agenerate(self, messages, stop, run_manager, **kwargs)

        async def ask(messages: Any, stop: Any = None, **changed: Any) -> Any:
            with _outside():
                read = lg.messages_from_dict(messages)
                heard = _heard(calls, self, run_manager)
                return _said(self, await agenerate(self, read, stop, heard, **{**kwargs, **changed}))

        arguments = _request(messages, stop, kwargs)
        return _result(await calls.acall(Effect("llm", _name_of(self), arguments, target=ask)))

    def streams(self: Any, *args: Any, **kwargs: Any) -> bool:
        return CALLS.get() is None and should_stream(self, *args, **kwargs)  # in a step, an answer comes as a whole

    cls._generate_with_cache, cls._agenerate_with_cache, cls._should_stream = generated, agenerated, streams


class _outside:  # noqa: N801  (a context manager)
    """What runs inside an effect makes no effects of its own: a tool that asks a model is one call."""

    def __enter__(self) -> None:
        self.token = CALLS.set(None)

    def __exit__(self, *_: object) -> None:
        CALLS.reset(self.token)


# -- tools -------------------------------------------------------------------------------------------------------------


def _arguments(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"input": given}
    return {str(name): value for name, value in given.items() if _is_plain(value)}


def _with(given: Any, changed: Mapping[str, Any]) -> Any:
    return {**given, **changed} if isinstance(given, Mapping) else changed["input"]


def _recorded(answer: Any) -> Any:
    return {"message": lg.message_to_dict(answer)} if isinstance(answer, lg.BaseMessage) else {"value": answer}


def _answer(found: Any) -> Any:
    if isinstance(found, Mapping):
        if "asks" in found:
            raise lg.GraphInterrupt((lg.Interrupt(value=found["asks"]),))
        if "message" in found:
            return lg.messages_from_dict([found["message"]])[0]
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
            with _outside():
                try:
                    return _recorded(run(self, _with(tool_input, changed), *args, **kwargs))
                except lg.GraphInterrupt as asked:
                    return {"asks": asked.args[0][0].value}

        return _answer(calls.call(Effect("tool", self.name, _arguments(tool_input), target=call)))

    async def aran(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return await arun(self, tool_input, *args, **kwargs)

        async def call(**changed: Any) -> Any:
            with _outside():
                try:
                    return _recorded(await arun(self, _with(tool_input, changed), *args, **kwargs))
                except lg.GraphInterrupt as asked:
                    return {"asks": asked.args[0][0].value}

        return _answer(await calls.acall(Effect("tool", self.name, _arguments(tool_input), target=call)))

    cls.run, cls.arun = ran, aran


def _install() -> Callable[[], None]:
    done: list[bool] = []

    def install() -> None:
        """Wrap the methods of LangChain's models and tools, the first time."""
        if not done:
            done.append(True)
            _wrap_model(lg.BaseChatModel)
            _wrap_tool(lg.BaseTool)

    return install


install = _install()
