from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentnb.dialects.coreason.parts.passive_schema import MODELS
from agentnb.dialects.coreason.parts.profiles import (
    CognitiveProfile,
    EvaluationProfile,
    ModelChoice,
    SemanticRef,
    SolverConfig,
)
from tests.dialects.coreason.release_recipes import INVENT, MIND, MODEL, ON_A_NODE, WISH


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (SemanticRef, WISH),
        (CognitiveProfile, MIND),
        (ModelChoice, MODEL),
        (SolverConfig, INVENT["solver"]),
        (MODELS["Reasoning"], ON_A_NODE["reasoning"]),
    ],
)
def test_all_enum_values_are_accepted_and_no_other(model, given):
    assert model.model_validate(given).model_dump(exclude_unset=True) == given
    with pytest.raises(ValidationError):
        model.model_validate({**given, "more": 1})


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (SolverConfig, {"depth_limit": 0}),
        (SolverConfig, {"n_samples": 0}),
        (SolverConfig, {"beam_width": 0}),
        (SolverConfig, {"max_iterations": 0}),
        (SolverConfig, {"diversity_threshold": 1.1}),
        (SolverConfig, {"consensus_threshold": -0.1}),
        (SolverConfig, {"strategy": "guess"}),
        (SolverConfig, {"aggregation_method": "first"}),
        (MODELS["Optimization"], {"base_ref": "b", "improvement_goal": "g", "max_demonstrations": -1}),
        (MODELS["Optimization"], {"base_ref": "b"}),
        (MODELS["MemoryRead"], {"collection_name": "c", "top_k": 0}),
        (MODELS["MemoryRead"], {}),
        (MODELS["KnowledgeContext"], {"name": "n", "priority": 2}),
        (EvaluationProfile, {"grading_rubric": [{"name": "n", "description": "d"}]}),
        (SemanticRef, {"intent": "i", "constraints": [3]}),
        (SemanticRef, {"intent": "i", "candidates": [{"ref": "r", "score": 1}]}),
        (CognitiveProfile, {"reasoning_mode": "standard"}),
        (MODELS["Reasoning"], {"strategy": "luck"}),
        (ModelChoice, {"compliance": ["gdpr"]}),
    ],
)
def test_invalid_values_are_rejected(model, given):
    with pytest.raises(ValidationError):
        model.model_validate(given)


@pytest.mark.parametrize("name", ["depth_limit", "n_samples", "beam_width", "max_iterations"])
def test_a_solver_needs_one_field(name):
    assert getattr(SolverConfig.model_validate({name: 1}), name) == 1


def test_omitted_fields_have_their_defaults():
    assert (SolverConfig().strategy, SolverConfig().depth_limit, SolverConfig().consensus_threshold) == (
        "standard",
        3,
        0.6,
    )
    assert MODELS["Optimization"](base_ref="b", improvement_goal="g").metric_name == "exact_match"


def test_the_default_settings_of_a_solver():
    assert SolverConfig().model_dump() == {
        "strategy": "standard",
        "depth_limit": 3,
        "n_samples": 1,
        "diversity_threshold": 0.3,
        "enable_dissenter": False,
        "consensus_threshold": 0.6,
        "beam_width": 1,
        "max_iterations": 10,
        "aggregation_method": None,
    }
