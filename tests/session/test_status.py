from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import get_args

import pytest

from agentnb.session.limits import Limits
from agentnb.session.status import Status, StatusWord
from agentnb.ui.view_model import make_screen
from tests.session.small_sessions import asking, broken, counting, graph, session

BUDGET = {"max_steps": 4, "max_tokens": 100, "max_cost_usd": 2}


def stood(budget=BUDGET, steps=None):
    run = session(counting(), {"n": 0}, budget=budget)
    run.run(max_steps=steps)
    return run


def test_a_status_equals_its_word():
    status = stood().status
    assert status == "exhausted"
    assert (status != "paused", {status: 1}["exhausted"], status in {"exhausted", "failed"}) == (True, 1, True)
    assert (str(status), repr(status), f"{status:>10}", status.upper()) == (
        "exhausted",
        "'exhausted'",
        " exhausted",
        "EXHAUSTED",
    )
    match status:
        case "exhausted":
            pass
        case _:
            pytest.fail("it is no other word")


def test_a_status_is_exported_as_a_plain_string():
    status = stood().status
    assert json.loads(json.dumps({"status": status})) == {"status": "exhausted"}
    for copied in (
        str(status),
        status.word,
        copy.copy(status),
        copy.deepcopy(status),
        pickle.loads(pickle.dumps(status)),
    ):
        assert (type(copied), copied) == (str, "exhausted")


def test_a_status_has_used_and_remaining_amounts_and_the_exhausted_limit():
    status = stood().status
    assert (status.limit, status.used["max_steps"], status.used["max_tokens"]) == ("max_steps", 4, 0)
    assert dict(status.left) == {"max_steps": 0, "max_tokens": 100, "max_cost_usd": Decimal(2)}
    for mapping in (status.used, status.left):
        with pytest.raises(TypeError):
            mapping["max_steps"] = 0
    assert stood(steps=3).status.limit is None
    assert dict(stood(budget=None).status.left) == {}


def test_an_exceeded_limit_has_a_negative_remainder():
    run = session(counting(), {"n": 0})
    run.run()
    run.set_budget(max_steps=5)
    assert (run.status, run.status.left["max_steps"]) == ("finished", -2)


@pytest.mark.parametrize(
    ("made", "steps", "words"),
    [
        (graph("a", "b"), 1, ["ready", "paused", "finished"]),
        (asking(), 1, ["ready", "paused", "waiting"]),
        (broken(), 1, ["ready", "paused", "failed"]),
    ],
)
def test_all_statuses_are_listed(made, steps, words):
    run = session(made)
    actual = [run.status]
    run.step(steps)
    actual.append(run.status)
    run.run()
    actual.append(run.status)
    assert actual == words
    assert {status.word for status in actual} <= set(get_args(StatusWord))
    assert all(isinstance(status, Status) for status in actual)


def test_a_running_status_is_a_status_too():
    seen = []
    run = session(graph("a", "b"), hooks={"step": lambda _: seen.append(run.status)})
    run.run()
    assert [(status, status.used["max_steps"]) for status in seen] == [("running", 1), ("running", 2)]


def test_a_failed_run_reports_what_prevents_a_retry():
    run = session(broken(), budget={"max_steps": 2})
    run.run()
    assert (run.status, run.status.limit) == ("failed", "max_steps")
    assert run.set_budget(max_steps=3).status.limit is None


def test_a_status_is_computed_lazily(monkeypatch):
    run = stood(budget=None)
    evaluated = []
    monkeypatch.setattr(Limits, "capture_usage", lambda *_: lambda: evaluated.append(1) or {"max_steps": 7})
    status = run.status
    assert (status, evaluated) == ("finished", [])
    assert (dict(status.used), dict(status.used), evaluated) == ({"max_steps": 7}, {"max_steps": 7}, [1])


def test_the_cockpit_receives_a_plain_string():
    run = stood()
    assert type(make_screen(run, run.recipe.draw(board=False))["status"]) is str
