"""Comparisons that are compiled to functions agree with the interpreters of both languages, for any value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentnb.errors import AgentNbError
from agentnb.expressions.conditions import Condition, compile_rule, to_condition
from agentnb.expressions.jsonlogic import format_rule
from agentnb.expressions.templates import compile_expression

KEYS = "abc"
odd = st.sampled_from(
    [None, True, False, 0, 1, -1, 2**53 + 1, 2**63, -(2**63), 0.0, -0.0, 1.0, 1.5, float("inf"), float("nan"), "",
     "0", "1", "a", "{", "é", "\ud800", b"a", [], [1], {}, {"a": 1}, Decimal("1.0"), Fraction(1, 2),
     date(2026, 1, 1), (1,)]
)  # fmt: skip
literals = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([2**63, 1.5, 1.0, 0.0, "", "0", "a", "é"])
variables = st.sampled_from(KEYS).map(lambda key: {"var": key})
comparisons = st.builds(
    lambda op, sides: {op: list(sides)},
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.tuples(variables, literals) | st.tuples(literals, variables) | st.tuples(variables, variables),
)
rules = st.recursive(
    comparisons | variables,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: {"and": parts})
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: {"or": parts})
        | inner.map(lambda rule: {"!": rule})
        | inner.map(lambda rule: {"!": [rule]})
    ),
    max_leaves=4,
)  # fmt: skip
boards = st.dictionaries(st.sampled_from(KEYS), odd | st.integers(-3, 3) | st.sampled_from("ab"), max_size=3)


class Recording(dict[str, Any]):
    """A board that records which keys are read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.seen: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.seen.add(key)
        return super().get(key, default)


def outcome(ask: Callable[[Mapping[str, Any]], Any], board: Mapping[str, Any]) -> Any:
    """Return everything that can be seen of an evaluation: value, problem, keys read."""
    recording = Recording(board)
    try:
        value = ask(recording)
        result: Any = type(value), repr(value)
    except AgentNbError as error:
        result = error.problems[0].code, error.problems[0].what
    return result, recording.seen


@example({"<": [{"var": "a"}, 3]}, {"a": True}, True)  # noqa: FBT003
@example({"<": [{"var": "a"}, 1.5]}, {"a": float("nan")}, True)  # noqa: FBT003
@example({"<": [{"var": "a"}, 1.5]}, {"a": float("inf")}, True)  # noqa: FBT003
@example({"==": [{"var": "a"}, 1]}, {"a": 1.0}, True)  # noqa: FBT003
@example({"<": [{"var": "a"}, "a"]}, {}, False)  # noqa: FBT003
@example({"and": [{"<": [{"var": "a"}, 3]}, {"==": [{"var": "b"}, "x"]}]}, {"a": 5}, True)  # noqa: FBT003
@example({"==": [{"var": "a.b"}, 1]}, {"a.b": 1, "a": {"b": 2}}, True)  # noqa: FBT003
@example({"==": [{"var": ""}, 1]}, {"": 1}, True)  # noqa: FBT003
@example({"==": [{"var": "{a}"}, 1]}, {"{a}": 1, "a": "b", "b": 2}, True)  # noqa: FBT003
@given(rules, boards, st.booleans())
def test_a_comparison_agrees_with_the_interpreter_of_rules(rule, board, strict):
    condition, interpreter = Condition(rule, None, strict=strict), compile_rule(rule, strict=strict)
    assert outcome(condition.call, board) == outcome(interpreter.evaluate, board)
    assert condition.warning == interpreter.warning
    later = {"a": 1, "b": 1, "c": 1}  # a warning must not stay from the board before
    assert outcome(condition.call, later) == outcome(interpreter.evaluate, later)
    assert condition.warning == interpreter.warning


@given(rules, boards, st.booleans())
def test_a_comparison_agrees_with_the_interpreter_of_expressions(rule, board, strict):
    text = format_rule(rule).replace("null", "none")
    condition, interpreter = Condition(text, None, strict=strict), compile_expression(text, strict=strict)
    result, theirs = outcome(condition.call, board), outcome(interpreter.render, board)
    if result[0][0] != "X314":  # a value that has no truth value is refused by the condition only
        assert result == theirs
        assert condition.warning == interpreter.warning


@pytest.mark.parametrize("source", ["n < 3", {"<": [{"var": "n"}, 3]}, "not (n == 2 or done)"])
def test_a_board_that_cannot_be_read_is_reported_by_the_interpreter(source):
    class Broken(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            raise OSError("disk")

    with pytest.raises((AgentNbError, OSError)) as raised:
        to_condition(source)(Broken())
    assert "disk" in str(raised.value)
