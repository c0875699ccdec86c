"""A run of any dialect, with failures, retries, chance, budgets and any clock, replays without a difference."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import agentnb as nb
from agentnb.clock import Clock, FrozenClock, TickingClock
from agentnb.dialects import activegraph as package
from agentnb.dialects.activegraph import Behavior, Graph, LLMBehavior, Runtime
from tests.dialects.activegraph.programs_of_models import Answers

SAMPLES = ("triage", "document", "approval", "pipeline", "rag", "research", "assistant", "moderation", "refine",
           "fanout", "search", "team", "incident")  # fmt: skip
STARTS = {"team": ("goal.created", {"goal": "x"}), "incident": ("alert.raised", {"service": "shop", "text": "down"})}
CLOCKS = (Clock, lambda: FrozenClock("2026-01-01T00:00:00Z"), lambda: TickingClock("2026-01-01T00:00:00Z", 7))
UNLIMITED = {"max_llm_calls": None, "max_tool_calls": None, "max_steps": None}
START = "2026-01-01T00:00:00Z"
few = st.integers(0, 4)
some_limits = st.fixed_dictionaries({}, optional={"max_llm_calls": few, "max_tool_calls": few})


def inputs_of(recipe: Any) -> dict[str, Any]:
    """Return what the samples without defaults need."""
    inputs = {"question": "Why?", "topics": ["tea", "salt"], "session_id": "s", "said": "hello", "task": "Comment 7"}
    return {name: inputs[name] for name in recipe.inputs if name in inputs}


def run_on(session: Any) -> None:
    """Run until nothing can go on, with failed nodes made again and people who answer."""
    for _ in range(12):
        session.run(max_steps=60)
        if session.status == "failed":
            session.retry()
        elif session.status == "exhausted":
            session.set_budget(**UNLIMITED)
        elif session.status == "waiting":
            session.answer("yes")
        else:
            return


@given(name=st.sampled_from(SAMPLES), clock=st.sampled_from(CLOCKS), seed=st.integers(0, 99),
       rate=st.sampled_from((0.0, 0.2, 0.5)), budget=some_limits, kept=st.booleans())  # fmt: skip
@settings(max_examples=15)  # each is a whole run of a sample
@example(name="team", clock=Clock, seed=0, rate=0.2, budget={}, kept=False)
def test_a_run_of_any_sample_replays(name, clock, seed, rate, budget, kept):
    recipe = nb.samples(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        session = nb.Session(recipe, inputs_of(recipe), clock=clock(), seed=seed, budget=budget or None,
                             chaos={"error_rate": rate, "seed": seed}, store=path if kept else None)  # fmt: skip
        if name in STARTS:
            session.emit(*STARTS[name])
        run_on(session)
        report = session.replay()
        assert report.ok, report
        if kept:
            session.close()
            reopened = nb.open(path, recipe=nb.samples(name))
            report = reopened.replay()
            assert report.ok, report
            reopened.close()


@settings(max_examples=15)  # each is three goals
@given(answers=st.lists(st.sampled_from(("fine", "down", "down")), max_size=8), attempts=st.integers(1, 3),
       ticks=st.booleans(), cut=st.none() | st.integers(1, 4), kept=st.booleans())  # fmt: skip
def test_a_runtime_with_retries_and_random_numbers_replays(answers, attempts, ticks, cut, kept):
    def think(event, graph, ctx, answer):
        graph.add_object("thought", {"luck": ctx.random.random(), "at": str(ctx.clock.now())})

    def follow(event, graph, ctx):
        graph.patch_object(event.payload["id"], {"luck": ctx.random.random()})

    behaviors = [LLMBehavior("think", think, on=["goal.created"], handler=think),
                 Behavior("follow", follow, on=["object.created"])]  # fmt: skip
    replies = [ValueError("down") if each == "down" else ("yes", None, ()) for each in answers]
    options = {"llm_retry_max_attempts": attempts, "llm_retry_initial_delay_seconds": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        graph = Graph() if ticks else Graph(clock=package.FrozenClock(START))
        limits = {} if cut is None else {"max_llm_calls": cut}
        team = Runtime(graph, behaviors=behaviors, llm_provider=Answers(package, *replies), budget=limits,
                       persist_to=path if kept else None, **options)  # fmt: skip
        for goal in ("one", "two", "three"):
            team.run_goal(goal)
        assert team.replay().ok, team.replay()
        if kept:
            team.session.close()
            loaded = Runtime.load(path, behaviors=behaviors, llm_provider=Answers(package), replay_strict=True)
            loaded.session.close()
