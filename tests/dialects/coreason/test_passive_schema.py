from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from agentnb.dialects import coreason
from agentnb.dialects.coreason.parts.passive_schema import MODELS
from agentnb.dialects.coreason.parts.sections_schema import Constraint, PolicyConfig, Priority


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
def test_a_requirement_compares_a_value(operator, value, found, expected):
    assert holds(operator, value, {"a": {"b": found}}) is expected


def test_a_missing_value_meets_no_requirement():
    assert not holds("neq", 1, {"a": {}})
    assert not holds("neq", 1, {"a": 3})
    assert not holds("eq", 1, {"a.b": 1})


def test_a_requirement_reports_what_failed():
    assert Constraint(variable="a", operator="eq", value=1).message == "Constraint failed: a eq 1"
    assert Constraint(variable="a", operator="eq", value=1, error_message="No a").message == "No a"


@pytest.mark.parametrize("given", [8, "high", "HIGH"])
def test_a_priority_is_a_number_or_a_name(given):
    assert PolicyConfig(priority=given).priority is Priority.HIGH
    with pytest.raises(ValidationError):
        PolicyConfig(priority="urgent")


def test_colors_are_six_digits():
    assert MODELS["Presentation"](x=0, y=0, color="#0aF9c2").color == "#0aF9c2"
    with pytest.raises(ValidationError):
        MODELS["Presentation"](x=0, y=0, color="red")


def test_a_strict_model_rejects_other_keys():
    with pytest.raises(ValidationError):
        MODELS["DesignMetadata"](x=1, y=2, z=3)


class Board(Mapping):
    """A Mapping that is not a dict, as a session's board is."""

    def __init__(self, **values):
        self.values_ = values

    def __getitem__(self, key):
        return self.values_[key]

    def __iter__(self):
        return iter(self.values_)

    def __len__(self):
        return len(self.values_)


def test_a_requirement_is_evaluated_on_any_mapping():
    assert holds("eq", 1, Board(a=Board(b=1)))
    assert not holds("neq", 1, Board(a=[1]), "a.0")


def test_a_simulation_request_ignores_unknown_keys():
    scenario = {"id": "s", "description": "d", "inputs": {}, "validation_logic": "fuzzy", "more": 1}
    foe = {"name": "n", "goal": "g", "strategy_model": "m", "attack_model": "m", "persona": {"a": 1}, "more": 1}
    simulation_request = coreason.SimulationRequest.model_validate(
        {"scenario": scenario, "profile": foe, "chaos_config": {"latency_ms": "3", "more": 1}, "more": 1}
    )
    assert simulation_request.profile == coreason.AdversaryProfile(**foe)
    assert simulation_request.chaos_config == coreason.ChaosConfig(latency_ms=3, error_rate=0.0, token_throttle=False)
    assert "more" not in simulation_request.model_dump()
    with pytest.raises(ValidationError):
        coreason.SimulationRequest(profile=None)
    with pytest.raises(ValidationError):
        coreason.AdversaryProfile(name="n")


@pytest.mark.parametrize(
    "given", [{"type": "robot"}, {"type": "ai", "confidence_score": 2}, {"type": "ai", "by": 1}, {}]
)
def test_provenance_names_the_author(given):
    assert MODELS["Provenance"](type="human").modifications == []
    with pytest.raises(ValidationError):
        MODELS["Provenance"](**given)
