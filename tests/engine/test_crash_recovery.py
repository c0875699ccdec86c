from __future__ import annotations

import json
import warnings
from typing import Any

import networkx as nx
import pytest

from agentnb.clock import FrozenClock
from agentnb.load import load
from agentnb.recipe.model import Node, Recipe
from agentnb.session import Session
from agentnb.session.reopen import open_stored
from agentnb.store import MemoryLog
from agentnb.world.llm.base import LLMError, LLMResponse, Usage
from tests.dialects.coreason.recipe_texts import agent, content

ANSWER = json.dumps({"score": 0.9, "tool_name": "none", "response": "fine"})
JUDGE = {"type": "evaluator", "target_variable": "output", "evaluator_agent_ref": "critic", "pass_threshold": 0.8,
         "max_refinements": 2, "pass_route": "last", "fail_route": "last", "feedback_variable": "critique"}  # fmt: skip


def recipe_of(kind: str, prompt: str) -> Recipe:
    """Return a recipe that begins with a node of this kind, `ask`, whose prompt says this."""
    if kind == "evaluator":
        return load(content([{**JUDGE, "id": "ask", "evaluation_profile": prompt}, agent("last")]))
    if kind == "llm":
        return asking(kind, prompt=prompt)
    return Recipe("r", "test", {"ask": Node("ask", kind, params={"prompt": prompt, "goal": "g"})}, (), ("ask",))


def asking(kind: str, **params: Any) -> Recipe:
    """Return a networkx graph with one node, `ask`, as a recipe."""
    graph = nx.MultiDiGraph(name="asking")
    graph.add_node("ask", kind=kind, **params)
    return load(graph)


def cut_run(kind: str, asked: list[Any]) -> MemoryLog:
    """Return the log of a run that is left when the model has answered its first step, before the step is over."""

    def model(request: Any) -> LLMResponse:
        asked.append(request)
        return LLMResponse(ANSWER, usage=Usage(3, 2, 0.5))

    log = MemoryLog()
    run = Session(recipe_of(kind, "one"), {"output": "x"}, llm=model, store=log, run_id="run")
    run.breakpoints.add(call="llm", side="after")
    run.run()
    assert (run.status, run.position) == ("in_flight", 0)
    run.close()
    return log


def reopened(log: MemoryLog, recipe: Recipe) -> Session:
    """Return the run, opened without a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what has changed in the recipe
        run = open_stored(log, "run", recipe=recipe)
    run.breakpoints.clear()
    return run


ASKING = ["agent", "generative", "evaluator"]


@pytest.mark.parametrize("kind", ASKING)
def test_an_interrupted_step_reuses_its_paid_answer_when_reopened_without_a_model(kind):
    requests: list[Any] = []
    run = reopened(cut_run(kind, requests), recipe_of(kind, "one"))
    assert run.step().status == "ok"
    assert (len(requests), run.error) == (1, None)
    (call,) = run.trace.frames.calls.query("step == 1").to_dict("records")
    assert (call["kind"], call["call"], call["attempt"], call["tokens_in"]) == ("llm", 0, 1, 3)
    assert len(run.trace.frames.calls) == 1


@pytest.mark.parametrize("kind", ASKING)
def test_an_interrupted_step_with_a_different_request_fails_without_a_model(kind):
    requests: list[Any] = []
    run = reopened(cut_run(kind, requests), recipe_of(kind, "another"))
    run.run()
    assert (run.status, run.current, len(requests)) == ("failed", "ask", 1)
    (problem,) = run.cause.problems
    assert (problem.code, problem.what) == ("X302", "node 'ask' needs a model, but the session has none")
    calls = run.trace.frames.calls
    assert calls.provider.isin(["simulated"]).sum() == 0
    (orphan,) = calls[calls.step.isna()].to_dict("records")  # it stays in the log, as a call of no step
    assert (orphan["kind"], orphan["tokens_in"], orphan["tokens_out"]) == ("llm", 3, 2)


def unanswered_run(kind: str) -> MemoryLog:
    """Return the log of a run whose process ended while its model was answering."""
    log = MemoryLog()

    def model(request: Any) -> LLMResponse:
        ended.create(log.run("run")._replace(status="running"), list(log.entries("run")))
        return LLMResponse(ANSWER)

    ended = MemoryLog()
    Session(recipe_of(kind, "one"), {"output": "x"}, llm=model, store=log, run_id="run").step()
    return ended


@pytest.mark.parametrize("kind", [*ASKING, "llm"])
def test_an_unanswered_call_waits_and_is_refused_without_a_model(kind):
    run = reopened(unanswered_run(kind), recipe_of(kind, "one"))
    (before,) = run.pending
    run.step()
    (pending,) = run.pending
    assert (run.status, pending.kind, pending.node, pending.arguments) == ("in_flight", "call", "ask", before.arguments)
    run.step()
    (problem,) = run.cause.problems
    assert (run.status, problem.code) == ("failed", "X302")
    assert not run.trace.frames.calls.provider.isin(["simulated"]).any()


@pytest.mark.parametrize("kind", [*ASKING, "llm"])
def test_an_unanswered_call_can_be_answered_by_a_person_without_a_model(kind):
    run = reopened(unanswered_run(kind), recipe_of(kind, "one"))
    run.step()
    run.change(run.pending[0].id, answer=ANSWER)
    assert run.step().status == "ok"
    (call,) = run.trace.frames.calls.query("step == 1").to_dict("records")
    assert (call["kind"], call["attempt"], call["result"]) == ("llm", 1, ANSWER)
    assert (call["backoff_seconds"], call["seconds"]) == (0.0, 0.0)


def test_without_a_model_a_retry_uses_the_recorded_failures():
    def model(request: Any) -> LLMResponse:
        if not stop:
            stop.append(request)
            raise LLMError("busy", is_retryable=True)
        raise KeyboardInterrupt

    stop: list[Any] = []
    recipe, log = asking("agent", prompt="one", attempts=3), MemoryLog()
    run = Session(recipe, llm=model, store=log, run_id="run")
    with pytest.raises(KeyboardInterrupt):
        run.run()
    run.close()
    reopened_run = reopened(log, recipe)
    reopened_run.run()
    assert (reopened_run.status, reopened_run.cause.problems[0].code) == ("failed", "X302")
    assert not reopened_run.trace.frames.calls.provider.isin(["simulated"]).any()


def test_a_call_that_cannot_be_sent_does_not_count_against_the_budget_and_fails_immediately_in_a_replay_too():
    run = reopened(unanswered_run("agent"), recipe_of("agent", "one"))
    run.step()
    run.step()
    assert (run.status.used["max_llm_calls"], run.status) == (0, "failed")
    (call,) = run.trace.frames.calls.to_dict("records")
    assert (call["attempt"], call["error"][:17]) == (0, "ExecutionError: X")
    assert (call["backoff_seconds"], call["seconds"]) == (0.0, 0.0)
    assert run.replay().ok


def test_calls_of_a_repeated_step_are_not_confused_with_those_of_the_failed_one():
    requests: list[Any] = []

    def model(request: Any) -> LLMResponse:
        requests.append(request)
        match len(requests):
            case 1:
                raise LLMError("busy", is_retryable=True)
            case 3:
                raise KeyboardInterrupt
        return LLMResponse({"a": 1}, usage=Usage(3, 2, 0.5))

    solver = {"strategy": "ensemble", "n_samples": 3}
    node = Node("ask", "generative", params={"goal": "g", "schema": {"type": "object"}, "solver": solver})
    run = Session(Recipe("r", "test", {"ask": node}, (), ("ask",)), llm=model, clock=FrozenClock())
    run.run()
    assert run.status == "failed"
    with pytest.raises(KeyboardInterrupt):
        run.retry()
    assert run.trace.frames.calls.step.isna().tolist() == [False, True, True]
    run.run()
    assert (run.status, len(requests)) == ("finished", 5)  # one failed, three samples, one that was cut short
    assert run.trace.frames.calls.query("step == 2").error.isna().sum() == 3


def test_a_persons_answer_takes_the_place_of_the_next_attempt():
    def ask(word: str) -> str:
        asked.append(word)
        if len(asked) == 1:
            raise ValueError("busy")
        ended.create(log.run("run")._replace(status="running"), list(log.entries("run")))
        return "too late"

    log, ended, asked = MemoryLog(), MemoryLog(), list[str]()
    recipe = asking("tool", function="ask", inputs={"word": "word"}, attempts=2, backoff=0.25)
    Session(recipe, {"word": "rain"}, tools={"ask": ask}, store=log, run_id="run", clock=FrozenClock()).step()
    run = open_stored(ended, "run", recipe=recipe, tools={"ask": ask})
    run.step()
    run.change(run.pending[0].id, answer="sun")
    run.step()
    calls = run.trace.frames.calls[["attempt", "backoff_seconds", "result", "seconds"]]
    assert calls.values.tolist() == [[1, 0.0, None, 0.0], [2, 0.25, "sun", 0.0]]
    assert len(asked) == 2


def test_an_edited_call_is_pending_as_it_was_last_sent():
    def ask(word: str) -> str:
        log = logs[-1]
        logs.append(MemoryLog())
        logs[-1].create(log.run("run")._replace(status="running"), list(log.entries("run")))
        return f"about {word}"

    logs, sent = [MemoryLog()], []
    recipe = asking("tool", function="ask", inputs={"word": "word"})
    Session(recipe, {"word": "rain"}, tools={"ask": ask}, store=logs[0], run_id="run").step()
    for word in ("snow", "hail", "sun"):
        run = open_stored(logs[-1], "run", recipe=recipe, tools={"ask": ask})
        (call,) = run.trace.unanswered()
        sent.append(call.arguments["word"])
        run.step()
        run.change(run.pending[0].id, arguments={"word": word})
        run.step()
    assert sent == ["rain", "snow", "hail"]
    assert run.trace.frames.calls["arguments"].tolist() == [{"word": "sun"}]
    assert [*run.trace.unanswered()] == []


@pytest.mark.parametrize("kind", ["tool", "human"])
def test_after_a_crash_an_abandoned_call_is_interrupted_and_a_question_withdrawn(kind):
    def ask(word: str) -> str:
        ended.create(log.run("run")._replace(status="running"), list(log.entries("run")))
        return f"about {word}"

    log, ended = MemoryLog(), MemoryLog()
    recipe = asking(kind, **({"function": "ask", "inputs": {"word": "word"}} if kind == "tool" else {"question": "?"}))
    run = Session(recipe, {"word": "rain"}, tools={"ask": ask}, store=log, run_id="run")
    run.step()
    if kind == "human":
        ask("rain")
    run = open_stored(ended, "run", recipe=recipe, tools={"ask": ask})
    assert [call.kind for call in run.trace.unanswered()] == [kind]
    run.stop()
    for each in (run, open_stored(ended, "run", recipe=recipe, tools={"ask": ask})):
        calls = each.trace.frames.calls.to_dict("records")
        assert [(call["kind"], call["attempt"], "cut short" in call["error"]) for call in calls] == (
            [("tool", 1, True)] if kind == "tool" else []
        )
        assert [*each.trace.unanswered()] == []
        each.close()
