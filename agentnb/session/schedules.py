"""schedules: hooks that are called at the turns of a run, of whatever dialect: who is told, and what of.

Observers look on; providers give a resource, which the nodes that come then find by its type. At each schedule they
are called in the order in which they were registered, each after the changes of those before it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from agentnb.errors import ExecutionError, Problem, did_you_mean


class Schedule(StrEnum):
    """When hooks are called; the last three are not in polaris' own document."""

    OnGraphStart = "OnGraphStart"
    OnGraphComplete = "OnGraphComplete"
    OnGraphFailure = "OnGraphFailure"
    OnSystemStart = "OnSystemStart"
    OnSystemComplete = "OnSystemComplete"
    OnSystemError = "OnSystemError"
    OnDecisionStart = "OnDecisionStart"
    OnDecisionComplete = "OnDecisionComplete"
    OnSwitchStart = "OnSwitchStart"
    OnSwitchComplete = "OnSwitchComplete"
    OnLoopStart = "OnLoopStart"
    OnLoopIteration = "OnLoopIteration"
    OnLoopEnd = "OnLoopEnd"
    OnParallelStart = "OnParallelStart"
    OnParallelComplete = "OnParallelComplete"
    OnSystemTimeout = "OnSystemTimeout"
    OnSystemRetry = "OnSystemRetry"
    OnBranchCancelled = "OnBranchCancelled"


AllGraphSchedules: Final = tuple(Schedule)


@dataclass(frozen=True, slots=True)
class GraphEvent:
    """What hooks are told: when, of which run, of which node, and what belongs to that schedule; all else is None.

    - OnGraphStart: node_count, node_map. OnGraphComplete: nodes_executed, duration. OnGraphFailure: error, node_id.
    - OnSystemComplete: duration. OnSystemError: error. OnSystemTimeout: error, timeout. OnSystemRetry: attempt, error.
    - OnDecisionComplete: selected_branch. OnSwitchStart: case_count, has_default. OnSwitchComplete: selected_case and
      used_default too.
    - OnLoopStart: max_iterations. OnLoopIteration: iteration, from 0. OnLoopEnd: iterations, nodes_executed, duration.
    - OnParallelStart: branch_count. OnParallelComplete: branch_count, total_nodes_executed, duration.
    - OnBranchCancelled: branch (from 0), and the node at which it was ended.

    Durations are in seconds, errors are texts.
    """

    schedule: Schedule
    run_id: str
    node_id: str | None = None
    node_name: str | None = None
    kind: str | None = None
    depth: int = 0
    branch: int | None = None
    node_count: int | None = None
    node_map: tuple[tuple[str, str], ...] | None = None
    nodes_executed: int | None = None
    total_nodes_executed: int | None = None
    duration: float | None = None
    error: str | None = None
    timeout: float | None = None
    attempt: int | None = None
    selected_branch: str | None = None
    case_count: int | None = None
    has_default: bool | None = None
    selected_case: str | None = None
    used_default: bool | None = None
    max_iterations: int | None = None
    iteration: int | None = None
    iterations: int | None = None
    branch_count: int | None = None

    @property
    def name(self) -> str | None:
        """The node's name."""
        return self.node_name

    system_name = loop_name = name


class Hook(NamedTuple):
    """A row of the registry. `around` says that it takes the context beside the event."""

    name: str
    call: Callable[..., Any]
    provides: bool
    around: bool


class HooksAPI:
    """Hooks by schedule. Give it to any Session, `Session(recipe, hooks=api)`, or to a GraphExecutor.

    A hook takes the event, and as a second argument the context where it wants one. An observer that raises is dropped
    with a warning; a provider that raises fails the node before which it is asked. Behind a node, or in the middle of
    one, there is nothing that it could fail: it is dropped as an observer is.

    Example:
        >>> api, seen = HooksAPI(), []
        >>> api.register("OnSystemStart", "count", lambda event: seen.append(event.node_id))
        >>> api.names("OnSystemStart")
        ['count']
    """

    def __init__(self) -> None:
        self.rows: dict[Schedule, list[Hook]] = {schedule: [] for schedule in Schedule}

    def register(
        self, schedules: Schedule | str | Iterable[Schedule | str], name: str, observer: Callable[..., Any]
    ) -> None:
        """Call `observer` at one schedule or at several.

        Raises:
            ExecutionError: X150, there is no such schedule; X151, it has a hook of that name already.
        """
        self._add(schedules, name, observer, provides=False)

    def register_provider(
        self, schedules: Schedule | str | Iterable[Schedule | str], name: str, provider: Callable[..., Any]
    ) -> None:
        """Call `provider` at one schedule or at several; what it returns is a resource from then on, None is none.

        Raises:
            ExecutionError: X150, there is no such schedule; X151, it has a hook of that name already.
        """
        self._add(schedules, name, provider, provides=True)

    def unregister(self, name: str) -> None:
        """Take a hook away, at every schedule."""
        for rows in self.rows.values():
            rows[:] = [row for row in rows if row.name != name]

    def providers(self) -> HooksAPI | None:
        """Return a registry of the providers alone, for a fork of a session; None where there are none."""
        found = HooksAPI()
        found.rows = {schedule: [row for row in rows if row.provides] for schedule, rows in self.rows.items()}
        return found if any(found.rows.values()) else None

    def names(self, schedule: Schedule | str) -> list[str]:
        """Return the names of the hooks of a schedule, in their order."""
        return [row.name for row in self.rows[_schedule(schedule)]]

    def _add(self, schedules: Any, name: str, call: Callable[..., Any], *, provides: bool) -> None:
        wanted = [_schedule(each) for each in ([schedules] if isinstance(schedules, str) else schedules)]
        for schedule in wanted:
            if name in self.names(schedule):
                raise ExecutionError(
                    Problem("X151", f"{schedule} has a hook {name!r} already", "HooksAPI.register",
                            "a hook is known by its name", "give this one another name, or unregister the other")
                )  # fmt: skip
        for schedule in wanted:
            self.rows[schedule].append(Hook(name, call, provides, _takes_context(call)))

    def tell(self, event: GraphEvent, context: Callable[[], Any]) -> None:
        """Call the hooks of an event's schedule; drop one that raises. `context` makes what is around it.

        Raises:
            Exception: what a provider has raised before a node.
        """
        rows = self.rows[event.schedule]
        for row in tuple(rows):
            arguments = (event, context()) if row.around else (event,)
            try:
                found = row.call(*arguments)
                if inspect.isawaitable(found):
                    getattr(found, "close", lambda: None)()
                    raise TypeError("it is async, and hooks are called at once")
                if row.provides and found is not None:
                    context().insert(found)
            except Exception as error:  # a spectator cannot stop the play
                if row.provides and event.schedule.endswith("Start"):
                    raise
                if row in rows:
                    rows.remove(row)
                warnings.warn(
                    f"hook {row.name!r} of {event.schedule} was dropped, it raised {type(error).__name__}: {error}",
                    stacklevel=2,
                )


def _schedule(given: Schedule | str) -> Schedule:
    """Return a schedule, given as itself or by its name.

    X150: there is no such schedule.

    Raises:
        ExecutionError: X150, there is none of that name.
    """
    if given in Schedule.__members__:
        return Schedule(given)
    raise ExecutionError(
        Problem("X150", f"there is no schedule {given!r}", "HooksAPI.register", f"there are: {', '.join(Schedule)}",
                did_you_mean(str(given), Schedule.__members__, "use one of them"))
    )  # fmt: skip


def _takes_context(call: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in places and each.default is each.empty for each in parameters) > 1
