"""people: asking a person. On a terminal at once; in a notebook the session waits for `session.answer`."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from agentnb.board.secrets import short
from agentnb.board.values import freeze
from agentnb.errors import ExecutionError, Problem

WAIT: Final = object()  # the answer that says: a person has to come
_ALONE: Final = ContextVar("_ALONE", default=False)
_VERDICT: Final = frozenset({"approved", "by", "reason", "arguments"})
_TYPED: Final = dict.fromkeys(("y", "yes", "approve"), True) | dict.fromkeys(("n", "no", "deny"), False)


@contextmanager
def unattended() -> Iterator[None]:
    """Ask nobody while this lasts, also in the threads and loops that a run begins meanwhile.

    As nobody will ever come, the time of a question that has one is up at once: what follows then can be tested.
    """
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def in_kernel() -> bool:
    """Say whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def on_terminal() -> bool:
    """Say whether a person can be asked by a line of text, here and now."""
    if _ALONE.get() or in_kernel() or sys.stdin is None or sys.stdin.closed:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_on_terminal(prompt: str, timeout: float | None = None) -> Any:
    """Return the line that is typed, or WAIT where nobody can type one.

    Args:
        timeout: for how many seconds a line is waited for; Windows' terminal cannot be asked so, and waits on.

    Raises:
        TimeoutError: no line was typed in time, or nobody will come within any.
    """
    if timeout is not None and _ALONE.get():
        raise TimeoutError(f"nobody has answered within {timeout:g} s: no scripted answer is left, and nobody is asked")
    if not on_terminal():
        return WAIT
    if timeout is not None and sys.platform != "win32":
        print(f"{prompt} (within {timeout:g} s)\n> ", end="", flush=True)  # noqa: T201  (a person is asked)
        if not select.select([sys.stdin], [], [], max(timeout, 0))[0]:
            print(flush=True)  # noqa: T201  (what comes next begins a line)
            raise TimeoutError(f"nobody has answered within {timeout:g} s")
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else WAIT
    try:
        return input(f"{prompt}\n> ")
    except EOFError:
        return WAIT


# -- approvals ---------------------------------------------------------------------------------------------------------


def verdict(*, approved: bool, by: str | None = None, reason: str = "", arguments: Any = None) -> Any:
    """Return what an approval is answered, frozen: `approved`, `by` whom, and the `reason` that was given.

    Where other `arguments` are approved than leave was asked for, the verdict has them too.
    """
    changed = {} if arguments is None else {"arguments": arguments}
    return freeze({"approved": approved, "by": by, "reason": reason, **changed})


def verdict_of(given: Any, where: str = "Session(answers=...)") -> Any:
    """Return the verdict that an answer stands for: True, False, the verdict as a mapping, or a line of text.

    A mapping may have `arguments`, which are approved in place of those that leave was asked for.

    Raises:
        ExecutionError: X124, it is none of these.
    """
    found = typed_verdict(given) if isinstance(given, str) else {"approved": given}
    found = given if isinstance(given, Mapping) else found
    if isinstance(found, Mapping) and isinstance(found.get("approved"), bool) and found.keys() <= _VERDICT:
        by, reason, arguments = found.get("by"), found.get("reason"), found.get("arguments")
        by, reason = None if by is None else str(by), "" if reason is None else str(reason)
        arguments = dict(arguments) if isinstance(arguments, Mapping) else None
        return verdict(approved=found["approved"], by=by, reason=reason, arguments=arguments)
    raise ExecutionError(
        Problem(
            "X124",
            f"{short(given)} approves nothing and denies nothing",
            where,
            "an approval is answered yes or no, True or False, or by a mapping of `approved`, `by` and `reason`",
            "write True, or 'no, and why', or {'approved': False, 'reason': '...'}",
        )
    )


def typed_verdict(line: str) -> Any:
    """Return the verdict of a line that was typed, a reason after the word; None where it is neither yes nor no."""
    word, _, reason = line.strip().partition(" ")
    decided = _TYPED.get(word.lower().rstrip(",.:;"))
    return None if decided is None else verdict(approved=decided, reason=reason.strip())
