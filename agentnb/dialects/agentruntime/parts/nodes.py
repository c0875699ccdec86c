"""Translate one node of an agentruntime graph, with its defaults, to a node of its kind. Translation only.

Retry and timeout of a call are those of the node, the tool, the graph, or `meta.defaults`: the first that is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentnb.errors import Problem, RecipeError
from agentnb.expressions.conditions import to_condition
from agentnb.expressions.paths import format_path
from agentnb.expressions.templates import compile_structure
from agentnb.kinds.context import ContextCondition, list_board_reads
from agentnb.recipe.model import Node, Rescue

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.parts.levels import Level
    from agentnb.dialects.agentruntime.schema import (
        AgentDefinition,
        LlmNode,
        LoopNode,
        MapConfig,
        NodeConfig,
        RouterNode,
        SubgraphNode,
        ToolConfig,
        ToolNode,
    )
    from agentnb.sources import Path, Source


class Nodes:
    """Translates the nodes of one file; the errors of their templates and rules are collected in `problems`."""

    def __init__(
        self, definition: AgentDefinition, source: Source, prompts: Mapping[str, Any], regions: Mapping[str, str]
    ) -> None:
        self.definition, self.source, self.prompts, self.regions = definition, source, prompts, regions
        self.tools: dict[str, ToolConfig] = {tool.id: tool for tool in definition.tools}
        self.problems: list[Problem] = []

    def node_of(self, level: Level, number: int, node: NodeConfig, *, loop: str | None) -> Node:
        """Return a node of its kind; `loop` is the loop whose body it is, if any."""
        path = (*level.path, "nodes", number)
        id = level.ids[node.id] if loop is None or level.inside.get(node.id) == loop else f"{level.ids[loop]}/{node.id}"
        kind, params = self._make_params(level, path, node, body=loop is not None)
        # a subgraph's inputs are not keys of the enclosing board
        inputs = () if not level.name else level.config.inputs
        paths = [path for path in self._list_reads(params) if path[0] not in inputs]
        params["own_id"] = None if id == node.id else node.id
        reads = tuple(dict.fromkeys(format_path(path) for path in paths))
        return Node(
            id=id,
            kind=kind,
            label=node.name or ("" if id == node.id else node.id),
            scope=level.region if loop is None else level.ids[loop],
            reads=reads,
            writes=_writes(node, params),
            params=MappingProxyType({key: value for key, value in params.items() if value is not None}),
            bodies=self._list_bodies(level, node, kind),
            counted=loop is None,
            rescue=Rescue() if node.on_error is not None and node.on_error.resume else None,
            place=self.source.locate((*path, "id")),
        )

    def _list_bodies(self, level: Level, node: NodeConfig, kind: str) -> tuple[str, ...]:
        if kind == "loop":
            return (level.ids[node.id],)
        graph = self._find_graph(node) or ""
        return (self.regions[graph],) if kind == "subgraph" and graph in self.regions else ()

    def _find_graph(self, node: NodeConfig) -> str | None:
        """Return the subgraph that a node runs: its own, or that of its tool."""
        if node.type == "subgraph":
            return node.graph
        tool = self.tools.get(node.uses) if node.type == "tool" else None
        return tool.impl if tool is not None and tool.kind == "subgraph" else None

    def _make_params(self, level: Level, path: Path, node: NodeConfig, *, body: bool) -> tuple[str, dict[str, Any]]:
        mapped = self._make_map(node, path)
        match node.type:
            case "tool" if self._find_graph(node) is not None:
                return "subgraph", {
                    **self._make_tool_params(level, node, path),
                    **self._make_subgraph_params(node, path),
                    "map": mapped,
                }
            case "tool":
                return "tool", {**self._make_tool_params(level, node, path), "map": mapped}
            case "subgraph":
                return "subgraph", {**self._make_subgraph_params(node, path), "map": mapped}
            case "llm":
                return "llm", {**self._make_llm_params(level, node), "map": mapped}
            case "router":
                return "router", self._make_router_params(level, node, path, body=body)
            case "loop":
                return "loop", self._make_loop_params(node, path)
        return "noop", {"map": mapped}

    def _make_tool_params(self, level: Level, node: ToolNode, path: Path) -> dict[str, Any]:
        inputs = self._make_structure(dict(node.inputs), (*path, "inputs"))
        tool = self.tools.get(node.uses)
        tells = tool is None or "timeout" not in tool.config or None
        return {"function": node.uses, "given": inputs, "tells_timeout": tells, **self._make_options(level, node, tool)}

    def _make_subgraph_params(self, node: SubgraphNode | ToolNode, path: Path) -> dict[str, Any]:
        graph = self.definition.subgraphs.get(self._find_graph(node) or "")
        outputs = tuple(graph.outputs) if graph is not None else ()
        return {"given": self._make_structure(dict(node.inputs), (*path, "inputs")), "outputs": outputs}

    def _make_llm_params(self, level: Level, node: LlmNode) -> dict[str, Any]:
        prompt = self.prompts.get(node.prompt, ())
        return {"prompt": prompt, "template": node.prompt, **self._make_options(level, node, None)}

    def _make_router_params(self, level: Level, node: RouterNode, path: Path, *, body: bool) -> dict[str, Any]:
        def target(name: str) -> str:
            return "" if body else level.ids.get(name, name)  # the targets of a loop's body are not followed

        cases = [
            (self._make_condition(case.when, (*path, "cases", number, "when")), target(case.to))
            for number, case in enumerate(node.cases)
        ]
        return {"cases": tuple(cases), "default": target(node.default) if node.default else None}

    def _make_loop_params(self, node: LoopNode, path: Path) -> dict[str, Any]:
        until = self._make_condition(node.until, (*path, "until")) if node.until not in (None, {}) else None
        params = {"until": until, "tells": True}
        if node.exhausted == "continue":
            return {**params, "times": node.max_iterations}
        cure = "fix what `until` reads, raise max_iterations, or write on_exhausted: continue"
        return {**params, "max": node.max_iterations, "limit": "max_iterations", "cure": cure}

    def _make_options(self, level: Level, node: ToolNode | LlmNode, tool: ToolConfig | None) -> dict[str, Any]:
        defaults = self.definition.meta.defaults
        around: list[Any] = [each for each in (node, tool, level.config, defaults) if each is not None]
        timeout = next((each.timeout.seconds for each in around if each.timeout is not None), None)
        retry = next((each.retry for each in around if each.retry is not None), None)
        options: dict[str, Any] = {"timeout": timeout}
        if retry is not None:
            options |= {"attempts": retry.max_attempts, "backoff": retry.backoff}
        repeatable = tool.repeatable if node.repeatable is None and tool is not None else node.repeatable
        return options if repeatable is None else {**options, "repeatable": repeatable}

    # -- templates and rules -----------------------------------------------------------------------------------------

    def _make_map(self, node: NodeConfig, path: Path) -> Mapping[str, Any] | None:
        config: MapConfig | None = getattr(node, "map", None)
        if config is None:
            return None
        parts = {word: getattr(config, word) for word in ("set", "merge", "history", "delete")}
        return MappingProxyType(
            {word: self._make_structure(part, (*path, "map", word)) for word, part in parts.items() if part}
        )

    def _make_structure(self, value: Any, path: Path) -> Any:
        try:
            return compile_structure(value, get_place=lambda inner: self.source.locate((*path, *inner)))
        except RecipeError as error:
            self.problems += error.problems
            return compile_structure({} if isinstance(value, Mapping) else [])

    def condition(self, rule: Any, path: Path) -> ContextCondition:
        """Return the condition of an edge."""
        return self._make_condition(rule, path)

    def _make_condition(self, rule: Any, path: Path) -> ContextCondition:
        try:
            return ContextCondition(to_condition(rule, self.source.locate(path)))
        except RecipeError as error:
            self.problems += error.problems
            return ContextCondition(to_condition(value=True))

    def _list_reads(self, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Return the paths of the board that a node's templates and rules read."""
        keys = self.definition.state.shape
        compiled = [params.get("given"), *(params.get("map") or {}).values()]
        compiled += [template for _, template in params.get("prompt") or ()]
        paths = [path for each in compiled if each is not None for path in list_board_reads(each.reads, keys)]
        conditions = [params.get("until"), *(condition for condition, _ in params.get("cases") or ())]
        return paths + [path for each in conditions if each is not None for path in each.reads]


def _writes(node: NodeConfig, params: Mapping[str, Any]) -> tuple[str, ...]:
    config: MapConfig | None = getattr(node, "map", None)
    keys = [] if config is None else [*(config.set or ()), *(config.merge or ())]
    keys += [] if config is None else [f"history.{name}" for name in config.history or ()]
    return tuple(dict.fromkeys([*keys, *params.get("outputs", ())]))
