from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentnb.dialects.coreason.extras import Constraint, DesignMetadata, PolicyConfig, Presentation, Priority


def holds(operator, value, board, variable="a.b"):
    return Constraint(variable=variable, operator=operator, value=value).evaluate(board)


@pytest.mark.parametrize(
    ("operator", "value", "found", "expected"),
    [
        ("eq", 1, 1, True),
        ("eq", 1, True, True),
        ("neq", 1, 2, True),
        ("gt", 1, 1, False),
        ("gte", 1, 1, True),
        ("lt", 1, 0, True),
        ("lte", 1, 2, False),
        ("in", [1, 2], 2, True),
        ("contains", "x", "axb", True),
        ("gt", 1, "text", False),
        ("in", 3, 3, False),
    ],
)
def test_a_requirement_compares(operator, value, found, expected):
    assert holds(operator, value, {"a": {"b": found}}) is expected


def test_what_is_missing_meets_no_requirement():
    assert not holds("neq", 1, {"a": {}})
    assert not holds("neq", 1, {"a": 3})
    assert not holds("eq", 1, {"a.b": 1})


def test_a_requirement_says_what_failed():
    assert Constraint(variable="a", operator="eq", value=1).message == "Constraint failed: a eq 1"
    assert Constraint(variable="a", operator="eq", value=1, error_message="No a").message == "No a"


@pytest.mark.parametrize("given", [8, "high", "HIGH"])
def test_a_priority_is_a_number_or_a_name(given):
    assert PolicyConfig(priority=given).priority is Priority.HIGH
    with pytest.raises(ValidationError):
        PolicyConfig(priority="urgent")


def test_colours_are_six_digits():
    assert Presentation(x=0, y=0, color="#0aF9c2").color == "#0aF9c2"
    with pytest.raises(ValidationError):
        Presentation(x=0, y=0, color="red")


def test_a_closed_part_takes_no_other_key():
    with pytest.raises(ValidationError):
        DesignMetadata(x=1, y=2, z=3)
