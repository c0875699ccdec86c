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


def test_a_standing_is_its_word():
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


def test_wherever_it_goes_it_leaves_as_a_plain_word():
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


def test_what_is_used_and_left_and_what_has_ended_it():
    status = stood().status
    assert (status.limit, status.used["max_steps"], status.used["max_tokens"]) == ("max_steps", 4, 0)
    assert dict(status.left) == {"max_steps": 0, "max_tokens": 100, "max_cost_usd": Decimal(2)}
    for mapping in (status.used, status.left):
        with pytest.raises(TypeError):
            mapping["max_steps"] = 0
    assert stood(steps=3).status.limit is None
    assert dict(stood(budget=None).status.left) == {}


def test_what_was_passed_by_the_last_thing_that_began_is_less_than_nothing():
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
def test_the_words(made, steps, words):
    run = session(made)
    actual = [run.status]
    run.step(steps)
    actual.append(run.status)
    run.run()
    actual.append(run.status)
    assert actual == words
    assert {status.word for status in actual} <= set(get_args(StatusWord))
    assert all(isinstance(status, Status) for status in actual)


def test_while_it_runs_it_is_a_standing_too():
    seen = []
    run = session(graph("a", "b"), hooks={"step": lambda _: seen.append(run.status)})
    run.run()
    assert [(status, status.used["max_steps"]) for status in seen] == [("running", 1), ("running", 2)]


def test_a_failed_run_says_what_keeps_it_from_another_try():
    run = session(broken(), budget={"max_steps": 2})
    run.run()
    assert (run.status, run.status.limit) == ("failed", "max_steps")
    assert run.set_budget(max_steps=3).status.limit is None


def test_nothing_is_worked_out_before_somebody_looks(monkeypatch):
    run = stood(budget=None)
    looked = []
    monkeypatch.setattr(Limits, "capture_usage", lambda *_: lambda: looked.append(1) or {"max_steps": 7})
    status = run.status
    assert (status, looked) == ("finished", [])
    assert (dict(status.used), dict(status.used), looked) == ({"max_steps": 7}, {"max_steps": 7}, [1])


def test_the_cockpit_is_given_a_plain_word():
    run = stood()
    assert type(make_screen(run, run.recipe.draw(board=False))["status"]) is str
