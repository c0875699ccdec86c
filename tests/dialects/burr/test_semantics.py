"""Applications run as they do in Burr: after every action the board is Burr's state."""

from __future__ import annotations

from typing import Any

import pytest
from burr.core import Action, ApplicationBuilder, ApplicationContext, State, action, default, expr, when
from burr.core.action import Condition, Input, Result, StreamingAction, streaming_action
from burr.integrations.pydantic import PydanticTypingSystem
from pydantic import BaseModel

from agentnb import Session, load
from tests.dialects.burr.judge import compare


@action(reads=["n"], writes=["n", "log"])
def count(state: State) -> State:
    return state.update(n=state["n"] + 1).append(log={"was": state["n"]})


@action(reads=["log"], writes=["size"])
def measure(state: State) -> tuple[dict[str, Any], State]:
    size = len(state["log"])
    return {"size": size}, state.update(size=size)


def counting(*transitions: Any, **state: Any) -> Any:
    return (
        ApplicationBuilder()
        .with_actions(count, measure)
        .with_transitions(*transitions)
        .with_state(**{"n": 0, "log": [], **state})
        .with_entrypoint("count")
        .build()
    )


@pytest.mark.parametrize(
    "transitions",
    [
        [("count", "count", expr("n < 3")), ("count", "measure")],
        [("count", "measure", when(n=2)), ("count", "count", default)],
        [("count", "measure", when(n__gte=2) & ~when(n=4)), ("count", "count", when(n__lt=2) | when(n=4))],
        [("count", "count", Condition.lmda(lambda state: len(state["log"]) < 2, ["log"]))],
        [("count", "measure"), ("count", "count", when(n=1))],
        [("count", "count", when(missing=1)), ("count", "measure")],
        [],
    ],
)
def test_the_first_transition_that_holds_is_taken(transitions):
    compare(lambda: counting(*transitions))


class Twice(Action):
    """Reads one key and writes another, in two parts."""

    def __init__(self, writes: tuple[str, ...] = ("n",)) -> None:
        super().__init__()
        self.own = writes

    @property
    def reads(self) -> list[str]:
        return ["n"]

    @property
    def writes(self) -> list[str]:
        return list(self.own)

    def run(self, state: State[Any], **_: Any) -> dict[str, Any]:
        assert "log" not in state, "only what it reads"
        return {"n": 2 * state["n"]}

    def update(self, result: dict[str, Any], state: State[Any]) -> State[Any]:
        return state.update(**result, seen=len(state["log"])) if "seen" in self.own else state.update(**result, other=1)


@pytest.mark.parametrize("writes", [("n", "seen"), ("n",), ("n", "other"), ("n", "other", "never")])
def test_an_action_in_two_parts(writes):
    def make() -> Any:
        builder = ApplicationBuilder().with_actions(twice=Twice(writes)).with_state(n=3, log=[1])
        return builder.with_entrypoint("twice").build()

    compare(make)


@action(reads=["log"], writes=[])
def forget(state: State) -> State:
    return state.wipe(delete=["log"])


@action(reads=[], writes=["n"])
def anew(state: State) -> State:
    return State({"n": 7})


@action(reads=["log"], writes=[])
def in_place(state: State) -> State:
    state["log"][0]["deep"] = [1]
    return state


@action(reads=["n", "log"], writes=["n", "log"])
def operations(state: State) -> State:
    state = state.increment(n=4).extend(log=[1, 2]).append(log=[3]).update(n=state["n"])
    return state.merge(State({"extra": state.subset("n").get_all()}))


@action(reads=["n"], writes=["n", "never"])
def too_little(state: State) -> State:
    return state.update(n=1)


@action(reads=["n"], writes=["n"])
def nothing(state: State) -> Any:
    return None


@action(reads=["n"], writes=["n"])
def no_list(state: State) -> State:
    return state.append(n=1)


@action(reads=["gone"], writes=["n"])
def no_key(state: State) -> State:
    return state.update(n=state["gone"])


@pytest.mark.parametrize("what", [forget, anew, in_place, operations, too_little, nothing, no_list, no_key])
def test_actions_read_and_write_the_state(what):
    def make() -> Any:
        builder = ApplicationBuilder().with_actions(what, measure).with_transitions((what.__name__, "measure"))
        return builder.with_state(n=1, log=[{"deep": []}]).with_entrypoint(what.__name__).build()

    compare(make)


@action(reads=[], writes=["said"])
def say(state: State, word: str, times: int = 2) -> State:
    return state.update(said=word * times)


def saying() -> Any:
    return ApplicationBuilder().with_actions(say).with_state().with_entrypoint("say").build()


@pytest.mark.parametrize("inputs", [{"word": "a"}, {"word": "a", "times": 3}])
def test_inputs(inputs):
    compare(saying, inputs)


def test_a_missing_input_is_asked_for():
    session = Session(load(saying()))
    session.run()
    assert session.status == "waiting"
    assert session.pending[0].arguments["input"] == "word"
    session.answer("b")
    session.run()
    assert dict(session.board) == {"said": "bb"}
    assert session.replay().ok


def test_inputs_and_results_of_burrs_own_actions():
    def make() -> Any:
        builder = ApplicationBuilder().with_actions(put=Input("n"), count=count, out=Result("n"))
        return (
            builder.with_transitions(("put", "count"), ("count", "out")).with_state(log=[]).with_entrypoint("put")
        ).build()

    compare(make, {"n": 4})


@streaming_action(reads=["n"], writes=["words"])
def stream(state: State) -> Any:
    words = []
    for word in ["one", "two"]:
        words.append(word)
        yield {"word": word}, None
    yield {"words": words}, state.update(words=words)


@streaming_action(reads=["n"], writes=["words"])
async def stream_async(state: State) -> Any:
    yield {"word": "one"}, None
    yield {"words": ["one"]}, state.update(words=["one"])


@streaming_action(reads=["n"], writes=["words"])
def stream_nothing(state: State) -> Any:
    yield {"word": "one"}, None


@streaming_action(reads=["n"], writes=["words"])
def stream_and_fail(state: State) -> Any:
    yield {"word": "one"}, None
    raise KeyError("fails")


class InParts(StreamingAction):
    """Streams in one part and updates in another."""

    @property
    def reads(self) -> list[str]:
        return ["n"]

    @property
    def writes(self) -> list[str]:
        return ["words"]

    def stream_run(self, state: State[Any], **_: Any) -> Any:
        yield {"words": ["one"]}
        yield {"words": ["one", "two"]}

    def update(self, result: dict[str, Any], state: State[Any]) -> State[Any]:
        return state.update(**result)


@pytest.mark.parametrize("what", [stream, stream_async, stream_nothing, stream_and_fail, InParts()])
def test_streaming(what):
    def make() -> Any:
        return ApplicationBuilder().with_actions(it=what).with_state(n=1).with_entrypoint("it").build()

    compare(make)


def test_streamed_output_is_an_event():
    application = ApplicationBuilder().with_actions(stream).with_state(n=1).with_entrypoint("stream").build()
    session = Session(load(application))
    session.run()
    assert [(event.type, event.payload) for event in session.events] == [
        ("stream_item", {"word": "one"}),
        ("stream_item", {"word": "two"}),
    ]


@action(reads=["n"], writes=["n"])
async def waits(state: State, more: int = 1) -> State:
    return state.update(n=state["n"] + more)


def test_async_actions():
    def make() -> Any:
        builder = ApplicationBuilder().with_actions(waits).with_transitions(("waits", "waits", expr("n < 3")))
        return builder.with_state(n=0).with_entrypoint("waits").build()

    compare(make, {"more": 2})


class Typed(BaseModel):
    """A typed state."""

    n: int = 0
    words: list[str] = []


@action.pydantic(reads=["n"], writes=["n", "words"])
def typed(state: Typed) -> Typed:
    state.words = [*state.words, "more"]
    state.n += 1
    return state


@action(reads=["n"], writes=["n"])
def by_data(state: State) -> State:
    return state.update(n=state.data.n + len(state.data.words))


def test_typed_state():
    def make() -> Any:
        builder = ApplicationBuilder().with_typing(PydanticTypingSystem(Typed)).with_actions(typed, by_data)
        builder = builder.with_transitions(("typed", "typed", when(n=1)), ("typed", "by_data"))
        return builder.with_state(Typed()).with_entrypoint("typed").build()

    compare(make)


@action(reads=[], writes=["here"])
def where(state: State, __context: ApplicationContext, __tracer: Any) -> State:
    with __tracer("span"):
        inner = ApplicationContext.get()
    assert inner is not None
    internal = {key: value for key, value in state.get_all().items() if key.startswith("__")}
    return state.update(here=[*state.get("here", []), [__context.action_name, __context.sequence_id, internal]])


def test_injected_parameters_are_passed():
    def make() -> Any:
        builder = ApplicationBuilder().with_actions(where, after=where)
        builder = builder.with_transitions(("where", "after"), ("after", "where"))
        return builder.with_state().with_entrypoint("where").build()

    compare(make, most=5)


def test_a_started_application_continues():
    def make() -> Any:
        application = counting(("count", "count", expr("n < 4")), ("count", "measure"))
        application.step()
        application.step()
        return application

    session = compare(make)
    assert session.trace.steps[0].node_id == "__resumed__"
    assert len(session.trace.steps) == 4


def test_writers_and_reads_are_recorded():
    session = Session(load(counting(("count", "count", expr("n < 3")), ("count", "measure"))))
    session.run()
    assert session.who_wrote("n") == 3
    steps = session.trace.steps
    assert {read.key for read in steps[0].reads} == {"n", "log"}
    assert {write.key for write in steps[0].writes} == {"n", "log"}
    assert {read.key for read in steps[-1].reads} == {"log"}
    assert steps[-1].observation == {"size": 3}


def test_comparing_the_state_after_an_action_is_not_a_read():
    @action(reads=[], writes=["n"])
    def put(state: State) -> State:
        return State({"n": 5})

    application = ApplicationBuilder().with_actions(put).with_state(n=1).with_entrypoint("put").build()
    session = Session(load(application))
    session.run()
    assert session.board["n"] == 5
    assert list(session.trace.steps[0].reads) == []


def test_setting_a_key_does_not_read_it():
    @action(reads=[], writes=["n"])
    def put(state: State) -> State:
        return state.update(n=5)

    application = ApplicationBuilder().with_actions(put).with_state(n=1).with_entrypoint("put").build()
    session = Session(load(application))
    session.run()
    assert list(session.trace.steps[0].reads) == []
