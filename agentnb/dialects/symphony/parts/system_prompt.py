"""The system prompts of agents: identity, tools, directives, and the required form of answers.

The texts are in protocol_text.py.

X467: an agent's system prompt names a file that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from agentnb.dialects.symphony.parts import protocol_text
from agentnb.dialects.symphony.parts.protocol_text import format_json_requirements
from agentnb.errors import AgentRuntimeError, Problem
from agentnb.world.llm.text import to_json_text, to_text

__all__ = [
    "PromptParts",
    "SystemPromptService",
    "ToolDescription",
    "format_json_requirements",
    "format_tool_report",
    "make_native_prompt",
    "make_tool_answer",
]  # fmt: skip

FILES: Final = (".xml", ".txt", ".md")
MAX_BYTES: Final = 1_000_000  # of a file with a prompt


class ToolDescription(Protocol):
    """The description of a tool for a model: `schema` is the JSON Schema of its parameters, if it has one."""

    @property
    def name(self) -> str:
        """The name for the model."""

    @property
    def description(self) -> str:
        """The purpose of the tool."""

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of its parameters."""


class PromptParts(NamedTuple):
    """The parts of a system prompt in order; a missing part is empty. `text` is the whole."""

    base: str
    tools: str
    directives: str
    json_requirements: str

    @property
    def text(self) -> str:
        """The parts that are not empty, as one text."""
        return "\n\n".join(part for part in self if part)


class SystemPromptService:
    """Builds the system prompts of agents."""

    @staticmethod
    def generate_system_prompt(
        config: Any,
        has_tools: bool | None = None,
        tools: Iterable[ToolDescription] | None = None,
        *,
        folder: str | Path | None = None,
    ) -> str:
        """Return the system prompt of an agent.

        It consists of the base (identity and goal; or `config.system_prompt`, unchanged), the tools, the directives,
        and the required form of answers. Tools and form are included only if the agent has tools.

        Args:
            config: any object or mapping with name, description, task, directives, tools, system_prompt.
            has_tools: whether it has tools; default: whether `tools` or, without it, the config names any.
            tools: the descriptions of the tools that the agent may use; default: those that the config names, from the
                shared registry.
            folder: the folder in which a `system_prompt` that ends in .xml, .txt or .md is looked up as a file. Without
                a folder or such a file, it is the text itself.

        Raises:
            AgentRuntimeError: X467, that file cannot be read

        Example:
            >>> agent = {"name": "Ada", "description": "A careful clerk.", "task": "Add numbers.", "tools": ["add"]}
            >>> prompt = SystemPromptService.generate_system_prompt(agent, True)
            >>> prompt.splitlines()[1], '{"tool_name": "none", "response": "YOUR ANSWER"}' in prompt
            ('You are Ada. A careful clerk.', True)
        """
        return SystemPromptService.parts(config, has_tools, tools, folder=folder).text

    @staticmethod
    def parts(
        config: Any,
        has_tools: bool | None = None,
        tools: Iterable[ToolDescription] | None = None,
        *,
        folder: str | Path | None = None,
    ) -> PromptParts:
        """Return the parts of a system prompt: see `generate_system_prompt`."""
        known = [*(_find_value(config, "tools") or () if tools is None else tools)]
        has_tools = bool(known) if has_tools is None else has_tools
        descriptions = (
            [_describe_tool(_look_up(tool) if tools is None else tool) for tool in known] if has_tools else []
        )
        return PromptParts(
            SystemPromptService.base(config, has_tools, folder=folder),
            protocol_text.format_tools(descriptions),
            SystemPromptService.directives(config),
            format_json_requirements([name for name, _, _ in descriptions]) if has_tools else "",
        )

    @staticmethod
    def base(config: Any, has_tools: bool = False, *, folder: str | Path | None = None) -> str:
        """Return the agent's identity and goal, or the prompt of its config instead."""
        own = _find_value(config, "system_prompt", "systemPrompt")
        if own:
            return _read_prompt(to_text(own), folder)
        role, goal = _to_text(config, "description"), _to_text(config, "task")
        return protocol_text.format_identity(_to_text(config, "name"), role, goal, has_tools=has_tools)

    @staticmethod
    def directives(config: Any) -> str:
        """Return the agent's directives with their title; empty if there are none."""
        value = _find_value(config, "directives")
        if isinstance(value, list | tuple):
            value = "\n".join(f"- {to_text(line)}" for line in value)
        text = to_text(value).strip() if value else ""
        return protocol_text.format_directives(text) if text else ""


def make_native_prompt(config: Any) -> str:
    """Return the system prompt of an agent whose tools are offered as native tool calls, without the list of tools."""
    parts = SystemPromptService.parts(config, has_tools=False)
    return parts._replace(base=SystemPromptService.base(config, has_tools=True)).text


def make_tool_answer(tool: Any) -> str:
    """Return the result of a tool as the answer to a native call, as JSON; `tool` is as in `format_tool_report`.

    Example:
        >>> make_tool_answer({"name": "add", "success": True, "result": 5})
        '{"tool_name": "add", "success": true, "result": 5}'
    """
    return to_json_text(_report(tool))


def format_tool_report(tool: Any, remaining: int) -> str:
    """Return the user message for the model after a tool has run: the result, and what to do next.

    Args:
        tool: name, success, result and error, in a mapping or an object.
        remaining: how many more responses the model may give.

    Example:
        >>> print(format_tool_report({"name": "add", "success": True, "result": 5}, 2).splitlines()[1])
        {"tool_name": "add", "success": true, "result": 5}
    """
    report = _report(tool)
    return protocol_text.format_tool_report(report["tool_name"], report, remaining, succeeded=report["success"])


def _report(tool: Any) -> dict[str, Any]:
    succeeded, error = bool(_find_value(tool, "success")), _find_value(tool, "error")
    report: dict[str, Any] = {
        "tool_name": _to_text(tool, "name"),
        "success": succeeded,
        "result": _find_value(tool, "result"),
    }
    if error is not None or not succeeded:
        report["error"] = "the tool gave no details" if error is None else to_text(error)
    return report


def _find_value(config: Any, *names: str) -> Any:
    """Return a config's value under the first of these names that it has; None if it has none."""
    values = (config.get(name) if isinstance(config, Mapping) else getattr(config, name, None) for name in names)
    return next((value for value in values if value is not None), None)


def _to_text(config: Any, name: str) -> str:
    value = _find_value(config, name)
    return "" if value is None else to_text(value).strip()


def _look_up(tool: Any) -> Any:
    """Return the shared registry's entry for a tool name; the name itself if there is none."""
    from agentnb.world.tools.registry import ToolRegistry  # late, because an agent's own tools are passed

    return (ToolRegistry.get_instance().describe(tool) or tool) if isinstance(tool, str) else tool


def _describe_tool(tool: Any) -> tuple[str, str, Mapping[str, Any] | None]:
    """Return a tool's name, description and schema; only the name if nothing else is known."""
    if isinstance(tool, str):
        return tool, "", None
    parameters = getattr(tool, "parameters", None)  # a ToolConfig's schema may have several forms
    schema = (
        parameters().json_schema()
        if callable(parameters)
        else _find_value(tool, "schema", "input_schema", "inputSchema")
    )
    name, description = _to_text(tool, "name"), _to_text(tool, "description")
    return name, description, schema if isinstance(schema, Mapping) else None


def _read_prompt(text: str, folder: str | Path | None) -> str:
    """Return a prompt, or the text of the file that it names. Nothing outside the folder is read."""
    if folder is None or "\n" in text or not text.strip().lower().endswith(FILES):
        return text
    try:
        inside = Path(folder).resolve()
        path = (inside / text.strip()).resolve()
        if not path.is_relative_to(inside) or not path.is_file():
            return text
    except (OSError, ValueError):  # not a path: too long, or with invalid characters
        return text
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ValueError(f"it has {size:,} bytes; the limit is {MAX_BYTES:,}")
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise AgentRuntimeError(
            Problem("X467", f"the system prompt {text.strip()!r} cannot be read", "system_prompt", why,
                    "pass the path of a readable UTF-8 text file, or the prompt itself")
        ) from None  # fmt: skip
