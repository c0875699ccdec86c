"""The performers of a node's work besides plain references: semantic references, cognition, models, solvers, judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Tag

from agentnb.dialects.coreason.parts.passive_schema import Closed, NotNegative, Positive, Share


def _text_or_more(value: object) -> str:
    return "more" if isinstance(value, Mapping | BaseModel) else "text"


# Where a text or a mapping is allowed, an invalid value is reported against one of the two, not against both.
TEXT_OR_MORE = Discriminator(_text_or_more)
Text = Annotated[str, Tag("text")]


class RubricLine(Closed):
    """One criterion of an evaluation."""

    name: str
    description: str
    threshold: float
    strict: bool = True


class EvaluationProfile(Closed):
    """How an evaluator judges."""

    expected_latency_ms: int | None = None
    golden_dataset_uri: str | None = None
    evaluator_model: str | None = None
    grading_rubric: list[RubricLine] = []


class Candidate(Closed):
    """An agent that may fulfill a SemanticRef."""

    ref: str
    score: float
    rationale: str
    warnings: list[str] = []


class Optimization(Closed):
    """How an agent is to be improved from examples."""

    base_ref: str
    improvement_goal: str
    strategy: Literal["atomic", "parallel"] = "parallel"
    metric_name: str = "exact_match"
    teacher_model: str | None = None
    max_demonstrations: NotNegative = 5


class SemanticRef(Closed):
    """An agent identified by its goal: a placeholder in a draft."""

    intent: str
    constraints: list[str] = []
    candidates: list[Candidate] = []
    optimization: Optimization | None = None


class ModelChoice(Closed):
    """The criteria for choosing a model if none is named; shown, not enforced."""

    strategy: Literal["priority", "lowest_cost", "lowest_latency", "performance", "round_robin"] = "priority"
    min_context_window: int | None = None
    max_input_cost_per_m: float | None = None
    compliance: list[Literal["standard", "eu_residency", "hipaa", "fedramp"]] = []
    provider_whitelist: list[str] = []
    allow_fallback: bool = True


class Adversary(Closed):
    """A reviewer that argues against an agent's reasoning."""

    persona: str = "skeptic"
    attack_vectors: list[str] = []
    temperature: float = 0.7


class GapScan(Closed):
    """Whether an agent first looks for gaps in its knowledge."""

    enabled: bool = False
    confidence_threshold: float = 0.8


class Reasoning(Closed):
    """How an agent is to check its own thoughts."""

    strategy: Literal["none", "basic", "adversarial", "causal", "consensus"] = "none"
    adversarial: Adversary | None = None
    gap_scan: GapScan | None = None
    max_revisions: int = 1


class Reflex(Closed):
    """When an agent may answer without reasoning."""

    enabled: bool = True
    confidence_threshold: float = 0.9
    allowed_tools: list[str] = []


class KnowledgeContext(Closed):
    """Knowledge for an agent; `priority` is 10, 8, 5 or 1."""

    name: str
    priority: Literal[1, 5, 8, 10] = 5
    parameters: dict[str, Any] = {}


class MemoryRead(Closed):
    """Where an agent looks up memories."""

    collection_name: str
    strategy: Literal["dense", "sparse", "hybrid", "graph", "graph_rag"] = "hybrid"
    top_k: Positive = 5
    score_threshold: Share | None = 0.7
    scope: Literal["shared", "user", "session"] = "shared"


class MemoryWrite(Closed):
    """When and where an agent's work is remembered."""

    strategy: Literal["none", "summary_window", "semantic_cluster", "session_close"] = "session_close"
    frequency_turns: int = 10
    destination_collection: str | None = None


class CognitiveProfile(Closed):
    """An agent described in place, instead of by a reference."""

    role: str
    reasoning_mode: str | None = "standard"
    reasoning: Reasoning | None = None
    reflex: Reflex | None = None
    knowledge_contexts: list[KnowledgeContext] = []
    memory_read: list[MemoryRead] = []
    memory_write: MemoryWrite | None = None
    task_primitive: str | None = None


class SolverConfig(Closed):
    """How a generative node looks for its answer."""

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
