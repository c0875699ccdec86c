"""Load an agent's config as a Recipe: the steps from its task to its result. Translation only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import Place, Problem
from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.sources import Source

if TYPE_CHECKING:
    from agentnb.dialects.symphony.schema import AgentConfig
    from agentnb.world.agents import Agent

_OWN: Final = frozenset({"task", "directives", "systemPrompt", "system_prompt", "llm", "maxCalls", "max_calls"})
# The fields that a step corresponds to, nearest first.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "system_prompt": ("systemPrompt", "system_prompt", "task", "description"),
    "request": ("llm",),
    "llm": ("llm",),
    "parse": ("tools",),
    "check": ("tools",),
    "tool": ("tools",),
    "next_call": ("tools",),
    "next_round": ("maxCalls", "max_calls"),
    "result": (),
}
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_OTHERS: Final = frozenset({"graph", "topology", "apiVersion", "metadata", "workflow"})


def recognize(content: object) -> bool:
    """Return True if this looks like an agent's config: by its keys, or by its class."""
    if isinstance(content, Mapping):
        return "name" in content and bool(_OWN & content.keys()) and not _OTHERS & content.keys()
    names = {cls.__name__ for cls in type(content).__mro__ if cls.__module__.startswith("agentnb.dialects.symphony")}
    return bool(names & {"AgentConfig", "AgentExecutor"})


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, if one can be created, and the problems beyond those that the checks will find."""
    recipe = getattr(source.content, "recipe", None)
    if isinstance(recipe, Recipe):
        return recipe, []
    from agentnb.dialects.symphony.schema import read

    config, problems = read(source)
    problems = [*source.problems, *problems]
    if config is None:
        return None, problems
    return make_recipe(_load_prompt(config, source), source=source), problems


def _load_prompt(config: AgentConfig, source: Source) -> AgentConfig:
    """Return a config with the text of the file that its system prompt names, if that file is next to its own."""
    file = Path(source.file)
    if config.system_prompt is None or source.text is None or not file.is_file():
        return config
    from agentnb.dialects.symphony.parts.system_prompt import SystemPromptService

    text = SystemPromptService.base(config, folder=file.resolve().parent)
    return config.model_copy(update={"system_prompt": text})


def make_recipe(
    config: AgentConfig,
    agent: Agent | None = None,
    source: Source | None = None,
    simulated: tuple[Any, ...] = (),
) -> Recipe:
    """Return the steps of an agent's task as a recipe; `agent` holds its model and tools.

    `simulated` are its answers in a session without a model.
    """
    from agentnb.world.agents import Agent

    places = _Places(source or Source(config, "<AgentConfig>"))
    nodes = {node.id: replace(node, place=places.of(node.id)) for node in _make_nodes(config, simulated)}
    model = config.model
    named = model.provider and agent is None
    provider: dict[str, Any] = {"provider": (f"{model.provider}:{model.model or ''}", {})} if named else {}
    return Recipe(
        name=config.name,
        dialect="symphony",
        nodes=MappingProxyType(nodes),
        edges=tuple(replace(edge, place=places.of(edge.source)) for edge in _make_edges(config)),
        entry=("system_prompt",),
        inputs=MappingProxyType({"task": {"type": "string"}}),
        outputs=("result",),
        init=_NOTHING,
        limits=_NOTHING,
        regions=MappingProxyType({ROOT: Region(ROOT, ("system_prompt",), config.name)}),
        meta=MappingProxyType({
            "required": ("task",), "config": config, "agents": {WHOLE: agent or Agent()}, **provider,
        }),
    )  # fmt: skip


class _Places:
    """The source places of an agent's steps: a field, or else the agent's name."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def of(self, node: str) -> Place:
        """Return the place of a step."""
        for field in _FIELDS[node]:
            content = self.source.content
            if field in content if isinstance(content, Mapping) else getattr(content, field, None) is not None:
                return self.source.locate((field,), key=True)
        return self.source.locate(("name",), key=True)


def _make_nodes(config: AgentConfig, simulated: tuple[Any, ...]) -> list[Node]:
    """Return the steps of an agent; tool steps only if it has tools."""
    from agentnb.dialects.symphony.parts import agent_run

    known = {name: value for name, value in config if name != "llm"}
    options = {"timeout": config.model.timeout or config.timeout, **({"simulated": simulated} if simulated else {})}
    tools, native, requesting = tuple(config.tools), config.native, agent_run.RequestStage(config)
    compose = agent_run.compose_native_prompt if native else agent_run.compose_prompt
    offered = ("tools",) if native else ()
    nodes = [
        _make_node("system_prompt", "prompt", (), ("system_prompt", *offered), compose=compose, config=known,
              tools=tools, native=native),
        _make_node("request", "function", ("system_prompt", "task", *offered, "conversation"), ("request",),
              function=requesting, settings=requesting.settings),
        _make_node("llm", "chat", ("request",), ("answer", "model", "usage"), name=config.name,
              json=bool(tools) and not native, **options),
    ]  # fmt: skip
    if tools:
        more, history = (("calls",), ("conversation",)) if native else ((), ())
        nodes += [
            _make_node("parse", "parse", ("answer", *history), ("decision", *more), native=native),
            _make_node(
                "check", "pick", ("decision",), ("tools_executed",), tools=tools, approval=config.require_approval
            ),
            _make_node("tool", "use", ("decision",), ("tools_executed",)),
        ]
    if native:
        nodes.append(
            _make_node("next_call", "function", ("calls",), ("decision", "calls", "calls_on"),
                  function=agent_run.take_next_call)
        )  # fmt: skip
    if tools and config.max_calls > 1:
        nodes.append(
            _make_node("next_round", "function", ("usage", "answer", "tools_executed"), ("goes_on", "conversation"),
                  function=agent_run.ToolResultStage(config), most=config.max_calls)
        )  # fmt: skip
    reads = ("answer", "decision", "tools_executed", "failure", "model", "usage")
    nodes.append(_make_node("result", "function", reads, ("result",), function=agent_run.ResultStage(config)))
    return nodes


def _make_node(id: str, kind: str, reads: tuple[str, ...], writes: tuple[str, ...], **params: Any) -> Node:
    return Node(id, kind, reads=reads, writes=writes, params=MappingProxyType(params))


def _make_edges(config: AgentConfig) -> list[Edge]:
    """Return the edges between the steps.

    Their conditions exclude each other, because a surrounding recipe may follow all edges that match.
    """
    edges = [Edge("system_prompt", "request"), Edge("request", "llm")]
    edges.append(Edge("llm", "result", "error"))
    if not config.tools:
        return [*edges, Edge("llm", "result")]
    end = "next_round" if config.max_calls > 1 else "result"
    successor = "next_call" if config.native else end
    edges += [
        Edge("llm", "parse"),
        _make_condition_edge("parse", "check", "decision.kind == 'tool'"),
        _make_condition_edge("parse", "result", "decision.kind != 'tool'"),
        Edge("parse", "result", "error"),
        Edge("check", "tool"),
        Edge("check", successor, "error"),
        Edge("tool", successor),
        Edge("tool", successor, "error"),
    ]
    if config.native:
        edges += [
            _make_condition_edge("next_call", "check", "calls_on", "loop_back"),
            _make_condition_edge("next_call", end, "not calls_on"),
        ]
    if end == "next_round":
        edges += [
            _make_condition_edge("next_round", "request", "goes_on", "loop_back"),
            _make_condition_edge("next_round", "result", "not goes_on"),
        ]
    return edges


def _make_condition_edge(source: str, target: str, text: str, kind: Any = "conditional") -> Edge:
    from agentnb.expressions.conditions import to_condition

    return Edge(source, target, kind, to_condition(text), text)
