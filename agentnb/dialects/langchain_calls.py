"""LangChain's chat models and tools: their calls in a node's user function become effects of the step.

Callbacks cannot answer in place of a model, as a replay must. Therefore the methods that every call of a model or a
tool passes through are wrapped once; outside the step of a node the wrappers do nothing.

If the session has a model, it answers instead of the program's models. Arguments and answers are recorded in
LangChain's form in either case, so one record serves both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.tracers._streaming import _StreamingCallbackHandler as StreamingCallbackHandler
from pydantic import ValidationError

from agentnb.dialects.inner_calls import CALLS, Calls, Suspended, add_result, outside
from agentnb.dialects.langchain_messages import Exchange
from agentnb.world.effect import Effect
from agentnb.world.llm.base import LLMClient, LLMRequest, LLMResponse, Usage
from agentnb.world.llm.direct_call import acomplete, complete
from agentnb.world.world import count_earlier_calls

_ATOMS: Final = (str, int, float, bool, type(None))
_PARAMS: Final = "invocation_params"
# While a function streams an answer: the lengths of its pieces of text, as they are recorded
_PIECES: Final[ContextVar[list[int] | None]] = ContextVar("pieces", default=None)


# -- models ------------------------------------------------------------------------------------------------------------


def _request(
    messages: Any, stop: Any, kwargs: Mapping[str, Any], settings_of_model: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the record of a request, which includes the settings of the model object itself."""
    request: dict[str, Any] = {"messages": messages_to_dict(list(messages))}
    if stop:
        request["stop"] = list(stop)
    if settings_of_model:
        request[_PARAMS] = settings_of_model
    return request | {name: value for name, value in kwargs.items() if _is_plain(value)}


def _list_settings(model: Any) -> dict[str, Any]:
    """Return the settings of a model object as LangChain passes them to callbacks: its name, temperature ..."""
    settings = model._get_invocation_params()  # noqa: SLF001  (what it gives to callbacks)
    return {name: value for name, value in settings.items()
            if value is not None and name not in ("_type", "stop") and _is_plain(value)}  # fmt: skip


def _list_options(
    kwargs: Mapping[str, Any], changed: Mapping[str, Any], settings_of_model: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options with which a model is called, including settings that a person has changed."""
    settings = changed.get(_PARAMS, settings_of_model)
    edited = {
        name: value
        for name, value in settings.items()
        if name not in settings_of_model or value != settings_of_model[name]
    }
    return {**kwargs, **{name: value for name, value in changed.items() if name != _PARAMS}, **edited}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return isinstance(value, _ATOMS) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))


def _to_response(calls: Calls, model: Any, result: Any, pieces: Sequence[int]) -> LLMResponse:
    """Return the record of a model's answer. If its caller streams it, it includes the lengths of its pieces."""
    message = result.generations[0].message
    used = getattr(message, "usage_metadata", None) or {}
    usage = Usage(used.get("input_tokens"), used.get("output_tokens"))
    content = calls.add_writes(message_to_dict(message))
    if _PIECES.get() is not None:
        content["pieces"] = list(pieces)
    return LLMResponse(content, _name_of(model), usage, provider=type(model).__name__)


def _name_of(model: Any) -> str:
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__


class _SessionRequest:
    """A call of a program's model that the session's model answers."""

    def __init__(self, calls: Calls, model: Any, messages: Any, stop: Any, options: Mapping[str, Any]) -> None:
        self.exchange = Exchange(messages, stop, options)
        work, effect = calls.work, Effect("llm", _name_of(model), self.exchange.arguments)
        self.client: LLMClient
        self.client, requests = work.run.world.open_request(effect, work)
        self.request: LLMRequest = requests.next()

    def to_response(self, response: LLMResponse) -> LLMResponse:
        """Return the response in its recorded form: as a LangChain message."""
        return replace(response, content=message_to_dict(self.exchange.to_message(response)), tool_calls=())


def _has_session_model(calls: Calls) -> bool:
    return calls.work.run.world.model_of(calls.work.node) is not None


def _to_model_result(calls: Calls, response: Any) -> Any:
    """Return the value that the model's caller expects, for an answer that is new, recorded, or changed by a person."""
    content = getattr(response, "content", response)
    calls.repeat_writes(content)
    message = messages_from_dict([content])[0] if isinstance(content, Mapping) else AIMessage(str(content))
    pieces = _PIECES.get()
    if pieces is not None and isinstance(content, Mapping):
        pieces += content.get("pieces", ())
    return ChatResult(generations=[ChatGeneration(message=message)])


@contextmanager
def _streaming() -> Iterator[list[int]]:
    """Provide the lengths of the pieces of the answer that is asked for within this context."""
    pieces: list[int] = []
    token = _PIECES.set(pieces)
    try:
        yield pieces
    finally:
        _PIECES.reset(token)


def _split(message: Any, pieces: Sequence[int]) -> Iterator[AIMessageChunk]:
    """Yield an answer as the chunks in which the model streamed it; the last one has all that is not text.

    A changed answer, and one that is not text, is a single chunk.
    """
    content, begin = message.content, 0
    if isinstance(content, str) and sum(pieces) == len(content):
        for length in pieces[:-1]:
            yield AIMessageChunk(content[begin : begin + length], id=message.id)
            begin += length
    fields = message.model_dump(exclude={"type", "content"})
    yield AIMessageChunk(**fields, content=content[begin:] if begin else content, chunk_position="last")


class TokenListener(BaseCallbackHandler, StreamingCallbackHandler):  # type: ignore[misc]  # classes without types
    """Passes streamed tokens of a model to the run's listener.

    LangChain's models stream if such a handler is present.
    """

    def __init__(self, calls: Calls, model: str) -> None:
        work = calls.work
        self.work, self.listener, self.model = work, work.run.on_token, model
        self.of_node = count_earlier_calls(work, "llm", work.node.id)
        self.pieces: list[int] = []

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        """Pass on a piece of text, and note its length."""
        self.pieces.append(len(token) if isinstance(token, str) else 0)
        if isinstance(token, str) and token and self.listener is not None and not self.work.has_ended:
            self.listener(self.work.node.id, token, 1, self.of_node, self.model)

    def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
        """Return the iterator unchanged."""
        return output

    def tap_output_iter(self, run_id: Any, output: Any) -> Any:
        """Return the iterator unchanged."""
        return output


def _listen(calls: Calls, model: Any, manager: Any) -> list[int]:
    """Let the run's listener hear a model's tokens; return the lengths of the pieces, a list that grows as they come.

    Without a listener and a caller that streams, nothing is heard.
    """
    if manager is None or (calls.work.run.on_token is None and _PIECES.get() is None):
        return []
    listener = TokenListener(calls, _name_of(model))
    manager.handlers = [*manager.handlers, listener]
    return listener.pieces


def _wrap_model(cls: Any) -> None:
    generate, agenerate, should_stream = cls._generate_with_cache, cls._agenerate_with_cache, cls._should_stream

    def run_generate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return generate(self, messages, stop, run_manager, **kwargs)
        settings_of_model = _list_settings(self)

        def ask(messages: Any, stop: Any = None, **changed: Any) -> Any:
            with outside(_name_of(self)):
                read, options = messages_from_dict(messages), _list_options(kwargs, changed, settings_of_model)
                if _has_session_model(calls):
                    request = _SessionRequest(calls, self, read, stop, options)
                    return request.to_response(complete(request.client, request.request))
                pieces = _listen(calls, self, run_manager)
                return _to_response(calls, self, generate(self, read, stop, run_manager, **options), pieces)

        arguments = _request(messages, stop, kwargs, settings_of_model)
        return _to_model_result(calls, calls.call(Effect("llm", _name_of(self), arguments, target=ask)))

    async def run_agenerate(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return await agenerate(self, messages, stop, run_manager, **kwargs)
        settings_of_model = _list_settings(self)

        async def ask(messages: Any, stop: Any = None, **changed: Any) -> Any:
            with outside(_name_of(self)):
                read, options = messages_from_dict(messages), _list_options(kwargs, changed, settings_of_model)
                if _has_session_model(calls):
                    request = _SessionRequest(calls, self, read, stop, options)
                    return request.to_response(await acomplete(request.client, request.request))
                pieces = _listen(calls, self, run_manager)
                return _to_response(calls, self, await agenerate(self, read, stop, run_manager, **options), pieces)

        arguments = _request(messages, stop, kwargs, settings_of_model)
        try:
            return _to_model_result(calls, await calls.acall(Effect("llm", _name_of(self), arguments, target=ask)))
        except Suspended as suspended:
            vars(suspended).update(generations=[], llm_output=None)  # LangChain reads them unless it is an Exception
            raise

    def streams(self: Any, *args: Any, **kwargs: Any) -> bool:
        # in a step, an answer is returned as a whole
        return CALLS.get() is None and should_stream(self, *args, **kwargs)

    cls._generate_with_cache, cls._agenerate_with_cache, cls._should_stream = run_generate, run_agenerate, streams


def _wrap_streams(cls: Any) -> None:
    stream, astream, should_stream = cls.stream, cls.astream, cls._should_stream

    def run_stream(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        if CALLS.get() is None or not should_stream(self, async_api=False, **{**kwargs, "stream": True}):
            yield from stream(self, *args, **kwargs)
            return
        with _streaming() as pieces:
            message = self.invoke(*args, **kwargs)
        yield from _split(message, pieces)

    async def run_astream(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        if CALLS.get() is None or not should_stream(self, async_api=True, **{**kwargs, "stream": True}):
            async for chunk in astream(self, *args, **kwargs):
                yield chunk
            return
        with _streaming() as pieces:
            message = await self.ainvoke(*args, **kwargs)
        for chunk in _split(message, pieces):
            yield chunk

    cls.stream, cls.astream = run_stream, run_astream


# -- tools -------------------------------------------------------------------------------------------------------------


def _parse_arguments(arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, Mapping):
        return {"input": arguments}
    return {str(name): value for name, value in arguments.items() if _is_plain(value)}


def _replace_fields(value: Any, changed: Mapping[str, Any]) -> Any:
    return {**value, **changed} if isinstance(value, Mapping) else changed["input"]


def _to_recorded(calls: Calls, answer: Any) -> Any:
    if not isinstance(answer, BaseMessage):
        return calls.add_writes(calls.to_recorded(answer))
    message = message_to_dict(answer)
    if isinstance(answer, ToolMessage):
        message["data"]["artifact"] = answer.artifact  # an object of any class; LangChain's form of it is a dict
    return calls.add_writes({"message": message})


def _to_question(calls: Calls, error: Exception) -> dict[str, Any]:
    """Return the record of a tool that asked a person, from the exception that it raised.

    Raises:
        Exception: it was an error.
    """
    question = calls.to_question(error)
    if question is None:
        add_result(error, calls.add_writes({}))
        raise error
    return question


def _get_answer(calls: Calls, result: Any) -> Any:
    calls.repeat_writes(result)
    if isinstance(result, Mapping):
        if "message" in result:
            return messages_from_dict([result["message"]])[0]
        if "value" in result:
            return result["value"]
    return calls.answer_in(result)


def _validate_again(tool: Any, tool_input: Any, kwargs: Mapping[str, Any], error: Exception) -> None:
    """Raise the validation error of a tool for arguments that it rejected when the call was made.

    A recorded error does not have pydantic's class, by which agents recognize that a model may try again.
    """
    if type(error).__name__ == ValidationError.__name__ and not isinstance(error, ValidationError):
        tool._parse_input(tool_input, kwargs.get("tool_call_id"))  # noqa: SLF001  (all that `run` does before it calls it)


def _wrap_tool(cls: Any) -> None:
    run, arun = cls.run, cls.arun

    def ran(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return run(self, tool_input, *args, **kwargs)

        def call(**changed: Any) -> Any:
            with outside(self.name):
                try:
                    return _to_recorded(calls, run(self, _replace_fields(tool_input, changed), *args, **kwargs))
                except Exception as error:  # noqa: BLE001  (raised unless it asks)
                    return _to_question(calls, error)

        try:
            result = calls.call(Effect("tool", self.name, _parse_arguments(tool_input), target=call))
        except Exception as error:
            calls.repeat_writes(getattr(error, "result", None))
            _validate_again(self, tool_input, kwargs, error)
            raise
        return _get_answer(calls, result)

    async def aran(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        calls = CALLS.get()
        if calls is None:
            return await arun(self, tool_input, *args, **kwargs)

        async def call(**changed: Any) -> Any:
            with outside(self.name):
                try:
                    return _to_recorded(calls, await arun(self, _replace_fields(tool_input, changed), *args, **kwargs))
                except Exception as error:  # noqa: BLE001  (raised unless it asks)
                    return _to_question(calls, error)

        try:
            result = await calls.acall(Effect("tool", self.name, _parse_arguments(tool_input), target=call))
        except Exception as error:
            calls.repeat_writes(getattr(error, "result", None))
            _validate_again(self, tool_input, kwargs, error)
            raise
        return _get_answer(calls, result)

    cls.run, cls.arun = ran, aran


def _make_install() -> Callable[[], None]:
    done: list[bool] = []

    def install() -> None:
        """Wrap the methods of LangChain's models and tools, once."""
        if not done:
            done.append(True)
            _wrap_streams(BaseChatModel)  # first: it asks LangChain's own `_should_stream`
            _wrap_model(BaseChatModel)
            _wrap_tool(BaseTool)

    return install


install = _make_install()

__all__ = ["install"]
