"""servers: the config of an MCP tool: which server it names, what it may start, and which of its tools is meant.

A server that is started is a program, and a recipe's text alone must not be able to run any: its command has to lie in
the recipe's folder, be Python with a script of that folder, or be allowed by its name.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentnb.board.secrets import hidden, hide_found
from agentnb.board.values import freeze
from agentnb.errors import Problem, RecipeError, did_you_mean
from agentnb.recipe.model import ToolSpec
from agentnb.world.tools.allowed import Allowed, resolved

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
    """What names one server: two tools with the same settings share it."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """What the server is called in a Problem; arguments are left out, for they may hold secrets."""
        return hidden(self.url.partition("?")[0].rpartition("@")[2] or Path(self.command).name)


def tool_name(spec: ToolSpec, config: Mapping[str, Any]) -> str:
    """Return the server's name for a tool: `config.tool`, the end of an `mcp://` impl, else the tool's id."""
    if config.get("tool"):
        return str(config["tool"])
    return spec.impl.rstrip("/").rpartition("/")[2] if spec.impl.startswith("mcp://") else spec.id


def settings_of(spec: ToolSpec, config: Mapping[str, Any], allowed: Allowed) -> Settings:
    """Return what names the server of a tool.

    R164: the config of an mcp tool names no server, or the SDK is not installed.

    Raises:
        RecipeError: R164; R165, its command is not allowed.
    """
    faults = _faults(config)
    if find_spec("mcp") is None:
        faults.append(("needs the MCP SDK", "it is not installed", 'install it: pip install "agentnb[mcp]"'))
    if faults:
        where = str(spec.place or f"tool {spec.id!r}")
        raise RecipeError(
            *(Problem("R164", f"mcp tool {spec.id!r} {what}", where, why, do) for what, why, do in faults)
        )
    for word in ("env", "headers", "arguments"):
        hide_found(freeze(dict(config.get(word) or {})))
    headers, env = _pairs(config.get("headers")), _pairs(config.get("env"))
    if config.get("url"):
        return Settings(url=config["url"].strip(), headers=headers)
    cwd = allowed.own if config.get("cwd") is None else resolved((allowed.own or Path.cwd()) / config["cwd"])
    args = tuple(map(str, config.get("args") or ()))
    command = _command(spec, config["command"], args, cwd or Path.cwd(), allowed)
    return Settings(command, args, env, None if cwd is None else str(cwd))


def _pairs(given: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in (given or {}).items())


def _faults(config: Mapping[str, Any]) -> list[Fault]:
    """Return what is wrong with a config, each as what, why and what to do."""
    found: list[Fault] = [
        (f"knows no {str(word)[:60]!r}", f"its config has: {', '.join(WORDS)}",
         did_you_mean(str(word)[:60], WORDS, "put what the tool asks for into the node's inputs, or into `arguments`"))
        for word in config if word not in WORDS
    ]  # fmt: skip
    for word, (sort, title) in _SORTS.items():
        value = config.get(word)
        odd = value is not None and (not isinstance(value, sort) or isinstance(value, bool))
        if odd or (word == "timeout" and not odd and value is not None and value <= 0):
            found.append((f"has a wrong `{word}`", f"it is {str(value)[:60]!r}", f"write a {title}"))
    if found:
        return found
    command, url = config.get("command"), config.get("url")
    if bool(command) == bool(url):
        both = "both `command` and `url`" if command else "neither `command` nor `url`"
        found.append((f"has {both}", "a server is started, or is there already",
                      "give `command` and `args` to start one, or the `url` of one"))  # fmt: skip
    elif url and not url.strip().lower().startswith(("http://", "https://")):
        found.append(("has a `url` that cannot be asked", "servers are asked by http and https", "write https://..."))
    if any("\0" in str(text) for text in (command, *(config.get("args") or ()), config.get("cwd"))):
        found.append(("has a null character in its command", "no program can be started so", "take it out"))
    return found


def _command(spec: ToolSpec, command: str, args: tuple[str, ...], cwd: Path, allowed: Allowed) -> str:
    """Return the program to start, if it may be; `python` is the one that runs here.

    R165: the command of an MCP server is not allowed.
    """
    script = resolved(cwd / args[0]) if args and args[0].lower().endswith(".py") and args[0][0] != "-" else None
    if command in _PYTHON and script is not None and allowed.holds_file(script):
        return sys.executable
    path = resolved(cwd / command) if "/" in command or "\\" in command else None
    if path is not None and allowed.holds_file(path):
        return str(path)
    if command in allowed.words:
        return sys.executable if command in _PYTHON else shutil.which(command) or command
    raise RecipeError(
        Problem("R165", f"mcp tool {spec.id!r} starts {hidden(command)[:200]!r}, which is not allowed",
                str(spec.place or f"tool {spec.id!r}"),
                "a recipe may start programs and Python scripts of its own folder; others have to be allowed",
                f"allow it, if you trust the recipe: nb.load(path, allow=[{hidden(command)[:200]!r}])")
    )  # fmt: skip
