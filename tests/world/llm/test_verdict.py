from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import BaseModel

from agentnb.board.values import freeze
from agentnb.world.llm.base import LLMResponse
from agentnb.world.llm.verdict import find_verdict


class Model(BaseModel):
    score: float
    reason: str = ""


@dataclass
class Plain:
    score: float
    critique: str = ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (1, (1.0, None, None)),
        (0.25, (0.25, None, None)),
        (Decimal("0.25"), (0.25, None, None)),
        (Fraction(1, 4), (0.25, None, None)),
        (np.float32(0.25), (0.25, None, None)),
        (np.bool_(1), (None, True, None)),
        (np.array(0.25), (0.25, None, None)),
        ("0.25", (0.25, None, None)),
        ('"0.25"', (0.25, None, None)),
        (True, (None, True, None)),
        ("Yes", (None, True, None)),
        ("fail.", (None, False, None)),
        ('"pass"', (None, True, None)),
        ((0.3, "critique"), (0.3, None, "critique")),
        ('[0.3, "critique"]', (0.3, None, "critique")),
        ({"score": "0.9", "comments": "c"}, (0.9, None, "c")),
        ({"passed": "no", "reason": "r"}, (None, False, "r")),
        ({"pass": True, "score": 0.5, "feedback": ["f"]}, (0.5, True, ["f"])),
        ('Here: {"score": 0.9, "passed": true}', (0.9, True, None)),
        (LLMResponse('{"score": 0.5}'), (0.5, None, None)),
        (Model(score=0.5, reason="r"), (0.5, None, "r")),
        (Plain(0.5, "c"), (0.5, None, "c")),
        (SimpleNamespace(score=0.5, feedback="f"), (0.5, None, "f")),
        (freeze({"score": 0.5, "critique": "c"}), (0.5, None, "c")),
    ],
)
def test_valid_verdicts_are_accepted(answer, expected):
    assert find_verdict(answer) == expected


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "NoneType"),
        ("", "empty"),
        ("It is good.", "not JSON"),
        ("[]", "a list"),
        ([0.5], "a list"),
        ([0.5, 0.6], "a list"),
        ({"grade": 1}, r"\(grade\) without a 'score'"),
        ({"passed": "perhaps"}, "without a 'score'"),
        ({"score": "high"}, "is a string"),
        ({"score": "1e999999999"}, "not a finite number"),
        (10**400, "not a finite number"),
        (float("nan"), "not a finite number"),
        (Decimal("sNaN"), "not a finite number"),
        (1j, "complex"),
        (Model, "score is a "),
    ],
)
def test_an_invalid_verdict_is_reported(answer, why):
    with pytest.raises(ValueError, match=why):
        find_verdict(answer)
