"""An action's step: pass it the state and its inputs, call it, and turn the returned state into writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import thaw
from agentnb.dialects.burr.parts import package as burr
from agentnb.dialects.burr.parts.state import BoardState, ReadRecording, Values, writes_of
from agentnb.dialects.inner_calls import CALLS, Calls, run_in_context
from agentnb.engine.core.work import Outcome
from agentnb.world.effect import Effect

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work

_NO_HOOKS = burr.LifecycleAdapterSet()


@dataclass
class ActionCalls(Calls):
    """The calls of an action. `items` counts the emitted items of its stream, because the action may run again."""

    items: int = 0

    def emit_item(self, number: int, item: Any) -> None:
        """Emit an item of the stream, counted from 1, unless it was emitted before the action ran again."""
        if number > self.items:
            self.items = number
            self.work.emit("stream_item", item)


def install_calls() -> None:
    """Attribute calls of LangChain's models and tools, if it is imported, to the step in which they are made."""
    if "langchain_core.language_models.chat_models" in sys.modules:
        from agentnb.dialects import langchain_calls

        langchain_calls.install()


@dataclass(frozen=True)
class Origin:
    """The application that an action belongs to.

    `number` is the sequence id of its next step; `prior` is its last action; `extra` is the number of steps that a
    session makes before the first action.
    """

    application: Any
    typing_system: Any
    number: int
    prior: str | None
    extra: int

    def sequence_id(self, work: Work) -> int:
        """Return Burr's sequence id for the step."""
        return self.number + work.run.position - self.extra

    def hidden_values(self, work: Work) -> dict[str, Any]:
        """Return the keys that Burr itself keeps in the state."""
        last = _get_last_node(work) if work.run.position > self.extra else self.prior
        values: dict[str, Any] = {burr.SEQUENCE_ID: self.sequence_id(work)}
        return values if last is None else {**values, burr.PRIOR_STEP: last}


def _get_last_node(work: Work) -> str | None:
    last = work.run.get_last_activation()
    return None if last is None else work.run.plan.nodes[last.node].id


class ActionCall:
    """The function of a node: it is called with the step's Work."""

    def __init__(self, action: Any, origin: Origin) -> None:
        self.action, self.origin = action, origin
        self.required, self.optional = action.optional_and_required_inputs
        self.is_async = action.is_async()

    def __call__(self, work: Work) -> Any:
        """Run the action: return its outcome, or an awaitable of one."""
        install_calls()
        inputs = self._collect_inputs(work) if self.required or self.optional else {}
        missing = sorted(self.required - inputs.keys())
        calls = ActionCalls(work)
        run = partial(self._outcome, calls, inputs)
        if missing or self.is_async:
            return self._ask_and_run(calls, run, inputs, missing)
        try:
            return run()
        except calls.stops as stopped:
            return calls.run_until_ended(run, stopped)

    def _collect_inputs(self, work: Work) -> dict[str, Any]:
        """Return the arguments besides the state: the inputs of the run, and those that Burr injects."""
        names, inputs = self.required | self.optional, work.inputs
        collected = {name: thaw(inputs[name]) for name in names if name in inputs}
        return collected | {name: make(self, work) for name, make in _INJECTED.items() if name in names}

    async def _ask_and_run(
        self, calls: ActionCalls, run: Callable[[], Any], inputs: dict[str, Any], missing: list[str]
    ) -> Any:
        work = calls.work
        for name in missing:
            question = {"prompt": f"{self.action.name} needs {name!r}", "input": name}
            inputs[name] = thaw(await work.call(Effect("human", work.node.id, question)))
        if self.is_async:
            await work.loop()
        return await calls.run_until_ended(run)

    def _outcome(self, calls: ActionCalls, inputs: dict[str, Any]) -> Any:
        """Return the outcome, or a coroutine of one.

        Models and tools used in the action are called through its step.
        """
        context = copy_context()
        context.run(CALLS.set, calls)
        if self.is_async:
            return run_in_context(context, self._run_async(calls, inputs))
        return context.run(self._run, calls, inputs)

    def _run(self, calls: ActionCalls, inputs: dict[str, Any]) -> Outcome:
        with _make_context(self, calls.work):
            return self._make_outcome(calls, inputs)

    async def _run_async(self, calls: ActionCalls, inputs: dict[str, Any]) -> Outcome:
        with _make_context(self, calls.work):
            return await self._make_outcome_async(calls, inputs)

    def _make_outcome(self, calls: ActionCalls, inputs: dict[str, Any]) -> Outcome:
        work, number = calls.work, 0
        action, state = self.action, self._make_state(work)
        if action.streaming:
            reducer: Any = ActionReducer(action, state)
            run = burr.stream_single if action.single_step else burr.stream_multi
            result = new = None
            for result, new in run(
                action if action.single_step else reducer, state, inputs, **self._make_identity(work)
            ):
                if new is None:
                    number += 1
                    calls.emit_item(number, result)
            new = new if action.single_step else reducer.new
        elif action.single_step:
            action.validate_inputs(inputs)
            result, new = burr.adjust_output(action.run_and_update(state, **inputs), action.name, action.schema)
            self._check(result, new)
        else:
            result = burr.run_function(action, state, inputs, action.name)
            return self._reduce(state, result)
        return _make_outcome(state, result, new)

    async def _make_outcome_async(self, calls: ActionCalls, inputs: dict[str, Any]) -> Outcome:
        work, number = calls.work, 0
        action, state = self.action, self._make_state(work)
        if action.streaming:
            reducer: Any = ActionReducer(action, state)
            run = burr.astream_single if action.single_step else burr.astream_multi
            result = new = None
            async for result, new in run(
                action if action.single_step else reducer, state, inputs, **self._make_identity(work)
            ):
                if new is None:
                    number += 1
                    calls.emit_item(number, result)
            new = new if action.single_step else reducer.new
        elif action.single_step:
            action.validate_inputs(inputs)
            output = await action.run_and_update(state, **inputs)
            result, new = burr.adjust_output(output, action.name, action.schema)
            self._check(result, new)
        else:
            result = await burr.arun_function(action, state, inputs, action.name)
            return self._reduce(state, result)
        return _make_outcome(state, result, new)

    def _make_state(self, work: Work) -> BoardState:
        return BoardState(Values(work, self.origin.hidden_values(work), {}, ReadRecording()), self.origin.typing_system)

    def _make_identity(self, work: Work) -> dict[str, Any]:
        application = self.origin.application
        return {
            "sequence_id": self.origin.sequence_id(work),
            "app_id": application.uid,
            "partition_key": application.partition_key,
            "lifecycle_adapters": _NO_HOOKS,
        }

    def _check(self, result: Any, new: Any) -> None:
        burr.check_result(result, self.action.name, self.action.schema)
        burr.check_writes(self.action, new, self.action.name)

    def _reduce(self, state: BoardState, result: Any) -> Outcome:
        reducer: Any = ActionReducer(self.action, state)
        burr.run_reducer(reducer, state, result, self.action.name)
        return _make_outcome(state, result, reducer.new)


class ActionReducer:
    """An action whose update is observed: the state that it returns, before Burr merges it with the previous one."""

    def __init__(self, action: Any, state: BoardState) -> None:
        self.action, self.state, self.new = action, state, None

    def update(self, result: Any, state: Any) -> Any:
        """Return what the action's own update returns."""
        self.new = self.action.update(result, state)
        self.state.values_given.end()
        return self.new

    def __getattr__(self, name: str) -> Any:
        return getattr(self.action, name)


def _make_outcome(state: BoardState, result: Any, new: Any) -> Outcome:
    values = state.values_given
    values.end()
    return Outcome(writes_of(values, new), observation=result or None)


def _make_context(call: ActionCall, work: Work) -> Any:
    return call.origin.application._context_factory(call.action, call.origin.sequence_id(work))  # noqa: SLF001


def _make_tracer(call: ActionCall, work: Work) -> Any:
    application, number = call.origin.application, call.origin.sequence_id(work)
    return burr.TracerFactory(call.action, number, lifecycle_adapters=_NO_HOOKS, app_id=application.uid,
                              partition_key=application.partition_key)  # fmt: skip


_INJECTED: Final[Mapping[str, Callable[[ActionCall, Work], Any]]] = {
    "__context": _make_context,
    "__tracer": _make_tracer,
}
