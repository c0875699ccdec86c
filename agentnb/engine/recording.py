"""recording: calls that are known already, answered by their rows; and who is told of each call before it goes out.

A run that is taken up in the middle of a step, and a replay, are given the rows of the calls that were made before.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb.board.values import thaw
from agentnb.world.llm.base import LLMError, LLMResponse, Usage

if TYPE_CHECKING:
    from agentnb.engine.history import Call, Event
    from agentnb.engine.work import Effect, Work

_PLAIN_ERRORS: Final = {
    name: error
    for name, error in vars(builtins).items()
    if isinstance(error, type)
    and issubclass(error, Exception)
    and not issubclass(error, UnicodeError | BaseExceptionGroup)
}


class Recorded(Protocol):
    """What is known of calls and events that a step is about to make."""

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the recorded attempts of a step's call, the first first; none where nothing is known of it."""
        ...

    def went_out(self, work: Work, number: int) -> int | None:
        """Return when a step's call went out that never came back (ns); None for any other."""
        ...

    def emitted(self, work: Work, type: str, payload: Any) -> Event | None:
        """Return the event that a step has emitted here before; None where nothing is known of it."""
        ...


class Keeping(Protocol):
    """Who is told what a step does before it is committed, so that it outlives the process."""

    def goes_out(self, work: Work, number: int, attempt: int, effect: Effect, sent: Any, began: int) -> None:
        """Keep that a call goes out now.

        Raises:
            Spent: it cannot be kept, so the call must not go out.
        """
        ...

    def came_back(self, work: Work, row: Call) -> None:
        """Keep how an attempt ended. What cannot be kept stops the run after its step."""
        ...

    def emitted(self, work: Work, event: Event) -> None:
        """Keep an event of a step. What cannot be kept stops the run after its step."""
        ...


def answer_of(row: Call) -> Any:
    """Return what the call of a row was answered: of a model a response with its usage, else the plain value."""
    answer = thaw(row.result)
    if row.kind == "llm":
        return LLMResponse(answer, "recorded", Usage(row.tokens_in, row.tokens_out, row.cost_usd))
    return answer


def error_of(row: Call) -> Exception:
    """Return the exception that the failed attempt of a row raised, as near as its text tells it.

    A built-in exception is one of its class again; any other is one of a class with its name.
    """
    kind, _, message = (row.error or "").partition(": ")
    if row.kind == "llm" and kind == "LLMError":
        return LLMError(message)  # type: ignore[arg-type]  # its message as a text, as any AgentNbError takes one
    known = _PLAIN_ERRORS.get(kind)
    return known(message) if known is not None else type(kind or "Exception", (Exception,), {})(message)
