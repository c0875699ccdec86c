"""Human input: on a terminal at once; in a notebook the session waits for `session.answer`."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from agentnb.board.values import freeze
from agentnb.errors import ExecutionError, Problem
from agentnb.text import safe_repr

WAIT: Final = object()  # the answer that means: wait for a person
_ALONE: Final = ContextVar("_ALONE", default=False)
_VERDICT: Final = frozenset({"approved", "by", "reason", "arguments"})
_TYPED: Final = dict.fromkeys(("y", "yes", "approve"), True) | dict.fromkeys(("n", "no", "deny"), False)


@contextmanager
def without_human_input() -> Iterator[None]:
    """Disable human input in this context, including the threads and loops that a run starts.

    A request with a timeout then times out at once, so that timeout handling can be tested.
    """
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def is_in_kernel() -> bool:
    """Return True if this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def is_on_terminal() -> bool:
    """Return True if a person can be asked for a line of text now."""
    if _ALONE.get() or is_in_kernel() or sys.stdin is None or sys.stdin.closed:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_on_terminal(prompt: str, timeout: float | None = None) -> Any:
    """Return the typed line, or WAIT if there is no terminal.

    Args:
        timeout: how many seconds to wait for a line; not supported on Windows, where the terminal keeps waiting.

    Raises:
        TimeoutError: no line was typed in time, or human input is disabled.
    """
    if timeout is not None and _ALONE.get():
        raise TimeoutError(f"no answer within {timeout:g} s: no scripted answer is left, and human input is disabled")
    if not is_on_terminal():
        return WAIT
    if timeout is not None and sys.platform != "win32":
        print(f"{prompt} (within {timeout:g} s)\n> ", end="", flush=True)  # noqa: T201  (a person is asked)
        if not select.select([sys.stdin], [], [], max(timeout, 0))[0]:
            print(flush=True)  # noqa: T201  (what comes next begins a line)
            raise TimeoutError(f"no answer within {timeout:g} s")
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else WAIT
    try:
        return input(f"{prompt}\n> ")
    except EOFError:
        return WAIT


# -- approvals ---------------------------------------------------------------------------------------------------------


def make_verdict(*, approved: bool, by: str | None = None, reason: str = "", arguments: Any = None) -> Any:
    """Return the answer to an approval request, frozen: `approved`, `by`, and `reason`.

    If a person approves `arguments` other than those requested, the verdict contains them.
    """
    changed = {} if arguments is None else {"arguments": arguments}
    return freeze({"approved": approved, "by": by, "reason": reason, **changed})


def to_verdict(value: Any, where: str = "answers=...") -> Any:
    """Return the verdict for an answer: True, False, the verdict as a mapping, or a line of text.

    A mapping may have `arguments`, which are approved in place of those requested.

    Raises:
        ExecutionError: X124, it is not a verdict.
    """
    verdict = parse_verdict(value) if isinstance(value, str) else {"approved": value}
    verdict = value if isinstance(value, Mapping) else verdict
    if isinstance(verdict, Mapping) and isinstance(verdict.get("approved"), bool) and verdict.keys() <= _VERDICT:
        by, reason, arguments = verdict.get("by"), verdict.get("reason"), verdict.get("arguments")
        by, reason = None if by is None else str(by), "" if reason is None else str(reason)
        arguments = dict(arguments) if isinstance(arguments, Mapping) else None
        return make_verdict(approved=verdict["approved"], by=by, reason=reason, arguments=arguments)
    raise ExecutionError(
        Problem(
            "X124",
            f"{safe_repr(value)} neither approves nor denies",
            where,
            "answer an approval with yes or no, True or False, or a mapping of `approved`, `by` and `reason`",
            "answer True, or 'no, because ...', or {'approved': False, 'reason': '...'}",
        )
    )


def parse_verdict(line: str) -> Any:
    """Return the verdict of a typed line, with a reason after the word; None if it is neither yes nor no."""
    word, _, reason = line.strip().partition(" ")
    decided = _TYPED.get(word.lower().rstrip(",.:;"))
    return None if decided is None else make_verdict(approved=decided, reason=reason.strip())
