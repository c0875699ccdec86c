"""What is slowed down and struck, and that it is the same again."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import networkx as nx
import pytest

import agentnb as nb
from agentnb.clock import FrozenClock
from agentnb.errors import ExecutionError
from agentnb.world.fault_injection import Chaos, ChaosError, count_tokens
from agentnb.world.llm.base import LLMResponse, Usage

CALL = ("fetch", "tool", 0, 1)
CALLS = [(f"node {number}", "tool", 0, 1) for number in range(2_000)]


class Waited(FrozenClock):
    """A clock that notes how long it was to wait, and does not."""

    def __init__(self):
        super().__init__()
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)


def struck(chaos, calls=CALLS):
    return [call for call in calls if chaos.fails(call)]


def session(chaos, attempts=1, **more):
    graph = nx.DiGraph(name="one call")
    graph.add_node("fetch", kind="tool", attempts=attempts)
    return nb.Session(nb.load(graph), tools={"fetch": lambda: {"found": 1}}, clock=Waited(), chaos=chaos, **more)


# -- strikes ---------------------------------------------------------------------------------------------------------


def test_the_same_seed_affects_the_same_calls():
    assert struck(Chaos(error_rate=0.3, seed=7)) == struck(Chaos(error_rate=0.3, seed=7))
    assert struck(Chaos(error_rate=0.3, seed=7)) != struck(Chaos(error_rate=0.3, seed=8))


def test_faults_are_the_same_in_another_process():
    program = (
        "from agentnb.world.fault_injection import Chaos\n"
        "print([n for n in range(99) if Chaos(error_rate=0.5, seed=3).fails((f'node {n}', 'tool', 0, 1))])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str([n for n in range(99) if Chaos(error_rate=0.5, seed=3).fails(CALLS[n])])


@pytest.mark.parametrize(("rate", "least", "most"), [(0, 0, 0), (0.1, 140, 260), (0.5, 900, 1_100), (1, 2_000, 2_000)])
def test_the_rate_is_the_share_of_affected_calls(rate, least, most):
    assert least <= len(struck(Chaos(error_rate=rate))) <= most


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_each_part_of_a_call_affects_the_choice(place):
    chaos = Chaos(error_rate=0.5)
    others = [[*CALL] for _ in range(64)]
    for number, other in enumerate(others):
        other[place] = f"{number}x" if place < 2 else number
    assert 0 < len(struck(chaos, map(tuple, others))) < 64


def test_a_higher_rate_affects_the_same_calls_and_more():
    assert set(struck(Chaos(error_rate=0.1))) < set(struck(Chaos(error_rate=0.4)))


def test_an_injected_fault_is_marked_as_injected():
    with pytest.raises(ChaosError, match=r"'fetch'.*made on purpose.*seed 5"):
        Chaos(error_rate=1, seed=5).raise_failure(CALL)
    Chaos(error_rate=0).raise_failure(CALL)


def test_separate_chaos_affects_other_calls_reproducibly():
    chaos = Chaos(error_rate=0.5, latency_ms=3)
    assert struck(chaos.derive("one")) == struck(chaos.derive("one"))
    assert struck(chaos.derive("one")) != struck(chaos.derive("two"))
    assert chaos.derive("one").latency_ms == 3


@pytest.mark.parametrize("kind", ["human", "sleep"])
def test_questions_and_sleeps_are_not_affected(kind):
    chaos, key = Chaos(latency_ms=9, error_rate=1, token_throttle=True), ("ask", kind, 0, 1)
    chaos.raise_failure(key)
    assert (chaos.delay(key), chaos.throttle_delay(key, 100)) == (0, 0)


# -- how long --------------------------------------------------------------------------------------------------------


def test_each_call_is_delayed_exactly():
    assert {Chaos(latency_ms=250).delay(call) for call in CALLS} == {0.25}


def test_throttled_latency_grows_with_tokens():
    assert Chaos(latency_ms=200, token_throttle=True).throttle_delay(CALL, 250) == pytest.approx(0.5)
    assert Chaos(latency_ms=200).throttle_delay(CALL, 250) == 0


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (LLMResponse("x" * 40), 10),
        (LLMResponse("x" * 40, usage=Usage(tokens_out=7)), 7),
        ("x" * 8, 2),
        ({"a": 1}, 2),
    ],
)
def test_tokens_are_reported_or_estimated_by_length(answer, tokens):
    assert count_tokens(answer) == tokens


# -- what is asked for -----------------------------------------------------------------------------------------------


def test_of_accepts_a_chaos_a_mapping_an_object_and_none():
    expected = Chaos(latency_ms=5, error_rate=0.5)
    assert Chaos.of(None) is None
    assert Chaos.of(expected, seed=9) is expected
    assert Chaos.of({"latency_ms": 5, "error_rate": 0.5}) == expected
    assert Chaos.of(SimpleNamespace(latency_ms=5, error_rate=0.5, other=1)) == expected


def test_its_own_seed_takes_precedence():
    assert Chaos.of({"error_rate": 1}, seed=4).seed == 4
    assert Chaos.of({"error_rate": 1, "seed": 2}, seed=4).seed == 2


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"eror_rate": 0.1}, "did you mean 'error_rate'?"),
        ({"error_rate": 1.5}, "0.1"),
        ({"error_rate": -0.1}, "0.1"),
        ({"error_rate": "0.1"}, "0.1"),
        ({"error_rate": float("nan")}, "0.1"),
        ({"latency_ms": -1}, "200"),
        ({"latency_ms": float("inf")}, "200"),
        ({"latency_ms": True}, "200"),
        ({"token_throttle": 1}, "true"),
        ({"seed": None}, "seed=1"),
        (5, "mapping"),
        ("error_rate=0.1", "mapping"),
        (Chaos, "mapping"),
    ],
)
def test_invalid_options_and_values_are_rejected(given, cure):
    with pytest.raises(ExecutionError) as raised:
        Chaos.of(given)
    (problem,) = raised.value.problems
    assert problem.code == "X415"
    assert cure in problem.do


def test_all_wrong_values_are_reported_at_once():
    with pytest.raises(ExecutionError) as raised:
        Chaos(latency_ms=-1, error_rate=2)
    assert [problem.where for problem in raised.value.problems] == ["chaos, latency_ms", "chaos, error_rate"]


# -- in a session ----------------------------------------------------------------------------------------------------


def test_a_session_is_delayed_and_gets_faults():
    slow = session({"latency_ms": 300})
    slow.run()
    assert (slow.status, slow._parts.run.clock.waits) == ("finished", [0.3])
    broken = session({"error_rate": 1})
    broken.run()
    assert broken.status == "failed"
    assert isinstance(broken.cause, ChaosError)


def test_a_retry_may_succeed():
    chaos = next(
        chaos for chaos in (Chaos(error_rate=0.5, seed=seed) for seed in range(99))
        if chaos.fails(("fetch", "tool", 0, 1)) and not chaos.fails(("fetch", "tool", 0, 2))
    )  # fmt: skip
    retried = session(chaos, attempts=2)
    retried.run()
    assert retried.status == "finished"
    assert session(chaos).run().outcome["status"] == "failed"


def test_a_long_answer_of_a_model_takes_longer():
    graph = nx.DiGraph(name="talk")
    graph.add_node("say", kind="agent", ref="say")
    talk = nb.Session(nb.load(graph), llm=["x" * 400], clock=Waited(), chaos=Chaos(latency_ms=100, token_throttle=True))
    talk.run()
    assert talk.status == "finished"
    assert talk._parts.run.clock.waits == pytest.approx([0.1, 0.1])


def test_approvals_are_not_affected():
    chaos = Chaos(latency_ms=1000, error_rate=1.0)
    assert [chaos.delay(("pay", kind, 0, 1)) for kind in ("approval", "human")] == [0.0, 0.0]
    assert struck(chaos, [("pay", "approval", 0, 1)]) == []
