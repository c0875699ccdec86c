"""Rebuild the exception of a recorded error text. No code of its class runs."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from agentnb import errors
from agentnb.board.values import thaw
from agentnb.errors import AgentNbError, Problem
from agentnb.world.llm.base import LLMError

if TYPE_CHECKING:
    from agentnb.engine.core.history import Call

_PLAIN_ERRORS: Final = {
    name: error
    for name, error in vars(builtins).items()
    if isinstance(error, type)
    and issubclass(error, Exception)
    and not issubclass(error, UnicodeError | BaseExceptionGroup | StopIteration)
}
# agentnb's errors take precedence over errors of the same name in a dialect or another package.
_OWN_ERRORS: Final = {
    name: error for name, error in vars(errors).items() if isinstance(error, type) and issubclass(error, Exception)
} | {LLMError.__name__: LLMError}
_SAID: Final = "_agentnb_said"  # marks the classes created here
_PROBLEM: Final = re.compile(
    r"^(warning )?([A-Z]\d{3}): (.*?)\n  where: (.*?)\n  why:   (.*?)\n  do:    (.*?)"
    r"(?=\Z|\n(?:warning )?[A-Z]\d{3}: )",
    re.DOTALL | re.MULTILINE,
)


def rebuild_error(row: Call, like: BaseException | None = None) -> Exception:
    """Return the exception of the failed attempt in a row, as precisely as its text allows.

    It has the same class name and text, and derives from the class of that name if there is one: a builtin, the class
    of `like` (an exception of known origin), or the only imported class with that name.
    """
    kind, _, message = (row.error or "").partition(": ")
    base = type(like) if isinstance(like, Exception) and type(like).__name__ == kind else find_class(kind)
    rebuilt = _make_error(kind or "Exception", base, message)
    if row.result is not None:
        rebuilt.result = thaw(row.result)  # type: ignore[attr-defined]  # the answer that was the failure
    return rebuilt


def find_class(kind: str) -> type[Exception]:
    """Return the exception class with a name; Exception itself if there is none, or more than one."""
    known = _PLAIN_ERRORS.get(kind) or _OWN_ERRORS.get(kind)
    if known is not None:
        return known
    classes = {id(cls): cls for cls in _iter_exception_classes() if cls.__name__ == kind and _SAID not in cls.__dict__}
    return next(iter(classes.values())) if len(classes) == 1 else Exception


def list_exception_names() -> set[str]:
    """Return the names of all exception classes known to this process."""
    return {Exception.__name__} | {cls.__name__ for cls in _iter_exception_classes()}


def _iter_exception_classes() -> Iterator[type[Exception]]:
    """Yield every subclass of Exception; one with several bases may occur more than once."""
    border: list[type[Exception]] = [Exception]
    while border:
        classes = border.pop().__subclasses__()
        border += classes
        yield from classes


def _make_error(kind: str, base: type[Exception], message: str) -> Exception:
    """Return an exception with this class name and message; no code of the class runs."""
    problems = parse_problems(message)
    if issubclass(base, AgentNbError) and base.__module__.startswith("agentnb."):
        if issubclass(base, LLMError):  # a retry may succeed, unless the server rejected the request permanently
            return LLMError(*(problems or (message,)), is_retryable=True)
        return base(*(problems or (message,)))
    if base is _PLAIN_ERRORS.get(kind) and str(base(message)) == message:
        return base(message)
    if base is KeyError and str(KeyError(message[1:-1])) == message:  # the text of a KeyError is its key's repr
        return KeyError(message[1:-1])
    attributes = {
        "__str__": lambda _self: message,
        "__init__": Exception.__init__,
        "__module__": base.__module__,
        _SAID: True,
    }
    if issubclass(base, AgentNbError):
        attributes |= {"problems": problems, "_given": problems or (message,)}
    try:
        cls: type[Exception] = type(kind, (base,), attributes)
        builtin: Any = next(each for each in base.__mro__ if each.__module__ == "builtins")
        error: Exception = builtin.__new__(cls, message)
    except TypeError:  # the class does not allow such a subclass
        error = Exception.__new__(type(kind, (Exception,), attributes), message)
    error.args = (message,)
    return error


def parse_problems(text: str) -> tuple[Problem, ...]:
    """Return the problems listed in a text in the format of agentnb's errors; none for any other text."""
    problems = [
        Problem(code, what, where, why, do, "warning" if mark else "error")
        for mark, code, what, where, why, do in _PROBLEM.findall(text)
    ]
    return tuple(problems) if "\n".join(map(str, problems)) == text else ()
