"""A node's step: read the state, call the user's function, and convert its result to writes and targets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.board.copies import make_reader_copy, seems_unchanged
from agentnb.board.paths import SET
from agentnb.board.values import ABSENT, ATOMS, freeze, thaw
from agentnb.dialects.inner_calls import Suspended, run_in_context
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.channels import split_overwrite
from agentnb.dialects.langgraph.parts.functions import Callers, make_callers
from agentnb.dialects.langgraph.parts.inner_calls import NodeCalls
from agentnb.dialects.langgraph.parts.plain_values import to_plain_command
from agentnb.dialects.langgraph.parts.retries import compute_delay, record_retry, sleep
from agentnb.dialects.langgraph.parts.runtime import Settings, make_config, make_context
from agentnb.dialects.langgraph.parts.task_calls import NO_RULES, TaskRules, enable_tasks
from agentnb.dialects.langgraph.parts.time_limit import TimeLimit, make_time_limit, to_plain_limits
from agentnb.dialects.langgraph.schema import END
from agentnb.engine.core.reducers import Part, ReducedWrite, replaces_value
from agentnb.engine.core.supersteps import (
    SuperstepError,
    apply_write,
    find_handled_failure,
    get_stage,
    get_superstep_limit,
)
from agentnb.engine.core.waits import get_sent_input
from agentnb.engine.core.work import Outcome, SendTarget
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.model import RouteTarget
from agentnb.recipe.user_functions import get_own_attribute
from agentnb.text import safe_str

if TYPE_CHECKING:
    from contextvars import Context

    from agentnb.dialects.langgraph.parts.channels import Channels
    from agentnb.engine.core.history import Event
    from agentnb.engine.core.work import Target, Work


class Update(NamedTuple):
    """One update of a key: the node's value, and the write made from it."""

    key: str
    value: Any
    write: Any


Updates = Sequence[Update]
_TASKS: Final = lg.keys.TASKS
_TO: Final = "branch:to:"
_AWAITED: Final = "awaited"


@dataclass(frozen=True)
class Branch:
    """A conditional edge: the spec, how its path is called, and the keys and the class of its argument.

    `conditions` maps the values of its path map to the conditions of the edges in the recipe.
    """

    spec: Any
    callers: Callers
    keys: Sequence[str]
    mapper: Callable[[Any], Any] | None
    conditions: Mapping[Any, str]

    def collect(self, results: list[Any], result: Any, chosen: Any, config: dict[str, Any]) -> None:
        """Add the targets that a condition has chosen: nodes, with the value that chose each of them, and Sends."""
        values, conditions = chosen if isinstance(chosen, list | tuple) else [chosen], self.conditions

        def keep(packets: Sequence[Any], _static: bool = False) -> list[Any]:
            results.extend(packet if isinstance(packet, lg.Send) else RouteTarget(packet, conditions.get(value, packet))
                           for value, packet in zip(values, packets, strict=True) if packet != END)  # fmt: skip
            return []

        self.spec._finish(keep, result, chosen, config)  # noqa: SLF001  (LangGraph's own checks of what is chosen)


@dataclass(frozen=True)
class NodePlan:
    """A node as its graph compiled it.

    `keys` are the keys that it reads, "__root__" alone if the state is a single value; `prefix` begins the ids of all
    nodes of its graph, and `names` are their names. `updates` and `control` are LangGraph's own functions that read a
    node's result. `retries` are its retry policies; the first that accepts an exception applies. `timeout` limits each
    attempt. `handled`: an error handler follows if the node fails. `static` are LangGraph's writes for the node's
    edges, which a cache needs. `begins_early`: START is a node, too, in a superstep that LangGraph does not count.
    `tasks` are the rules for the tasks that the node calls, `metadata` is the metadata in its config.
    """

    name: str
    prefix: str
    channels: Channels
    keys: Sequence[str] | str
    mapper: Callable[[Any], Any] | None
    updates: Callable[[Any], Any]
    control: Callable[[Any], Any]
    settings: Settings
    names: Collection[str]
    branches: list[Branch] = field(default_factory=list)
    retries: Sequence[Any] = ()
    timeout: Any = None
    handled: bool = False
    static: Sequence[tuple[str, Any]] = ()
    begins_early: bool = False
    tasks: TaskRules = NO_RULES
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Form(NamedTuple):
    """How a node calls its function and its conditional edges. `slow`: one of them is awaited."""

    call: Callable[[Any, dict[str, Any]], Any]
    is_async: bool
    branches: Sequence[tuple[Branch, Callable[[Any, dict[str, Any]], Any]]]
    slow: bool


def _make_form(plan: NodePlan, callers: Callers, *, awaited: bool = False) -> Form:
    own, *others = [
        each.awaited if awaited else each.plain for each in (callers, *(branch.callers for branch in plan.branches))
    ]
    branches = [(branch, each.call) for branch, each in zip(plan.branches, others, strict=True)]
    return Form(*own, branches, own.is_async or any(each.is_async for each in others))


class NodeCall:
    """The function of a node: it is called with the step's Work."""

    def __init__(self, plan: NodePlan, runnable: Any) -> None:
        self.plan = plan
        callers = make_callers(runnable)
        self.plain, self.awaited = _make_form(plan, callers), _make_form(plan, callers, awaited=True)
        self.differs = callers.differ or any(branch.callers.differ for branch in plan.branches)
        self.recurse = get_own_attribute(runnable, "recurse", default=True)

    def __call__(self, work: Work) -> Any:
        """Run the node: return its outcome, or an awaitable of one."""
        form = self.choose_form(work)
        return self._run_with_retries(work, form) if self.plan.retries else self._attempt(work, form)

    def choose_form(self, work: Work) -> Form:
        """Return the functions that the node calls: as in LangGraph, the async ones if the run is awaited.

        An event records that the run was awaited, so a replay calls the same functions.
        """
        if not self.differs:
            return self.plain
        run = work.run
        if self.plan.settings.only_async or self.plan.timeout is not None:  # a sync function cannot be interrupted
            return self.awaited
        if self.plan.settings.only_sync:
            return self.plain
        event = None if run.recorded is None else run.recorded.next_event(work)
        if not run.uses_threads if event is None else event.type != _AWAITED:
            return self.plain
        work.emit(_AWAITED, {})
        return self.awaited

    async def _run_with_retries(self, work: Work, form: Form) -> Any:
        """Run the node until an attempt succeeds or the retries are exhausted. Each failed attempt is an event."""
        failed = 0
        while True:
            result: Any = None
            try:
                result = self._attempt(work, form, failed + 1)
                if isawaitable(result):
                    result = await result
                if not isinstance(result, Outcome) or result.error is None:
                    return result
                raise result.error
            except (lg.GraphBubbleUp, SuperstepError):
                raise
            except Exception as error:
                failed += 1
                seconds = compute_delay(self.plan.retries, failed, error, work)
                if seconds is None:
                    if isinstance(result, Outcome):
                        return result
                    raise
                record_retry(work, failed, error)
                work.copies.clear()  # the next attempt sees the state as it was
                await sleep(work, seconds)

    def _attempt(self, work: Work, form: Form, number: int = 1) -> Any:
        calls = NodeCalls(work)
        run = partial(self._run_once, calls, form, number)
        if form.slow:
            return calls.run_until_ended(run)
        try:
            return run()
        except calls.stops as stopped:
            return calls.run_until_ended(run, stopped)

    def _run_once(self, calls: NodeCalls, form: Form, attempt: int) -> Any:
        plan, work = self.plan, calls.work
        calls.sends.clear()
        node_input = read_input(plan, work)
        config = self._make_config(calls, attempt)
        enable_tasks(config, calls, plan.tasks, form.is_async)
        limit = self._get_limit(work)
        if limit is not None:
            if not form.slow:
                raise lg.sync_timeout_unsupported(plan.name)
            config = limit.scope.wrap_config(config)
        context = make_context(config, calls)
        try:
            result = context.run(form.call, node_input, config)
        except lg.ParentCommand as upward:
            result = self._to_command(upward, config)
        except asyncio.CancelledError as error:
            raise self._to_failure(error, work) from error
        plain = type(result) is dict  # the usual case; the checks for other results take a microsecond
        if not plain and self.recurse and isinstance(result, lg.Runnable) and not form.slow:
            result = context.run(result.invoke, node_input, config)
            plain = type(result) is dict
        if form.slow or (not plain and isawaitable(result)):
            ending = self._await_outcome(calls, form, node_input, context, config, result)
            return ending if limit is None else _run_within_limit(limit, work, ending)
        if not plan.branches:
            return make_outcome(plan, work, result, (), calls.sends)
        return self.make_routed_outcome(calls, form, result, context, config)

    def _to_command(self, upward: lg.ParentCommand, config: dict[str, Any]) -> Any:
        """Return the Command that the node's function raised, as its result.

        A node of a graph that the function invokes leaves that graph for this one, or for an enclosing one.
        """
        command = upward.args[0]
        if command.graph in (config["configurable"][lg.keys.CONFIG_KEY_CHECKPOINT_NS], self.plan.name):
            return replace(command, graph=None)
        if command.graph == lg.Command.PARENT and self.plan.prefix:
            return command
        raise _make_no_parent_error(self.plan, upward)

    def _to_failure(self, error: asyncio.CancelledError, work: Work) -> BaseException:
        """Return the failure of a node that raised CancelledError itself; the error if its step was cancelled."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no event loop runs here
            task = None
        if work.has_ended or (task is not None and task.cancelling()):
            return error
        failure: Exception = lg.NodeCancelledError(self.plan.name)
        return failure

    def _make_config(self, calls: NodeCalls, attempt: int) -> dict[str, Any]:
        plan, work = self.plan, calls.work
        metadata = {"langgraph_step": get_superstep(plan, work), "langgraph_node": plan.name, **plan.metadata}
        return make_config(work, plan.settings, calls, Reader(plan, work), metadata, attempt)

    def _get_limit(self, work: Work) -> TimeLimit | None:
        return make_time_limit(self.plan.name, self.plan.timeout, work)

    def choose_after_skip(self, work: Work) -> Sequence[Target]:
        """Return the targets that the conditional edges choose if this node is skipped.

        Raises:
            ExecutionError: L587, the conditional edges are async, make calls or fail.
        """
        plan, targets = self.plan, list[Any]()
        calls = NodeCalls(work)
        config = self._make_config(calls, 1)
        context = make_context(config, calls)
        try:
            for branch in plan.branches:
                call, is_async = branch.callers.plain
                if is_async:
                    raise _make_skip_error(plan, "a condition is async")
                chosen = context.run(call, make_branch_input(plan, branch, work, None, ()), config)
                branch.collect(targets, None, chosen, config)
        except calls.stops as stopped:
            raise _make_skip_error(plan, "a condition calls a model, a tool or a person") from stopped
        except ExecutionError:
            raise
        except Exception as error:
            raise _make_skip_error(plan, f"{type(error).__name__}: {safe_str(error, 2_000)}") from error
        return make_outcome_of_updates(plan, work, (), targets).route or ()

    def make_routed_outcome(
        self, calls: NodeCalls, form: Form, result: Any, context: Context, config: dict[str, Any]
    ) -> Outcome:
        """Return the outcome of a node with the targets that its conditional edges choose."""
        plan, work, results = self.plan, calls.work, list[Any]()
        updates = list_updates(plan, work, result, calls.sends)
        seen, passed = self.select_for_branches(calls, result, updates)
        try:
            for branch, call in form.branches:
                chosen = context.run(call, make_branch_input(plan, branch, work, passed, seen), config)
                branch.collect(results, result, chosen, config)
        except Exception as error:  # noqa: BLE001  (raised again unless it is handled)
            return self._make_partial_outcome(calls, result, results, updates, error)
        return make_outcome(plan, work, result, results, calls.sends, updates)

    def _make_partial_outcome(
        self, calls: NodeCalls, result: Any, results: list[Any], updates: Updates, error: Exception
    ) -> Outcome:
        """Return the outcome of a node with a failed conditional edge, if an error handler follows.

        As in LangGraph, the node's writes remain, and the edges before the failed one are followed.
        """
        if not self.plan.handled or isinstance(error, lg.GraphBubbleUp):
            raise error
        half = make_outcome(self.plan, calls.work, result, results, calls.sends, updates)
        half.error = error
        return half

    def select_for_branches(self, calls: NodeCalls, result: Any, updates: Updates) -> tuple[Updates, Any]:
        """Return the input of conditional edges besides the state: the node's own updates, and its result."""
        return updates, result

    async def _await_outcome(
        self, calls: NodeCalls, form: Form, node_input: Any, context: Context, config: dict[str, Any], result: Any
    ) -> Any:
        work = calls.work
        try:
            if isawaitable(result):
                await work.loop()
                result = await run_in_context(context, _to_coroutine(result))
            if self.recurse and isinstance(result, lg.Runnable):
                await work.loop()
                result = await run_in_context(context, result.ainvoke(node_input, config))
        except lg.ParentCommand as upward:
            result = self._to_command(upward, config)
        except (Exception, Suspended):
            await calls.wait()
            raise
        except asyncio.CancelledError as error:
            calls.cancel()
            raise self._to_failure(error, work) from error
        except BaseException:  # the step is abandoned
            calls.cancel()
            raise
        await calls.wait()
        return await self.await_routed_outcome(calls, form, result, context, config)

    async def await_routed_outcome(
        self, calls: NodeCalls, form: Form, result: Any, context: Context, config: dict[str, Any]
    ) -> Outcome:
        """Return the outcome of a node whose conditional edges may be async."""
        plan, work, results = self.plan, calls.work, list[Any]()
        updates = list_updates(plan, work, result, calls.sends)
        seen, passed = self.select_for_branches(calls, result, updates)
        try:
            for branch, call in form.branches:
                chosen = context.run(call, make_branch_input(plan, branch, work, passed, seen), config)
                if isawaitable(chosen):
                    await work.loop()
                    chosen = await run_in_context(context, _to_coroutine(chosen))
                branch.collect(results, result, chosen, config)
        except Exception as error:  # noqa: BLE001  (raised again unless it is handled)
            return self._make_partial_outcome(calls, result, results, updates, error)
        return make_outcome(plan, work, result, results, calls.sends, updates)


class HandlerCall(NodeCall):
    """The function of an error handler, which receives the failed node's input and error.

    As in LangGraph, it has no timeout. `source` is the id of the failed node, `failed` its name.
    """

    def __init__(self, plan: NodePlan, runnable: Any, source: str, failed: str) -> None:
        super().__init__(plan, runnable)
        self.source, self.failed = source, failed

    def _make_config(self, calls: NodeCalls, attempt: int) -> dict[str, Any]:
        failure = find_handled_failure(calls.work.run, calls.work.activation, self.source)
        error = None if failure is None else failure.error or ExecutionError(failure.message)
        config = super()._make_config(calls, attempt)
        config["configurable"][lg.keys.CONFIG_KEY_NODE_ERROR] = lg.NodeError(node=self.failed, error=error)
        return config

    def _get_limit(self, work: Work) -> TimeLimit | None:
        return None


async def _run_within_limit(limit: TimeLimit, work: Work, ending: Coroutine[Any, Any, Any]) -> Any:
    await work.loop()
    return await limit.keep(ending)


async def _to_coroutine(awaitable: Any) -> Any:
    return await awaitable


class Reader:
    """Reads the state for code inside a node, such as tools that receive the state.

    LangGraph has a partial function in its place; `args` mirrors that function's arguments, the second of which are
    the channels.
    """

    __slots__ = ("args", "plan", "work")

    def __init__(self, plan: NodePlan, work: Work) -> None:
        self.plan, self.work = plan, work
        self.args = (None, plan.channels.channels)

    def __call__(self, select: Any, fresh: bool = False) -> Any:
        if isinstance(select, str):
            return thaw(value) if (value := self.work.scope.get(select)) is not ABSENT else None
        return read_state(self.plan, self.work, select)


# -- the input of a node -----------------------------------------------------------------------------------------------


def read_input(plan: NodePlan, work: Work) -> Any:
    """Return the argument of a node: the input that was sent to it, otherwise the keys of its schema."""
    return make_input(plan, work, work.event)


def make_input(plan: NodePlan, work: Work, event: Event | None) -> Any:
    """Return the argument of a node: the input in this event; without an event, the keys of its schema."""
    if event is not None:
        return thaw(get_sent_input(work, event))
    if isinstance(plan.keys, str):
        return _read(work, plan.keys, None)
    state = read_state(plan, work, plan.keys)
    return state if plan.mapper is None else plan.mapper(state)


def read_state(plan: NodePlan, work: Work, keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of those keys that have a value."""
    scope, reads, managed = work.scope, work.reads, plan.channels.managed
    state: dict[str, Any] = {}
    for key in keys:
        if key in managed:
            state[key] = compute_managed_value(plan, managed[key], work)
            continue
        reads[key] = None
        value = scope.get(key)
        if value is not ABSENT:
            state[key] = value if type(value) in ATOMS else work.copy(key, value)
    return state


def _read(work: Work, key: str, default: Any) -> Any:
    work.reads[key] = None
    value = work.scope.get(key)
    return default if value is ABSENT else value if type(value) in ATOMS else work.copy(key, value)


def get_superstep(plan: NodePlan, work: Work) -> int:
    """Return the number of the superstep in which a node runs, as LangGraph counts."""
    return get_stage(work.run, work.activation).number - plan.begins_early


def compute_managed_value(plan: NodePlan, spec: Any, work: Work) -> Any:
    """Return a value that LangGraph computes from the number of the superstep."""
    number, limit = get_superstep(plan, work), get_superstep_limit(work.run, work.activation)
    scratchpad = lg.PregelScratchpad(
        step=number, stop=(limit or 0) - plan.begins_early, call_counter=int, interrupt_counter=int,
        get_null_resume=bool, resume=[], subgraph_counter=int,
    )  # fmt: skip
    return spec.get(scratchpad)


def make_branch_input(plan: NodePlan, branch: Branch, work: Work, result: Any, updates: Updates) -> Any:
    """Return the argument of a condition: the state with this node's own writes, but without its siblings' writes."""
    own: dict[str, Any] = {}
    keys = ["__root__"] if branch.keys == "__root__" else branch.keys
    for key, _, write in updates:
        if key in keys:
            own[key] = apply_write(own[key] if key in own else _get_as_left(work, key), key, write, work.run.plan)
    values: dict[str, Any] = {}
    for key in keys:
        if key in plan.channels.managed:
            values[key] = compute_managed_value(plan, plan.channels.managed[key], work)
            continue
        work.reads[key] = None
        frozen = own[key] if key in own else work.scope.get(key)
        if frozen is not ABSENT:
            copied = work.copies.get(key)  # as the node left it
            values[key] = copied[0] if copied is not None and copied[1] is frozen else make_reader_copy(frozen)
    if branch.keys == "__root__":
        return values.get("__root__")
    branch_input = values if branch.mapper is None else branch.mapper(values)
    if isinstance(branch_input, dict) and isinstance(result, dict) and branch.spec.input_schema is None:
        return {**result, **branch_input}
    return branch_input


def _get_as_left(work: Work, key: str) -> Any:
    """Return the frozen value of a key, including changes that the node's function made in place."""
    value, copied = work.scope.get(key), work.copies.get(key)
    if copied is None or copied[1] is not value or seems_unchanged(*copied):
        return value
    return freeze(copied[0], value)


# -- the result of a node ----------------------------------------------------------------------------------------------


def read_updates(plan: NodePlan, result: Any) -> list[tuple[str, Any]]:
    """Return the updates in a node's result as pairs (key, value)."""
    channels = plan.channels.channels
    if type(result) is dict and plan.channels.by_key:
        return [(key, value) for key, value in result.items() if key in channels]
    updates = plan.updates(result)
    return [(key, value) for key, value in updates or () if key in channels]


def list_updates(plan: NodePlan, work: Work, result: Any, sent: Sequence[tuple[str, Any]]) -> Updates:
    """Return the updates of a node: those `sent` by its function, then those in its result."""
    pairs = read_updates(plan, result)
    if sent:
        pairs = [*((key, value) for key, value in sent if key in plan.channels.channels), *pairs]
    return to_updates(plan, work, pairs)


def to_updates(plan: NodePlan, work: Work, pairs: Sequence[tuple[str, Any]]) -> Updates:
    """Return pairs of key and value as updates."""
    reducers = plan.channels.reducers
    return [Update(key, value, to_write(plan, work, key, value) if key in reducers else value) for key, value in pairs]


def to_write(plan: NodePlan, work: Work, key: str, value: Any) -> Any:
    """Return the write for one update of a key with a reducer."""
    if key in plan.channels.messages:
        value = assign_ids(work, value)
    elif key in plan.channels.deltas:
        value = assign_delta_ids(plan, work, key, value)
    overwrites, new = split_overwrite(value)
    return ReducedWrite([Part("", SET, (), freeze(new)) if overwrites else Part(work.node.id, SET, (), freeze(value))])


def assign_ids(work: Work, value: Any) -> Any:
    """Return messages with ids; a replay draws the same ids, another run draws others."""
    try:
        messages = lg.convert_to_messages(value if isinstance(value, list) else [value])
    except (ValueError, TypeError, NotImplementedError):
        return value  # the reducer reports the error
    for message in messages:
        if message.id is None:
            message.id = str(work.make_uuid())
    return messages


def assign_delta_ids(plan: NodePlan, work: Work, key: str, value: Any) -> Any:
    """Return a write of a DeltaChannel in which every message has an id; a replay draws the same ids."""
    known = {message.id for message in _find_messages(value)}
    writes = [(key, value)]
    lg.ensure_message_ids(plan.channels.channels, writes)
    for message in _find_messages(writes[0][1]):
        if message.id not in known:
            message.id = str(work.make_uuid())
    return writes[0][1]


def _find_messages(value: Any) -> list[Any]:
    overwrites, new = split_overwrite(value)
    items = new if overwrites else value
    return [
        item for item in (items if isinstance(items, list | tuple) else [items]) if isinstance(item, lg.BaseMessage)
    ]


def _join(old: ReducedWrite, new: ReducedWrite, key: str) -> ReducedWrite:
    """Combine two writes of one node to a key; an Overwrite discards the other write."""
    if replaces_value(old.parts) and replaces_value(new.parts):
        raise _make_merge_error(f"At key {key!r}: can receive only one Overwrite value per step")
    return (
        old
        if replaces_value(old.parts)
        else new
        if replaces_value(new.parts)
        else ReducedWrite([*old.parts, *new.parts])
    )


def make_outcome(
    plan: NodePlan,
    work: Work,
    result: Any,
    results: Sequence[Any],
    sent: Sequence[tuple[str, Any]] = (),
    updates: Updates | None = None,
) -> Outcome:
    """Return the step's writes and the targets that it chose.

    `sent` are the function's own writes; `updates` contains all updates, if they are already known.
    """
    try:
        control = () if type(result) is dict or result is None else plan.control(result) or ()
    except lg.ParentCommand as upward:
        if not plan.prefix:
            raise _make_no_parent_error(plan, upward) from upward
        return Outcome(route=[work.end_frame("command", to_plain_command(upward.args[0]))])
    control = [*(write for write in sent if write[0] == _TASKS or write[0].startswith(_TO)), *control]
    gone_to = [RouteTarget(to, "") if isinstance(to, str) else to for to in map(read_target, control)]
    known = list_updates(plan, work, result, sent) if updates is None else updates
    return make_outcome_of_updates(plan, work, known, [*gone_to, *results])


def read_target(write: tuple[str, Any]) -> Any:
    """Return the target of one of LangGraph's writes: a Send, or the name of a node."""
    name, value = write
    return value if name == _TASKS else name[len(_TO) :]


def make_outcome_of_updates(
    plan: NodePlan, work: Work, updates: Updates, targets: Sequence[str | RouteTarget | lg.Send]
) -> Outcome:
    """Return the outcome for a node's updates and the targets that it chose.

    The outcome's `result` contains all of LangGraph's writes of the node, in order.
    """
    writes: dict[str, Any] = {}
    for key, _, write in updates:
        if key not in writes:
            writes[key] = write
        elif key in plan.channels.reducers:
            writes[key] = _join(writes[key], write, key)
        else:
            raise _make_merge_error(f"At key {key!r}: can receive only one value per step")
    route: list[Target] = []
    control: list[tuple[str, Any]] = []
    for to in targets:
        name = to if isinstance(to, str) else to.node
        control.append((_TASKS, to) if isinstance(to, lg.Send) else (_TO + name, None))
        if name not in plan.names:  # LangGraph logs a warning and continues
            work.emit("unknown_target", {"target": name})
        elif isinstance(to, lg.Send):
            route.append(_make_send_target(plan, work, to))
        else:
            route.append(plan.prefix + to if isinstance(to, str) else RouteTarget(plan.prefix + name, to.condition))
    values = [(key, value) for key, value, _ in updates]
    return Outcome(writes, route=route or None, result=[*values, *plan.static, *control])


def _make_skip_error(plan: NodePlan, why: str) -> ExecutionError:
    """Return the error of a node that cannot be skipped.

    L587: the conditional edges of a skipped node of LangGraph are async, make calls or fail.
    """
    node = plan.prefix + plan.name
    return ExecutionError(
        Problem("L587", f"{node!r} cannot be skipped: its conditional edges cannot choose the next node",
                f"node {node!r}", why, "run the node, or edit the board and choose the next node with set_next()")
    )  # fmt: skip


def _make_merge_error(what: str) -> Exception:
    """Return the error, with its cause, of updates that LangGraph cannot merge when the superstep ends.

    L559: a node of LangGraph makes two updates of a key that cannot be combined.
    """
    error = SuperstepError(Problem("L559", what, "the updates of a node", "no reducer combines them",
                                   "declare a reducer for the key, or update it only once"))  # fmt: skip
    error.__cause__ = lg.InvalidUpdateError(what)
    return error


def _make_no_parent_error(plan: NodePlan, upward: lg.ParentCommand) -> Exception:
    """Return the error, with its cause, of a node that leads out of the outermost graph; nothing handles it.

    L544: a node of LangGraph leads out of its graph, which has no parent graph.
    """
    error = SuperstepError(
        Problem("L544", f"node {plan.name!r} leads out of its graph, which has no parent graph", f"node {plan.name!r}",
                f"LangGraph raises ParentCommand: {upward.args[0]!r}",
                "load the graph that has this one as a node, or return a Command without graph=Command.PARENT")
    )  # fmt: skip
    error.__cause__ = upward
    return error


def _make_send_target(plan: NodePlan, work: Work, packet: Any) -> SendTarget:
    node, limits = plan.prefix + packet.node, to_plain_limits(packet.timeout)
    if limits is None:
        return work.send(node, packet.arg)
    return SendTarget(node, work.emit("send", {"node": node, "input": packet.arg, "timeout": limits}).seq)


__all__ = [
    "Branch",
    "HandlerCall",
    "NodeCall",
    "NodePlan",
    "list_updates",
    "make_input",
    "make_outcome",
    "make_outcome_of_updates",
    "read_input",
    "read_target",
    "read_updates",
    "to_updates",
]
