"""schema: a coreason recipe, typed: RecipeDefinition and its graph, for files of releases 0.20 to 0.23.

Where the releases differ the wider one holds, so that a file which only one of them takes is taken here.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)

from agentnb.dialects.coreason.extras import (
    Closed,
    Collaboration,
    Compliance,
    Constraint,
    DesignMetadata,
    Environment,
    Guardrails,
    Identity,
    Interaction,
    Open,
    PolicyConfig,
    Presentation,
    Provenance,
    RecipeInterface,
    Recovery,
    Share,
    SimulationScenario,
    StateDefinition,
    Visualization,
)
from agentnb.dialects.coreason.profiles import (
    AgentRef,
    CognitiveProfile,
    ModelPolicy,
    Profile,
    Reasoning,
    SemanticRef,
    SolverConfig,
)

Path = tuple[str | int, ...]
# In the context of a validation: the caller checks the graph himself, to tell all of its mistakes at once.
GRAPH_CHECKED_ELSEWHERE = "graph_checked_elsewhere"
# Marks a key that stands where `steps` alone may stand, so that it is refused whatever its name.
BESIDE_STEPS = " (beside steps)"


class ManifestMetadata(Open):
    """What a recipe says about itself. Other keys are kept as they are."""

    name: str
    version: Any = "0.1.0"
    description: Any = None
    created: Any = None
    requires_auth: Any = False
    provenance: Any = None
    generation_rationale: str | None = None
    original_user_intent: str | None = None
    generated_by: str | None = None
    confidence_score: Share | None = None
    tested_models: list[str] = []
    design_metadata: DesignMetadata | None = Field(
        None, validation_alias=AliasChoices("x-design", "design_metadata"), serialization_alias="x-design"
    )


class LaterMetadata(ManifestMetadata):
    """What a recipe of release 0.22 or later says about itself: there these keys have types."""

    version: str = "0.1.0"
    description: str | None = None
    created: str | None = None
    requires_auth: bool = False
    provenance: Provenance | None = None


class _Later(dict[str, Any]):
    """The metadata of a recipe that uses words which came with 0.22."""


# What came with 0.22: as keys of a recipe and of a node, with a value that 0.21 would not have given when dumped.
_LATER = ("status", "environment", "default_model_policy", "tests", "compliance", "identity", "guardrails")
_LATER_IN_NODES = ("interaction", "visualization", "collaboration", "recovery", "reasoning", "model_policy",
                   "cognitive_profile")  # fmt: skip
_NOTHING: tuple[Any, ...] = (None, [], "draft")


def _is_later(content: Mapping[str, Any]) -> bool:
    """Return whether a recipe uses what no release before 0.22 takes, and nothing that only those take."""
    metadata, topology = content.get("metadata"), content.get("topology")
    if not isinstance(metadata, Mapping) or "x-design" in metadata or not isinstance(topology, Mapping):
        return False
    nodes = topology.get("nodes")
    listed = [node for node in nodes if isinstance(node, Mapping)] if isinstance(nodes, list) else []
    return any(content.get(word) not in _NOTHING for word in _LATER) or any(
        node.get("type") == "generative" or any(node.get(word) is not None for word in _LATER_IN_NODES)
        for node in listed
    )


def _release(metadata: object) -> str:
    return "later" if isinstance(metadata, _Later | LaterMetadata) else "any"


Metadata = Annotated[
    Annotated[ManifestMetadata, Tag("any")] | Annotated[LaterMetadata, Tag("later")], Discriminator(_release)
]


class _NodeFields(Closed):
    """What every node may have."""

    id: str
    metadata: dict[str, Any] = {}
    presentation: Presentation | None = None
    interaction: Interaction | None = None
    visualization: Visualization | None = None
    collaboration: Collaboration | None = None
    recovery: Recovery | None = None
    reasoning: Reasoning | None = None


class AgentNode(_NodeFields):
    """Asks an agent; `inputs_map` is argument -> blackboard key, and without it the agent sees nothing."""

    type: Literal["agent"] = "agent"
    agent_ref: AgentRef | None = None
    system_prompt_override: str | None = None
    inputs_map: dict[str, str] = {}
    cognitive_profile: CognitiveProfile | None = None
    model_policy: ModelPolicy | None = None


class HumanNode(_NodeFields):
    """Asks a person."""

    type: Literal["human"] = "human"
    prompt: str
    timeout_seconds: int | None = None
    required_role: str | None = None


class RouterNode(_NodeFields):
    """Chooses the next node by the text of a blackboard value; an empty target ends the run."""

    type: Literal["router"] = "router"
    input_key: str
    routes: dict[str, str]
    default_route: str


class EvaluatorNode(_NodeFields):
    """Has a value judged, and chooses between two ways by the score."""

    type: Literal["evaluator"] = "evaluator"
    target_variable: str
    evaluator_agent_ref: str
    evaluation_profile: Profile
    pass_threshold: float
    max_refinements: int
    pass_route: str
    fail_route: str
    feedback_variable: str


class GenerativeNode(_NodeFields):
    """Works towards a goal with tools of its own choice."""

    type: Literal["generative"] = "generative"
    goal: str
    output_schema: dict[str, Any]
    allowed_tools: list[str] = []
    solver: SolverConfig = SolverConfig()


NODE_TYPES = ("agent", "human", "router", "evaluator", "generative")
RecipeNode = Annotated[AgentNode | HumanNode | RouterNode | EvaluatorNode | GenerativeNode, Field(discriminator="type")]


class GraphEdge(Closed):
    """A way between two nodes; `condition` is a label."""

    source: str
    target: str
    condition: str | None = None


class GraphTopology(Closed):
    """The graph: nodes, edges, where it begins; a draft may hang together badly."""

    nodes: list[RecipeNode]
    edges: list[GraphEdge]
    entry_point: str
    status: Literal["valid", "draft"] = "valid"

    @model_validator(mode="after")
    def _hangs_together(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get(GRAPH_CHECKED_ELSEWHERE):
            for fault in self.faults(draft=self.status == "draft"):
                raise ValueError(fault)
        return self

    def faults(self, *, draft: bool = False) -> Iterator[str]:
        """Yield what is wrong with the graph, in words; of a draft only what must hold in a draft too."""
        ids = [node.id for node in self.nodes]
        known = set(ids)
        if len(known) < len(ids):
            yield f"Duplicate node IDs found: { {name for name, count in Counter(ids).items() if count > 1} }"
        for node in self.nodes:
            fallback = node.recovery.fallback_node_id if node.recovery else None
            if fallback and fallback not in known:
                yield f"Fallback of {node.id!r} not found in nodes: {fallback!r}"
        if draft:
            return
        if self.entry_point not in known:
            yield f"Entry point {self.entry_point!r} not found in nodes: {known or '{}'}"
        for edge in self.edges:
            if edge.source not in known:
                yield f"Dangling edge source: {edge.source} -> {edge.target}"
            if edge.target not in known:
                yield f"Dangling edge target: {edge.source} -> {edge.target}"

    def verify_completeness(self) -> bool:
        """Return whether the graph hangs together as one that is no draft must."""
        return next(self.faults(), None) is None


def written_out(topology: Any) -> Any:
    """Return a topology in full where it was written short: a list of nodes, or `{steps: [...]}`, in their order."""
    match topology:
        case list():
            nodes, rest = topology, {}
        case {"steps": list() as nodes} if "nodes" not in topology:
            rest = {key: value for key, value in topology.items() if key != "steps"}
        case _:
            return topology
    ids = [node.get("id") if isinstance(node, dict) else getattr(node, "id", None) for node in nodes]
    names = [name for name in ids if isinstance(name, str)]
    # A node whose id is missing or no text is told as that; the sequence goes on around it.
    edges = [{"source": a, "target": b} for a, b in pairwise(names)]
    return {"nodes": nodes, "edges": edges, "entry_point": names[0] if names else ""} | {
        f"{key}{BESIDE_STEPS}": value for key, value in rest.items()
    }


class RecipeDefinition(Closed):
    """A coreason recipe: what it is called, what it takes and gives, and its graph.

    Example:
        >>> recipe = RecipeDefinition.model_validate({
        ...     "metadata": {"name": "hello"}, "interface": {},
        ...     "topology": [{"id": "greet", "type": "agent", "agent_ref": "greeter"}]})
        >>> recipe.topology.nodes[0].agent_ref
        'greeter'
    """

    apiVersion: Literal["coreason.ai/v2"] = "coreason.ai/v2"  # noqa: N815  (the file's own word)
    kind: Literal["Recipe"] = "Recipe"
    metadata: Metadata
    interface: RecipeInterface
    requirements: list[Constraint] = []
    state: StateDefinition | None = None
    policy: PolicyConfig | None = None
    topology: Annotated[GraphTopology, BeforeValidator(written_out)]
    status: Literal["draft", "published", "archived"] = "draft"
    environment: Environment | None = None
    default_model_policy: ModelPolicy | None = None
    tests: list[SimulationScenario] = []
    compliance: Compliance | None = None
    identity: Identity | None = None
    guardrails: Guardrails | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_its_release(cls, content: Any) -> Any:
        later = isinstance(content, Mapping) and _is_later(content)
        return {**content, "metadata": _Later(content["metadata"])} if later else content

    @model_validator(mode="after")
    def _may_be_published(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get(GRAPH_CHECKED_ELSEWHERE) and self.status == "published":
            for _, fault in self.unready():
                raise ValueError(fault)
            for fault in self.topology.faults():
                raise ValueError(fault)
        return self

    def unready(self) -> Iterator[tuple[int, str]]:
        """Yield what keeps an agent from being published: (number of the node, why)."""
        for number, node in enumerate(self.topology.nodes):
            if not isinstance(node, AgentNode):
                continue
            if isinstance(node.agent_ref, SemanticRef):
                yield number, f"agent {node.id!r} is abstract: its agent_ref says what it should do, not who does it"
            elif not node.agent_ref and node.cognitive_profile is None:
                yield number, f"agent {node.id!r} is incomplete: it has neither agent_ref nor cognitive_profile"

    def check_feasibility(self, context: Mapping[str, Any]) -> tuple[bool, list[str]]:
        """Return whether all required requirements hold on a blackboard, and what those say that do not."""
        failed = [rule.message for rule in self.requirements if rule.required and not rule.evaluate(context)]
        return not failed, failed

    def dump(self) -> dict[str, Any]:
        """Return the recipe as JSON values, in the file's own words, without what is None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def to_json(self) -> str:
        """Return the recipe as JSON text."""
        return json.dumps(self.dump())

    def compute_hash(self, exclude: set[str] | None = None) -> str:
        """Return the SHA-256 of the recipe's JSON with sorted keys, without the top keys in `exclude`."""
        kept = {key: value for key, value in self.dump().items() if key not in (exclude or ())}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
