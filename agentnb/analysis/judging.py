"""Judging runs by a user's function, which may raise for runs without a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentnb.errors import ExecutionError, Problem
from agentnb.text import safe_repr, safe_str


class Judge:
    """Judges runs by a user's function; `name` is the name of its parameter."""

    def __init__(self, holds: Callable[[Any], Any], where: str, name: str = "ok") -> None:
        if not callable(holds):
            raise ExecutionError(
                Problem("A118", f"{name} is {safe_repr(holds, 60)}", where, "it is called with each run, at its end",
                        f"pass a function: {name}=lambda run: run.board['total'] == 12")
            )  # fmt: skip
        self._holds, self._where, self._name = holds, where, name
        self._answers = 0
        self._failure: Exception | None = None

    def is_right(self, run: Any) -> bool:
        """Return True if the function holds for a run, False if it does not or raises."""
        try:
            verdict = bool(self._holds(run))
        except Exception as error:  # noqa: BLE001  (a run that failed may lack what the function looks at)
            self._failure = self._failure or error
            return False
        self._answers += 1
        return verdict

    def check(self) -> None:
        """Raise an error if the function raised for every run: the fault is then in the function, not in the runs.

        A118: the function that judges runs is not a function, or raises for every run.

        Raises:
            ExecutionError: A118.
        """
        if self._failure is not None and not self._answers:
            raise ExecutionError(
                Problem("A118", f"{self._name} raised {type(self._failure).__name__} for every run: "
                                f"{safe_str(self._failure, 200)}", self._where,
                        "so it cannot judge any of them",
                        "correct it: it receives a run, whose board has the results")
            ) from self._failure  # fmt: skip


__all__ = ["Judge"]
