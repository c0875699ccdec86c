"""Tasks of LangGraph's functional API: each call of a task, by an entrypoint or a node, is an effect of the step.

When a caller runs again with the answer to a question, the tasks that have succeeded are not called again. A task that
is called by another task is part of that task's call.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from agentnb.dialects.inner_calls import CALLS, add_result, outside
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.caches import TaskCache
from agentnb.dialects.langgraph.parts.inner_calls import (
    NodeCalls,
    find_asking_task,
    find_finished_inside,
    get_answer,
    list_inside,
    to_question,
)
from agentnb.dialects.langgraph.parts.retries import block, compute_delay, record_retry, sleep, to_policies
from agentnb.dialects.langgraph.parts.runtime import make_inner_config
from agentnb.dialects.langgraph.parts.time_limit import TimeLimit, to_plain_limits
from agentnb.world.effect import Effect
from agentnb.world.tools.execution import drive

_CALL = lg.keys.CONFIG_KEY_CALL


class TaskRules(NamedTuple):
    """A graph's cache and its default policies for tasks that define none."""

    retries: Sequence[Any] = ()
    cache: Any = None
    cache_policy: Any = None


NO_RULES = TaskRules()


def enable_tasks(config: dict[str, Any], calls: NodeCalls, rules: TaskRules, is_async: bool, path: str = "") -> None:
    """Add to a config what a function needs to call tasks. `path` is the function's path if it is itself a task."""
    config["configurable"][_CALL] = _Caller(calls, config, rules, is_async, path)


@dataclass
class _Caller:
    """The function that LangGraph calls to call a task: it starts the task and returns a future of its result."""

    calls: NodeCalls
    config: dict[str, Any]
    rules: TaskRules
    is_async: bool
    path: str
    numbers: Any = field(default_factory=count)

    @property
    def task_id(self) -> str:
        """LangGraph's id of the task in which the function runs."""
        task_id: str = self.config["configurable"][lg.keys.CONFIG_KEY_TASK_ID]
        return task_id

    def __call__(
        self,
        function: Callable[..., Any],
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
        *,
        retry_policy: Any = None,
        cache_policy: Any = None,
        timeout: Any = None,
        callbacks: Any = None,
    ) -> Any:
        runnable = lg.get_runnable_for_task(function).steps[0]
        task = _Task(
            self, runnable, f"{self.path}/{runnable.name}:{next(self.numbers)}", _Arguments(function, *arguments)
        )
        task.policies = to_policies(retry_policy) or self.rules.retries
        task.limits = to_plain_limits(timeout)
        cache_policy = cache_policy or self.rules.cache_policy
        if cache_policy is not None and self.rules.cache is not None:
            task.entry = TaskCache(self.rules.cache, cache_policy, function)
        if self.is_async:
            return self._start(task)
        if task.is_async:
            raise RuntimeError(f"a synchronous function cannot call the async task {runnable.name!r}")
        future: Future[Any] = Future()
        try:
            future.set_result(drive(task.result()))
        except Exception as error:  # noqa: BLE001  (raised where the result is read)
            future.set_exception(error)
        return future

    def _start(self, task: _Task) -> asyncio.Task[Any]:
        running = asyncio.get_running_loop().create_task(task.result())
        self.calls.background_tasks.add(running)
        running.add_done_callback(self._discard)
        return running

    def _discard(self, ended: asyncio.Task[Any]) -> None:
        self.calls.background_tasks.discard(ended)
        if not ended.cancelled():
            ended.exception()  # marks it as retrieved: otherwise asyncio logs the failure of a task that is not awaited


class _Arguments:
    """The arguments of a call by parameter name: the form in which they are recorded and can be changed."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.passed = args, kwargs
        try:
            self.bound = inspect.signature(function).bind_partial(*args, **kwargs)
            self.by_name = dict(self.bound.arguments)
        except (TypeError, ValueError):  # the call itself raises the error
            self.by_name = {"args": list(args), "kwargs": kwargs}

    def to_call(self, by_name: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments that pass these values."""
        if all(by_name.get(name) is value for name, value in self.by_name.items()):
            return self.passed
        if "bound" not in vars(self):
            return tuple(by_name["args"]), dict(by_name["kwargs"])
        self.bound.arguments = dict(by_name)
        return self.bound.args, self.bound.kwargs


class _Task:
    """One use of a task. Each attempt is a separate call."""

    policies: Sequence[Any] = ()
    limits: dict[str, Any] | None = None
    entry: TaskCache | None = None

    def __init__(self, caller: _Caller, runnable: Any, path: str, arguments: _Arguments) -> None:
        self.caller, self.runnable, self.path, self.arguments = caller, runnable, path, arguments
        self.is_async = runnable.func is None
        self.calls = caller.calls
        self.answers = self.calls.answers.setdefault(path, [])

    async def result(self) -> Any:
        """Return the task's result; perform the task, with retries, unless it has already succeeded."""
        calls, failed = self.calls, 0
        while self.path not in calls.finished:
            attempt = f"{self.path}#{failed + 1}"
            is_known = attempt in calls.ends
            try:
                record = await self._perform_attempt(attempt)
                calls.finished |= find_finished_inside(record, attempt)
                get_answer(record)  # it may ask a person
                calls.finished[self.path] = record
            except lg.GraphBubbleUp:
                raise
            except Exception as error:
                calls.finished |= find_finished_inside(getattr(error, "result", None), attempt)
                failed += 1
                seconds = compute_delay(self.policies, failed, error, calls.work)
                if seconds is None:
                    calls.repeat_writes(getattr(error, "result", None))
                    raise
                if not is_known:  # otherwise an earlier run of the function recorded it and waited
                    record_retry(calls.work, failed, error)
                    await self._wait(seconds)
        record = calls.finished[self.path]
        calls.repeat_writes(record)
        return get_answer(record)

    async def _perform_attempt(self, attempt: str) -> Any:
        """Perform one attempt and return its record. Inside the call of another task, it is part of that call."""
        perform = partial(self._perform if self.is_async else self._perform_without_loop, attempt)
        if CALLS.get() is not self.calls:
            record = perform(**self.arguments.by_name)
            return await record if inspect.isawaitable(record) else record
        effect = Effect("task", self.runnable.name, self.arguments.by_name, target=perform)
        return await self.calls.acall(effect, attempt) if self.caller.is_async else self.calls.call(effect, attempt)

    async def _perform(self, attempt: str, /, **arguments: Any) -> dict[str, Any]:
        with outside(self.runnable.name):
            config = self._make_config(attempt)
            call = self.arguments.to_call(arguments)
            cached = None if self.entry is None else self.entry.look_up(*call)
            if cached is not None:
                return cached
            try:
                result = await self._invoke(call, config)
            except lg.GraphInterrupt as interrupt:
                return self._make_question(interrupt, attempt)
            except Exception as error:
                finished = self._find_finished(attempt)
                add_result(error, self.calls.add_writes({"finished": finished} if finished else {}))
                raise
            record = self.calls.add_writes({"value": result})
            if self.entry is not None:
                self.entry.store(*call, record)
            return record

    def _perform_without_loop(self, attempt: str, /, **arguments: Any) -> dict[str, Any]:
        return copy_context().run(drive, self._perform(attempt, **arguments))

    async def _invoke(self, call: tuple[tuple[Any, ...], dict[str, Any]], config: dict[str, Any]) -> Any:
        limit = TimeLimit(self.runnable.name, self.limits) if self.is_async and self.limits is not None else None
        if limit is not None:
            config = limit.scope.wrap_config(config)
        lg.var_child_runnable_config.set(config)  # each task has its own context
        if not self.is_async:
            return self.runnable.invoke(call, config)
        coroutine = self.runnable.ainvoke(call, config)
        return await (coroutine if limit is None else limit.keep(coroutine))

    def _make_config(self, attempt: str) -> dict[str, Any]:
        name = self.runnable.name
        metadata = {"langgraph_node": name}
        config = make_inner_config(self.caller.config, metadata, f"{self.caller.task_id}{self.path}", self.answers)
        enable_tasks(config, self.calls, self.caller.rules, self.is_async, attempt)
        return config

    def _make_question(self, interrupt: Any, attempt: str) -> dict[str, Any]:
        by = find_asking_task(interrupt.args[0][0]) or self.path
        return to_question(interrupt, by, self._find_finished(attempt))

    def _find_finished(self, attempt: str) -> dict[str, Any]:
        return list_inside(self.calls.finished, attempt)

    async def _wait(self, seconds: float) -> None:
        if self.caller.is_async:
            await sleep(self.calls.work, seconds)
        else:
            block(self.calls.work, seconds)
