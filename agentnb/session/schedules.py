"""Hooks that are called at defined moments of a run (schedules), for all dialects.

Observers are notified; providers return a resource, which later nodes find by its type. Hooks of a schedule are called
in the order of registration, each after the changes of those before it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from agentnb.engine.control.listeners import check_listener
from agentnb.errors import ExecutionError, Problem, did_you_mean, format_error_line, warn_caller, with_article
from agentnb.recipe.user_functions import check_ran
from agentnb.text import get_class_name


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
    """The argument of hooks: the schedule, the run, the node, and the fields of that schedule; all others are None.

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
    """A row of the registry. `takes_context` is True if the hook takes the context as a second argument."""

    name: str
    call: Callable[..., Any]
    provides: bool
    takes_context: bool


class HooksAPI:
    """Hooks by schedule. Pass it to any Session, `Session(recipe, hooks=api)`, or to a GraphExecutor.

    A hook takes the event, and optionally the context as a second argument. An observer that raises is removed with a
    warning; a provider that raises before a node fails that node. After a node, or inside one, a provider that raises
    is removed like an observer.

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
        """Call `observer` at one or more schedules.

        Raises:
            ExecutionError: X150, there is no such schedule; X151, it has a hook of that name already;
                X469, it cannot be called, or is async.
        """
        self._add(schedules, name, observer, provides=False)

    def register_provider(
        self, schedules: Schedule | str | Iterable[Schedule | str], name: str, provider: Callable[..., Any]
    ) -> None:
        """Call `provider` at one or more schedules; what it returns becomes a resource, unless it is None.

        Raises:
            ExecutionError: X150, there is no such schedule; X151, it has a hook of that name already;
                X469, it cannot be called, or is async.
        """
        self._add(schedules, name, provider, provides=True)

    def unregister(self, name: str) -> None:
        """Remove a hook from every schedule."""
        for rows in self.rows.values():
            rows[:] = [row for row in rows if row.name != name]

    def providers(self) -> HooksAPI | None:
        """Return a registry of the providers alone, for a fork of a session; None if there are none."""
        hooks = HooksAPI()
        hooks.rows = {schedule: [row for row in rows if row.provides] for schedule, rows in self.rows.items()}
        return hooks if any(hooks.rows.values()) else None

    def names(self, schedule: Schedule | str) -> list[str]:
        """Return the names of the hooks of a schedule, in order."""
        return [row.name for row in self.rows[_schedule(schedule)]]

    def _add(self, schedules: Any, name: str, call: Callable[..., Any], *, provides: bool) -> None:
        names = [_schedule(each) for each in ([schedules] if isinstance(schedules, str) else schedules)]
        check_listener(call, f"hook {name!r}")
        for schedule in names:
            if name in self.names(schedule):
                raise ExecutionError(
                    Problem("X151", f"{schedule} already has a hook {name!r}", "HooksAPI.register",
                            "hook names are unique", "use another name, or unregister the other one")
                )  # fmt: skip
        for schedule in names:
            self.rows[schedule].append(Hook(name, call, provides, _takes_context(call)))

    def notify(self, event: GraphEvent, context: Callable[[], Any]) -> None:
        """Call the hooks of an event's schedule; remove one that raises. `context` creates the context argument.

        Raises:
            ExecutionError: X471, a provider has failed before a node; its exception is the cause.
        """
        rows = self.rows[event.schedule]
        for row in tuple(rows):
            arguments = (event, context()) if row.takes_context else (event,)
            try:
                result = row.call(*arguments)
                if inspect.isawaitable(result) and not inspect.iscoroutine(result):
                    raise TypeError("it returned an awaitable, but hooks are synchronous")
                check_ran(result)
                if row.provides and result is not None:
                    context().insert(result)
            except Exception as error:  # an observer cannot stop the run
                if row.provides and event.schedule.endswith("Start"):
                    raise ExecutionError(_make_failure_problem(row, event, error)) from error
                if row in rows:
                    rows.remove(row)
                warn_caller(
                    f"hook {row.name!r} of {event.schedule} raised {type(error).__name__} and was removed: {error}"
                )


def build_hooks(hooks: Any) -> Any:
    """Return the hooks of a session, built from a plugin, or from a list of plugins and registries.

    A plugin has a method `build`. If it takes an argument, it is called with a registry and registers its hooks there;
    otherwise it returns one. The items of a list are merged into one registry, in order.

    X470: a plugin of hooks cannot be built.

    Raises:
        ExecutionError: X470, its `build` failed, or returned no registry; X151, two hooks have one name.
    """
    if isinstance(hooks, list | tuple):
        merged = HooksAPI()
        for each in hooks:
            built = build_hooks(each)
            if not isinstance(built, HooksAPI):
                raise ExecutionError(_make_plugin_problem(each, f"it is {with_article(get_class_name(each))}"))
            for schedule, rows in built.rows.items():
                for row in rows:
                    merged._add(schedule, row.name, row.call, provides=row.provides)  # noqa: SLF001  (another registry)
        return merged
    build = getattr(hooks, "build", None)
    if isinstance(hooks, HooksAPI) or not callable(build):
        return hooks
    if isinstance(hooks, type):
        raise ExecutionError(_make_plugin_problem(hooks, f"it is a class; create an instance: {hooks.__name__}()"))
    registry = HooksAPI()
    try:
        built = build(registry) if _takes_registry(build) else build()
        built = check_ran(built)
    except Exception as error:
        raise ExecutionError(_make_plugin_problem(hooks, format_error_line(error))) from error
    if built is None and _takes_registry(build):
        return registry
    if not isinstance(built, HooksAPI):
        raise ExecutionError(_make_plugin_problem(hooks, f"its build returned {with_article(get_class_name(built))}"))
    return built


def _takes_registry(build: Callable[..., Any]) -> bool:
    parameters = inspect.signature(build).parameters.values()
    return any(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)


def _make_plugin_problem(plugin: Any, why: str) -> Problem:
    name = plugin.__name__ if isinstance(plugin, type) else type(plugin).__name__
    return Problem("X470", f"plugin {name!r} cannot be built", "hooks=...", why,
                   "add a method build(self, hooks) that calls hooks.register(...)")  # fmt: skip


def _make_failure_problem(row: Hook, event: GraphEvent, error: Exception) -> Problem:
    """X471: a provider hook has failed before a node."""
    return Problem("X471", f"hook {row.name!r} of {event.schedule} failed: {type(error).__name__}: {error}",
                   f"before node {event.node_id!r}", "the node may need the resource that the hook provides",
                   f"fix the hook, or remove it: hooks.unregister({row.name!r})")  # fmt: skip


def _schedule(schedule: Schedule | str) -> Schedule:
    """Return a schedule, from itself or from its name.

    X150: there is no such schedule.

    Raises:
        ExecutionError: X150, there is none of that name.
    """
    if schedule in Schedule.__members__:
        return Schedule(schedule)
    raise ExecutionError(
        Problem("X150", f"there is no schedule {schedule!r}", "HooksAPI.register", f"there are: {', '.join(Schedule)}",
                did_you_mean(str(schedule), Schedule.__members__, "use one of them"))
    )  # fmt: skip


def _takes_context(call: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in places and each.default is each.empty for each in parameters) > 1
