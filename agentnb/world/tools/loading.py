"""The tools of a recipe as callables, loaded when a session starts; no tool code is imported before."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import AgentNbError, Problem, RecipeError
from agentnb.recipe.model import ToolSpec
from agentnb.recipe.user_functions import COLLECT, GENERATES, is_generator
from agentnb.world.llm.env import substitute_env
from agentnb.world.tools.adapters import to_tool
from agentnb.world.tools.allow_list import Allowed
from agentnb.world.tools.import_path import ONE_AT_A_TIME, Modules
from agentnb.world.tools.invocation import Tool

if TYPE_CHECKING:
    from agentnb.world.tools.mcp import Servers

_ENV: Final = re.compile(r"\{\{\s*env\.[A-Za-z_][A-Za-z0-9_]*\s*\}\}")
_BUILT_IN: Final = ("http", "mcp")
OF_TARGETS: Final = frozenset({"R155", "R156", "R157", "R158", "R159", "R160",
                                  "R164", "R165", "R209", "R210"})  # fmt: skip  # what `check_tools` may find


def load_tools(
    specs: Mapping[str, ToolSpec],
    *,
    folder: Path | None,
    allow: Sequence[str],
    passed: Mapping[str, Callable[..., Any]],
) -> dict[str, Tool]:
    """Return a recipe's tools by id, to be called with a node's inputs; each adds its config, which inputs override.

    Tools of kind `subgraph` are left out: the recipe itself has them. A tool's code is imported here, and nowhere else.

    Args:
        specs: the tools as written in the recipe.
        folder: the recipe file's folder; None for a recipe without a file.
        allow: module prefixes and folders that tools may come from besides that folder.
        passed: callables (or objects with `invoke`) that replace tools of the recipe: nothing is imported for these.
            They are called with the config like other tools; an `{{env.NAME}}` in it may be unset.

    Raises:
        RecipeError: every problem at once: R155 to R161 (where a tool comes from), R163 (http), R164, R165 (mcp),
            R210 (the environment of a server), X333, X361 (an environment variable is not set, or may not be read).
    """
    from agentnb.world.tools.mcp import Servers  # late, like http below, because most sessions need neither

    allowed = Allowed.of(folder, allow)
    modules, servers = Modules(allowed), Servers(allowed)
    tools: dict[str, Tool] = {}
    problems: list[Problem] = []
    with ONE_AT_A_TIME:
        for id, spec in specs.items():
            try:
                if id in passed and (problem := _check_passed(id, passed[id])) is not None:
                    problems.append(problem)
                elif id in passed:
                    tools[id] = to_tool(_to_plain(spec), passed[id], _resolve_config(spec, allowed, must=False))
                elif spec.kind != "subgraph":
                    tools[id] = _load(spec, modules, servers)
            except AgentNbError as error:
                problems += error.problems
    if problems:
        raise RecipeError(*problems)
    return tools


def check_tools(specs: Mapping[str, ToolSpec], *, folder: Path | None, allow: Sequence[str]) -> list[Problem]:
    """Return the problems that `load_tools` would raise about tool sources; nothing is imported or started.

    R155 to R160 are about modules; R164, R165, R209 and R210 about the servers of MCP tools.
    """
    from agentnb.world.tools.mcp_config import check_settings

    modules = Modules(Allowed.of(folder, allow))
    problems: list[Problem] = []
    for spec in specs.values():
        built_in = spec.kind in _BUILT_IN and not _names_own_code(spec, modules.allowed)
        try:
            if built_in and spec.kind == "mcp":
                check_settings(spec, spec.config, modules.allowed)
            elif not built_in and spec.kind != "subgraph":
                modules.check(spec)
        except RecipeError as error:
            problems += error.problems
    return problems


def close_tools(tools: Mapping[str, Callable[..., Any]]) -> None:
    """Close the resources of tools: the servers of a session's MCP tools. A later call starts its server again."""
    for tool in tools.values():
        close = getattr(tool, "__dict__", {}).get("close")
        if callable(close):
            close()


def _load(spec: ToolSpec, modules: Modules, servers: Servers) -> Tool:
    config = _resolve_config(spec, modules.allowed, must=True)
    if spec.kind in _BUILT_IN and not _names_own_code(spec, modules.allowed):
        if spec.kind == "mcp":
            return servers.tool(spec, config)
        from agentnb.world.tools import http

        return http.tool(spec, config)
    return to_tool(spec, modules.find(spec), config)


def _names_own_code(spec: ToolSpec, allowed: Allowed) -> bool:
    """Return True if an http or mcp tool names existing code to load; otherwise the built-in tool is used.

    Recipes often name a file that another package provides (`tools/http_call.py#call`), which ours replaces.
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


def _check_passed(id: str, value: Any) -> Problem | None:
    """R161: an object passed as a tool cannot be used as one."""
    if hasattr(value, "invoke"):
        return None
    if not callable(value):
        what, why, do = (
            f"of type {type(value).__name__}",
            "a tool is a callable, or an object with `invoke`",
            "pass a function",
        )
    elif is_generator(value):
        what, why, do = "a generator function", GENERATES, COLLECT
    else:
        return None
    return Problem("R161", f"the object passed for tool {id!r} is {what}", f"tools={{{id!r}: ...}}", why, do)


def _to_plain(spec: ToolSpec) -> ToolSpec:
    """Return the spec of a tool that is passed as an object: there is no class to instantiate."""
    return ToolSpec(spec.id, "python", spec.impl, config=spec.config, timeout=spec.timeout, place=spec.place)


def _resolve_config(spec: ToolSpec, allowed: Allowed, *, must: bool) -> dict[str, Any]:
    """Return a tool's config with its environment variables inserted; their values are masked.

    X333: an environment variable is not set.
    X361: the recipe may not read an environment variable.
    """
    config: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in spec.config.items():
        try:
            config[str(key)] = _fill(value, f"{spec.place or f'tool {spec.id!r}'}, config.{key}", allowed.variables)
        except AgentNbError as error:
            problems += error.problems
            config[str(key)] = value
    if problems and must:
        raise RecipeError(*problems)
    return config


def _fill(value: Any, where: str, allowed: Collection[str]) -> Any:
    if isinstance(value, str):
        return _ENV.sub(lambda match: str(substitute_env(match[0], where, allowed=allowed)), value)
    if isinstance(value, Mapping):
        return {key: _fill(item, f"{where}.{key}", allowed) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(item, f"{where}[{number}]", allowed) for number, item in enumerate(value)]
    return value
