"""The performers of a node's work besides plain references: semantic references, cognition, models, judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Tag

from agentnb.dialects.coreason.parts.passive_schema import annotate_passive
from agentnb.dialects.coreason.parts.sections_schema import Positive, Share, StrictPart


def _parse_text_or_object(value: object) -> str:
    return "more" if isinstance(value, Mapping | BaseModel) else "text"


# If text or a mapping is allowed, an invalid value is reported against one of the two, not both.
TEXT_OR_MORE = Discriminator(_parse_text_or_object)
Text = Annotated[str, Tag("text")]


class EvaluationProfile(StrictPart):
    """How an evaluator judges."""

    expected_latency_ms: int | None = None
    golden_dataset_uri: str | None = None
    evaluator_model: str | None = None
    grading_rubric: Annotated[list[Any], annotate_passive("RubricLine", many=True)] = []


class SemanticRef(StrictPart):
    """An agent identified by its goal: a placeholder in a draft."""

    intent: str
    constraints: list[str] = []
    candidates: Annotated[list[Any], annotate_passive("Candidate", many=True)] = []
    optimization: Annotated[Any, annotate_passive("Optimization")] = None


class ModelChoice(StrictPart):
    """The criteria for choosing a model if none is named; shown but not enforced."""

    strategy: Literal["priority", "lowest_cost", "lowest_latency", "performance", "round_robin"] = "priority"
    min_context_window: int | None = None
    max_input_cost_per_m: float | None = None
    compliance: list[Literal["standard", "eu_residency", "hipaa", "fedramp"]] = []
    provider_whitelist: list[str] = []
    allow_fallback: bool = True


class CognitiveProfile(StrictPart):
    """An agent described in place, instead of by a reference."""

    role: str
    reasoning_mode: str | None = "standard"
    reasoning: Annotated[Any, annotate_passive("Reasoning")] = None
    reflex: Annotated[Any, annotate_passive("Reflex")] = None
    knowledge_contexts: Annotated[list[Any], annotate_passive("KnowledgeContext", many=True)] = []
    memory_read: Annotated[list[Any], annotate_passive("MemoryRead", many=True)] = []
    memory_write: Annotated[Any, annotate_passive("MemoryWrite")] = None
    task_primitive: str | None = None


class SolverConfig(StrictPart):
    """How a generative node searches for its answer."""

    strategy: Literal["standard", "tree_search", "ensemble"] = "standard"
    depth_limit: Positive = 3
    n_samples: Positive = 1
    diversity_threshold: Share | None = 0.3
    enable_dissenter: bool = False
    consensus_threshold: Share | None = 0.6
    beam_width: Positive = 1
    max_iterations: Positive = 10
    aggregation_method: Literal["best_of_n", "majority_vote", "weighted_merge"] | None = None


AgentRef = Annotated[Text | Annotated[SemanticRef, Tag("more")], TEXT_OR_MORE]
ModelPolicy = Annotated[Text | Annotated[ModelChoice, Tag("more")], TEXT_OR_MORE]
Profile = Annotated[Text | Annotated[EvaluationProfile, Tag("more")], TEXT_OR_MORE]
