"""recording: calls that are known already, answered by their rows; and who is told of each call before it goes out.

A run that is taken up in the middle of a step, and a replay, are given the rows of the calls that were made before.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb import errors
from agentnb.board.values import thaw
from agentnb.errors import AgentNbError, Problem
from agentnb.world.llm.base import LLMError, LLMResponse, Usage

if TYPE_CHECKING:
    from agentnb.engine.history import Call, Event
    from agentnb.engine.work import Effect, Work

_PLAIN_ERRORS: Final = {
    name: error
    for name, error in vars(builtins).items()
    if isinstance(error, type)
    and issubclass(error, Exception)
    and not issubclass(error, UnicodeError | BaseExceptionGroup | StopIteration)
}
# Ours come before others of the same name, which a dialect or another package may have.
_OWN_ERRORS: Final = {
    name: error for name, error in vars(errors).items() if isinstance(error, type) and issubclass(error, Exception)
} | {LLMError.__name__: LLMError}
_SAID: Final = "_agentnb_said"  # marks the classes that are made here
_PROBLEM: Final = re.compile(
    r"^(warning )?([A-Z]\d{3}): (.*?)\n  where: (.*?)\n  why:   (.*?)\n  do:    (.*?)"
    r"(?=\Z|\n(?:warning )?[A-Z]\d{3}: )",
    re.DOTALL | re.MULTILINE,
)


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

    def last_event(self) -> int:
        """Return the highest number of an event that steps still to begin have emitted before; 0 where there is none.

        It is theirs: nobody else is given it.
        """
        ...

    def over(self, act: int) -> None:
        """Forget the step of an activation: it is committed, or given up."""
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

    def emitted(self, work: Work, event: Event, *, alone: bool = True) -> None:
        """Keep an event of a step; where not `alone`, with what is told next. What cannot be kept stops the run."""
        ...


def answer_of(row: Call) -> Any:
    """Return what the call of a row was answered: of a model a response with its usage, else the plain value."""
    answer = thaw(row.result)
    if row.kind == "llm":
        return LLMResponse(answer, "recorded", Usage(row.tokens_in, row.tokens_out, row.cost_usd))
    return answer


def error_of(row: Call, like: BaseException | None = None) -> Exception:
    """Return the exception that the failed attempt of a row raised, as near as its text tells it.

    It has the same class name and the same text, and is one of the class of that name where there is one: a built-in
    one, that of `like` (an exception that is known to have come of it), or the only imported one that is called so.
    """
    kind, _, message = (row.error or "").partition(": ")
    base = type(like) if isinstance(like, Exception) and type(like).__name__ == kind else _class_of(kind)
    made = _made(kind or "Exception", base, message)
    if row.result is not None:
        made.result = thaw(row.result)  # type: ignore[attr-defined]  # the answer that was the failure
    return made


def _class_of(kind: str) -> type[Exception]:
    """Return the exception class of a name; Exception itself where there is none, or more than one."""
    known = _PLAIN_ERRORS.get(kind) or _OWN_ERRORS.get(kind)
    if known is not None:
        return known
    found: dict[int, type[Exception]] = {}
    border: list[type[Exception]] = [Exception]
    while border:
        for cls in border.pop().__subclasses__():
            border.append(cls)
            if cls.__name__ == kind and _SAID not in cls.__dict__:
                found[id(cls)] = cls
    return next(iter(found.values())) if len(found) == 1 else Exception


def _made(kind: str, base: type[Exception], message: str) -> Exception:
    """Return an exception of a class of this name that says this; it never runs what the class does when it is made."""
    problems = problems_in(message)
    if issubclass(base, AgentNbError) and base.__module__.startswith("agentnb."):
        if issubclass(base, LLMError):  # whoever may ask again does; what a server refuses for good it refuses again
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
    except TypeError:  # the class may not be subclassed so
        made = Exception.__new__(type(kind, (Exception,), words), message)
    made.args = (message,)
    return made


def problems_in(text: str) -> tuple[Problem, ...]:
    """Return the problems that a text lists, as an error of agentnb prints them; none for any other text."""
    found = [
        Problem(code, what, where, why, do, "warning" if mark else "error")
        for mark, code, what, where, why, do in _PROBLEM.findall(text)
    ]
    return tuple(found) if "\n".join(map(str, found)) == text else ()
