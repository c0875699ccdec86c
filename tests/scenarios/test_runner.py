"""Scenarios run in sessions of their own, and whatever goes wrong with one is its result."""

from __future__ import annotations

import asyncio
import io
import sys
from types import SimpleNamespace

import pytest

import agentnb as nb
from agentnb.clock import FrozenClock, TickingClock
from agentnb.errors import ExecutionError, RecipeError
from agentnb.world.fault_injection import ChaosError
from tests.dialects.coreason.recipe_texts import content
from tests.scenarios.scenario_recipes import ANSWERS, TESTS, TOOLS, codes, computed, ran, refunds, scenario, writes

REFUND = {"ticket": "money back"}


def both(recipe, **options):
    return nb.run_scenarios(recipe, **{"tools": TOOLS, "answers": ANSWERS, **options})


# -- what passes -----------------------------------------------------------------------------------------------------


def test_a_recipes_own_scenarios_run_in_order():
    report = both(refunds())
    assert report.ok
    assert [(row.id, row.status, row.steps, row.score) for row in report] == [
        ("refund", "finished", 4, 1.0),
        ("other", "finished", 3, 1.0),
    ]


def test_each_scenario_restarts_its_scripts():
    twice = refunds(TESTS.replace("hello", "money again").replace("{topic: other}", "{response: yes please}"))
    assert both(twice, answers=["yes please"]).ok
    pair = [scenario({"output": "two"}, inputs=REFUND, id=id) for id in "ab"]
    assert nb.run_scenarios(refunds(), pair, llm=["one", "two"], answers=ANSWERS).ok


def test_a_dotted_key_reads_a_path_or_a_literal_key():
    recipe = writes(**{"order": {"lines": [{"price": 3}]}, "a.b": 1})
    assert ran(recipe, scenario({"order.lines.0.price": 3, "a.b": 1})).passed
    missing = ran(recipe, scenario({"order.total": 3}))
    assert [str(row) for row in missing.mismatches] == ["order.total: expected 3, but it is not there"]


def test_without_expected_values_finishing_is_enough():
    result = ran(writes(n=1), scenario())
    assert (result.passed, result.score, result.actual) == (True, None, {"n": 1})


def test_fuzzy_compares_the_similarity_of_texts():
    near = scenario({"text": "Good morning"}, "fuzzy")
    recipe = writes(text="Good evening")
    assert (ran(recipe, near).passed, ran(recipe, near).score) == (False, 0.75)
    assert ran(recipe, near, fuzzy=0.75).passed


def test_exact_match_distinguishes_true_and_one():
    assert ran(writes(n=1.0), scenario({"n": 1})).passed
    assert not ran(writes(n=1), scenario({"n": True})).passed


def test_the_session_can_be_stepped_through_afterwards():
    session = both(refunds())["refund"].session
    assert session.goto(1).board["topic"] == "refund"
    assert session.fork(edit={"topic": "other"}).run().steps[-1].node_id == "close"


def test_inputs_and_expected_values_are_not_changed():
    definition = scenario({"n": [1, 2]}, inputs={"n": [1]})

    def work(n):
        n.append(2)

    assert ran(computed(work, inputs={"n": "n"}), definition).passed
    assert definition["inputs"] == {"n": [1]}


# -- what fails and is a result --------------------------------------------------------------------------------------


def test_missing_inputs_fail_one_scenario_and_not_the_others():
    report = nb.run_scenarios(refunds(), [scenario(id="bad"), scenario({"closed": True}, id="good", inputs=REFUND)],
                              tools=TOOLS, answers=ANSWERS)  # fmt: skip
    bad, good = report
    assert (bad.passed, bad.status, bad.problem.code, bad.steps, bad.session) == (False, "failed", "R205", 0, None)
    assert good.passed


def test_a_value_that_the_board_rejects_fails_one_scenario():
    endless = {}
    endless["itself"] = endless
    report = nb.run_scenarios(writes(n=1), [scenario(id="a", inputs=endless), scenario(endless, id="b"),
                                            scenario(id="c")])  # fmt: skip
    assert [row.passed for row in report] == [False, False, True]
    assert {report["a"].problem.code[0], report["b"].problem.code[0]} == {"B"}


def test_a_run_that_fails_is_reported():
    result = ran(computed(lambda: 1 / 0), scenario({"n": 1}))
    assert (result.passed, result.status, result.problem.code, result.score) == (False, "failed", "X100", None)
    assert "ZeroDivisionError" in result.description
    assert result.session.status == "failed"


def test_a_failed_run_does_not_pass_despite_matching_values():
    assert not ran(computed(lambda: 1 / 0), scenario({"n": 1}, inputs={"n": 1})).passed
    assert not ran(computed(lambda: 1 / 0), scenario()).passed


def test_an_exhausted_budget_is_reported():
    result = both(refunds(), budget={"max_steps": 2})[0]
    assert (result.status, result.steps, result.problem.code) == ("exhausted", 2, "X416")
    assert "max_steps" in result.problem.what


def test_a_question_without_scripted_answer_is_reported():
    result = both(refunds(), answers=None)["refund"]
    assert (result.passed, result.status, result.problem.code) == (False, "waiting", "X416")
    assert "'ask' waits for a person" in result.problem.what
    assert "answers" in result.problem.do
    result.session.answer("yes please")
    assert result.session.run().outcome["status"] == "finished"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_question_is_asked_on_a_terminal(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setattr(sys, "stdin", Terminal("typed\n" * 9))
    monkeypatch.setattr(sys, "stdout", Terminal())
    report = both(refunds(), answers=None, chaos={"latency_ms": 1}, clock=FrozenClock())
    assert report["refund"].status == "waiting"
    assert sys.stdout.getvalue() == ""
    # Afterwards it is a session like any other.
    assert nb.Session(refunds(), REFUND, tools=TOOLS).run().steps[-2].outputs == {"response": "typed"}


# -- what is wrong with the call -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"budget": {"max_stps": 1}}, "X201"),
        ({"answers": {"aks": ["a"]}}, "X101"),
        ({"answers": "yes"}, "X305"),
        ({"llm": 5}, "X303"),
        ({"chaos": {"error_rate": 2}}, "X415"),
        ({"fuzzy": 80}, "X412"),
        ({"fuzzy": True}, "X412"),
    ],
)
def test_an_invalid_call_raises_and_nothing_runs(options, code):
    seen = []
    with pytest.raises(ExecutionError) as raised:
        both(refunds(), listener=seen.append, **options)
    assert (codes(raised), seen) == ([code], [])


def test_an_invalid_recipe_and_a_missing_function_are_reported():
    with pytest.raises(ExecutionError) as raised:
        nb.run_scenarios("refunds.yaml")
    assert codes(raised) == ["X117"]
    with pytest.raises(RecipeError) as missing:
        ran(computed("absent"), scenario())
    assert codes(missing) == ["R203"]


# -- chaos -----------------------------------------------------------------------------------------------------------


class Waited(FrozenClock):
    def __init__(self):
        super().__init__()
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)


def test_chaos_slows_every_call():
    clock = Waited()
    assert both(refunds(), chaos={"latency_ms": 40}, clock=clock).ok
    assert clock.waits == [0.04] * 4  # two agents each; a person and a router are spared


def test_chaos_depends_on_seed_and_scenario():
    rows = [scenario({"closed": True}, id=str(number), inputs={"ticket": "a"}) for number in range(40)]

    def passed(rows, seed):
        report = nb.run_scenarios(refunds(), rows, tools=TOOLS, chaos={"error_rate": 0.3}, seed=seed)
        return {row.id: row.passed for row in report}

    first = passed(rows, 1)
    assert 0 < sum(first.values()) < 40
    assert passed(rows, 1) == first
    assert passed(rows, 2) != first
    assert passed(rows[30:], 1) == {row["id"]: first[row["id"]] for row in rows[30:]}  # whichever others run


def test_an_injected_fault_is_reported_as_such():
    result = both(refunds(), chaos={"error_rate": 1})["other"]
    assert "made on purpose" in result.description
    assert isinstance(result.session.cause, ChaosError)


# -- around the runs -------------------------------------------------------------------------------------------------


def test_a_listener_receives_each_result_as_it_ends():
    seen = []
    report = both(refunds(), listener=seen.append)
    assert tuple(seen) == report.results


def test_a_listener_that_raises_is_removed_and_the_rest_runs():
    seen = []

    def listener(result):
        seen.append(result.id)
        raise ValueError("no paper")

    with pytest.warns(UserWarning, match="listener raised .* was removed.*no paper"):
        report = both(refunds(), listener=listener)
    assert (seen, len(report)) == (["refund"], 2)


def test_seconds_are_those_of_the_clock():
    class Slow(TickingClock):
        def ns(self):
            self.now()
            return super().ns()

    assert ran(writes(n=1), scenario(), clock=FrozenClock()).seconds == 0
    assert ran(writes(n=1), scenario(), clock=Slow()).seconds >= 1


def test_it_can_be_called_inside_a_running_event_loop():
    async def reader(text):
        await asyncio.sleep(0)
        return {"topic": "other"}

    async def cell():
        return nb.run_scenarios(refunds(), [scenario({"topic": "other"}, inputs=REFUND)],
                                tools={**TOOLS, "reader": reader})  # fmt: skip

    assert asyncio.run(cell()).ok


def asks(**more):
    nodes = [{"id": "ask", "type": "human", "prompt": "Go on?", "timeout_seconds": 3600, **more}, "go", "late"]
    return nb.load(content(nodes, [("ask", "go")]))


FALLS = {"recovery": {"behavior": "route_to_fallback", "fallback_node_id": "late"}}


def test_an_unanswered_question_with_a_timeout_times_out():
    tools = {"late-agent": lambda: {"who": "nobody"}, "go-agent": lambda: {"who": "somebody"}}
    nobody = ran(asks(**FALLS), scenario({"who": "nobody"}), tools=tools)
    assert (nobody.passed, [step.node_id for step in nobody.session.trace.steps]) == (True, ["ask", "late"])
    assert ran(asks(**FALLS), scenario({"who": "somebody"}), tools=tools, answers={"ask": ["yes"]}).passed
    default = {"recovery": {"behavior": "continue_with_default", "default_output": {"response": "no"}}}
    assert ran(asks(**default), scenario({"response": "no"}), tools=tools).passed


def test_without_a_recovery_the_timeout_is_the_failure_of_the_run():
    result = ran(asks(), scenario({"who": "somebody"}))
    assert (result.passed, result.status) == (False, "failed")
    assert "no scripted answer is left" in result.description


def test_without_a_timeout_the_run_waits_for_a_person():
    run = nb.Session(asks(**FALLS))
    run.run()
    assert run.status == "waiting"
