"""people: asking a person. On a terminal at once; in a notebook the session waits for `session.answer`."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

WAIT: Final = object()  # the answer that says: a person has to come
_ALONE: Final = ContextVar("_ALONE", default=False)


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
