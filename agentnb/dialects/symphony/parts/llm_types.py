"""Symphony's message, request and response types: agentnb's own, with symphony's names.

X461: a request to a model has no messages.
X462: an entry of the messages is not a message, or its role is not known.
X463: a model configuration is not valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

from agentnb.board.external_types import is_model
from agentnb.board.masking import register_secrets
from agentnb.errors import AgentRuntimeError, Problem, did_you_mean, warn_caller, with_article
from agentnb.secrets import is_secret
from agentnb.text import safe_repr
from agentnb.world.llm import base
from agentnb.world.llm.base import LLMMessage, ToolCall, ToolDefinition
from agentnb.world.llm.providers import PROVIDERS, SIMULATED
from agentnb.world.llm.settings import OF_REQUESTS, check_settings, iter_misspelled_settings
from agentnb.world.llm.text import to_text

__all__ = ["LLMMessage", "LLMRequest", "LLMResponse", "TokenUsage", "request_of", "to_response", "to_settings"]

ROLES: Final = ("system", "user", "assistant", "tool", "function")
# Settings of a provider, not of a request
CONNECTION: Final = frozenset({"api_key", "base_url", "headers", "client_kwargs", "prices"})
_RESPONSE: Final = frozenset({"content", "model", "usage", "role", "tool_calls", "finish_reason"})
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OWN: Final = {"timeout": "request_timeout", "model_name": "model"}


@dataclass(frozen=True, slots=True, eq=False)
class TokenUsage(base.Usage, Mapping[str, Any]):
    """The tokens that an answer used, under symphony's names too: `usage["total_tokens"]` or `usage.total_tokens`.

    `reported_total` is the total that the provider reported, if it reported nothing else.
    """

    reported_total: int | None = None

    _NAMES: ClassVar[tuple[str, ...]] = ("prompt_tokens", "completion_tokens", "total_tokens")

    @property
    def prompt_tokens(self) -> int | None:
        """The input tokens."""
        return self.tokens_in

    @property
    def completion_tokens(self) -> int | None:
        """The output tokens."""
        return self.tokens_out

    @property
    def total_tokens(self) -> int | None:
        """The sum of both; None if it is not known."""
        if self.reported_total is not None or self.tokens_in is None or self.tokens_out is None:
            return self.reported_total
        return self.tokens_in + self.tokens_out

    def __getitem__(self, name: str) -> Any:
        if name not in self._NAMES:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._NAMES)

    def __len__(self) -> int:
        return len(self._NAMES)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, base.Usage):
            own, others = (self.tokens_in, self.tokens_out, self.cost_usd), to_usage(other)
            return own == (others.tokens_in, others.tokens_out, others.cost_usd)
        return dict(self) == other

    def __hash__(self) -> int:
        return hash((self.tokens_in, self.tokens_out, self.cost_usd))


class LLMRequest(base.LLMRequest):
    """A request to a model. It is a request of the world, so any client accepts it.

    Everything except the messages and the model is in `settings`, from which the other attributes read it. Explicit
    arguments take precedence over `llm_config`.

    Args:
        messages: LLMMessages, or mappings with role and content.
        llm_config: model, temperature, max_tokens, timeout (seconds), provider ...: a mapping or an object, in
            snake_case or camelCase, or a string: the model, or provider:model. A key in it belongs to the provider: it
            is masked and left out.
        expects_json_response: the answer must be one JSON object, as text: JSON mode, if the provider has one.
        provider: the name of the provider; default: the default provider.
        tools: ToolDefinitions, or mappings of their fields, that the model may call natively.

    Raises:
        AgentRuntimeError: X461, X462, all problems of the messages; X463, `llm_config` is not a configuration; X334, a
            setting is invalid
    """

    __slots__ = ()

    def __init__(
        self,
        messages: Iterable[LLMMessage | Mapping[str, Any]],
        llm_config: Any = None,
        expects_json_response: bool | None = None,
        provider: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        *,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        node: str = "",
        number: int = 0,
        of_node: int = 0,
        timeout: float | None = None,
        on_token: Callable[[str], None] | None = None,
        tools: Iterable[ToolDefinition | Mapping[str, Any]] = (),
        **kwargs: Any,
    ) -> None:
        more = to_settings(kwargs, "LLMRequest") if kwargs else {}
        own = {"provider": provider, "temperature": temperature, "max_tokens": max_tokens, "model": model}
        fields = {
            **(settings or {}),
            **to_settings(more.pop("llm_config", llm_config), "llm_config"),
            **more,
            **{name: value for name, value in own.items() if value is not None},
        }
        asks_json = fields.pop("expects_json_response", expects_json_response)
        if fields.get("response_format") == {"type": "json_object"}:
            asks_json = bool(fields.pop("response_format"))
        if asks_json is not None:
            fields["json_object"] = bool(asks_json)
        named = fields.pop("model", None)
        own_settings = {name: value for name, value in fields.items() if name not in CONNECTION and not is_secret(name)}
        check_settings({name: value for name, value in own_settings.items() if name in OF_REQUESTS}, "LLMRequest")
        for name, similar in iter_misspelled_settings(own_settings):
            warn_caller(f"LLMRequest: {name!r} is unknown; did you mean {similar!r}?")
        model = None if named is None else str(named)
        super().__init__(
            to_messages(messages), node, model, own_settings, number, of_node, timeout, on_token, _to_tools(tools)
        )

    @property
    def llm_config(self) -> dict[str, Any]:
        """The settings of the request: model, temperature, max_tokens, timeout and others that are set."""
        names = {"request_timeout": "timeout"}
        rest = {names.get(name, name): value for name, value in self.settings.items() if name != "json_object"}
        return rest if self.model is None else {"model": self.model, **rest}

    @property
    def expects_json_response(self) -> bool:
        """True if the answer must be one JSON object."""
        return bool(self.settings.get("json_object"))

    @property
    def provider(self) -> str | None:
        """The name of the provider; None for the default one."""
        return self.settings.get("provider")

    @property
    def temperature(self) -> float | None:
        """The temperature of this request."""
        return self.settings.get("temperature")

    @property
    def max_tokens(self) -> int | None:
        """The maximum number of tokens of the answer to this request."""
        return self.settings.get("max_tokens")

    @property
    def arguments(self) -> dict[str, Any]:
        """This request as the arguments of an effect: plain values from which `request_of` restores it."""
        messages = [message.to_dict() for message in self.messages]
        named = {} if self.model is None else {"model": self.model}
        tools = {"tools": [tool.to_dict() for tool in self.tools]} if self.tools else {}
        return {"messages": messages, **named, **tools, **self.settings}


class LLMResponse(base.LLMResponse):
    """A model's response: `content` (text, or None), the model, and the usage. `str()` returns the content.

    Args:
        usage: prompt_tokens, completion_tokens and total_tokens as a mapping, or a Usage of the world.
        role: always the assistant's.
        tool_calls: the tool calls requested by the model:  ToolCalls, or mappings of id, name and arguments.
        finish_reason: the vendor's name for the reason why the answer ended.
        provider: the name of the provider.
    """

    __slots__ = ()
    role: ClassVar[str] = "assistant"
    usage: TokenUsage

    def __init__(
        self,
        content: Any,
        model: str | None = "",
        usage: Any = None,
        role: str = "assistant",
        tool_calls: Iterable[ToolCall | Mapping[str, Any]] = (),
        finish_reason: str = "",
        provider: str = "",
    ) -> None:
        super().__init__(content, model or "", to_usage(usage), tuple(tool_calls or ()), finish_reason, provider)  # type: ignore[arg-type]  # mappings are read there

    def __str__(self) -> str:
        return "" if self.content is None else to_text(self.content)


def _to_tools(tools: Iterable[ToolDefinition | Mapping[str, Any]] | None) -> tuple[ToolDefinition, ...]:
    return tuple(tool if isinstance(tool, ToolDefinition) else ToolDefinition(**tool) for tool in tools or ())


def request_of(request: Any) -> LLMRequest:
    """Return symphony's request for a request of agentnb, for an effect's arguments, or unchanged.

    Raises:
        AgentRuntimeError: X461, X462, X463, X334, as of an LLMRequest
    """
    if isinstance(request, LLMRequest):
        return request
    if isinstance(request, base.LLMRequest):
        values = {field.name: getattr(request, field.name) for field in fields(request)}
        return LLMRequest(**{**values, "messages": request.messages or [LLMMessage("user", "")]})
    if isinstance(request, Mapping):
        rest = {str(name): value for name, value in request.items() if name != "messages"}
        return LLMRequest(request.get("messages", ()), **rest)
    raise AgentRuntimeError(_make_messages_problem(request))


def to_response(answer: Any, *, text: bool = True) -> LLMResponse:
    """Return symphony's response for any answer of a model: its content is text, or None.

    A mapping with `content` and at most `model`, `usage` and `role` is a response; any other value is the answer
    itself: converted to JSON, or unchanged if it need not be text.
    """
    model = ""
    if isinstance(answer, base.LLMResponse) and isinstance(answer.content, Mapping):
        model = answer.model
        answer = answer.content if _is_response(answer.content) else answer
    if isinstance(answer, Mapping) and _is_response(answer):
        answer = LLMResponse(**answer)
    elif not isinstance(answer, base.LLMResponse):
        answer = LLMResponse(answer)
    content = answer.content
    as_text = text and content is not None
    content = to_text(content) if as_text else content
    return LLMResponse(
        content,
        answer.model or model,
        answer.usage,
        tool_calls=answer.tool_calls,
        finish_reason=answer.finish_reason,
        provider=answer.provider,
    )


def _is_response(answer: Mapping[Any, Any]) -> bool:
    return "content" in answer and set(answer) <= _RESPONSE


def to_usage(usage: Any) -> TokenUsage:
    """Return the usage of an answer; values that are not token counts are treated as unknown."""
    if isinstance(usage, TokenUsage):
        return usage
    if isinstance(usage, base.Usage):
        return TokenUsage(usage.tokens_in, usage.tokens_out, usage.cost_usd)
    if not isinstance(usage, Mapping):
        names = ("prompt_tokens", "completion_tokens", "total_tokens", "cost_usd")
        usage = {name: getattr(usage, name, None) for name in names}
    counts = {_to_snake_case(name): value for name, value in usage.items()}
    tokens_in = _count(counts.get("prompt_tokens", counts.get("tokens_in")))
    tokens_out = _count(counts.get("completion_tokens", counts.get("tokens_out")))
    total = None if None not in {tokens_in, tokens_out} else _count(counts.get("total_tokens"))
    cost = counts.get("cost_usd")
    return TokenUsage(tokens_in, tokens_out, cost if isinstance(cost, Decimal) else None, total)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _to_snake_case(word: Any) -> str:
    return _HUMP.sub("_", str(word)).lower()


# -- settings of a request -------------------------------------------------------------------------------------------


def to_settings(config: Any, where: str = "llm") -> dict[str, Any]:
    """Return the configuration of a model as settings: names in snake_case, without None values.

    `timeout` becomes `request_timeout`, a string the model (and provider). Secrets in it are masked from now on.

    Raises:
        AgentRuntimeError: X463, it is not a configuration
    """
    if config is None:
        return {}
    if isinstance(config, str):
        provider, colon, model = config.partition(":")
        known = colon and provider.strip().lower() in {*PROVIDERS, SIMULATED}
        return {"provider": provider.strip(), "model": model.strip()} if known else {"model": config}
    mapping = _to_mapping(config)
    if mapping is None:
        raise AgentRuntimeError(
            Problem("X463", f"{with_article(type(config).__name__)} is not a model configuration", where,
                    "it is a mapping or an object with model, temperature, max_tokens, timeout, provider; or a string",
                    'write for example {"model": "gpt-4o-mini", "temperature": 0.2}')
        )  # fmt: skip
    settings = {_to_snake_case(name): value for name, value in mapping.items() if value is not None}
    plain = {_OWN.get(name, name): _reveal(value) for name, value in settings.items()}
    register_secrets(plain)
    return plain


def _to_mapping(config: Any) -> Mapping[Any, Any] | None:
    if isinstance(config, Mapping):
        return config
    if isinstance(config, type):
        return None
    if is_model(type(config)):  # not by model_dump, which may mask values that are needed here
        return {**vars(config), **(config.model_extra or {})}
    if callable(dump := getattr(config, "model_dump", None)):
        dumped: dict[str, Any] = dump()
        return dumped
    if is_dataclass(config):
        return {field.name: getattr(config, field.name) for field in fields(config)}
    return getattr(config, "__dict__", None) if not callable(config) else None


def _reveal(value: Any) -> Any:
    """Return a value, or the value inside a pydantic secret."""
    secret = getattr(value, "get_secret_value", None)
    return secret() if callable(secret) else value


# -- messages --------------------------------------------------------------------------------------------------------


def to_messages(messages: Any) -> tuple[LLMMessage, ...]:
    """Return messages in agentnb's form; a content of None is an empty string.

    Raises:
        AgentRuntimeError: X461, there are none; X462, for each invalid message
    """
    listed = None if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable) else [*messages]
    if not listed:
        raise AgentRuntimeError(_make_messages_problem(messages))
    read = [_to_message(message, number) for number, message in enumerate(listed)]
    problems = [message for message in read if isinstance(message, Problem)]
    if problems:
        raise AgentRuntimeError(*problems)
    return tuple(message for message in read if isinstance(message, LLMMessage))


def _make_messages_problem(messages: Any) -> Problem:
    shown = (
        "they are empty"
        if isinstance(messages, list | tuple)
        else f"{with_article(type(messages).__name__)} was passed"
    )
    return Problem("X461", "a request to a model has no messages", "LLMRequest(messages)", shown,
                   'pass a list: [LLMMessage("user", "...")]')  # fmt: skip


def _to_message(message: Any, number: int) -> LLMMessage | Problem:
    where = f"messages[{number}]"
    role: Any
    content: Any
    if isinstance(message, Mapping) and (message.get("tool_calls") or message.get("tool_call_id")):
        message = LLMMessage.of({"content": "", **message})
    if isinstance(message, LLMMessage):
        role, content = message.role, message.content
    elif isinstance(message, Mapping) and "role" in message:
        role, content = message["role"], message.get("content")
    elif hasattr(message, "role") and hasattr(message, "content"):
        role, content = message.role, message.content
    else:
        return Problem("X462", f"{safe_repr(message)} is not a message", where,
                       f"it is {with_article(type(message).__name__)}",
                       'write LLMMessage("user", "..."), or {"role": "user", "content": "..."}')  # fmt: skip
    if role not in ROLES:
        return Problem("X462", f"unknown message role {safe_repr(role)}", where,
                       f"the roles are: {', '.join(ROLES)}",
                       did_you_mean(str(role), ROLES, "use one of them"))  # fmt: skip
    if content is not None and not isinstance(content, str):
        return Problem("X462", f"the content of a message is {safe_repr(content)}", where,
                       f"expected a string, got {with_article(type(content).__name__)}",
                       "write it as a string")  # fmt: skip
    return message if isinstance(message, LLMMessage) and content is not None else LLMMessage(role, content or "")
