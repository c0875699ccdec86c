"""Random graphs run as they do in LangGraph: every state after a superstep is the same."""

from __future__ import annotations

import datetime as dt
from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.cache import memory
from langgraph.pregel._executor import AsyncBackgroundExecutor, BackgroundExecutor

from tests.dialects.langgraph.judge import compare
from tests.dialects.langgraph.programs import GRAPH, NODE, Turn, awaits, build, leaves, plans

STOPS_AT_THE_END = GRAPH | {
    "nodes": {"a": NODE, "b": NODE},
    "inside": {
        "a": GRAPH | {
            "nodes": {"a": NODE | {"writes": {"passing"}}, "b": NODE},
            "conditions": {"a": [["a"]]},
            "stops": {"interrupt_after": "*"},
        }
    },
}  # fmt: skip
LEAVES_WITHOUT_STOP = GRAPH | {
    "nodes": {"a": NODE, "b": NODE | {"writes": {"total"}}},
    "inside": {
        "a": GRAPH | {
            "nodes": {"a": NODE | {"goto": ["a", "b"], "leaves": 3}, "b": NODE},
            "stops": {"interrupt_after": "*"},
        }
    },
    "entry": ["b"],
    "edges": [("b", "a")],
}  # fmt: skip

STOPS_WITHOUT_A_WRITE = GRAPH | {
    "schema": "data",
    "nodes": {"a": NODE},
    "inside": {"a": GRAPH | {"schema": "data", "nodes": {"a": NODE}, "stops": {"interrupt_after": "*"}}},
}  # fmt: skip


def answer(question):
    return f"re {question}"


@example(plan=STOPS_AT_THE_END)  # the inner graph waits after its last superstep, too
@example(plan=LEAVES_WITHOUT_STOP)  # the inner graph does not wait after the superstep in which its node leaves it
@example(plan=STOPS_WITHOUT_A_WRITE)  # the default of an ephemeral key has gone when the inner graph continues
@given(plan=plans())
def test_random_graphs_run_as_in_langgraph(plan):
    compare(build(plan), {"last": "in"}, answers=answer, is_async=awaits(plan), leaves=leaves(plan))


class Clock(dt.datetime):
    """The clock of LangGraph's cache, which stands still."""

    seconds = 0

    @classmethod
    def now(cls, tz=None):
        return dt.datetime.fromtimestamp(1_700_000_000 + cls.seconds, tz)


MODULE = SimpleNamespace(datetime=Clock, timezone=dt.timezone, timedelta=dt.timedelta)


def make_executor_store_at_once(executor):
    """Let an executor of LangGraph store what goes into a cache before it goes on.

    Otherwise its threads decide whether a later superstep of the same run finds it.
    """
    submit = executor.submit

    def submit_or_store(self, function, *args, **settings):
        cache = getattr(function, "__self__", None)
        return (
            cache.set(*args) if isinstance(cache, memory.InMemoryCache) else submit(self, function, *args, **settings)
        )

    return mock.patch.object(executor, "submit", submit_or_store)


TURNS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["in", "out"])), min_size=2, max_size=4)


@given(plan=plans(caches=True), turns=TURNS)
def test_random_graphs_with_caches_run_several_times_as_in_langgraph(plan, turns):
    turn = Turn()
    theirs, ours = build(plan, turn), build(plan, turn)
    Clock.seconds = 0
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(memory, "datetime", MODULE))
        for executor in (BackgroundExecutor, AsyncBackgroundExecutor):
            patches.enter_context(make_executor_store_at_once(executor))
        for turn.number, (seconds, last) in enumerate(turns):
            Clock.seconds += seconds
            known = {"answers": answer, "is_async": awaits(plan), "leaves": leaves(plan), "ours": ours}
            course, _ = compare(theirs, {"last": last}, **known)
            if course.ended != "finished":  # whether nodes beside one that failed are in the cache depends on threads
                break
