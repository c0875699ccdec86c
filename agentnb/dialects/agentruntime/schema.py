"""The schema of agentruntime files: AgentDefinition with its state, prompts, memory, tools and graphs.

A section that is present but empty (`tools:`) counts as left out. Unknown keys are ignored and reported by the reader
(`agentnb.dialects.pydantic_errors.iter_unknown_keys`). Rules about a whole graph (unique ids, existing targets and
tools) are checked by the loader; rules about a single value are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    PositiveInt,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from agentnb.dialects import pydantic_errors
from agentnb.dialects.agentruntime.parts.settings import (
    Free,
    MemoryConfig,
    MetaConfig,
    Name,
    Names,
    Part,
    RetryConfig,
    TimeoutConfig,
    default_to_list,
    default_to_mapping,
    make_rule_error,
)
from agentnb.errors import Problem, did_you_mean
from agentnb.sources import Path, Source
from agentnb.text import safe_str

__all__ = [
    "AgentDefinition",
    "EdgeConfig",
    "ErrorConfig",
    "GraphConfig",
    "LlmNode",
    "LoopNode",
    "MapConfig",
    "MemoryConfig",
    "MetaConfig",
    "NodeConfig",
    "NoopNode",
    "PromptMessage",
    "PromptTemplate",
    "PromptsConfig",
    "RetryConfig",
    "RouterCase",
    "RouterNode",
    "StateConfig",
    "SubgraphNode",
    "TimeoutConfig",
    "ToolConfig",
    "ToolNode",
    "infer_type",
    "read",
]  # fmt: skip


def _check_rule(value: Any) -> Any:
    if isinstance(value, Mapping | bool):
        return value
    message = "A JsonLogic rule is required: a mapping with one operator, or true or false"
    raise make_rule_error(message, 'write it as {"==": [{"var": "state.x"}, 1]}')


Rule = Annotated[Any, AfterValidator(_check_rule)]


class StateConfig(Part):
    """The keys of the state (`shape` documents them), how inputs enter it, and its initial values."""

    shape: dict[str, Any] = Field(min_length=1)
    reducer: Literal["deepmerge", "replace"] = "deepmerge"
    init: Free = {}

    @field_validator("init")
    @classmethod
    def _convert_shape(cls, init: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        shape = info.data.get("shape", init)
        unknown = [key for key in init if key not in shape]
        if unknown:
            order = did_you_mean(unknown[0], shape, f"add {unknown[0]!r} to 'shape'")
            allowed = f"'init' may contain only the keys of 'shape': {', '.join(shape)}"
            message = f"{allowed}; unexpected: {', '.join(unknown)}"
            raise make_rule_error(message, order, at=(unknown[0],))
        return init


class PromptMessage(Part):
    """One additional message of a prompt: its role and its text."""

    role: Name
    content: str


class PromptTemplate(Part):
    """The texts of a prompt by role; sent in the order of the fields."""

    system: str | None = None
    user: str | None = None
    assistant: str | None = None
    messages: Annotated[list[PromptMessage], BeforeValidator(default_to_list)] = []

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if not (self.system or self.user or self.assistant or self.messages):
            order = "write one of them, or remove the template"
            raise make_rule_error("A prompt requires one of: system, user, assistant, messages", order)
        return self


class PromptsConfig(Part):
    """Prompts by name, and their shared partials. Without llm nodes, they may be left out."""

    partials: Annotated[dict[str, str], BeforeValidator(default_to_mapping)] = {}
    templates: Annotated[dict[str, PromptTemplate], BeforeValidator(default_to_mapping)] = {}


class ToolConfig(Part):
    """A tool: its id, used by nodes to call it, and its implementation (`impl`).

    `config` is passed with the inputs of each call. With `mode: class` the tool is an object created with
    `config.init`. `repeatable: true` allows a call to be sent again if a recorded run was interrupted before the answer
    arrived.
    """

    id: Name
    kind: Literal["python", "http", "mcp", "subgraph", "langchain"]
    impl: Name
    mode: Literal["callable", "class"] = "callable"
    config: Free = {}
    retry: RetryConfig | None = None
    timeout: TimeoutConfig | None = None
    repeatable: bool | None = None

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode == "class" and self.kind not in ("python", "langchain"):
            message = f"'mode: class' is for tools of kind python and langchain; this tool has kind {self.kind}"
            raise make_rule_error(message, "remove 'mode', or fix 'kind'")
        return self


class MapConfig(Part):
    """How a node's result updates the state.

    `set` writes (path -> value), `merge` merges into an existing value, `history` appends to the lists under
    `state.history`, `delete` removes. Values are templates; all are rendered before the first write.
    """

    set: Free = {}
    merge: Free = {}
    delete: Annotated[list[str], BeforeValidator(default_to_list)] = []
    history: Free = {}

    @model_validator(mode="after")
    def _check_body(self) -> Self:
        if not (self.set or self.merge or self.delete or self.history):
            raise make_rule_error(
                "A 'map' requires one of: set, merge, delete, history", "write one of them, or remove 'map'"
            )
        return self


class ErrorConfig(Part):
    """How a run continues after a failed node: at another node (`to`), along its ordinary edges (`resume`), or both."""

    to: Name | None = None
    resume: bool = False

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if not (self.to or self.resume):
            raise make_rule_error(
                "An 'on_error' requires 'to' or 'resume: true'", "write one of them, or remove 'on_error'"
            )
        return self


class _NodeFields(Part):
    """The fields common to all nodes.

    Without retry or timeout, the defaults of the tool, the graph or the agent apply.
    """

    id: Name
    name: str | None = None
    description: str | None = None
    retry: RetryConfig | None = None
    timeout: TimeoutConfig | None = None
    on_error: ErrorConfig | None = None


class ToolNode(_NodeFields):
    """Calls a tool with `inputs`, which are templates. `repeatable` is that of the node or, if unset, of its tool."""

    type: Literal["tool"] = "tool"
    uses: Name
    inputs: Free = {}
    map: MapConfig | None = None
    repeatable: bool | None = None


class LlmNode(_NodeFields):
    """Calls the model with a prompt, referenced by its key in `prompts.templates`; `repeatable` as for a tool."""

    type: Literal["llm"] = "llm"
    prompt: Name
    map: MapConfig | None = None
    repeatable: bool | None = None


class RouterCase(Part):
    """One case of a router: its target and its condition."""

    when: Rule
    to: Name


class RouterNode(_NodeFields):
    """Continues at every case that matches; if none does, at `default` or, without it, along its ordinary edges."""

    type: Literal["router"] = "router"
    cases: list[RouterCase] = Field(min_length=1)
    default: Name | None = None


class LoopNode(_NodeFields):
    """Repeats the node `body` until the rule `until` is true, at most `max_iterations` times."""

    type: Literal["loop"] = "loop"
    body: Name
    until: Rule | None = None
    max_iterations: PositiveInt = 10
    on_exhausted: Literal["error", "continue"] | None = None

    @property
    def exhausted(self) -> Literal["error", "continue"]:
        """The action after the last iteration: `on_exhausted`; if unset, an error if there is an `until`."""
        return self.on_exhausted or ("continue" if self.until in (None, {}) else "error")


class SubgraphNode(_NodeFields):
    """Runs a graph of `subgraphs` in a separate state, with `inputs` (templates) added to this one's."""

    type: Literal["subgraph"] = "subgraph"
    graph: Name
    inputs: Free = {}
    map: MapConfig | None = None


class NoopNode(_NodeFields):
    """Does nothing but its `map`."""

    type: Literal["noop"] = "noop"
    map: MapConfig | None = None


_MODELS: tuple[type[BaseModel], ...] = (ToolNode, LlmNode, RouterNode, LoopNode, SubgraphNode, NoopNode)
_NODES = {model.model_fields["type"].default: model for model in _MODELS}
# The key that identifies the type of a node without `type`, in this order; a node without any of them does nothing.
_KNOWN_BY = {"uses": "tool", "prompt": "llm", "cases": "router", "body": "loop", "graph": "subgraph"}


def infer_type(node: Any) -> str | None:
    """Return a node's type as written or, if left out, as inferred from its keys; None if it is not a mapping.

    Example:
        >>> infer_type({"id": "a", "uses": "search"}), infer_type({"id": "b"})
        ('tool', 'noop')
    """
    if not isinstance(node, Mapping):
        return getattr(node, "type", None)
    if node.get("type") is not None:
        return safe_str(node["type"])
    return next((kind for key, kind in _KNOWN_BY.items() if key in node), "noop")


NodeConfig = Annotated[
    Annotated[ToolNode, Tag("tool")]
    | Annotated[LlmNode, Tag("llm")]
    | Annotated[RouterNode, Tag("router")]
    | Annotated[LoopNode, Tag("loop")]
    | Annotated[SubgraphNode, Tag("subgraph")]
    | Annotated[NoopNode, Tag("noop")],
    Discriminator(infer_type),
]


class EdgeConfig(Part):
    """An edge between two nodes; `when` is a JsonLogic rule, and an empty one is always true."""

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    when: Rule | None = None


class GraphConfig(Part):
    """Nodes and edges, the required inputs, and the state keys that are its outputs.

    `timeout` applies to the whole graph, `retry` to its nodes unless they or their tools set their own.
    """

    inputs: Names
    outputs: Names
    nodes: list[NodeConfig]
    edges: Annotated[list[EdgeConfig], BeforeValidator(default_to_list)] = []
    max_steps: PositiveInt = 200
    retry: RetryConfig | None = None
    timeout: TimeoutConfig | None = None


class AgentDefinition(Part):
    """An agentruntime file: an agent, its state, prompts, memory, tools, its graph and the graphs inside it.

    Example:
        >>> agent = AgentDefinition.model_validate({
        ...     "meta": {"name": "hello"}, "state": {"shape": {"name": "str"}},
        ...     "graph": {"inputs": ["name"], "outputs": ["name"], "nodes": [{"id": "greet"}]}})
        >>> agent.graph.nodes[0].type, agent.graph.max_steps
        ('noop', 200)
    """

    meta: MetaConfig
    state: StateConfig
    prompts: Annotated[PromptsConfig, BeforeValidator(default_to_mapping)] = PromptsConfig()
    memory: MemoryConfig | None = None
    tools: Annotated[list[ToolConfig], BeforeValidator(default_to_list)] = []
    graph: GraphConfig
    subgraphs: Annotated[dict[str, GraphConfig], BeforeValidator(default_to_mapping)] = {}


class FileInput(pydantic_errors.ValidatedInput):
    """The content of a file; a node without a type is validated against the class inferred from its keys."""

    def choose_class(self, models: list[type[BaseModel]], value: Mapping[str, Any]) -> type[BaseModel] | None:
        """Return the class that describes a node."""
        return _NODES.get(infer_type(value) or "")

    def explain_unknown(self, path: Path) -> tuple[str, str, str] | None:
        """Return the hint for an unknown key of a node whose type is missing and cannot be inferred."""
        node, key = self.get_value(path[:-1]), str(path[-1])
        if path[-3:-2] != ("nodes",) or node.get("type") is not None or infer_type(node) != "noop":
            return None
        why = f"a node is defined by its 'type', or by one of: {', '.join(_KNOWN_BY)}"
        return key, why, did_you_mean(key, _KNOWN_BY, "add the node's 'type'")


def read(source: Source) -> tuple[AgentDefinition | None, list[Problem]]:
    """Return the typed content of a file or a dict, if it is valid, and the problems beyond its syntax.

    R109, R112 (a warning), R113, R114: a word, a key, or a value is not valid.
    R170: a field of an agent has no effect here (a warning).
    """
    written = FileInput(source, source.content, AgentDefinition)
    problems = [*pydantic_errors.check_words(source), *pydantic_errors.iter_unknown_keys(written)]
    try:
        definition = AgentDefinition.model_validate(source.content)
    except ValidationError as error:
        return None, [*problems, *pydantic_errors.iter_schema_problems(error, written)]
    if definition.meta.defaults.tracing is not None:
        place = source.locate(("meta", "defaults", "tracing"), key=True)
        problems.append(
            Problem("R170", "'tracing' has no effect", str(place),
            "every session records its whole trace: session.trace",
                    "remove it", "warning")
        )  # fmt: skip
    return definition, problems
