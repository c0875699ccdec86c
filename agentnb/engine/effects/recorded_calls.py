"""Recorded calls: answering calls from their records, and the interface that is notified before each call.

A run resumed in the middle of a step, and a replay, receive the rows of the calls that were made before.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb import errors
from agentnb.board.values import thaw
from agentnb.errors import AgentNbError, Problem
from agentnb.world.llm.base import LLMError, LLMResponse, Usage

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.history import Call, Event
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import Work
    from agentnb.world.effect import Effect

_PLAIN_ERRORS: Final = {
    name: error
    for name, error in vars(builtins).items()
    if isinstance(error, type)
    and issubclass(error, Exception)
    and not issubclass(error, UnicodeError | BaseExceptionGroup | StopIteration)
}
# agentnb's errors precede others of the same name, which a dialect or another package may define.
_OWN_ERRORS: Final = {
    name: error for name, error in vars(errors).items() if isinstance(error, type) and issubclass(error, Exception)
} | {LLMError.__name__: LLMError}
_SAID: Final = "_agentnb_said"  # marks the classes created here
_PROBLEM: Final = re.compile(
    r"^(warning )?([A-Z]\d{3}): (.*?)\n  where: (.*?)\n  why:   (.*?)\n  do:    (.*?)"
    r"(?=\Z|\n(?:warning )?[A-Z]\d{3}: )",
    re.DOTALL | re.MULTILINE,
)


class Recorded(Protocol):
    """The recorded calls and events of the next steps."""

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the recorded attempts of a step's call, in order; none if the call is not recorded."""
        ...

    def answered_by(self, work: Work) -> str | None:
        """Return the kind of the step's next call if its answer is recorded, else None."""
        ...

    def went_out(self, work: Work, number: int) -> int | None:
        """Return when a step's call without a recorded response was sent (ns); None for any other."""
        ...

    def emitted(self, work: Work, type: str, payload: Any) -> Event | None:
        """Return the event that a step emitted at this point before; None if none is recorded."""
        ...

    def next_event(self, work: Work) -> Event | None:
        """Return the next event that the step emitted before; None if none is recorded."""
        ...

    def time(self, work: Work) -> datetime | None:
        """Return the clock time that the step read at this point before; None if none is recorded."""
        ...

    def last_event(self) -> int:
        """Return the highest number of an event that steps yet to start have emitted before; 0 if there is none.

        These numbers are reserved for them.
        """
        ...

    def over(self, run: Run, act: int) -> None:
        """Forget the step of an activation, which is now committed."""
        ...

    def leave(self, run: Run) -> None:
        """Forget every step: the run leaves its history for a separate branch."""
        ...


class Keeping(Protocol):
    """The interface notified of what a step does before it is committed, so that it survives a crash."""

    def goes_out(self, work: Work, number: int, attempt: int, effect: Effect, sent: Any, began: int) -> None:
        """Record that a call is being sent.

        Raises:
            Spent: it cannot be recorded, so the call must not be sent.
        """
        ...

    def came_back(self, row: Call) -> None:
        """Record the end of an attempt. If that fails, the run stops after its step."""
        ...

    def taken_back(self, act: int, number: int) -> None:
        """Record that a call of a step was not sent, or that a person's question was withdrawn."""
        ...

    def drop(self, act: int) -> None:
        """Record that a step was abandoned for good: nothing it has done counts when it runs again."""
        ...

    def emitted(self, work: Work, event: Event, *, alone: bool = True) -> None:
        """Record an event of a step; unless `alone`, with the next record. If that fails, the run stops."""
        ...


def answer_of(row: Call) -> Any:
    """Return the answer recorded in a row: for a model an LLMResponse with its usage, else the plain value."""
    answer = thaw(row.result)
    if row.kind == "llm":
        usage = Usage(row.tokens_in, row.tokens_out, row.cost_usd)
        return LLMResponse.recorded(answer, row.arguments, usage=usage)
    return answer


def error_of(row: Call, like: BaseException | None = None) -> Exception:
    """Return the exception of the failed attempt in a row, as precisely as its text allows.

    It has the same class name and text, and derives from the class of that name if there is one: a builtin, the class
    of `like` (an exception known to have come from it), or the only imported class with that name.
    """
    kind, _, message = (row.error or "").partition(": ")
    base = type(like) if isinstance(like, Exception) and type(like).__name__ == kind else class_of(kind)
    made = _make_error(kind or "Exception", base, message)
    if row.result is not None:
        made.result = thaw(row.result)  # type: ignore[attr-defined]  # the answer that was the failure
    return made


def class_of(kind: str) -> type[Exception]:
    """Return the exception class with a name; Exception itself if there is none, or more than one."""
    known = _PLAIN_ERRORS.get(kind) or _OWN_ERRORS.get(kind)
    if known is not None:
        return known
    found = {id(cls): cls for cls in _exception_classes() if cls.__name__ == kind and _SAID not in cls.__dict__}
    return next(iter(found.values())) if len(found) == 1 else Exception


def exception_names() -> set[str]:
    """Return the names of all exception classes known to this process."""
    return {Exception.__name__} | {cls.__name__ for cls in _exception_classes()}


def _exception_classes() -> Iterator[type[Exception]]:
    """Yield every subclass of Exception; one with several bases may occur more than once."""
    border: list[type[Exception]] = [Exception]
    while border:
        classes = border.pop().__subclasses__()
        border += classes
        yield from classes


def _make_error(kind: str, base: type[Exception], message: str) -> Exception:
    """Return an exception with this class name and message; no code of the class runs."""
    problems = problems_in(message)
    if issubclass(base, AgentNbError) and base.__module__.startswith("agentnb."):
        if issubclass(base, LLMError):  # a retry may succeed; the server rejects again what it rejected for good
            return LLMError(*(problems or (message,)), again=True)
        return base(*(problems or (message,)))
    if base is _PLAIN_ERRORS.get(kind) and str(base(message)) == message:
        return base(message)
    words = {
        "__str__": lambda _self: message,
        "__init__": Exception.__init__,
        "__module__": base.__module__,
        _SAID: True,
    }
    if issubclass(base, AgentNbError):
        words |= {"problems": problems, "_given": problems or (message,)}
    try:
        cls: type[Exception] = type(kind, (base,), words)
        builtin: Any = next(each for each in base.__mro__ if each.__module__ == "builtins")
        made: Exception = builtin.__new__(cls, message)
    except TypeError:  # the class does not allow such a subclass
        made = Exception.__new__(type(kind, (Exception,), words), message)
    made.args = (message,)
    return made


def problems_in(text: str) -> tuple[Problem, ...]:
    """Return the problems listed in a text as an error of agentnb prints them; none for any other text."""
    found = [
        Problem(code, what, where, why, do, "warning" if mark else "error")
        for mark, code, what, where, why, do in _PROBLEM.findall(text)
    ]
    return tuple(found) if "\n".join(map(str, found)) == text else ()
