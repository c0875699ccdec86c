from __future__ import annotations

from dataclasses import replace

import pytest

from agentnb.errors import ExecutionError, Place
from agentnb.load import load
from agentnb.recipe.model import Requirement
from agentnb.session import Session
from tests.session.gates import live
from tests.session.making import graph


def rule(key, message="", required=True, place=None):
    return Requirement(lambda board: board[key] > 0, message or f"{key} is needed", required, place)


def asking(*rules, inputs=None):
    recipe = replace(load(graph("a", "b")), requires=rules)
    return Session(recipe, inputs)


def test_a_run_whose_requirement_does_not_hold_does_not_begin():
    run = asking(rule("n", "give me an n", place=Place("r.yaml", 3, 1, "requirements[0]")))
    assert (run.status, run.error.code, run.error.what) == ("failed", "X121", "give me an n")
    assert "r.yaml:3:1" in run.error.where
    assert run.step() is None
    assert len(run.run()) == 0
    assert run.trace.outcome == {"status": "failed", "steps": 0, "error": "give me an n"}


def test_all_that_fail_are_named_and_no_other():
    run = asking(rule("n"), rule("m"), rule("k"), inputs={"m": 1})
    assert run.error.what == "n is needed; k is needed"


def test_an_edit_mends_it():
    run = asking(rule("n"))
    run.run()
    run.edit({"n": 1})
    assert (run.status, run.error) == ("ready", None)
    run.run()
    assert (run.status, run.position) == ("finished", 2)


def test_what_holds_before_the_first_step_is_not_asked_again():
    run = asking(rule("n"), inputs={"n": 1})
    run.step()
    run.edit({"n": 0})
    run.run()
    assert run.status == "finished"
    run.goto(0)
    assert run.status == "ready"


def test_one_that_is_not_required_warns_and_the_run_begins():
    run = asking(rule("n", "an n would be nice", required=False))
    assert run.status == "ready"
    with pytest.warns(UserWarning, match="an n would be nice"):
        run.run()
    assert run.status == "finished"


def test_a_live_run_does_not_begin_either():
    async def main():
        run = asking(rule("n"))
        run.start()
        await run.wait()
        assert (run.status, run.position) == ("failed", 0)

    live(main)


def test_nothing_is_skipped_before_a_requirement_that_does_not_hold():
    run = asking(rule("n", "give me an n"))
    with pytest.raises(ExecutionError, match="X121: give me an n"):
        run.skip({"a": 1})
    assert (run.position, run.status, dict(run.board)) == (0, "failed", {})
    run.edit({"n": 1})
    assert run.skip({"a": 1}).status == "skipped"
