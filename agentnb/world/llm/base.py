"""base: the protocol of a model: a request goes in, a response comes out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from agentnb.errors import ExecutionError, Problem


@dataclass(frozen=True, slots=True)
class LLMMessage:
    """One message of a conversation: who says it (system, user, assistant, tool) and what."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer took: tokens in and out, and its price."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """What a model is asked: the messages, for which node, and the settings of this one request.

    `number` counts the run's earlier requests and `of_node` those of this node, so that a script knows where it is.
    `timeout` are the seconds that the answer may take: whoever asks sees to it, a client need not. `tell` is called
    with each piece of text as it arrives, by a client that streams; it is None where nobody listens.
    """

    messages: tuple[LLMMessage, ...]
    node: str = ""
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    of_node: int = 0
    timeout: float | None = None
    tell: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    @property
    def prompt(self) -> str:
        """The messages as one text."""
        return "\n\n".join(message.content for message in self.messages)

    @classmethod
    def of(cls, arguments: Mapping[str, Any], *, node: str = "", number: int = 0, of_node: int = 0) -> LLMRequest:
        """Return the request that an effect's arguments describe: `messages`, or one `prompt`, and the settings."""
        rest = dict(arguments)
        messages = rest.pop("messages", None)
        prompt = rest.pop("prompt", None)
        if messages is None:
            messages = [{"role": "user", "content": str(prompt)}]
        return cls(
            tuple(LLMMessage(str(message["role"]), str(message["content"])) for message in messages),
            node=node,
            model=rest.pop("model", None),
            settings=rest,
            number=number,
            of_node=of_node,
        )


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """What a model answered: text, or a dict when it was asked for one."""

    content: Any
    model: str = ""
    usage: Usage = Usage()


@runtime_checkable
class LLMClient(Protocol):
    """Something that answers requests, at once or as an awaitable."""

    def complete(self, request: LLMRequest) -> LLMResponse | Awaitable[LLMResponse]:
        """Answer one request."""


def told(response: LLMResponse, request: LLMRequest) -> LLMResponse:
    """Tell who listens the text of an answer that came as a whole, and return the answer."""
    if request.tell is not None and isinstance(response.content, str) and response.content:
        request.tell(response.content)
    return response


class LLMError(ExecutionError):
    """A model's server, or the way to it, failed; the Problem says what the server said.

    Args:
        status: the HTTP status that was answered, if any was.
        again: whether the same request may succeed later (a rate limit, a server's own failure, a cut connection).
        retry_after: the seconds to wait before that, where the server says so.
        usage: what it took all the same, where the model has answered and the answer is of no use.
    """

    def __init__(
        self,
        *problems: Problem,
        status: int | None = None,
        again: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(*problems)
        self.status, self.again, self.retry_after, self.usage = status, again, retry_after, usage

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with what is known of the answer."""
        known = {"status": self.status, "again": self.again, "retry_after": self.retry_after, "usage": self.usage}
        return (type(self), self.problems, known)


def as_client(llm: Any) -> LLMClient:
    """Return a client for whatever a session may be given.

    It is a client, a text "provider:model", a callable of the request, a list of answers, or a mapping by node.

    Raises:
        ExecutionError: X303, it is none of these.
        AgentRuntimeError: X330 to X335, the text names no provider, or one that cannot be asked (its key, its package).
    """
    from agentnb.world.llm.scripted import ScriptedClient

    is_class = isinstance(llm, type) and hasattr(llm, "complete")  # it was meant to be called
    if isinstance(llm, LLMClient) and not is_class:
        return llm
    if isinstance(llm, str):
        from agentnb.world.llm.providers import client_of

        return client_of(llm)
    if not is_class and (callable(llm) or isinstance(llm, Mapping | Sequence)):
        return ScriptedClient(llm)
    raise ExecutionError(
        Problem(
            "X303",
            f"{llm!r} is no model",
            "Session(llm=...)",
            f"a {type(llm).__name__} was given",
            "give a client, a text provider:model, a callable of the request, a list of answers, or a mapping by node",
        )
    )
