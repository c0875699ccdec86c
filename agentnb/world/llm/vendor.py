"""The common part of the vendors' clients: settings, keys, one SDK client per event loop, error translation, costs."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from agentnb.board.masking import register_secrets
from agentnb.board.values import freeze, thaw
from agentnb.errors import AgentRuntimeError, Problem
from agentnb.secrets import hide
from agentnb.world.llm.base import (
    LLMError,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    ToolCall,
    ToolDefinition,
    Usage,
)
from agentnb.world.llm.env import substitute_env
from agentnb.world.llm.errors import UnreadableResponse, to_failure
from agentnb.world.llm.settings import OF_REQUESTS, SAMPLING, check_settings
from agentnb.world.llm.structured import find_json, parse_whole_json

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_ANSWER: Final = 600.0  # default timeout of an SDK, in seconds
MILLION: Final = 1_000_000
# The vendors' reasons for an end at which a call may break off; Gemini's calls are always whole.
_CUT_OFF: Final = frozenset({"length", "max_tokens", "model_context_window_exceeded", "content_filter", "refusal"})
_CALLED: Final = frozenset(  # the vendors' reasons for an end with a call
    {"tool_calls", "function_call", "tool_use", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"}
)
SHORTEST_KEY: Final = 8  # shorter keys, and keys of letters only, are placeholders that some servers accept


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """One request as a vendor's client sends it: the client's settings merged with those of the request.

    `sampling` holds temperature, max_tokens, top_p, top_k, stop and seed, if set; `kwargs` override all. `json_object`
    requests the vendor's JSON mode, if it has one; a schema takes precedence over it.
    """

    messages: tuple[LLMMessage, ...]
    model: str
    sampling: Mapping[str, Any]
    schema: Any
    json_object: bool
    kwargs: Mapping[str, Any]
    timeout: float
    on_token: Callable[[str], None] | None
    tools: tuple[ToolDefinition, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # of the tools: sent name -> own name

    @property
    def system(self) -> str:
        """The system messages as one string, for protocols that send them separately from the conversation."""
        if not self.messages_without_system:
            return ""
        return "\n\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def messages_without_system(self) -> list[LLMMessage]:
        """The conversation without the system messages; empty if there is nothing else (see `conversation`)."""
        return [message for message in self.messages if message.role != "system"]

    @property
    def conversation(self) -> list[LLMMessage]:
        """The conversation, never empty: if there is only system text, it is sent as the user's message."""
        return self.messages_without_system or [
            LLMMessage("user", "\n\n".join(message.content for message in self.messages))
        ]

    def merge_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments to send: these, overridden by `kwargs`, without None values."""
        return {name: value for name, value in {**arguments, **self.kwargs}.items() if value is not None}


@dataclass(slots=True)
class RequestedCall:
    """A tool call as it arrives: its arguments as JSON text, or as a value."""

    id: str = ""
    name: str = ""
    text: str = ""
    value: Any = None
    signature: str = ""


@dataclass(slots=True)
class Reply:
    """A vendor's response. `is_complete` is true at the end of its stream; `value` is an answer that is not text.

    `calls` are the tool calls, in order, and `keys` the last one of each key that identifies pieces while they arrive;
    `finish` is the vendor's name for the reason why the response ended.
    """

    text: list[str] = field(default_factory=list)
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    is_complete: bool = False
    refused: str = ""
    value: Any = None
    calls: list[RequestedCall] = field(default_factory=list)
    keys: dict[Any, RequestedCall] = field(default_factory=dict)
    finish: str = ""

    def call(
        self, key: Any, id: str | None = None, name: str | None = None, arguments: Any = None, signature: str = ""
    ) -> None:
        """Add a tool call or a further piece of one. Arguments are pieces of JSON text, or a whole mapping.

        A name with another id begins another call: some servers give all calls of a stream the same index, or none.
        """
        requested = self.keys.get(key)
        if requested is None or (name and id and requested.id and id != requested.id):
            requested = self.keys[key] = RequestedCall()
            self.calls.append(requested)
        requested.id, requested.signature = id or requested.id, signature or requested.signature
        requested.name += name or ""
        if isinstance(arguments, str):
            requested.text += arguments
        elif arguments is not None:
            requested.value = arguments

    def add(self, piece: str | None, tell: Callable[[str], None] | None = None) -> None:
        """Add a piece of text and pass it to the listener."""
        if piece:
            self.text.append(piece)
            if tell is not None:
                tell(piece)


def name_sent(name: str) -> str:
    """Return a tool's name in the form that every vendor accepts.

    At most 64 letters, digits, `_` and `-`, unique per tool.
    """
    if _NAME.fullmatch(name):
        return name
    plain = _NOT_IN_NAMES.sub("_", name)
    return f"{plain[:55]}_{sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def _rename_tools(message: LLMMessage) -> LLMMessage:
    if not message.tool_calls:
        return message
    return replace(message, tool_calls=tuple(replace(call, name=name_sent(call.name)) for call in message.tool_calls))


def _describe_end(reply: Reply, why: str) -> str:
    return f"{why}; it ended with {reply.finish!r}" if reply.finish else why


def adapt_arguments(create: Callable[..., Any], arguments: Mapping[str, Any], rest: str) -> dict[str, Any]:
    """Return keyword arguments in the form an SDK function accepts.

    Those it does not declare go into its argument `rest`.
    """
    known = inspect.signature(create).parameters
    accepted = {name: value for name, value in arguments.items() if name in known}
    others = {name: value for name, value in arguments.items() if name not in known}
    return {**accepted, rest: {**others, **(accepted.get(rest) or {})}} if others else accepted


def _uses_json_mode(requested: bool | None, client_setting: bool | None) -> bool:
    """Return True if the answer is requested in JSON mode.

    A request cannot enable what the client's settings disable.
    """
    return client_setting is not False and bool(client_setting if requested is None else requested)


class ResponseAwaitable:
    """The awaitable returned by `complete`. Nothing is sent before it is awaited, so it may be discarded."""

    __slots__ = ("_client", "_request")

    def __init__(self, client: VendorClient, request: LLMRequest) -> None:
        self._client, self._request = client, request

    def __await__(self) -> Generator[Any, Any, LLMResponse]:
        """Send the request and return the answer."""
        return self._client.send(self._request).__await__()


class VendorClient(ABC):
    """A client of a vendor's SDK. The SDK is imported at the first request.

    The client can be awaited in any event loop.

    Args:
        model: the model to use if neither a request nor `settings["model"]` names one.
        settings: see the package's docstring; `{{env.NAME}}` in them is replaced by that environment variable.
        temperature: the default if the settings have none.
        provider: the name of this client in Problems.
        where: the place of its settings in a file, for Problems.

    Raises:
        AgentRuntimeError: X331, the SDK is not installed; X332, there is no key; X333, a variable is not set; X334,
            a setting is wrong
    """

    package: ClassVar[str]
    extra: ClassVar[str]
    variables: ClassVar[tuple[str, ...]] = ()
    default_url: ClassVar[str | None] = None
    needs_key: ClassVar[bool] = True
    plain_calls: ClassVar[bool] = True  # it accepts tool calls in messages that have only id, name and arguments
    of_connection: ClassVar[frozenset[str]] = frozenset()  # arguments that a request must not change: its address

    def __init__(
        self,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        temperature: float | None = None,
        provider: str | None = None,
        where: str | None = None,
    ) -> None:
        self.provider = provider or self.extra
        self._where = where or f"settings of {self.provider!r}"
        self._settings = check_settings(substitute_env(dict(settings or {}), self._where), self._where)
        if temperature is not None:
            self._settings.setdefault("temperature", temperature)
        self.model: str | None = self._settings.get("model") or model or None
        self._check_package()
        self.base_url: str | None = self._settings.get("base_url") or self.find_url()
        self._key = self._find_key()
        self._hide()
        self._open = PerLoop(self.connect, self.close_sdk)

    def __repr__(self) -> str:
        """Return the model, without the settings, because they may contain keys."""
        return f"<{type(self).__name__} {self.provider}:{self.model or '?'}>"

    def complete(self, request: LLMRequest) -> ResponseAwaitable:
        """Answer one request; await the result in a running loop.

        Raises:
            LLMError: X336 to X339, X344, X364, X365, awaited: the server refused or failed, or its answer is unusable.
            AgentRuntimeError: X334, X335, awaited: a setting is wrong, no model is named.
            TimeoutError: awaited, the answer did not arrive in time.
        """
        return ResponseAwaitable(self, request)

    async def prepare(self, request: LLMRequest) -> None:
        """Import the SDK and build its client, so that neither counts towards the time of an answer.

        Both take seconds at the first request, so they run in threads. A failure here occurs again in the request.
        """
        with suppress(Exception):
            await self._get_client()

    async def _get_client(self) -> Any:
        """Return the SDK's client for the running loop."""
        if self.package not in sys.modules:
            await asyncio.to_thread(import_module, self.package)
        return await self._open.client()

    # -- vendor-specific parts ---------------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> Any:
        """Return a new client of the SDK, with the SDK's own retries disabled. Called in a thread."""

    async def close_sdk(self, sdk: Any) -> None:
        """Close a client of the SDK."""
        await sdk.close()

    @abstractmethod
    async def converse(self, sdk: Any, ask: VendorRequest) -> Reply:
        """Send one request and return the answer; pass pieces of text to `ask.on_token` as they arrive."""

    def find_url(self) -> str | None:
        """Return the URL to use if the settings have none; None for the SDK's default."""
        return self.default_url

    # -- a request -----------------------------------------------------------------------------------------------

    async def send(self, request: LLMRequest) -> LLMResponse:
        """Send the request and return the answer; see `complete` for the errors."""
        ask = self._ask(request)
        try:
            sdk = await self._get_client()
            async with asyncio.timeout(ask.timeout):
                reply = await self.converse(sdk, ask)
            return self._make_response(reply, ask)
        except (LLMError, AgentRuntimeError):
            raise
        except Exception as error:  # noqa: BLE001  (anything that the SDK or its dependencies raise)
            failed = to_failure(error, self._name(ask), request.node, self.variables, ask.timeout)
        raise failed  # not chained to the SDK's own error, which contains the request with its key

    def _name(self, ask: VendorRequest) -> str:
        return f"{self.provider}:{ask.model}"

    def _ask(self, request: LLMRequest) -> VendorRequest:
        own, settings = self._settings, {k: v for k, v in request.settings.items() if v is not None}
        model = request.model or self.model
        if not model:
            raise AgentRuntimeError(
                Problem("X335", f"no model of {self.provider!r} was specified",
                        f"{self._where}, requested by node {request.node!r}",
                        "neither the request nor the settings name a model",
                        f'write it: "{self.provider}:MODEL", or settings={{"model": ...}}')
            )  # fmt: skip
        check_settings({k: v for k, v in settings.items() if k in OF_REQUESTS}, f"node {request.node!r}")
        for name in self.of_connection & settings.get("kwargs", {}).keys():
            raise AgentRuntimeError(
                Problem("X334", f"a request sets {name!r}", f"node {request.node!r}",
                        "it is part of the connection, which is the same for all requests of a client",
                        "set it in the provider's settings, in `client_kwargs`")
            )  # fmt: skip
        schema = thaw(freeze(settings.get("schema", own.get("schema"))))
        limit = request.timeout or settings.get("request_timeout") or own.get("request_timeout") or LONGEST_ANSWER
        return VendorRequest(
            messages=tuple(map(_rename_tools, request.messages)),
            model=str(model),
            sampling={k: thaw(v) for k, v in {**own, **settings}.items() if k in SAMPLING},
            schema=schema,
            json_object=schema is None and _uses_json_mode(settings.get("json_object"), own.get("json_object")),
            kwargs={**own.get("kwargs", {}), **settings.get("kwargs", {})},
            timeout=float(limit),
            on_token=request.on_token,
            tools=tuple(replace(tool, name=name_sent(tool.name)) for tool in request.tools),
            names={name_sent(tool.name): tool.name for tool in request.tools},
        )

    def _make_response(self, reply: Reply, ask: VendorRequest) -> LLMResponse:
        content: Any = "".join(reply.text)
        if reply.refused and not content and reply.value is None and not reply.calls:
            raise LLMError(
                Problem("X344", f"{self._name(ask)} gave no answer: {reply.refused}", self._name(ask),
                        "the model, or a filter of its server, refused", "rephrase the request, or use another model"),
                usage=self._parse_usage(reply),
            )  # fmt: skip
        if not reply.is_complete:
            raise UnreadableResponse("the answer breaks off")
        if reply.value is not None:
            content = reply.value
            if reply.finish in _CUT_OFF:  # a server completes the JSON of arguments that break off
                raise self._make_json_error(_describe_end(reply, "the JSON breaks off"), ask, self._parse_usage(reply))
        elif ask.schema is not None and not reply.calls:
            content = self._parse_value(content, ask, self._parse_usage(reply))
        calls = tuple(self._call(call, number, reply, ask) for number, call in enumerate(reply.calls))
        if reply.value is None and ask.schema is None and not calls and not content.strip():
            raise LLMError(
                Problem("X364", f"{self._name(ask)} sent an empty answer", self._name(ask),
                        _describe_end(reply, "there is neither text nor a call of a tool"),
                        "raise max_tokens, rephrase the request, or use another model"),
                is_retryable=True, usage=self._parse_usage(reply),
            )  # fmt: skip
        if reply.value is None and not calls and reply.finish in _CALLED:
            raise LLMError(
                Problem("X365", f"{self._name(ask)} calls a tool, but the call is missing in its answer",
                        self._name(ask), _describe_end(reply, "there is only text"),
                        "try again, or use another model or server"),
                is_retryable=True, usage=self._parse_usage(reply),
            )  # fmt: skip
        return LLMResponse(
            content, reply.model or ask.model, self._parse_usage(reply), calls, reply.finish, self.provider
        )

    def _call(self, requested: RequestedCall, number: int, reply: Reply, ask: VendorRequest) -> ToolCall:
        """Return a tool call.

        Raises:
            LLMError: X365, its arguments are not a JSON object.
        """
        arguments, why = requested.value, "they are not a JSON object"
        if not requested.text and reply.finish in _CUT_OFF and requested is reply.calls[-1]:
            arguments, why = None, "they break off"
        elif arguments is None:
            try:
                arguments = parse_whole_json(requested.text or "{}")
            except ValueError as error:
                why = str(error)
        if not isinstance(arguments, Mapping):
            raise LLMError(
                Problem("X365", f"{self._name(ask)} calls {requested.name!r} with arguments that cannot be parsed",
                        self._name(ask), _describe_end(reply, why),
                        "try again, raise max_tokens, or use another model"),
                is_retryable=True, usage=self._parse_usage(reply),
            )  # fmt: skip
        name = ask.names.get(requested.name, requested.name)
        return ToolCall(requested.id or f"call_{number + 1}", name, arguments, requested.signature)

    def _parse_value(self, text: str, ask: VendorRequest, usage: Usage) -> Any:
        try:
            value = find_json(text)
        except ValueError as error:
            raise self._make_json_error(str(error), ask, usage) from None
        if value is None:
            raise self._make_json_error("the answer is null", ask, usage)
        return value

    def _make_json_error(self, why: str, ask: VendorRequest, usage: Usage) -> LLMError:
        """X339: the answer is not the requested JSON."""
        return LLMError(
            Problem("X339", f"{self._name(ask)} did not answer with the requested JSON", self._name(ask), why,
                    "try again, raise max_tokens, or use a model that supports schemas"),
            is_retryable=True, usage=usage,
        )  # fmt: skip

    def _parse_usage(self, reply: Reply) -> Usage:
        prices = self._settings.get("prices")
        if not prices or reply.tokens_in is None or reply.tokens_out is None:
            return Usage(reply.tokens_in, reply.tokens_out)
        rates = Decimal(str(prices.get("input", 0))), Decimal(str(prices.get("output", 0)))
        cost = (rates[0] * reply.tokens_in + rates[1] * reply.tokens_out) / MILLION
        return Usage(reply.tokens_in, reply.tokens_out, cost)

    # -- checks before the first request -------------------------------------------------------------------------

    def _check_package(self) -> None:
        top = self.package.split(".", maxsplit=1)[0]
        if find_spec(top) is None or find_spec(self.package) is None:
            raise AgentRuntimeError(
                Problem("X331", f"the package that talks to {self.provider!r} is not installed", self._where,
                        f"{self.package!r} cannot be imported", f'pip install "agentnb-kit[{self.extra}]"')
            )  # fmt: skip

    def _find_key(self) -> str | None:
        key = self._settings.get("api_key")
        api_key = key or next((os.environ[name] for name in self.variables if os.environ.get(name)), None)
        if self.needs_key and not api_key and not self._settings.get("client_kwargs", {}).get("api_key"):
            names = " or ".join(self.variables)
            raise AgentRuntimeError(
                Problem("X332", f"there is no API key for {self.provider!r}", self._where,
                        f"neither its settings nor the environment ({names}) contain one",
                        f'set {self.variables[0]}, or settings={{"api_key": "{{{{env.NAME}}}}"}}')
            )  # fmt: skip
        return None if api_key is None else str(api_key)

    def _hide(self) -> None:
        """Register the keys of the settings as secrets, so that they are never shown."""
        key = self._key or ""
        hide(urlsplit(self.base_url or "").password, None if key.isalpha() and len(key) < SHORTEST_KEY else key)
        register_secrets(self._settings)
        for value in self._settings.get("headers", {}).values():
            hide(str(value).removeprefix("Bearer ") if str(value).startswith("Bearer ") else None)

    def connection(self, **options: Any) -> dict[str, Any]:
        """Return the arguments of the SDK's client.

        These, those that are set, and `client_kwargs`, which override them.
        """
        return {
            **{name: value for name, value in options.items() if value is not None},
            **self._settings.get("client_kwargs", {}),
        }

    @property
    def headers(self) -> dict[str, str] | None:
        """The headers of every request, if any are set."""
        return {str(name): str(value) for name, value in self._settings.get("headers", {}).items()} or None

    @property
    def key(self) -> str | None:
        """The API key; only for the SDK's client."""
        return self._key


class PerLoop:
    """Creates a client at the first request of a loop, and closes it when that loop ends.

    `asyncio.run` and its like shut down a loop's async generators while it can still await: each client lives in one.
    If a loop is closed without that, its client's connections are lost with it.

    Args:
        make: returns a new client. It is called in a thread: building one may block longer than a loop allows.
        close: awaited with the client when its loop ends.
    """

    def __init__(self, make: Callable[[], Any], close: Callable[[Any], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._lock = Lock()
        self._open: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None]]] = {}
        self._gates: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def __len__(self) -> int:
        """Return how many clients are open."""
        return len(self._open)

    async def client(self) -> Any:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for known in (self._open, self._gates):
                for ended in [other for other in known if other.is_closed()]:
                    del known[ended]
            if loop in self._open:
                return self._open[loop][0]
            gate = self._gates.setdefault(loop, asyncio.Lock())
        async with gate:  # one client for all concurrent first requests
            if loop not in self._open:
                sdk = await asyncio.to_thread(self._make)
                life = self._manage_client(loop, sdk)
                with self._lock:
                    self._open[loop] = sdk, life
                await anext(life)  # from here on the loop closes it
            return self._open[loop][0]

    async def _manage_client(self, loop: asyncio.AbstractEventLoop, sdk: Any) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._open.pop(loop, None)
            await self._close(sdk)
