"""What a judge may answer an evaluator, and what is not a score."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest

from agentnb.kinds.evaluator import parse_verdict
from agentnb.session import Session
from agentnb.world.llm.base import LLMResponse
from tests.kinds.test_evaluator import observed, recipe
from tests.session.small_sessions import path


@pytest.mark.parametrize(
    ("answer", "score", "critique"),
    [(1, 1.0, None), (0.25, 0.25, None), (True, 1.0, None), (False, 0.0, None), (-2, -2.0, None), (7.5, 7.5, None),
     ({"score": 0.5}, 0.5, None), ({"score": True, "critique": ""}, 1.0, None),
     ({"score": 0.5, "critique": "c", "feedback": "f"}, 0.5, "c"), ({"score": 0.5, "feedback": ["f"]}, 0.5, ["f"]),
     ("0.5", 0.5, None), ('{"score": 0.5, "critique": "c"}', 0.5, "c"),
     (LLMResponse('{"score": 0.5}'), 0.5, None), (LLMResponse(0.5), 0.5, None), ({"score": "0.5"}, 0.5, None),
     (Decimal("0.5"), 0.5, None), ((0.25, "c"), 0.25, "c"), ({"passed": True, "reason": "r"}, 1.0, "r"),
     ("no", 0.0, None)],
)  # fmt: skip
def test_valid_scores_are_accepted(answer, score, critique):
    assert parse_verdict(answer) == (score, critique)


@pytest.mark.parametrize(
    "answer",
    [None, "good", "", [], [0.5], {}, {"critique": "c"}, {"score": "high"}, {"score": None}, {"score": [1]},
     float("nan"), float("inf"), {"score": float("-inf")}, "NaN", '{"score": NaN}', 1j, 10**400, {"score": "nan"}],
)  # fmt: skip
def test_an_invalid_score_is_reported_with_its_source(answer):
    with pytest.raises(ValueError, match=r"."):
        parse_verdict(answer)
    run = Session(recipe(), tools={"critic": lambda output: answer})
    run.run()
    assert (run.status, run.current, run.trace.score) == ("failed", "judge", None)
    assert "X403" in str(run.cause)
    assert "'critic' answered" in str(run.cause)


@pytest.mark.parametrize("answer", [85, "85", -0.1, {"score": 1.01, "critique": "c"}])
def test_a_score_beyond_0_to_1_is_invalid_if_the_threshold_is_within(answer):
    run = Session(recipe(), tools={"critic": lambda output: answer})
    run.run()
    assert (run.status, run.current, run.trace.score) == ("failed", "judge", None)
    assert "X403" in str(run.cause)
    assert "from 0 to 1" in str(run.cause)
    scale = Session(recipe(pass_threshold=50), tools={"critic": lambda output: 85})
    scale.run()
    assert (path(scale)[-1], scale.trace.score) == ("publish", 85.0)


def test_a_judge_may_answer_an_object_with_a_score():
    @dataclass
    class Said:
        score: float
        comments: str

    run = Session(recipe(), tools={"critic": lambda output: Said(0.25, "longer")})
    run.run(max_steps=2)
    assert observed(run) == [(0.25, 1, "write", False)]
    assert run.board["critique"] == "longer"
