"""The config of an MCP tool: its server, the command that it may start, and the name of the tool.

A server that is started is a program, and the text of a recipe must not be able to run arbitrary programs: its command
must be in the recipe's folder, be Python with a script of that folder, or be allowed by its name. It runs in the
recipe's folder or in an allowed one, and a recipe may set only environment variables that cannot change what it runs
(`is_settable`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentnb.board.masking import register_secrets
from agentnb.board.values import freeze
from agentnb.errors import Problem, RecipeError, did_you_mean
from agentnb.recipe.descriptions import describe_how_to_allow
from agentnb.recipe.model import ToolSpec
from agentnb.text import safe_repr, safe_str
from agentnb.world.llm.env import ALLOW, is_settable
from agentnb.world.tools.allow_list import Allowed, resolve_path

WORDS: Final = ("command", "args", "env", "cwd", "url", "headers", "tool", "arguments", "timeout")
_PYTHON: Final = ("python", "python3", sys.executable)
_SORTS: Final = {
    "command": (str, "text"),
    "url": (str, "text"),
    "cwd": (str, "text"),
    "tool": (str, "text"),
    "args": (list, "list"),
    "env": (Mapping, "mapping"),
    "headers": (Mapping, "mapping"),
    "arguments": (Mapping, "mapping"),
    "timeout": (int | float, "number of seconds above 0"),
}
Fault = tuple[str, str, str]


class Settings(NamedTuple):
    """The identity of a server: two tools with the same settings share it."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Return the server's name in a Problem, without arguments, because they may contain secrets."""
        return safe_str(self.url.partition("?")[0].rpartition("@")[2] or Path(self.command).name)


def get_tool_name(spec: ToolSpec, config: Mapping[str, Any]) -> str:
    """Return the server's name for a tool: `config.tool`, the end of an `mcp://` impl, else the tool's id."""
    if config.get("tool"):
        return str(config["tool"])
    return spec.impl.rstrip("/").rpartition("/")[2] if spec.impl.startswith("mcp://") else spec.id


def make_settings(spec: ToolSpec, config: Mapping[str, Any], allowed: Allowed) -> Settings:
    """Return the settings of a tool's server.

    R164: the config of an mcp tool names no server, or the SDK is not installed.

    Raises:
        RecipeError: R164; R165, its command is not allowed; R209, its folder is not; R210, a variable is not.
    """
    faults = _find_faults(config)
    if find_spec("mcp") is None:
        faults.append(("needs the MCP SDK", "it is not installed", 'install it: pip install "agentnb-kit[mcp]"'))
    _refuse(spec, faults)
    for word in ("env", "headers", "arguments"):
        register_secrets(freeze(dict(config.get(word) or {})))
    headers, env = _to_pairs(config.get("headers")), _to_pairs(config.get("env"))
    if config.get("url"):
        return Settings(url=config["url"].strip(), headers=headers)
    return _make_program_settings(spec, config, env, allowed)


def check_settings(spec: ToolSpec, config: Mapping[str, Any], allowed: Allowed) -> None:
    """Check the config of an MCP tool as far as its text shows what would run; nothing is started or looked up.

    Values of environment variables are checked when a session starts.

    Raises:
        RecipeError: R164, R165, R209, R210, as `make_settings`.
    """
    _refuse(spec, _find_faults(config))
    env = _to_pairs(config.get("env"))
    texts = [config.get("command"), config.get("cwd"), *(config.get("args") or [])[:1]]
    if config.get("url") or any("{{" in str(text) for text in texts):
        _check_surroundings(spec, None, env, allowed)
    else:
        _make_program_settings(spec, config, env, allowed)


def _refuse(spec: ToolSpec, faults: list[Fault]) -> None:
    if faults:
        where = str(spec.place or f"tool {spec.id!r}")
        raise RecipeError(
            *(Problem("R164", f"mcp tool {spec.id!r} {what}", where, why, do) for what, why, do in faults)
        )


def _make_program_settings(
    spec: ToolSpec, config: Mapping[str, Any], env: tuple[tuple[str, str], ...], allowed: Allowed
) -> Settings:
    """Return the settings of a server that is started.

    Raises:
        RecipeError: R165, R209, R210, all of them at once.
    """
    args = tuple(map(str, config.get("args") or ()))
    cwd = (
        allowed.recipe_folder
        if config.get("cwd") is None
        else resolve_path((allowed.recipe_folder or Path.cwd()) / config["cwd"])
    )
    problems: list[Problem] = []
    command = ""
    try:
        command = _find_command(spec, config["command"], args, cwd or Path.cwd(), allowed)
    except RecipeError as error:
        problems += error.problems
    try:
        _check_surroundings(spec, None if config.get("cwd") is None else cwd, env, allowed)
    except RecipeError as error:
        problems += error.problems
    if problems:
        raise RecipeError(*problems)
    return Settings(command, args, env, None if cwd is None else str(cwd))


def _check_surroundings(spec: ToolSpec, cwd: Path | None, env: tuple[tuple[str, str], ...], allowed: Allowed) -> None:
    """Raise an error for a folder or for variables that could make an allowed program run something else.

    R209: an MCP server would run in a folder that is not allowed.
    R210: a variable of the environment of an MCP server is not allowed.
    """
    where = str(spec.place or f"tool {spec.id!r}")
    problems = []
    if cwd is not None and not allowed.holds_file(cwd):
        problems.append(
            Problem("R209", f"mcp tool {spec.id!r} runs in {safe_str(cwd)!r}, which is not allowed", where,
                    "programs take settings and code from the folder they run in; a recipe's run in its own",
                    f"if you trust the recipe, allow it: {describe_how_to_allow(safe_str(cwd))}")
        )  # fmt: skip
    for name in (name for name, _ in env if not is_settable(name) and name not in allowed.variables):
        shown = safe_str(name, 200)
        problems.append(
            Problem("R210", f"mcp tool {spec.id!r} sets the variable {shown!r}, which is not allowed", where,
                    "many variables change what a program runs; a recipe may set credentials (..._KEY, ..._TOKEN, "
                    "..._SECRET, ..._PASSWORD, ..._USER, ..._ID and the like), a locale and a log level",
                    f"if you trust the recipe, allow it: {describe_how_to_allow(ALLOW + shown)}")
        )  # fmt: skip
    if problems:
        raise RecipeError(*problems)


def _to_pairs(mapping: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in (mapping or {}).items())


def _find_faults(config: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of a config, each as what, why and do."""
    faults: list[Fault] = [
        (f"has an unknown field {str(word)[:60]!r}", f"its config has: {', '.join(WORDS)}",
         did_you_mean(str(word)[:60], WORDS, "pass the tool's arguments in the node's inputs, or in `arguments`"))
        for word in config if word not in WORDS
    ]  # fmt: skip
    for word, (sort, title) in _SORTS.items():
        value = config.get(word)
        odd = value is not None and (not isinstance(value, sort) or isinstance(value, bool))
        if odd or (word == "timeout" and not odd and value is not None and value <= 0):
            faults.append((f"has an invalid `{word}`", f"it is {str(value)[:60]!r}", f"write a {title}"))
    if faults:
        return faults
    command, url = config.get("command"), config.get("url")
    if bool(command) == bool(url):
        both = "both `command` and `url`" if command else "neither `command` nor `url`"
        faults.append((f"has {both}", "a server is started, or is there already",
                      "set `command` and `args` to start a server, or the `url` of a running one"))  # fmt: skip
    elif url and not url.strip().lower().startswith(("http://", "https://")):
        faults.append(("has an invalid `url`", "servers are reached over http or https", "write https://..."))
    if any("\0" in str(text) for text in (command, *(config.get("args") or ()), config.get("cwd"))):
        faults.append(("has a null character in its command", "no program can be started so", "take it out"))
    return faults


def _find_command(spec: ToolSpec, command: str, args: tuple[str, ...], cwd: Path, allowed: Allowed) -> str:
    """Return the program to start, if it is allowed; `python` is the current interpreter.

    R165: the command of an MCP server is not allowed.
    """
    script = resolve_path(cwd / args[0]) if args and args[0].lower().endswith(".py") and args[0][0] != "-" else None
    if command in _PYTHON and script is not None and allowed.holds_file(script):
        return sys.executable
    path = resolve_path(cwd / command) if "/" in command or "\\" in command else None
    if path is not None and allowed.holds_file(path):
        return str(path)
    if command in allowed.words:
        return sys.executable if command in _PYTHON else shutil.which(command) or command
    raise RecipeError(
        Problem("R165", f"mcp tool {spec.id!r} starts {safe_repr(command, 200)}, which is not allowed",
                str(spec.place or f"tool {spec.id!r}"),
                "a recipe may start programs and Python scripts of its own folder; others must be allowed",
                f"if you trust the recipe, allow it: {describe_how_to_allow(safe_str(command, 200))}")
    )  # fmt: skip
