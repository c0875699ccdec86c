"""errors: a Problem says what, where, why and what to do; every error of agentnb carries some.

The tree:

    AgentNbError
    +-- RecipeError (also a ValueError)      a recipe cannot be loaded or is wrong
    +-- BoardError                           a value or a path that the blackboard cannot take
    +-- ExecutionError                       a run cannot go on
    |   +-- AgentRuntimeError
    |       +-- NodeExecutionError           a node failed: names its id, kind, prompt or tool, and the message
    +-- ReplayDivergence                     a replay differs from what was recorded
    +-- StoreError                           a record cannot be kept or read
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["error", "warning"]


class Place(NamedTuple):
    """Where in a source something stands: file (or "<text>"), line and column from 1, and the path of keys."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        """Return `file:line:column, path`, without the parts that are not known."""
        spot = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{spot}, {self.path}" if self.path else spot


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, told so that it can be mended: what, where, why, and what to do.

    Codes: R recipe, B blackboard, X run, L log, U screen; docs/errors.md lists them.
    """

    code: str
    what: str
    where: str
    why: str
    do: str
    severity: Severity = "error"

    def __str__(self) -> str:
        """Return the four answers as four lines."""
        mark = "warning " if self.severity == "warning" else ""
        return f"{mark}{self.code}: {self.what}\n  where: {self.where}\n  why:   {self.why}\n  do:    {self.do}"

    def _repr_html_(self) -> str:
        from agentnb.display import problems_html

        return problems_html([self])


class AgentNbError(Exception):
    """The root of all errors of agentnb; `problems` holds every Problem at once.

    Code of other people, a tool's for example, may raise one with a text of its own: that is its message.
    """

    def __init__(self, *problems: Problem | str) -> None:
        self._given = problems
        self.problems: tuple[Problem, ...] = tuple(each for each in problems if isinstance(each, Problem))
        super().__init__("\n".join(map(str, problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the problems, so that an error survives a worker process."""
        return (type(self), self._given)

    def to_frame(self) -> pd.DataFrame:
        """Return the problems as a DataFrame: code, what, where, why, do, severity."""
        from agentnb.trace.frames import table

        return table([asdict(problem) for problem in self.problems])

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback: the problems alone (a mistake in a recipe has no stack)."""
        return [f"{type(self).__name__}: {len(self.problems)} problem(s)", *map(str, self.problems)]


class RecipeError(AgentNbError, ValueError):
    """A recipe cannot be loaded; `problems` are all that were found."""


class BoardError(AgentNbError):
    """The blackboard cannot take this value, or has no such path."""


class ExecutionError(AgentNbError):
    """A run cannot go on."""


class AgentRuntimeError(ExecutionError):
    """A run of an agent broke one of its rules (a limit, a missing client, a wrong target)."""


class NodeExecutionError(AgentRuntimeError):
    """A node failed and nothing in the recipe handles it; `__cause__` is the node's own exception."""


class ReplayDivergence(AgentNbError):
    """A replay did something else than the record says."""


class StoreError(AgentNbError):
    """A record cannot be kept or read; what was kept before is whole."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean 'x'?" for the known word nearest to `word`, else the order `otherwise`."""
    close: Sequence[str] = get_close_matches(str(word), [str(name) for name in known], n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def told(error: BaseException) -> str:
    """Return what an exception says in one line: of ours what is wrong, of others their own words, if they have any."""
    if isinstance(error, AgentNbError) and error.problems:
        return "; ".join(problem.what for problem in error.problems)
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (an error that cannot even be told is one all the same)
        return "it cannot be told"
