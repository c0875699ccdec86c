"""Whole runs of small agents, written down step by step in tests/golden and read by people.

After a change that is meant: `pytest tests/test_golden.py --update-golden`, and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentnb.clock import FrozenClock
from agentnb.load import load
from agentnb.session import Session
from tests.dialects.agentruntime.agent_files import back_and_forth
from tests.golden import tools

FOLDER = Path(__file__).parent / "golden"
RUNS = {
    "router": [{"n": 0}],
    "loop": [{"n": 0}],
    "error": [{"word": "sea"}],
    "subgraph": [{"word": "sea"}],
    "retry": [{"word": "sea"}],
    "memory": [
        {"session_id": "ada", "said": "one"},
        {"session_id": "bob", "said": "other"},
        {"session_id": "ada", "said": "two"},
        {"session_id": "ada", "said": "three"},
    ],
}
MODELS = {"retry": [{"error": "busy"}, "fine"], "memory": lambda request: request.prompt.upper()}


def model(name):
    """Return the model of an agent; one of a list answers the next one at each attempt."""
    model = MODELS.get(name)
    if not isinstance(model, list):
        return model
    left = [*model]
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def to_json(value):
    return json.dumps(value, ensure_ascii=False)


def lines(session):
    """Yield a run, a line a step: number, node, phase, status, frame; then what it wrote, called and led to."""
    edges = session.trace.frames.edges.to_dict("records")
    calls = session.trace.frames.calls.to_dict("records")
    for step in session.trace.steps:
        marks = " ".join(mark for mark in (step.phase, step.status) if mark not in ("run", "ok"))
        yield f"{step.step:>3} {step.node_id} {marks}".rstrip() + (f"  in {step.frame}" if step.frame != "root" else "")
        for call in calls:
            if call["step"] == step.step:
                outcome = f"fails: {call['error']}" if isinstance(call["error"], str) else to_json(call["result"])
                waited = f" after {call['backoff_seconds']:g} s" if call["backoff_seconds"] else ""
                yield f"      calls {call['name']} ({call['attempt']}{waited}): {outcome}"
        for write in step.writes:
            sign = {"append": "+= ", "set": "= "}.get(write.op)
            yield f"      {write.key} {sign + to_json(write.new) if sign else 'is deleted'}"
        if step.error is not None:
            yield f"      {step.error}"
        led = [edge["target"] for edge in edges if edge["step"] == step.step]
        if led:
            yield f"      -> {', '.join(led)}"
    yield f"  {session.status}: {to_json(dict(session.board))}"
    yield from [f"  {session.error.code}: {session.error.what}"] if session.error else []


def run_of(recipe, name, inputs):
    session = Session(recipe, inputs, llm=model(name), clock=FrozenClock())
    session.run()
    return session


@pytest.mark.parametrize("name", RUNS)
def test_a_run_equals_its_golden_file(name, request):
    tools.TRIED.clear()
    recipe, results = load(FOLDER / f"{name}.yaml"), []
    assert recipe.check() == []
    for inputs in RUNS[name]:
        results += [f"{name} {to_json(inputs)}", *lines(run_of(recipe, name, inputs)), ""]
    page = FOLDER / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        page.write_text("\n".join(results), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == "\n".join(results), "if it is meant: pytest ... --update-golden"


@pytest.mark.parametrize("name", [name for name in RUNS if name != "retry"])  # there a fork would wait for its luck
def test_going_back_and_forth_gives_the_same_run(name):
    back_and_forth(run_of(load(FOLDER / f"{name}.yaml"), name, RUNS[name][0]))
