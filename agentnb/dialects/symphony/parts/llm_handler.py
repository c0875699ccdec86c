"""LLMHandler: model providers by name, and the default provider.

    handler = LLMHandler()
    handler.register_provider({"provider": "openai", "model": "gpt-4o", "api_key": "{{env.OUR_KEY}}"})
    handler.register_provider("echo", lambda request: request.messages[-1].content)
    handler.complete(LLMRequest([LLMMessage("user", "Hello")], provider="echo")).content

The settings of a request apply to that request alone; a call does not change the handler.

X464: a value cannot be registered as a provider.
X465: there is no provider with the requested name, or no provider.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, closing, nullcontext
from dataclasses import replace
from threading import Lock
from typing import Any, ClassVar, Final, overload

from agentnb.dialects.symphony.parts.llm_types import LLMRequest, LLMResponse, request_of, to_response, to_settings
from agentnb.errors import AgentRuntimeError, Problem, did_you_mean, with_article
from agentnb.text import safe_repr
from agentnb.world.llm import base, direct_call
from agentnb.world.llm.base import LLMClient, to_client
from agentnb.world.llm.providers import PROVIDERS, SIMULATED, client_of
from agentnb.world.llm.vendor import VendorClient

__all__ = ["ENVIRONMENT", "HandlerClient", "LLMHandler", "Provider"]

# The default provider if none is registered: the first whose key is in the environment, with these settings.
ENVIRONMENT: Final = ("openai", "anthropic", "gemini")
MODELS: Final = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-sonnet-4-5",
    "claude": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}
OF_ENVIRONMENT: Final = {"temperature": 0.7, "max_tokens": 2048, "request_timeout": 30}


class Provider:
    """One provider: its name, its default model, and its `client`.

    It can be used as a session's model: requests from a session are answered as by its client.
    """

    def __init__(self, name: str, client: LLMClient) -> None:
        self.name, self.client = name, client
        self.model: str | None = getattr(client, "model", None)
        self.is_simulated = bool(getattr(client, "is_simulated", False))
        self._asked, self._lock = 0, Lock()

    def __repr__(self) -> str:
        return f"<Provider {safe_repr(self.name, 200)}>"

    @overload
    def complete(self, request: LLMRequest | Mapping[str, Any]) -> LLMResponse: ...
    @overload
    def complete(self, request: base.LLMRequest) -> base.LLMResponse | Awaitable[base.LLMResponse]: ...
    def complete(self, request: Any) -> Any:
        """Return the response to one request.

        Raises:
            AgentRuntimeError: X461 to X463, X334, the request is invalid; and the client's own errors.
        """
        if _is_of_session(request):
            return self.client.complete(request)
        return to_response(direct_call.complete(self.client, self._count_earlier(request)))

    async def acomplete(self, request: Any) -> LLMResponse:
        """Return the response to one request; see `complete`."""
        return to_response(await direct_call.acomplete(self.client, self._count_earlier(request)))

    def complete_stream(self, request: Any) -> direct_call.Pieces:
        """Return the pieces of the answer as they arrive, for `for` or `async for`: see Pieces."""
        return direct_call.Pieces(self.client, self._count_earlier(request))

    def _count_earlier(self, request: Any) -> LLMRequest:
        """Return a request with the number of earlier ones, as in a run, so that a script continues at its position."""
        llm_request = request_of(request)
        with self._lock:
            number, self._asked = self._asked, self._asked + 1
        return replace(llm_request, number=number, of_node=number)


class LLMHandler:
    """Model providers by name. `LLMHandler.get_instance()` is the shared one.

    A request without a provider goes to the one registered first or, if none is registered, to the first of openai,
    anthropic and gemini whose key is in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or
    GOOGLE_API_KEY), with temperature 0.7, at most 2048 tokens and a timeout of 30 s. These are also available by name.

    It can be a session's model, `Session(recipe, llm=handler)`: the setting `provider` of a request selects the
    provider.
    """

    _shared: ClassVar[LLMHandler | None] = None
    _sharing: ClassVar[Lock] = Lock()

    def __init__(self) -> None:
        self._providers: dict[str, Provider] = {}
        self._found: dict[str, tuple[list[str | None], Provider]] = {}
        self._lock = Lock()
        self._only: Provider | None = None

    def __repr__(self) -> str:
        return f"<LLMHandler of {', '.join(map(repr, self.known)) or 'no provider'}>"

    @classmethod
    def get_instance(cls) -> LLMHandler:
        """Return the shared handler."""
        with LLMHandler._sharing:
            if LLMHandler._shared is None:
                LLMHandler._shared = LLMHandler()
            return LLMHandler._shared

    @classmethod
    def of(cls, llm: Any = None) -> LLMHandler:
        """Return a handler for the value passed to an agent as its model; for None, the shared one.

        A single client, callable, script or string "provider:model" answers every request, whichever provider it names.

        Raises:
            AgentRuntimeError: the errors of `register_provider`.
        """
        if llm is None:
            return cls.get_instance()
        if isinstance(llm, LLMHandler):
            return llm
        handler = cls()
        handler._only = llm if isinstance(llm, Provider) else Provider("given", _to_client(llm))
        handler._providers[handler._only.name.casefold()] = handler._only
        return handler

    @property
    def known(self) -> list[str]:
        """The names of the available providers, the default first."""
        names = [name for name in ENVIRONMENT if _has_key(name)]
        return list(dict.fromkeys([*(provider.name for provider in self._providers.values()), *names]))

    def register_provider(self, config: Any, client: Any = None) -> Provider:
        """Register a provider under its name, replacing an earlier one; the first becomes the default.

        Args:
            config: a name; or a mapping or an object with `provider` (openai, anthropic, gemini, openai_compatible,
                lmstudio), `name` (if it differs from the provider's), model, api_key, base_url, temperature,
                max_tokens, timeout and the like, in snake_case or camelCase; or a client that has a `name`.
            client: the client with that name: a client, a callable of the LLMRequest, a list of answers, a string
                provider:model, or a mapping of settings as above.

        Raises:
            AgentRuntimeError: X464, there is no name, or no client; X463, it is not a configuration;
                X330 to X334, the provider is unknown, its package, key or a variable is missing, or a setting invalid
        """
        provider = _register(config, client)
        with self._lock:
            self._providers[provider.name.casefold()] = provider
        return provider

    def get_provider(self, name: str | None = None) -> Provider:
        """Return the provider with a name (case-insensitive); the default one for None.

        Raises:
            AgentRuntimeError: X465, there is none; X331, X333, X334, the provider in the environment cannot be used.
        """
        if self._only is not None:
            return self._only
        key = "" if name is None else str(name).strip().casefold()
        if not key and self._providers:
            return next(iter(self._providers.values()))
        key = key or next((each for each in ENVIRONMENT if _has_key(each)), "")
        provider = self._providers.get(key) or self._find_provider(key)
        if provider is None:
            raise AgentRuntimeError(self._make_missing_problem(name))
        return provider

    @overload
    def complete(self, request: LLMRequest | Mapping[str, Any]) -> LLMResponse: ...
    @overload
    def complete(self, request: base.LLMRequest) -> base.LLMResponse | Awaitable[base.LLMResponse]: ...
    def complete(self, request: Any) -> Any:
        """Return the response to a symphony request; blocks until it has arrived, even if an event loop is running.

        A request of agentnb (from a session) is answered as by a client: directly, or with an awaitable.

        Raises:
            AgentRuntimeError: X465, no such provider; X461 to X463, X334, the request is invalid.
            Exception: any error of the provider, such as LLMError or TimeoutError.
        """
        if _is_of_session(request):
            return self.client().complete(request)
        llm_request = request_of(request)
        return self.get_provider(llm_request.provider).complete(llm_request)

    async def acomplete(self, request: Any) -> LLMResponse:
        """Return the answer to a request: see `complete`."""
        llm_request = request_of(request)
        return await self.get_provider(llm_request.provider).acomplete(llm_request)

    def complete_stream(self, request: Any) -> direct_call.Pieces:
        """Return the pieces of the response as they arrive; see Pieces.

        A provider that does not stream returns the whole response as one piece.

        Raises:
            AgentRuntimeError: as in `complete`, for errors found before anything is sent
        """
        llm_request = request_of(request)
        return self.get_provider(llm_request.provider).complete_stream(llm_request)

    def acomplete_stream(self, request: Any) -> direct_call.Pieces:
        """Return the same as `complete_stream`, which also supports `async for`."""
        return self.complete_stream(request)

    def prepare(self, request: base.LLMRequest) -> Awaitable[None] | None:
        """Return an awaitable to run before the timeout of a session's request starts.

        None if there is nothing to prepare.
        """
        return self.client().prepare(request)

    def client(self) -> HandlerClient:
        """Return this handler as a session's model."""
        return HandlerClient(self)

    @property
    def is_simulated(self) -> bool:
        """True if all providers return simulated answers, as scripts do."""
        flags = [provider.is_simulated for provider in self._providers.values()]
        return bool(flags) and all(flags)

    def _find_provider(self, kind: str) -> Provider | None:
        """Return the provider configured only by the environment; created once for each key."""
        if kind != SIMULATED and (kind not in PROVIDERS or (PROVIDERS[kind].needs_key and not _has_key(kind))):
            return None
        keys = [os.environ.get(name) for name in (() if kind == SIMULATED else PROVIDERS[kind].variables)]
        with self._lock:
            if kind not in self._found or self._found[kind][0] != keys:
                settings = {**OF_ENVIRONMENT, "model": MODELS[kind]} if kind in MODELS else {}
                self._found[kind] = keys, Provider(kind, client_of(kind, settings))
            return self._found[kind][1]

    def _make_missing_problem(self, name: Any) -> Problem:
        known = self.known
        why = f"the known ones are: {', '.join(known)}" if known else "none is registered, and no key is set"
        kind = str(name).strip().casefold()
        order = "handler.register_provider(name, client), or set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY"
        if kind in PROVIDERS:
            variables = " or ".join(PROVIDERS[kind].variables)
            order = f"set {variables}, or register it: handler.register_provider({{'provider': {kind!r}, ...}})"
            why = f"{variables} is not set; {why}"
        elif known and name is not None:
            order = did_you_mean(kind, known, order)
        what = "there is no model provider" if name is None else f"there is no provider {safe_repr(name)}"
        return Problem("X465", what, "LLMHandler.get_provider", why, order)


class HandlerClient:
    """A handler as a session's model. The setting `provider` of a request selects the provider."""

    def __init__(self, handler: LLMHandler) -> None:
        self.handler = handler

    def __repr__(self) -> str:
        return f"<HandlerClient of {safe_repr(self.handler, 200)}>"

    @property
    def is_simulated(self) -> bool:
        """True if all providers return simulated answers, as scripts do."""
        return self.handler.is_simulated

    def prepare(self, request: base.LLMRequest) -> Awaitable[None] | None:
        """Return an awaitable to run before the timeout of a request starts; None if there is nothing to prepare."""
        try:
            client = self.handler.get_provider(request.settings.get("provider")).client
        except AgentRuntimeError:  # called with each piece of text
            return None
        return base.prepare_client(client, lambda: request)

    def complete(self, request: base.LLMRequest) -> base.LLMResponse | Awaitable[base.LLMResponse]:
        """Answer one request as the provider's client does.

        Raises:
            AgentRuntimeError: X465, there is no such provider
        """
        return self.handler.get_provider(request.settings.get("provider")).client.complete(request)


class _ClientAdapter:
    """A user's client: it gets symphony's request, and its answer is converted to a response."""

    def __init__(self, client: LLMClient) -> None:
        self._client = client
        self.model: str | None = getattr(client, "model", None)
        self.is_simulated = bool(getattr(client, "is_simulated", False))

    def __repr__(self) -> str:
        return f"<{safe_repr(self._client, 200)} as a provider>"

    def complete(self, request: base.LLMRequest) -> Any:
        """Answer one request; in pieces, if there is a listener and the client has a `complete_stream`."""
        llm_request = request_of(request)
        stream = getattr(self._client, "complete_stream", None)
        if llm_request.on_token is not None and callable(stream):
            pieces, notify = stream(llm_request), llm_request.on_token
            return _collect_async(pieces, notify) if hasattr(pieces, "__aiter__") else _collect(pieces, notify)
        answer = self._client.complete(llm_request)
        return (
            _await_response(answer, llm_request) if inspect.isawaitable(answer) else _to_response(answer, llm_request)
        )


async def _await_response(answer: Awaitable[Any], request: LLMRequest) -> LLMResponse:
    return _to_response(await answer, request)


def _to_response(answer: Any, request: LLMRequest) -> LLMResponse:
    """Return the response. JSON mode values become text, as with any provider."""
    return to_response(answer, text=request.expects_json_response)


def _collect(pieces: Any, notify: Callable[[str], None]) -> LLMResponse:
    with closing(pieces) if hasattr(pieces, "close") else nullcontext():  # even if no listener is left
        return _join_pieces([_to_chunk(piece, notify) for piece in pieces])


async def _collect_async(pieces: Any, notify: Callable[[str], None]) -> LLMResponse:
    async with aclosing(pieces) if hasattr(pieces, "aclose") else nullcontext():
        return _join_pieces([_to_chunk(piece, notify) async for piece in pieces])


def _to_chunk(piece: Any, notify: Callable[[str], None]) -> LLMResponse:
    response = to_response(piece)
    if response.content:
        notify(response.content)
    return response


def _join_pieces(pieces: list[LLMResponse]) -> LLMResponse:
    """Return the response that the pieces add up to; the model and the usage come from the last piece that has them."""
    text = "".join(piece.content or "" for piece in pieces)
    model = next((piece.model for piece in reversed(pieces) if piece.model), "")
    usage = next((piece.usage for piece in reversed(pieces) if piece.usage.total_tokens), None)
    calls = [call for piece in pieces for call in piece.tool_calls]
    finish = next((piece.finish_reason for piece in reversed(pieces) if piece.finish_reason), "")
    provider = next((piece.provider for piece in reversed(pieces) if piece.provider), "")
    return LLMResponse(text, model, usage, tool_calls=calls, finish_reason=finish, provider=provider)


def _is_of_session(request: Any) -> bool:
    """Return True if a request comes from a session: it is answered as by the session's clients, and may be awaited."""
    return isinstance(request, base.LLMRequest) and not isinstance(request, LLMRequest)


def _has_key(kind: str) -> bool:
    """Return True if the key of a provider is in the environment."""
    return any(os.environ.get(name) for name in PROVIDERS[kind].variables)


def _to_client(llm: Any) -> LLMClient:
    """Return the client for any supported representation of one.

    Raises:
        AgentRuntimeError: X464, it is not supported
    """
    if isinstance(llm, LLMHandler):
        return llm.client()
    if isinstance(llm, Provider):
        return llm.client
    is_class = isinstance(llm, type)
    if is_class or not (isinstance(llm, LLMClient | str | list | tuple | Mapping) or callable(llm)):
        raise AgentRuntimeError(
            Problem("X464", f"a {'class' if is_class else type(llm).__name__} cannot answer requests",
                    "an LLMHandler",
                    "it must be a client, a callable of the LLMRequest, a list of answers or a string 'provider:model'",
                    "create an instance and pass it" if is_class else "pass one of these")
        )  # fmt: skip
    client = to_client(llm)
    return client if isinstance(client, VendorClient | HandlerClient) else _ClientAdapter(client)


def _register(config: Any, client: Any) -> Provider:
    if client is None and isinstance(config, str):
        name, colon, _ = config.partition(":")
        config, client = name, config if colon else {"provider": name}
    if client is None and not isinstance(config, Mapping) and hasattr(config, "complete"):
        return Provider(_check_name(getattr(config, "name", None)), _to_client(config))
    if client is None:
        return _configure(to_settings(config, "LLMHandler.register_provider"))
    name = _check_name(config)
    if isinstance(client, Mapping):
        return _configure({**to_settings(client, "LLMHandler.register_provider"), "name": name})
    return Provider(name, _to_client(client))


def _configure(options: dict[str, Any]) -> Provider:
    """Return the provider that settings describe."""
    name, provider, kind = options.pop("name", None), options.pop("provider", None), options.pop("type", None)
    name = _check_name(name or provider)
    kind = str(kind or provider or name).strip().casefold()
    if kind in MODELS:
        options.setdefault("model", MODELS[kind])
    return Provider(name, client_of(kind if name.casefold() == kind else name, {**options, "type": kind}))


def _check_name(name: Any) -> str:
    if isinstance(name, str) and name.strip():
        return name.strip()
    raise AgentRuntimeError(
        Problem("X464", "a model provider has no name", "LLMHandler.register_provider",
                "its name must be a non-empty string, not "
                + ("an empty one" if isinstance(name, str) else with_article(type(name).__name__)),
                'write register_provider({"provider": "openai", ...}), or register_provider("mine", client)')
    )  # fmt: skip
