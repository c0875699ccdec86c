"""The fixed sentences of an agent's prompts. Only arguments are inserted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentnb.world.llm.text import to_json_text

_WORK = (
    "The user gives you one task at a time. Do that task, and keep to what you know: say so where something is missing."
)
_WITH_TOOLS = (
    "Use a tool where it gets you further than your own knowledge. Give it values from the task and from earlier "
    "results; make none up. Where no tool helps, answer by yourself."
)


def format_identity(name: str, role: str, goal: str, *, has_tools: bool) -> str:
    """Return the agent's identity, its goal, and its instructions."""
    identity = f"You are {name}." if name else "You are an agent."
    parts = [f"# Role\n{identity} {role}".rstrip()]
    if goal:
        parts.append(f"# Goal\n{goal}")
    parts.append(f"# Work\n{_WORK}" + (f"\n{_WITH_TOOLS}" if has_tools else ""))
    return "\n\n".join(parts)


def format_tools(tools: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> str:
    """Return each tool's name, description and input schema; empty if there are none."""
    rows = [_format_tool(*tool) for tool in tools]
    return (
        "\n\n".join(["# Tools\nThese are the tools that you may use, and there are no others.", *rows]) if rows else ""
    )


def _format_tool(name: str, description: str, schema: Mapping[str, Any] | None) -> str:
    lines = [f"## {name}"]
    if description:
        lines.append(description)
    if schema is not None:
        lines.append(f"Its parameters, as JSON Schema: {to_json_text(schema)}")
    return "\n".join(lines)


def format_directives(text: str) -> str:
    """Return directives under their title."""
    return f"# Directives\nKeep to these at all times:\n{text}"


def format_json_requirements(names: Sequence[str] = ()) -> str:
    """Return the required form of answers, for an agent with tools of these names.

    Example:
        >>> 'MUST BE EXACTLY ONE OF THESE NAMES: "add", "multiply"' in format_json_requirements(["add", "multiply"])
        True
    """
    exact = ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
    one_of = f"ONE OF THESE NAMES: {exact}" if exact else "THE NAME OF ONE OF YOUR TOOLS"
    return f"""\
=== BEGIN REQUIRED FORM OF EVERY RESPONSE ===
YOUR ENTIRE RESPONSE MUST BE ONE SINGLE VALID JSON OBJECT.
NOTHING MAY STAND BEFORE IT OR AFTER IT: NO SENTENCES, NO COMMENTS, NO CODE FENCES.
IT HAS ONE OF THESE TWO FORMS, AND NO OTHER.

1. TO USE A TOOL:
{{"tool_name": "EXACT_TOOL_NAME", "parameters": {{"PARAMETER": "VALUE"}}}}
- "tool_name" MUST BE EXACTLY {one_of}. SPELL IT AS IT IS SPELLED HERE.
- "parameters" MUST BE THERE, AND MUST BE A JSON OBJECT THAT KEEPS TO THE TOOL'S SCHEMA; {{}} WHERE IT NEEDS NONE.
- USE ONE TOOL AT A TIME.

2. TO USE NO TOOL:
{{"tool_name": "none", "response": "YOUR ANSWER"}}
- "tool_name" MUST BE EXACTLY "none", IN SMALL LETTERS.
- "response" MUST BE THERE, AND HOLDS YOUR WHOLE ANSWER TO THE TASK AS A TEXT.

ANY OTHER RESPONSE IS AN ERROR: IT CANNOT BE USED, AND THE TASK FAILS.
=== END REQUIRED FORM OF EVERY RESPONSE ==="""


def format_tool_report(name: str, report: Mapping[str, Any], remaining: int, *, succeeded: bool) -> str:
    """Return the message after a tool has run: its result as JSON, and what the model may do next."""
    outcome = "has run. This is its result" if succeeded else "has failed. This is what it says"
    if remaining > 1:
        instruction = f"You may respond {remaining} more times. Call another tool, or give your answer to the task"
    else:
        instruction = "You may respond once more. Give your answer to the task now"
    form = '{"tool_name": "none", "response": "YOUR ANSWER"}'
    quoted = json.dumps(name, ensure_ascii=False)
    return f"The tool {quoted} {outcome}, as JSON:\n{to_json_text(report)}\n{instruction}: {form}"
