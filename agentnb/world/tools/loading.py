"""loading: the tools of a recipe as callables, made when a session starts; nothing of them is imported before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, Problem, RecipeError
from agentnb.recipe.model import ToolSpec
from agentnb.world.llm.env import with_env
from agentnb.world.tools.allowed import Allowed
from agentnb.world.tools.calling import Tool
from agentnb.world.tools.modules import ONE_AT_A_TIME, Modules
from agentnb.world.tools.wrapped import as_tool

if TYPE_CHECKING:
    from agentnb.world.tools.mcp import Servers

_ENV: Final = re.compile(r"\{\{\s*env\.[A-Za-z_][A-Za-z0-9_]*\s*\}\}")
_BUILT_IN: Final = ("http", "mcp")


def load_tools(
    specs: Mapping[str, ToolSpec], *, folder: Path | None, allow: Sequence[str], given: Mapping[str, Callable[..., Any]]
) -> dict[str, Tool]:
    """Return a recipe's tools by id, ready to be called with a node's inputs; each adds its own config, inputs win.

    Tools of kind `subgraph` are left out: the recipe itself has them. A tool's code is imported here, and nowhere else.

    Args:
        specs: the tools as the recipe writes them.
        folder: the recipe file's folder; None for a recipe without a file.
        allow: module prefixes and folders that tools may come from besides that folder.
        given: callables (or objects with `invoke`) in place of what the recipe names: nothing is imported for these.
            They are called with the config like the others; an `{{env.NAME}}` in it may be unset.

    Raises:
        RecipeError: every problem at once: R155 to R161 (where a tool comes from), R163 (http), R164, R165 (mcp),
            X333 (an environment variable is not set).
    """
    from agentnb.world.tools.mcp import Servers  # late, like http below: most sessions need neither

    allowed = Allowed.of(folder, allow)
    modules, servers = Modules(allowed), Servers(allowed)
    tools: dict[str, Tool] = {}
    problems: list[Problem] = []
    with ONE_AT_A_TIME:
        for id, spec in specs.items():
            try:
                if id in given:
                    tools[id] = as_tool(_plain(spec), given[id], _config(spec, must=False))
                elif spec.kind != "subgraph":
                    tools[id] = _loaded(spec, modules, servers)
            except AgentNbError as error:
                problems += error.problems
    if problems:
        raise RecipeError(*problems)
    return tools


def close_tools(tools: Mapping[str, Callable[..., Any]]) -> None:
    """End what tools keep open: the servers of a session's MCP tools. A call after that starts its server again."""
    for tool in tools.values():
        close = getattr(tool, "__dict__", {}).get("close")
        if callable(close):
            close()


def _loaded(spec: ToolSpec, modules: Modules, servers: Servers) -> Tool:
    config = _config(spec, must=True)
    if spec.kind in _BUILT_IN and not _own_code(spec, modules.allowed):
        if spec.kind == "mcp":
            return servers.tool(spec, config)
        from agentnb.world.tools import http

        return http.tool(spec, config)
    return as_tool(spec, modules.find(spec), config)


def _own_code(spec: ToolSpec, allowed: Allowed) -> bool:
    """Say whether an http or mcp tool names code that is there to be loaded; else what is built in does it.

    Recipes often name a file that another package brings along (`tools/http_call.py#call`): ours takes its place.
    """
    path, _, attr = spec.impl.rpartition("#")
    if not path or not attr.isidentifier():
        return False
    if path.lower().endswith(".py"):
        try:
            return any((base / path).exists() for base in allowed.bases())
        except (ValueError, OSError):
            return False
    return allowed.holds_package(path.replace("/", "."))


def _plain(spec: ToolSpec) -> ToolSpec:
    """Return the spec of a tool that is given ready-made: no class to make, whatever the recipe says."""
    return ToolSpec(spec.id, "python", spec.impl, config=spec.config, timeout=spec.timeout, place=spec.place)


def _config(spec: ToolSpec, *, must: bool) -> dict[str, Any]:
    """Return a tool's config with the text of its environment variables in it; each is hidden from what is shown.

    X333: an environment variable is not set.
    """
    config: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in spec.config.items():
        try:
            config[str(key)] = _filled(value, f"{spec.place or f'tool {spec.id!r}'}, config.{key}")
        except AgentNbError as error:
            problems += error.problems
            config[str(key)] = value
    if problems and must:
        raise RecipeError(*problems)
    return config


def _filled(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return _ENV.sub(lambda match: str(with_env(match[0], where)), value)
    if isinstance(value, Mapping):
        return {key: _filled(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, f"{where}[{number}]") for number, item in enumerate(value)]
    return value
