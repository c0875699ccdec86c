"""vendor: what the clients of vendors share: settings, keys, one SDK client a loop, failures told alike, costs."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from agentnb.board.secrets import hidden, hide, hide_found
from agentnb.board.values import freeze, thaw
from agentnb.errors import AgentRuntimeError, Problem
from agentnb.world.llm.base import LLMError, LLMMessage, LLMRequest, LLMResponse, Usage
from agentnb.world.llm.env import with_env
from agentnb.world.llm.failures import Unreadable, failure_of
from agentnb.world.llm.loops import PerLoop
from agentnb.world.llm.settings import OF_REQUESTS, SAMPLING, check_settings
from agentnb.world.llm.structured import json_in

LONGEST_ANSWER: Final = 600.0  # seconds that an SDK waits where nothing else is said
MILLION: Final = 1_000_000
SHORTEST_KEY: Final = 8  # what is shorter and of letters alone is no key, but a word that some servers are content with


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as a vendor's client sends it: the client's settings and the request's own are one here.

    `sampling` holds temperature, max_tokens, top_p, top_k, stop and seed, those that are set; `kwargs` override all.
    `json_object` asks for the vendor's JSON mode, where it has one; a schema says more, and comes before it.
    """

    messages: tuple[LLMMessage, ...]
    model: str
    sampling: Mapping[str, Any]
    schema: Any
    json_object: bool
    kwargs: Mapping[str, Any]
    timeout: float
    tell: Callable[[str], None] | None

    @property
    def system(self) -> str:
        """What the system messages say, as one text, for a protocol that takes it apart from the conversation."""
        if not self.turns:
            return ""
        return "\n\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def turns(self) -> list[LLMMessage]:
        """The conversation without the system messages. Where there is nothing else, empty: see `talk`."""
        return [message for message in self.messages if message.role != "system"]

    @property
    def talk(self) -> list[LLMMessage]:
        """The conversation, never empty: a prompt that is a system text alone is said by the user."""
        return self.turns or [LLMMessage("user", "\n\n".join(message.content for message in self.messages))]

    def onto(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is sent: these words and `kwargs` over them; what is None is left out."""
        return {name: value for name, value in {**words, **self.kwargs}.items() if value is not None}


@dataclass(slots=True)
class Reply:
    """What a vendor answered. `ended` says that it came to an end, `value` is an answer that is no text."""

    text: list[str] = field(default_factory=list)
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    ended: bool = False
    refused: str = ""
    value: Any = None

    def add(self, piece: str | None, tell: Callable[[str], None] | None = None) -> None:
        """Take a piece of text, and tell it."""
        if piece:
            self.text.append(piece)
            if tell is not None:
                tell(piece)


def accepted(create: Callable[..., Any], words: Mapping[str, Any], rest: str) -> dict[str, Any]:
    """Return words as a function of an SDK takes them: those that it does not name go into its argument `rest`."""
    known = inspect.signature(create).parameters
    found = {name: value for name, value in words.items() if name in known}
    others = {name: value for name, value in words.items() if name not in known}
    return {**found, rest: {**others, **(found.get(rest) or {})}} if others else found


def _json_mode(asked: bool | None, own: bool | None) -> bool:
    """Say whether an answer is to come in JSON mode. What the client's own settings rule out, no request asks for."""
    return own is not False and bool(own if asked is None else asked)


class Answering:
    """What `complete` returns: nothing goes out before it is awaited, so it may also be dropped."""

    __slots__ = ("_client", "_request")

    def __init__(self, client: VendorClient, request: LLMRequest) -> None:
        self._client, self._request = client, request

    def __await__(self) -> Generator[Any, Any, LLMResponse]:
        """Ask, and come back with the answer."""
        return self._client.answered(self._request).__await__()


class VendorClient(ABC):
    """A client of a vendor's SDK, which is imported at the first request; it answers in whatever loop it is awaited.

    Args:
        model: the model that is asked where neither a request nor `settings["model"]` names one.
        settings: see the package's docstring; `{{env.NAME}}` in them is the text of that environment variable.
        temperature: where the settings set none.
        provider: what this client is called in Problems.

    Raises: AgentRuntimeError: X331, the SDK is not installed; X332, there is no key; X333, a variable is not set; X334,
        a setting is wrong
    """

    package: ClassVar[str]
    extra: ClassVar[str]
    variables: ClassVar[tuple[str, ...]] = ()
    default_url: ClassVar[str | None] = None
    needs_key: ClassVar[bool] = True

    def __init__(
        self,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        temperature: float | None = None,
        provider: str | None = None,
    ) -> None:
        self.provider = provider or self.extra
        where = f"settings of {self.provider!r}"
        self._settings = check_settings(with_env(dict(settings or {}), where), where)
        if temperature is not None:
            self._settings.setdefault("temperature", temperature)
        self.model: str | None = self._settings.get("model") or model or None
        self._check_package()
        self.base_url: str | None = self._settings.get("base_url") or self.default_url
        self._key = self._key_found()
        self._hide()
        self._open = PerLoop(self.connected, self.closed)

    def __repr__(self) -> str:
        """Return what is asked, and nothing of the settings: there are keys among them."""
        return f"<{type(self).__name__} {self.provider}:{self.model or '?'}>"

    def complete(self, request: LLMRequest) -> Answering:
        """Answer one request: await what this returns, in a running loop.

        Raises:
            LLMError: X336 to X339, X344, awaited: the server refused or failed, or its answer cannot be used.
            AgentRuntimeError: X334, X335, awaited: a setting is wrong, no model is named.
            TimeoutError: awaited, there was no answer in time.
        """
        return Answering(self, request)

    # -- what each vendor does its own way ---------------------------------------------------------------------

    @abstractmethod
    def connected(self) -> Any:
        """Return a new client of the SDK, that never tries again by itself."""

    async def closed(self, sdk: Any) -> None:
        """Close a client of the SDK."""
        await sdk.close()

    @abstractmethod
    async def converse(self, sdk: Any, ask: Ask) -> Reply:
        """Send one request and return the answer; pieces of text are told to `ask.tell` as they arrive."""

    # -- a request -----------------------------------------------------------------------------------------------

    async def answered(self, request: LLMRequest) -> LLMResponse:
        """Ask, and return the answer; `complete` says what is raised."""
        ask = self._ask(request)
        try:
            if self.package not in sys.modules:  # it takes a second or two, and others go on meanwhile
                await asyncio.to_thread(import_module, self.package)
            async with asyncio.timeout(ask.timeout):
                reply = await self.converse(await self._open.client(), ask)
            return self._response(reply, ask)
        except (LLMError, AgentRuntimeError):
            raise
        except Exception as error:  # noqa: BLE001  (whatever the SDK or what it stands on raises)
            failed = failure_of(error, self._name(ask), request.node, self.variables, ask.timeout)
        raise failed  # not from the SDK's own error: that one carries the request, its key included

    def _name(self, ask: Ask) -> str:
        return f"{self.provider}:{ask.model}"

    def _ask(self, request: LLMRequest) -> Ask:
        own, given = self._settings, {k: v for k, v in request.settings.items() if v is not None}
        model = request.model or self.model
        if not model:
            raise AgentRuntimeError(
                Problem("X335", f"no model of {self.provider!r} is named", f"node {request.node!r}",
                        "neither the request nor the settings say which model to ask",
                        f'write it: "{self.provider}:MODEL", or settings={{"model": ...}}')
            )  # fmt: skip
        check_settings({k: v for k, v in given.items() if k in OF_REQUESTS}, f"node {request.node!r}")
        schema = thaw(freeze(given.get("schema", own.get("schema"))))
        limit = request.timeout or given.get("request_timeout") or own.get("request_timeout") or LONGEST_ANSWER
        return Ask(
            messages=request.messages,
            model=str(model),
            sampling={k: thaw(v) for k, v in {**own, **given}.items() if k in SAMPLING},
            schema=schema,
            json_object=schema is None and _json_mode(given.get("json_object"), own.get("json_object")),
            kwargs={**own.get("kwargs", {}), **given.get("kwargs", {})},
            timeout=float(limit),
            tell=request.tell,
        )

    def _response(self, reply: Reply, ask: Ask) -> LLMResponse:
        content: Any = "".join(reply.text)
        if reply.refused and not content and reply.value is None:
            raise LLMError(
                Problem("X344", f"{self._name(ask)} gave no answer: {hidden(reply.refused)}", self._name(ask),
                        "the model, or a filter of its server, refused", "ask in other words, or another model"),
                usage=self._usage(reply),
            )  # fmt: skip
        if not reply.ended:
            raise Unreadable("the answer breaks off")
        if reply.value is not None:
            content = reply.value
        elif ask.schema is not None:
            content = self._value(content, ask, self._usage(reply))
        return LLMResponse(content, reply.model or ask.model, self._usage(reply))

    def _value(self, text: str, ask: Ask, usage: Usage) -> Any:
        try:
            return json_in(text)
        except ValueError as error:
            raise LLMError(
                Problem("X339", f"{self._name(ask)} did not answer with the JSON it was asked for", self._name(ask),
                        hidden(str(error)), "ask again, allow more max_tokens, or ask a model that keeps to a schema"),
                again=True, usage=usage,
            ) from None  # fmt: skip

    def _usage(self, reply: Reply) -> Usage:
        prices = self._settings.get("prices")
        if not prices or reply.tokens_in is None or reply.tokens_out is None:
            return Usage(reply.tokens_in, reply.tokens_out)
        rates = Decimal(str(prices.get("input", 0))), Decimal(str(prices.get("output", 0)))
        cost = (rates[0] * reply.tokens_in + rates[1] * reply.tokens_out) / MILLION
        return Usage(reply.tokens_in, reply.tokens_out, cost)

    # -- what must hold before the first request -----------------------------------------------------------------

    def _check_package(self) -> None:
        top = self.package.split(".", maxsplit=1)[0]
        if find_spec(top) is None or find_spec(self.package) is None:
            raise AgentRuntimeError(
                Problem("X331", f"the package that talks to {self.provider!r} is not installed", "Session(llm=...)",
                        f"{self.package!r} cannot be imported", f'pip install "agentnb[{self.extra}]"')
            )  # fmt: skip

    def _key_found(self) -> str | None:
        given = self._settings.get("api_key")
        found = given or next((os.environ[name] for name in self.variables if os.environ.get(name)), None)
        if self.needs_key and not found and not self._settings.get("client_kwargs", {}).get("api_key"):
            names = " or ".join(self.variables)
            raise AgentRuntimeError(
                Problem("X332", f"there is no key for {self.provider!r}", "Session(llm=...)",
                        f"neither its settings nor the environment ({names}) hold one",
                        f'set {self.variables[0]}, or settings={{"api_key": "{{{{env.NAME}}}}"}}')
            )  # fmt: skip
        return None if found is None else str(found)

    def _hide(self) -> None:
        """See to it that no key of the settings is ever shown."""
        key = self._key or ""
        hide(urlsplit(self.base_url or "").password, None if key.isalpha() and len(key) < SHORTEST_KEY else key)
        hide_found(self._settings)
        for value in self._settings.get("headers", {}).values():
            hide(str(value).removeprefix("Bearer ") if str(value).startswith("Bearer ") else None)

    def connection(self, **words: Any) -> dict[str, Any]:
        """Return what the SDK's client is made with: these words, those that are set, and `client_kwargs` over them."""
        return {
            **{name: value for name, value in words.items() if value is not None},
            **self._settings.get("client_kwargs", {}),
        }

    @property
    def headers(self) -> dict[str, str] | None:
        """The headers that go with every request, where some are set."""
        return {str(name): str(value) for name, value in self._settings.get("headers", {}).items()} or None

    @property
    def key(self) -> str | None:
        """The key; for the SDK's client alone."""
        return self._key
