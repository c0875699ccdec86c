"""The schema of coreason recipes: RecipeDefinition and its graph, for files of releases 0.20 to 0.23.

Where the releases differ, the more permissive rule applies, so that a file accepted by any of them is accepted here.
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
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic_core import to_jsonable_python

from agentnb.dialects.coreason.parts.passive_schema import annotate_passive
from agentnb.dialects.coreason.parts.profiles import (
    AgentRef,
    CognitiveProfile,
    ModelPolicy,
    Profile,
    SemanticRef,
    SolverConfig,
)
from agentnb.dialects.coreason.parts.sections_schema import (
    Constraint,
    ExtensiblePart,
    PolicyConfig,
    RecipeInterface,
    Recovery,
    Share,
    SimulationScenario,
    StateDefinition,
    StrictPart,
)
from agentnb.errors import Problem, RecipeError, with_article
from agentnb.sources import Path, format_path
from agentnb.text import get_class_name

# A key of the validation context: the caller checks the graph itself, to report all errors at once.
GRAPH_CHECKED_ELSEWHERE = "graph_checked_elsewhere"
# Marks a key where only `steps` is allowed, so that it is rejected whatever its name.
BESIDE_STEPS = " (beside steps)"


class ManifestMetadata(ExtensiblePart):
    """The metadata of a recipe. Unknown keys are preserved."""

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
    design_metadata: Annotated[Any, annotate_passive("DesignMetadata")] = Field(
        None, validation_alias=AliasChoices("x-design", "design_metadata"), serialization_alias="x-design"
    )


class LaterMetadata(ManifestMetadata):
    """The metadata of a recipe of release 0.22 or later: typed keys, and no others."""

    model_config = ConfigDict(hide_input_in_errors=True, extra="forbid")

    version: str = "0.1.0"
    description: str | None = None
    created: str | None = None
    requires_auth: bool = False
    provenance: Annotated[Any, annotate_passive("Provenance")] = None


class _LaterContent(dict[str, Any]):
    """The metadata of a recipe that uses keys introduced in 0.22."""


# Introduced in 0.22: keys of a recipe and of a node, with a value that 0.21 would not have written.
_LATER = ("status", "environment", "default_model_policy", "tests", "compliance", "identity", "guardrails")
_LATER_IN_NODES = ("interaction", "visualization", "collaboration", "recovery", "reasoning", "model_policy",
                   "cognitive_profile")  # fmt: skip
_NOTHING: tuple[Any, ...] = (None, [], "draft")


def _is_later(content: Mapping[str, Any]) -> bool:
    """Return True if a recipe uses keys introduced in 0.22 and none that only earlier releases accept."""
    metadata, topology = content.get("metadata"), content.get("topology")
    nodes = topology.get("nodes") if isinstance(topology, Mapping) else None  # only earlier releases accept steps
    if not isinstance(metadata, Mapping) or "x-design" in metadata or not isinstance(nodes, list):
        return False
    return any(content.get(word) not in _NOTHING for word in _LATER) or any(
        node.get("type") == "generative" or any(node.get(word) is not None for word in _LATER_IN_NODES)
        for node in nodes
        if isinstance(node, Mapping)
    )


def _release(metadata: object) -> str:
    return "later" if isinstance(metadata, _LaterContent | LaterMetadata) else "any"


Metadata = Annotated[
    Annotated[ManifestMetadata, Tag("any")] | Annotated[LaterMetadata, Tag("later")], Discriminator(_release)
]


class _NodeFields(StrictPart):
    """The fields common to all nodes."""

    id: str
    metadata: dict[str, Any] = {}
    presentation: Annotated[Any, annotate_passive("Presentation")] = None
    interaction: Annotated[Any, annotate_passive("Interaction")] = None
    visualization: Annotated[Any, annotate_passive("Visualization")] = None
    collaboration: Annotated[Any, annotate_passive("Collaboration")] = None
    recovery: Recovery | None = None
    reasoning: Annotated[Any, annotate_passive("Reasoning")] = None


class AgentNode(_NodeFields):
    """Runs an agent; `inputs_map` maps arguments to blackboard keys, and without it the agent gets no inputs."""

    type: Literal["agent"] = "agent"
    agent_ref: AgentRef | None = None
    system_prompt_override: str | None = None
    inputs_map: dict[str, str] = {}
    cognitive_profile: CognitiveProfile | None = None
    model_policy: ModelPolicy | None = None


class HumanNode(_NodeFields):
    """Requests input from a person."""

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
    """Evaluates a value and chooses one of two targets by the score."""

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
    """Works towards a goal with tools that it chooses itself."""

    type: Literal["generative"] = "generative"
    goal: str
    output_schema: dict[str, Any]
    allowed_tools: list[str] = []
    solver: SolverConfig = SolverConfig()


NODE_TYPES = ("agent", "human", "router", "evaluator", "generative")
RecipeNode = Annotated[AgentNode | HumanNode | RouterNode | EvaluatorNode | GenerativeNode, Field(discriminator="type")]


class GraphEdge(StrictPart):
    """An edge between two nodes; `condition` is only a label."""

    source: str
    target: str
    condition: str | None = None


class GraphTopology(StrictPart):
    """The graph: nodes, edges and entry point; a draft may be incomplete."""

    nodes: list[RecipeNode]
    edges: list[GraphEdge]
    entry_point: str
    status: Literal["valid", "draft"] = "valid"

    @model_validator(mode="after")
    def _check_topology(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get(GRAPH_CHECKED_ELSEWHERE):
            for fault in self.faults(draft=self.status == "draft"):
                raise ValueError(fault)
        return self

    def faults(self, *, draft: bool = False) -> Iterator[str]:
        """Yield descriptions of the graph's faults; for a draft, only those that are not allowed in drafts either."""
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
        """Return True if the graph is complete, as required of a graph that is not a draft."""
        return next(self.faults(), None) is None


def expand(topology: Any) -> Any:
    """Return the full form of a topology that was written as a list of nodes, or `{steps: [...]}`, in order."""
    match topology:
        case list():
            nodes, rest = topology, {}
        case {"steps": list() as nodes} if "nodes" not in topology:
            rest = {key: value for key, value in topology.items() if key != "steps"}
        case _:
            return topology
    ids = [node.get("id") if isinstance(node, dict) else getattr(node, "id", None) for node in nodes]
    names = [name for name in ids if isinstance(name, str)]
    # A node with a missing or invalid id is reported as such; the sequence continues around it.
    edges = [{"source": a, "target": b} for a, b in pairwise(names)]
    return {"nodes": nodes, "edges": edges, "entry_point": names[0] if names else ""} | {
        f"{key}{BESIDE_STEPS}": value for key, value in rest.items()
    }


class RecipeDefinition(StrictPart):
    """A coreason recipe: its metadata, its interface and its graph.

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
    topology: Annotated[GraphTopology, BeforeValidator(expand)]
    status: Literal["draft", "published", "archived"] = "draft"
    environment: Annotated[Any, annotate_passive("Environment")] = None
    default_model_policy: ModelPolicy | None = None
    tests: list[SimulationScenario] = []
    compliance: Annotated[Any, annotate_passive("Compliance")] = None
    identity: Annotated[Any, annotate_passive("Identity")] = None
    guardrails: Annotated[Any, annotate_passive("Guardrails")] = None

    @model_validator(mode="before")
    @classmethod
    def _choose_release(cls, content: Any) -> Any:
        later = isinstance(content, Mapping) and _is_later(content)
        return {**content, "metadata": _LaterContent(content["metadata"])} if later else content

    @model_validator(mode="after")
    def _check_publishable(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get(GRAPH_CHECKED_ELSEWHERE) and self.status == "published":
            for _, fault in self.unready():
                raise ValueError(fault)
            for fault in self.topology.faults():
                raise ValueError(fault)
        return self

    def unready(self) -> Iterator[tuple[int, str]]:
        """Yield (index of the node, reason) for each node that prevents publication."""
        for number, node in enumerate(self.topology.nodes):
            if not isinstance(node, AgentNode):
                continue
            if isinstance(node.agent_ref, SemanticRef):
                yield number, f"agent {node.id!r} is abstract: its agent_ref describes a task, but names no agent"
            elif not node.agent_ref and node.cognitive_profile is None:
                yield number, f"agent {node.id!r} is incomplete: it has neither agent_ref nor cognitive_profile"

    def check_feasibility(self, context: Mapping[str, Any]) -> tuple[bool, list[str]]:
        """Return whether all mandatory requirements hold on a blackboard, and the messages of those that do not."""
        failed = [rule.message for rule in self.requirements if rule.required and not rule.evaluate(context)]
        return not failed, failed

    def dump(self) -> dict[str, Any]:
        """Return the recipe as JSON values, with the file's key names and without None.

        Raises:
            RecipeError: R244, it contains a value that JSON cannot represent
        """
        return dump_model(self, exclude_none=True)

    def to_json(self) -> str:
        """Return the recipe as JSON text."""
        return json.dumps(self.dump())

    def compute_hash(self, exclude: set[str] | None = None) -> str:
        """Return the SHA-256 of the recipe's JSON with sorted keys, without the top keys in `exclude`."""
        fields = {key: value for key, value in self.dump().items() if key not in (exclude or ())}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def dump_model(model: Any, part: Path = (), **options: Any) -> dict[str, Any]:
    """Return a pydantic model as JSON values; `part` is its path in the recipe.

    R244: a value cannot be written as JSON.

    Raises:
        RecipeError: R244, one for each such value
    """
    try:
        dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True, **options)
    except ValueError as error:  # raised by pydantic, or by the codec of its strings
        problems = [
            Problem("R244", f"the value of {format_path(path)} is {with_article(get_class_name(value))}",
                    f"<{get_class_name(model)}>, {format_path(path)}", "a recipe contains only JSON values",
                    "write it as text, a number, a list or a dict")
            for path, value in _iter_unwritable(model.model_dump(by_alias=True, **options), part)
        ]  # fmt: skip
        if not problems:
            raise
        raise RecipeError(*problems) from error
    return dumped


def _iter_unwritable(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield (path, value) of the innermost values that JSON cannot represent."""
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in parts:
        yield from _iter_unwritable(item, (*path, key))
    if not isinstance(value, Mapping | list | tuple):
        try:
            to_jsonable_python(value)
        except ValueError:
            yield path, value
