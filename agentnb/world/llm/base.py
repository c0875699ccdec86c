"""The model protocol: requests and responses."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Protocol, runtime_checkable

from agentnb.errors import ExecutionError, Problem, with_article
from agentnb.recipe.user_functions import GENERATES, is_generator
from agentnb.text import get_class_name, safe_repr

SIMULATED: Final = "simulated"  # the provider and the model of simulated answers


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that a model may call natively: `input_schema` is the JSON Schema of its arguments, an object."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as a mapping, as in the arguments of an effect."""
        return {"name": self.name, "description": self.description, "input_schema": dict(self.input_schema)}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by a model. The tool's answer refers to `id`.

    `signature` is an opaque value that some vendors require to be sent back with the call; empty if not required.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    signature: str = ""

    @classmethod
    def of(cls, call: Any, number: int = 0) -> ToolCall:
        """Return the call that a mapping describes: by its fields, or in OpenAI's form with a nested `function`.

        Arguments may be JSON text. A call without an id is named by `number`, its index in the answer.

        Raises:
            LLMError: X366, it is not a tool call.
        """
        if isinstance(call, Mapping):
            fields = call["function"] if isinstance(call.get("function"), Mapping) else call
            call = cls(str(call.get("id") or f"call_{number + 1}"), fields.get("name", ""),
                       _parse_arguments(fields.get("arguments")), str(call.get("signature") or ""))  # fmt: skip
        if not isinstance(call, ToolCall) or not _is_call(call):
            raise LLMError(
                Problem("X366", f"{safe_repr(call, 200)} is not a tool call", "tool_calls of an LLMResponse",
                        "a tool call has a name, and arguments that are a JSON object",
                        'write ToolCall("id-1", "search", {"q": "rain"}), or a mapping of its id, name and arguments')
            )  # fmt: skip
        return call

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a mapping, as in results and messages."""
        fields = {"id": self.id, "name": self.name, "arguments": dict(self.arguments)}
        return {**fields, "signature": self.signature} if self.signature else fields


def parse_tool_calls(calls: Any) -> tuple[ToolCall, ...]:
    """Return the tool calls of an answer or a message, each a ToolCall or a mapping; empty for None.

    Raises:
        LLMError: X366, one is not a tool call.
    """
    if not calls:
        return ()
    listed = (calls,) if isinstance(calls, str | Mapping) or not isinstance(calls, Iterable) else calls
    return tuple(ToolCall.of(call, number) for number, call in enumerate(listed))


def _parse_arguments(value: Any) -> Any:
    """Return the arguments of a call; JSON text is parsed, or returned unchanged if that fails."""
    if value is None:
        return {}
    with suppress(ValueError, RecursionError):  # the parser's own depth limit
        return json.loads(value or "{}") if isinstance(value, str) else value
    return value


def _is_call(call: ToolCall) -> bool:
    named = isinstance(call.id, str) and isinstance(call.name, str) and bool(call.name)
    return named and isinstance(call.arguments, Mapping)


@dataclass(frozen=True, slots=True)
class LLMMessage:
    """One message of a conversation: its role (system, user, assistant, tool) and its content.

    An assistant's message may hold the `tool_calls` that it requests; a tool's names the call that it answers by
    `tool_call_id`.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> LLMMessage:
        """Return the message that a mapping describes."""
        calls = parse_tool_calls(message.get("tool_calls"))
        return cls(str(message["role"]), str(message["content"]), calls, str(message.get("tool_call_id") or ""))

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a mapping, as in the arguments of an effect."""
        fields: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            fields["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        if self.tool_call_id:
            fields["tool_call_id"] = self.tool_call_id
        return fields


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of an answer: input and output tokens, and cost."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A request to a model: the messages, the node, and the settings of this request.

    `number` counts the run's earlier requests and `of_node` those of this node, so that a script can find its position.
    `timeout` is the time limit for the answer in seconds; it is enforced by the caller, so clients need not. A client
    that streams calls `on_token` with each piece of text as it arrives; None if there is no listener. `tools` are those
    that the model may call; a caller that offers some handles the `tool_calls` of the response.
    """

    messages: tuple[LLMMessage, ...]
    node: str = ""
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    of_node: int = 0
    timeout: float | None = None
    on_token: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    tools: tuple[ToolDefinition, ...] = ()

    @property
    def prompt(self) -> str:
        """The messages as one text."""
        return "\n\n".join(message.content for message in self.messages)

    @classmethod
    def of(cls, arguments: Mapping[str, Any], *, node: str = "", number: int = 0, of_node: int = 0) -> LLMRequest:
        """Return the request that an effect's arguments describe: `messages` or one `prompt`, `tools`, and settings."""
        rest = dict(arguments)
        messages = rest.pop("messages", None)
        prompt = rest.pop("prompt", None)
        if messages is None:
            messages = [{"role": "user", "content": str(prompt)}]
        return cls(
            tuple(map(LLMMessage.of, messages)),
            tools=tuple(ToolDefinition(**tool) for tool in rest.pop("tools", None) or ()),
            node=node,
            model=rest.pop("model", None),
            settings=rest,
            number=number,
            of_node=of_node,
        )


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """A model's response: text, or a dict if JSON was requested; and the tool calls that it requests.

    `finish_reason` is the vendor's name for the reason why the answer ended (`stop`, `length`, `end_turn` ...).
    `provider` names the source; `simulated` means that no model was asked.
    """

    content: Any
    model: str = ""
    usage: Usage = Usage()
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    provider: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Convert tool calls that are mappings.

        Raises:
            LLMError: X366, one is not a tool call.
        """
        if self.tool_calls:
            object.__setattr__(self, "tool_calls", parse_tool_calls(self.tool_calls))

    @property
    def recorded_value(self) -> Any:
        """The recorded value: the content or, with tool calls, a mapping of `content` and `tool_calls`."""
        if not self.tool_calls:
            return self.content
        return {"content": self.content, "tool_calls": [call.to_dict() for call in self.tool_calls]}

    @classmethod
    def from_record(cls, value: Any, arguments: Any, model: str = "recorded", usage: Usage = Usage()) -> LLMResponse:
        """Return the response that was recorded as `value` for a request with these arguments."""
        offered = isinstance(arguments, Mapping) and arguments.get("tools")
        if not (offered and isinstance(value, Mapping) and "tool_calls" in value):
            return cls(value, model, usage, provider=model)
        return cls(value.get("content"), model, usage, value["tool_calls"], provider=model)


@runtime_checkable
class LLMClient(Protocol):
    """Answers requests, directly or as an awaitable."""

    def complete(self, request: LLMRequest) -> LLMResponse | Awaitable[LLMResponse]:
        """Return the response to a request."""


def check_calls(response: Any, arguments: Mapping[str, Any], node: str) -> None:
    """Raise an error if a model requests tools that were not offered, because nothing would call them.

    Raises:
        LLMError: X363.
    """
    calls = getattr(response, "tool_calls", None)
    if not calls or arguments.get("tools"):
        return
    names = ", ".join(repr(getattr(call, "name", "?")) for call in calls)
    raise LLMError(
        Problem("X363", f"the model requested a call of {names}, which this node cannot make", f"node {node!r}",
                "this node uses only the model's text; it cannot call tools that are passed through `kwargs`",
                "remove the tools from `kwargs`, or use an agent with tools: an AgentConfig with "
                "llm={..., 'native_tools': True}"),
        usage=getattr(response, "usage", None),
    )  # fmt: skip


def prepare_client(client: Any, make_request: Callable[[], LLMRequest]) -> Awaitable[None] | None:
    """Return an awaitable to run before the timeout of a request starts.

    A client imports and connects at its first request.

    None if the client has no method `prepare(request)`, or has nothing to prepare. It raises nothing: if preparation
    fails, the request fails.
    """
    prepare = getattr(client, "prepare", None)
    ready = prepare(make_request()) if callable(prepare) else None
    return ready if inspect.isawaitable(ready) else None


def stream_whole(response: LLMResponse, request: LLMRequest) -> LLMResponse:
    """Pass the text of an answer that arrived as a whole to the listener, and return the answer."""
    if request.on_token is not None and isinstance(response.content, str) and response.content:
        request.on_token(response.content)
    return response


class LLMError(ExecutionError):
    """A model's server, or the connection to it, failed; the Problem has the server's message.

    Args:
        status: the HTTP status that was answered, if any was.
        is_retryable: whether the same request may succeed later (a rate limit, a server error, a lost connection).
        retry_after: the seconds to wait before a retry, if the server states them.
        usage: the usage of a request whose answer could not be used.
    """

    def __init__(
        self,
        *problems: Problem,
        status: int | None = None,
        is_retryable: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(*problems)
        self.status, self.is_retryable, self.retry_after, self.usage = status, is_retryable, retry_after, usage

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the details of the failure."""
        names = ("status", "is_retryable", "retry_after", "usage")
        return (type(self), self.problems, {name: getattr(self, name) for name in names})


def to_client(llm: Any) -> LLMClient:
    """Return a client for any value that a session accepts as its model.

    It is a client, a string "provider:model", a callable of the request, a list of answers, or a mapping by node.

    Raises:
        ExecutionError: X303, it is not a model.
        AgentRuntimeError: X330 to X335, the string names no provider, or one that cannot be used.
    """
    from agentnb.world.llm.scripted import ScriptedClient

    is_class = isinstance(llm, type) and hasattr(llm, "complete")  # most likely a ToolCall was meant
    if isinstance(llm, LLMClient) and not is_class:
        return llm
    if isinstance(llm, str):
        from agentnb.world.llm.providers import client_of

        return client_of(llm)
    generates = is_generator(llm)
    if not is_class and not generates and (callable(llm) or isinstance(llm, Mapping | Sequence)):
        return ScriptedClient(llm)
    raise ExecutionError(
        Problem(
            "X303",
            f"{safe_repr(llm)} is not a model",
            "llm=...",
            GENERATES if generates else f"{with_article(get_class_name(llm))} was passed",
            "pass a client, a string provider:model, a callable of the request, a list of answers or a mapping by node",
        )
    )
