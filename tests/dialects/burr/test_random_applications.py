"""Random applications run as they do in Burr."""

from __future__ import annotations

from typing import Any

from burr.core import ApplicationBuilder, State, action, default, expr, when
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.burr.judge import compare

NAMES = ("a", "b", "c", "d")
KEYS = ("x", "y", "z")
small = st.integers(0, 3)
operation = st.one_of(
    st.tuples(st.just("update"), st.sampled_from(KEYS), small),
    st.tuples(st.just("increment"), st.sampled_from(KEYS), small),
    st.tuples(st.just("append"), st.sampled_from(["log", *KEYS]), small),
    st.tuples(st.just("extend"), st.just("log"), st.lists(small, max_size=2)),
    st.tuples(st.just("copy"), st.sampled_from(KEYS), st.sampled_from(KEYS)),
    st.tuples(st.just("wipe"), st.sampled_from(KEYS), small),
    st.tuples(st.just("in place"), st.just("log"), small),
)
condition = st.one_of(
    st.just(default),
    st.builds(lambda key, value: when(**{key: value}), st.sampled_from(KEYS), small),
    st.builds(lambda key, value: ~when(**{f"{key}__gt": value}), st.sampled_from(KEYS), small),
    st.builds(lambda key, value: expr(f"{key} < {value}"), st.sampled_from(KEYS), small),
)


def _action(operations: list[Any]) -> Any:
    @action(reads=[*KEYS, "log"], writes=[])
    def perform(state: State, given: int = 1) -> State:
        for what, key, value in operations:
            if what == "copy":
                state = state.update(**{key: state[value]})
            elif what == "wipe":
                state = state.wipe(delete=[key])
            elif what == "in place":
                state["log"].append({"deep": [value]})
            elif what == "extend":
                state = state.extend(log=value)
            else:
                state = getattr(state, what)(**{key: value + given})
        return state

    return perform


@st.composite
def applications(draw: Any) -> Any:
    """Return a function that makes the same application at each call."""
    actions = {name: draw(st.lists(operation, max_size=4)) for name in NAMES}
    ends = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), condition)
    transitions, with_default = [], set()
    for source, target, chosen in draw(st.lists(ends, max_size=8)):
        if chosen is not default or source not in with_default:
            transitions.append((source, target, chosen))
        if chosen is default:
            with_default.add(source)
    state = draw(st.dictionaries(st.sampled_from(KEYS), small, max_size=3))

    def make() -> Any:
        builder = ApplicationBuilder().with_actions(**{name: _action(what) for name, what in actions.items()})
        builder = builder.with_transitions(*transitions).with_state(**state, log=[]).with_entrypoint("a")
        return builder.build()

    return make


@given(make=applications(), inputs=st.sampled_from([{}, {"given": 2}]))
def test_random_applications_run_as_in_burr(make, inputs):
    compare(make, inputs, most=12)
