"""Random applications run as they do in Burr: actions of every form, every kind of condition, typed states, halts."""

from __future__ import annotations

import asyncio
from typing import Any

import burr.core
from burr.core import ApplicationBuilder, Condition, State, action, default, expr, when
from burr.core.action import Action, AsyncStreamingAction, StreamingAction, streaming_action
from burr.integrations.pydantic import PydanticTypingSystem
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.dialects.burr.judge import compare, compare_halts

NAMES = ("a", "b", "c", "d")
safe_expr = getattr(burr.core, "safe_expr", expr)  # since Burr 0.43
KEYS = ("x", "y", "z")
TAGS = ("red", "blue")
FORMS = ("function", "two parts", "streaming", "streaming in two parts")
small = st.integers(0, 3)
key = st.sampled_from(KEYS)
typed_operation = st.one_of(
    st.tuples(st.just("update"), key, small),
    st.tuples(st.just("increment"), key, small),
    st.tuples(st.just("append"), st.just("log"), small),
    st.tuples(st.just("copy"), key, key),
    st.tuples(st.just("in place"), st.just("log"), small),
)
operation = st.one_of(
    typed_operation,
    st.tuples(st.just("append"), key, small),
    st.tuples(st.just("extend"), st.just("log"), st.lists(small, max_size=2)),
    st.tuples(st.just("wipe"), key, small),
    st.tuples(st.just("fail from"), key, st.just(5)),
)


def _is_longer_than(value: int) -> Condition:
    def is_longer(state: State) -> bool:
        return len(state["log"]) > value

    return Condition.lmda(is_longer, ["log"])


comparison = st.one_of(
    st.builds(lambda key, value: when(**{key: value}), key, small),
    st.builds(lambda key, value: when(**{f"{key}__gt": value}), key, small),
    st.builds(lambda key, value: expr(f"{key} < {value}"), key, small),
    st.builds(lambda key, other: expr(f"{key} <= {other} or len(log) > 4"), key, key),
    st.builds(lambda key, value: safe_expr(f"{key} + 1 != {value}"), key, small),
    st.builds(_is_longer_than, small),
)
condition = st.one_of(
    st.just(default),
    comparison,
    st.builds(lambda one: ~one, comparison),
    st.builds(lambda one, other: one & other, comparison, comparison),
    st.builds(lambda one, other: one | other, comparison, comparison),
)


def _apply(operations: list[Any], state: State, given: int) -> State:
    for operation, name, value in operations:
        if operation == "copy":
            state = state.update(**{name: state[value]})
        elif operation == "wipe":
            state = state.wipe(delete=[name])
        elif operation == "in place":
            state["log"].append({"deep": [value]})
        elif operation == "extend":
            state = state.extend(log=value)
        elif operation == "fail from":
            if state[name] >= value:
                raise ValueError(f"{name} is too large")
        else:
            state = getattr(state, operation)(**{name: value + given})
    return state


class _InParts:
    """What the classes of actions in two parts share: `run` returns the input, `update` changes the state."""

    def __init__(self, operations: list[Any]) -> None:
        super().__init__()
        self.operations = operations

    reads = property(lambda _: [*KEYS, "log"])
    writes = property(lambda _: [])
    inputs = property(lambda _: ([], ["given"]))

    def update(self, result: dict[str, Any], state: State) -> State:
        return _apply(self.operations, state, result["given"])


class _Runs(_InParts, Action):
    def run(self, state: State, given: int = 1) -> Any:
        return {"given": given + len(state["log"])}


class _Awaits(_InParts, Action):
    async def run(self, state: State, given: int = 1) -> Any:
        await asyncio.sleep(0)
        return {"given": given + len(state["log"])}


class _Streams(_InParts, StreamingAction):
    def stream_run(self, state: State, given: int = 1) -> Any:
        for number in range(given + len(state["log"])):
            yield {"given": number}
        yield {"given": given}


class _StreamsAsync(_InParts, AsyncStreamingAction):
    async def stream_run(self, state: State, given: int = 1) -> Any:
        for number in range(given + len(state["log"])):
            yield {"given": number}
        yield {"given": given}


def _make_action(form: str, operations: list[Any], tag: str, *, is_async: bool) -> Any:
    marked = {"reads": [*KEYS, "log"], "writes": [], "tags": [tag]}
    if form == "two parts":
        return _Awaits(operations) if is_async else _Runs(operations)
    if form == "streaming in two parts":
        return _StreamsAsync(operations) if is_async else _Streams(operations)

    def perform(state: State, given: int = 1) -> State:
        return _apply(operations, state, given)

    async def perform_async(state: State, given: int = 1) -> State:
        await asyncio.sleep(0)
        return _apply(operations, state, given)

    def stream(state: State, given: int = 1) -> Any:
        for number in range(given):
            yield {"number": number}, None
        yield {"given": given}, _apply(operations, state, given)

    async def stream_async(state: State, given: int = 1) -> Any:
        for number in range(given):
            yield {"number": number}, None
        yield {"given": given}, _apply(operations, state, given)

    if form == "streaming":
        return streaming_action(**marked)(stream_async if is_async else stream)
    return action(**marked)(perform_async if is_async else perform)


@st.composite
def transitions(draw: Any) -> list[Any]:
    """Return transitions between the actions, with one default at most from each."""
    results, with_default = [], set()
    ends = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), condition)
    for source, target, chosen in draw(st.lists(ends, max_size=8)):
        if chosen is not default or source not in with_default:
            results.append((source, target, chosen))
        if chosen is default:
            with_default.add(source)
    return results


@st.composite
def applications(draw: Any, forms: tuple[str, ...] = FORMS, *, may_await: bool = True) -> Any:
    """Return a function that makes the same application at each call; its actions are of these forms."""
    async_too = may_await and draw(st.booleans())
    drawn = st.tuples(
        st.sampled_from(forms), st.lists(operation, max_size=4), st.sampled_from(TAGS),
        st.booleans() if async_too else st.just(False),  # noqa: FBT003
    )  # fmt: skip
    actions = {name: draw(drawn) for name in NAMES}
    edges = draw(transitions())
    state = draw(st.dictionaries(key, small, max_size=3))

    def make() -> Any:
        actions_by_name = {
            name: _make_action(form, operations, tag, is_async=is_async)
            for name, (form, operations, tag, is_async) in actions.items()
        }
        builder = ApplicationBuilder().with_actions(**actions_by_name).with_transitions(*edges)
        return builder.with_state(**state, log=[]).with_entrypoint("a").build()

    return make


class Typed(BaseModel):
    """A typed state."""

    x: int = 0
    y: int = 1
    z: int = 2
    log: list[Any] = []


def _make_typed_action(operations: list[Any], *, by_model: bool) -> Any:
    """Return an action that changes an object of the state's class, or one that reads it and changes the state."""

    @action.pydantic(reads=[*KEYS, "log"], writes=[*KEYS, "log"])
    def change(state: Typed, given: int = 1) -> Typed:
        for operation, name, value in operations:
            if operation == "append":
                state.log = [*state.log, value + given]
            elif operation == "in place":
                state.log.append({"deep": [value]})
            elif operation == "copy":
                setattr(state, name, getattr(state, value))
            else:
                setattr(state, name, value + given + getattr(state, name) * (operation == "increment"))
        return state

    @action(reads=[*KEYS, "log"], writes=[*KEYS, "log"])
    def by_data(state: State, given: int = 1) -> State:
        return _apply(operations, state, given + state.data.y + len(state.data.log))

    return change if by_model else by_data


@st.composite
def typed_applications(draw: Any) -> Any:
    """Return a function that makes the same application at each call; its state has a class."""
    actions = {name: (draw(st.lists(typed_operation, max_size=4)), draw(st.booleans())) for name in NAMES}
    edges = draw(transitions())
    state = draw(st.builds(Typed, x=small, y=small, z=small))

    def make() -> Any:
        actions_by_name = {
            name: _make_typed_action(spec, by_model=by_model) for name, (spec, by_model) in actions.items()
        }
        builder = ApplicationBuilder().with_typing(PydanticTypingSystem(Typed)).with_actions(**actions_by_name)
        return builder.with_transitions(*edges).with_state(state.model_copy(deep=True)).with_entrypoint("a").build()

    return make


@given(make=applications(), inputs=st.sampled_from([{}, {"given": 2}]))
def test_random_applications_run_as_in_burr(make, inputs):
    compare(make, inputs, most=12)


@given(make=typed_applications(), inputs=st.sampled_from([{}, {"given": 2}]))
def test_random_typed_applications_run_as_in_burr(make, inputs):
    compare(make, inputs, most=12)


halts = st.lists(st.sampled_from([*NAMES, *(f"@tag:{tag}" for tag in TAGS)]), max_size=2, unique=True)


@given(make=applications(forms=("function", "two parts"), may_await=False), before=halts, after=halts)
def test_random_applications_halt_as_in_burr(make, before, after):
    known = {*NAMES, *(f"@tag:{tag}" for each in make().graph.actions for tag in each.tags)}
    compare_halts(make, [one for one in before if one in known], [one for one in after if one in known], most=8)
