"""A node's step: read the state, call the user's function, and turn what it returns into writes and targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agentnb.board.paths import SET
from agentnb.board.values import ABSENT, ATOMS, freeze, thaw
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.channels import overwritten
from agentnb.dialects.langgraph.parts.functions import caller
from agentnb.dialects.langgraph.parts.inner_calls import Calls, Suspended, resumed
from agentnb.dialects.langgraph.parts.runtime import Settings, config_of, context_of, in_context
from agentnb.dialects.langgraph.schema import END
from agentnb.engine.core.reducers import Part, Reduced, replaces
from agentnb.engine.core.supersteps import stage_of, written
from agentnb.engine.core.work import Outcome, Sent
from agentnb.text import safe_str
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from agentnb.dialects.langgraph.parts.channels import Channels
    from agentnb.engine.core.work import Work

Updates = list[tuple[str, Any]]


@dataclass(frozen=True)
class Branch:
    """A conditional edge: the spec, how its path is called, and the keys and the class of what it is given."""

    spec: Any
    call: Callable[[Any, dict[str, Any]], Any]
    is_async: bool
    keys: Sequence[str]
    mapper: Callable[[Any], Any] | None

    def collect(self, found: list[Any], result: Any, chosen: Any, config: dict[str, Any]) -> None:
        """Add the targets that a path has chosen: names, by the path map if there is one, and Sends."""

        def keep(packets: Sequence[Any], _static: bool = False) -> list[Any]:
            found.extend(packet for packet in packets if packet != END)
            return []

        self.spec._finish(keep, result, chosen, config)  # noqa: SLF001  (LangGraph's own checks of what is chosen)


@dataclass(frozen=True)
class NodePlan:
    """A node as its graph compiled it.

    `keys` are what it reads, "__root__" alone if the state is a single value; `prefix` begins the ids of the nodes
    around it. `updates` and `control` are LangGraph's own functions of what a node returns. `retries` are the policies
    by which it is tried again: the first that accepts an exception. `begins_early`: START is a node too, in a superstep
    that LangGraph does not count.
    """

    name: str
    prefix: str
    channels: Channels
    keys: Sequence[str] | str
    mapper: Callable[[Any], Any] | None
    updates: Callable[[Any], Any]
    control: Callable[[Any], Any]
    settings: Settings
    branches: list[Branch] = field(default_factory=list)
    retries: Sequence[Any] = ()
    begins_early: bool = False


class NodeCall:
    """The function of a node: it is called with the step's Work."""

    def __init__(self, plan: NodePlan, runnable: Any) -> None:
        self.plan = plan
        self.call, self.is_async = caller(runnable)
        self.slow = self.is_async or any(branch.is_async for branch in plan.branches)

    def __call__(self, work: Work) -> Any:
        """Run the node: return its outcome, or an awaitable of one."""
        return self._retried(work) if self.plan.retries else self._attempt(work)

    async def _retried(self, work: Work) -> Any:
        """Run the node until an attempt ends well, or its policies give up. Each failed attempt is an event."""
        failed = 0
        while True:
            try:
                result = self._attempt(work, failed + 1)
                return await result if isawaitable(result) else result
            except lg.GraphBubbleUp:
                raise
            except Exception as error:
                policy = next((each for each in self.plan.retries if lg.should_retry(each, error)), None)
                failed += 1
                if policy is None or failed >= policy.max_attempts:
                    raise
                work.emit("retry", {"attempt": failed, "error": f"{type(error).__name__}: {safe_str(error, 2_000)}"})
                work.copies.clear()  # the next attempt sees the state as it was
                await self._wait(work, policy, failed)

    async def _wait(self, work: Work, policy: Any, failed: int) -> None:
        """Wait as long as LangGraph would; a replay does not wait."""
        wait = min(policy.max_interval, policy.initial_interval * policy.backoff_factor ** (failed - 1))
        if policy.jitter:
            wait += work.random.random()
        if work.run.recorded is None:
            await work.loop()
            await work.run.clock.sleep(wait)

    def _attempt(self, work: Work, number: int = 1) -> Any:
        if self.slow:
            return self._awaited(work, number)
        calls = Calls(work)
        try:
            return self._once(work, [], calls, number)
        except (lg.GraphInterrupt, Suspended) as stopped:
            return self._again(work, stopped, calls.answers, number)

    def _once(self, work: Work, answers: list[Any], calls: Calls, attempt: int) -> Any:
        plan, given = self.plan, read_input(self.plan, work)
        config = config_of(work, plan.settings, answers, Reader(plan, work), attempt)
        context = context_of(config, calls)
        result = context.run(self.call, given, config)
        if isinstance(result, lg.Runnable):
            result = context.run(result.invoke, given, config)
        if isawaitable(result):
            return self._finished(work, given, context, config, result)
        return outcome(plan, work, result, plan.branches and self.routes(work, result, context, config))

    def routes(self, work: Work, result: Any, context: Any, config: dict[str, Any]) -> list[Any]:
        """Return the targets that the conditional edges choose."""
        updates, passed = self.seen_by_branches(work, result)
        found: list[Any] = []
        for branch in self.plan.branches:
            chosen = context.run(branch.call, branch_input(self.plan, branch, work, passed, updates), config)
            branch.collect(found, result, chosen, config)
        return found

    def seen_by_branches(self, work: Work, result: Any) -> tuple[Updates, Any]:
        """Return what conditional edges see besides the state: the node's own updates, and what it returned."""
        return updates_of(self.plan, result), result

    async def _again(self, work: Work, stopped: Any, known: list[Any], attempt: int) -> Any:
        """Run a node again that has asked, or one of whose calls is held, until neither happens.

        Its earlier calls are not made again: those before a held call, in this run of the step.
        """
        answers: list[Any] = []
        while True:
            if isinstance(stopped, Suspended):
                known = [*known, await resumed(stopped)]
            else:
                answers.append(await ask(work, stopped))
                known = []
            calls = Calls(work, list(known))
            try:
                result = self._once(work, list(answers), calls, attempt)
                return await result if isawaitable(result) else result
            except (lg.GraphInterrupt, Suspended) as again:
                stopped, known = again, calls.answers

    async def _awaited(self, work: Work, attempt: int) -> Any:
        answers: list[Any] = []
        while True:
            plan, given = self.plan, read_input(self.plan, work)
            config = config_of(work, plan.settings, list(answers), Reader(plan, work), attempt)
            context = context_of(config, Calls(work))
            try:
                result = context.run(self.call, given, config)
                return await self._finished(work, given, context, config, result)
            except lg.GraphInterrupt as asked:
                answers.append(await ask(work, asked))

    async def _finished(self, work: Work, given: Any, context: Any, config: dict[str, Any], result: Any) -> Any:
        if isawaitable(result):
            await work.loop()
            result = await in_context(context, _coroutine(result))
        if isinstance(result, lg.Runnable):
            await work.loop()
            result = await in_context(context, result.ainvoke(given, config))
        return await self.concluded(work, result, context, config)

    async def concluded(self, work: Work, result: Any, context: Any, config: dict[str, Any]) -> Outcome:
        """Return the outcome of a node whose conditional edges may be async."""
        plan = self.plan
        updates, passed = self.seen_by_branches(work, result)
        found: list[Any] = []
        for branch in plan.branches:
            chosen = context.run(branch.call, branch_input(plan, branch, work, passed, updates), config)
            if isawaitable(chosen):
                await work.loop()
                chosen = await in_context(context, _coroutine(chosen))
            branch.collect(found, result, chosen, config)
        return outcome(plan, work, result, found)


async def _coroutine(awaitable: Any) -> Any:
    return await awaitable


async def ask(work: Work, asked: Any) -> Any:
    """Return a person's answer to what a node has interrupted for."""
    value = asked.args[0][0].value
    return thaw(await work.call(Effect("human", work.node.id, {"prompt": value})))


class Reader:
    """Reads the state for what runs inside a node, such as tools that are given the state.

    `args` are as those of the partial function in its place in LangGraph: the second are the channels.
    """

    __slots__ = ("args", "plan", "work")

    def __init__(self, plan: NodePlan, work: Work) -> None:
        self.plan, self.work = plan, work
        self.args = (None, plan.channels.channels)

    def __call__(self, select: Any, fresh: bool = False) -> Any:
        if isinstance(select, str):
            return thaw(value) if (value := self.work.scope.get(select)) is not ABSENT else None
        return read_state(self.plan, self.work, select)


# -- what a node is given ----------------------------------------------------------------------------------------------


def read_input(plan: NodePlan, work: Work) -> Any:
    """Return what a node is called with: the input that was sent to it, else the state that its schema names."""
    event = work.event
    if event is not None:
        return thaw(event.payload["input"])
    if isinstance(plan.keys, str):
        return _read(work, plan.keys, None)
    found = read_state(plan, work, plan.keys)
    return found if plan.mapper is None else plan.mapper(found)


def read_state(plan: NodePlan, work: Work, keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of the keys that have one."""
    scope, reads, managed = work.scope, work.reads, plan.channels.managed
    found: dict[str, Any] = {}
    for key in keys:
        if key in managed:
            found[key] = managed_value(plan, managed[key], work)
            continue
        reads[key] = None
        value = scope.get(key)
        if value is not ABSENT:
            found[key] = value if type(value) in ATOMS else work.copy(key, value)
    return found


def _read(work: Work, key: str, default: Any) -> Any:
    work.reads[key] = None
    value = work.scope.get(key)
    return default if value is ABSENT else value if type(value) in ATOMS else work.copy(key, value)


def managed_value(plan: NodePlan, spec: Any, work: Work) -> Any:
    """Return a value that LangGraph computes from the number of the superstep."""
    number, most = stage_of(work.run, work.act).number - plan.begins_early, work.node.params["max_supersteps"]
    stands = lg.PregelScratchpad(
        step=number, stop=most - plan.begins_early, call_counter=int, interrupt_counter=int,
        get_null_resume=bool, resume=[], subgraph_counter=int,
    )  # fmt: skip
    return spec.get(stands)


def branch_input(plan: NodePlan, branch: Branch, work: Work, result: Any, updates: Updates) -> Any:
    """Return what a condition is given: the state with this node's own writes, and nothing of its siblings."""
    reducers, run_plan = plan.channels.reducers, work.run.plan
    own: dict[str, Any] = {}
    keys = ["__root__"] if branch.keys == "__root__" else branch.keys
    for key, value in updates:
        if key in keys:
            old = own[key] if key in own else work.scope.get(key)
            own[key] = written(old, key, as_write(plan, work, key, value) if key in reducers else value, run_plan)
    values: dict[str, Any] = {}
    for key in keys:
        if key in plan.channels.managed:
            values[key] = managed_value(plan, plan.channels.managed[key], work)
            continue
        work.reads[key] = None
        frozen = own[key] if key in own else work.scope.get(key)
        if frozen is not ABSENT:
            held = work.copies.get(key)  # as the node left it
            values[key] = held[0] if held is not None and held[1] is frozen else thaw(frozen)
    if branch.keys == "__root__":
        return values.get("__root__")
    given = values if branch.mapper is None else branch.mapper(values)
    if isinstance(given, dict) and isinstance(result, dict) and branch.spec.input_schema is None:
        return {**result, **given}
    return given


# -- what a node returns -----------------------------------------------------------------------------------------------


def updates_of(plan: NodePlan, result: Any) -> Updates:
    """Return the updates in what a node returned: (key, value)."""
    channels = plan.channels.channels
    if type(result) is dict and "__root__" not in channels:
        return [(key, value) for key, value in result.items() if key in channels]
    found = plan.updates(result)
    return [(key, value) for key, value in found or () if key in channels]


def as_write(plan: NodePlan, work: Work, key: str, value: Any) -> Any:
    """Return the write for one update of a key with a reducer."""
    if key in plan.channels.messages:
        value = with_ids(work, value)
    whole, new = overwritten(value)
    return Reduced([Part("", SET, (), freeze(new)) if whole else Part(work.node.id, SET, (), freeze(value))])


def with_ids(work: Work, value: Any) -> Any:
    """Return messages with ids: those that have none get one that a replay draws again."""
    try:
        messages = lg.convert_to_messages(value if isinstance(value, list) else [value])
    except (ValueError, TypeError, NotImplementedError):
        return value  # the reducer says what is wrong
    for message in messages:
        if message.id is None:
            message.id = str(UUID(int=work.random.getrandbits(128), version=4))
    return messages


def _joined(old: Reduced, new: Reduced, key: str) -> Reduced:
    """Return two writes of one node to a key as one: an Overwrite is all that remains."""
    if replaces(old.parts) and replaces(new.parts):
        raise lg.InvalidUpdateError(f"At key {key!r}: can receive only one Overwrite value per step")
    return old if replaces(old.parts) else new if replaces(new.parts) else Reduced([*old.parts, *new.parts])


def outcome(plan: NodePlan, work: Work, result: Any, found: Sequence[Any]) -> Outcome:
    """Return the step's writes and the targets that it chose."""
    writes: dict[str, Any] = {}
    reducers = plan.channels.reducers
    for key, value in updates_of(plan, result):
        if key in reducers:
            new = as_write(plan, work, key, value)
            writes[key] = _joined(writes[key], new, key) if key in writes else new
        elif key in writes:
            raise lg.InvalidUpdateError(f"At key {key!r}: can receive only one value per step")
        else:
            writes[key] = value
    try:
        control = () if type(result) is dict or result is None else plan.control(result)
    except lg.ParentCommand as upward:
        if not plan.prefix:
            raise lg.InvalidUpdateError("There is no parent graph") from upward
        return Outcome(route=[work.end_frame("command", upward.args[0])])
    route: list[str | Sent] = []
    for name, value in control:
        route.append(_sent(plan, work, value) if name == lg.keys.TASKS else plan.prefix + name[len("branch:to:") :])
    route += [_sent(plan, work, to) if isinstance(to, lg.Send) else plan.prefix + to for to in found]
    return Outcome(writes, route=route or None)


def _sent(plan: NodePlan, work: Work, packet: Any) -> Sent:
    return work.send(plan.prefix + packet.node, packet.arg)


__all__ = ["Branch", "NodeCall", "NodePlan", "outcome", "read_input", "updates_of"]
