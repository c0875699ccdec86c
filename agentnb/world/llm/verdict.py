"""The verdict in a judge's answer: a score, passed or not, and a critique, in any of several forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Final, NamedTuple

from agentnb.errors import with_article
from agentnb.world.llm.structured import find_json

_YES: Final = frozenset({"yes", "pass", "passed", "true", "ok"})
_NO: Final = frozenset({"no", "fail", "failed", "false"})
_PASSED: Final = ("passed", "pass")
_REMARKS: Final = ("critique", "feedback", "reason", "comments", "comment")


class Verdict(NamedTuple):
    """A judge's verdict: `score` and `passed` are None if the answer does not state them, but at least one is set."""

    score: float | None
    passed: bool | None
    comment: Any = None


def find_verdict(answer: Any) -> Verdict:
    """Return the verdict in an answer.

    It may be a number, a truth value, `yes`, `no`, `pass`, `fail`, `true` or `false`, a mapping or an object with
    `score` or `passed` (and a `critique`, `feedback`, `reason` or `comments`), a pair of score and critique, or JSON
    with one of these, in an LLMResponse too.

    Raises:
        ValueError: it contains no verdict, or its score is not finite.

    Example:
        >>> find_verdict('{"score": "0.9", "reason": "short"}')
        Verdict(score=0.9, passed=None, comment='short')
    """
    answer = getattr(answer, "content", answer)
    if isinstance(answer, str):
        word = _parse_word(answer)
        answer = find_json(answer) if word is None else word
        answer = _parse_verdict_text(answer) if isinstance(answer, str) else answer
    fields = _to_fields(answer)
    if isinstance(fields, Mapping):
        return _parse_mapping(fields)
    if isinstance(fields, list | tuple) and len(fields) == 2 and (fields[1] is None or isinstance(fields[1], str)):
        return Verdict(_number(fields[0]), None, fields[1] or None)
    if isinstance(fields, bool):
        return Verdict(None, fields)
    return Verdict(_number(fields), None)


def _parse_word(text: str) -> bool | None:
    """Return the verdict of a word; None if it is not one."""
    word = text.strip().strip(".!\"'*").lower()
    return True if word in _YES else False if word in _NO else None


def _parse_verdict_text(text: str) -> Any:
    """Return the verdict in a JSON text, which may be a word or a number in quotes."""
    word = _parse_word(text)
    return text if word is None else word


def _to_fields(answer: Any) -> Any:
    """Return an object with a score, a model or a dataclass as a mapping; anything else unchanged."""
    if getattr(answer, "ndim", None) == 0 and callable(getattr(answer, "item", None)):
        return answer.item()  # a number or a truth value of numpy's
    if isinstance(answer, Mapping | type):
        return answer
    if callable(dump := getattr(answer, "model_dump", None)):
        return dump()
    if is_dataclass(answer):
        return {field.name: getattr(answer, field.name) for field in fields(answer)}
    values = {word: getattr(answer, word) for word in ("score", *_PASSED, *_REMARKS) if hasattr(answer, word)}
    return values if "score" in values or "passed" in values else answer


def _parse_mapping(fields: Mapping[Any, Any]) -> Verdict:
    passed = next((fields[word] for word in _PASSED if fields.get(word) is not None), None)
    if isinstance(passed, str):
        passed = _parse_word(passed)
    if passed is not None and not isinstance(passed, bool):
        passed = None
    score = fields.get("score")
    if score is None and passed is None:
        has = f" ({', '.join(map(str, list(fields)[:5]))})" if fields else ""
        raise ValueError(f"it is a mapping{has} without a 'score', and without a 'passed' that is true or false")
    remark = next((fields[word] for word in _REMARKS if fields.get(word)), None)
    return Verdict(None if score is None else _number(score), passed, remark)


def _number(value: Any) -> float:
    """Return a number that may be given as a string."""
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except ArithmeticError:
            raise ValueError("the score is a string, not a number") from None
    if not isinstance(value, Real | Decimal):
        raise ValueError(f"the score is {with_article(type(value).__name__)}")  # noqa: TRY004  (a wrong answer is one mistake)
    try:
        score = float(value)
    except (OverflowError, ValueError):  # a whole number of hundreds of digits; a signalling NaN
        score = math.inf
    if not math.isfinite(score):
        raise ValueError("the score is not a finite number")
    return score
