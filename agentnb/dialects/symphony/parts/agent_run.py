"""The steps inside an agent, as functions of its blackboard: the request, the next round, the result.

An agent's blackboard has `task`, `system_prompt`, `request`, `answer`, `model`, `usage`, `decision`, `tools_executed`,
`conversation` (the messages after the task), `failure` (the last failure) and, at the end, `result`; with native tool
calls also `tools` (those that its requests offer) and `calls` (the outstanding calls of the last answer).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentnb.board.values import is_truthy
from agentnb.dialects.symphony.parts.system_prompt import (
    SystemPromptService,
    format_tool_report,
    make_native_prompt,
    make_tool_answer,
)
from agentnb.dialects.symphony.schema import AgentConfig
from agentnb.text import safe_repr, safe_str
from agentnb.world.llm.base import LLMMessage, ToolCall
from agentnb.world.llm.decision import EMPTY, count_calls, find_tool_calls, to_text

NO_TOOLS: Final = "The agent has no tools: the model's answer is the result."
FENCED: Final = " The JSON of the answer was in a code fence."


def compose_prompt(config: Mapping[str, Any], tools: Any) -> str:
    """Return the system prompt of an agent."""
    return SystemPromptService.generate_system_prompt(config, bool(config.get("tools")), tools=tools)


def compose_native_prompt(config: Mapping[str, Any], tools: Any) -> str:  # noqa: ARG001  (they are offered natively)
    """Return the system prompt of an agent whose tools are offered as native tool calls."""
    return make_native_prompt(config)


class RequestStage:
    """Builds the request to the model: its messages and its settings."""

    def __init__(self, config: AgentConfig) -> None:
        model = config.model
        known = {"model": model.model, "temperature": model.temperature, "max_tokens": model.max_tokens}
        self.settings = {name: value for name, value in known.items() if value is not None}
        if model.provider is not None:
            self.settings["provider"] = model.provider
        if config.tools and not config.native:
            self.settings["json_object"] = True

    def __call__(self, board: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request."""
        messages = [
            {"role": "system", "content": board["system_prompt"]},
            {"role": "user", "content": board["task"]},
            *(board.get("conversation") or ()),
        ]
        offered = {"tools": board["tools"]} if board.get("tools") else {}
        return {"request": {"messages": messages, **offered, **self.settings}}


def take_next_call(board: Mapping[str, Any]) -> dict[str, Any]:
    """Return the next of the calls requested in one answer, if there is one."""
    calls = list(board.get("calls") or ())
    return {"decision": calls[0], "calls": calls[1:], "calls_on": True} if calls else {"calls_on": False}


class ToolResultStage:
    """After a tool: adds the result to the conversation, if the model may be called again."""

    def __init__(self, config: AgentConfig) -> None:
        self.max_requests = config.max_calls

    def __call__(self, board: Mapping[str, Any]) -> dict[str, Any]:
        """Return whether the agent continues, and the next messages."""
        remaining = self.max_requests - board["usage"]["requests"]
        if remaining <= 0:
            return {"goes_on": False}
        messages, calls = list(board.get("conversation") or ()), find_tool_calls(board["answer"])
        if calls:
            messages += _report_calls(calls, board)
        else:
            messages.append({"role": "assistant", "content": to_text(board["answer"])})
            messages.append({"role": "user", "content": format_tool_report(board["tools_executed"][-1], remaining)})
        return {"goes_on": True, "conversation": messages}


def _report_calls(calls: tuple[ToolCall, ...], board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the message in which a model requested calls, and the result of each, including skipped ones."""
    messages = [LLMMessage("assistant", to_text(board["answer"].get("content") or ""), calls)]
    executed = {tool.get("call"): tool for tool in board.get("tools_executed") or ()}
    for number, call in enumerate(calls, count_calls(board.get("conversation"))):
        tool = executed.get(number, {"name": call.name, "success": False, "error": "the tool was not called"})
        messages.append(LLMMessage("tool", make_tool_answer(tool), tool_call_id=call.id))
    return [message.to_dict() for message in messages]


class ResultStage:
    """Builds the agent's result according to the truth table of its protocol."""

    def __init__(self, config: AgentConfig) -> None:
        self.name, self.tools = config.name, tuple(config.tools)

    def __call__(self, board: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result: success, response, reasoning, tools_executed, error, agent, model, usage."""
        executed = list(board.get("tools_executed") or ())
        success, response, reasoning, error = self._conclude(board, executed)
        result = {
            "success": success,
            "response": response,
            "reasoning": reasoning,
            "tools_executed": executed,
            "error": error,
            "agent": self.name,
            "model": board.get("model"),
            "usage": board.get("usage"),
        }
        return {"result": result}

    def _conclude(self, board: Mapping[str, Any], executed: list[Any]) -> tuple[bool, str, str, str | None]:
        failure, decision = board.get("failure") or {}, board.get("decision") or {}
        if "answer" not in board or failure.get("node") == "llm":
            why = str(failure.get("message") or "the model was not called")
            return False, self._make_apology(board), f"The model could not be asked: {why}", why
        answer = board["answer"]
        if not self.tools:
            return True, "" if answer is None else to_text(answer), NO_TOOLS, None
        noted = FENCED if decision.get("fenced") else ""
        if failure.get("node") == "parse":
            return self._make_unread(answer, str(failure["message"]), executed)
        if decision.get("kind") == "other":
            why = f"the model's answer is JSON, but not in the requested form: {decision['why']}"
            return False, decision["response"], f"No tool was called: {decision['why']}.{noted}", why
        failed = [each for each in executed if not each["success"]]
        error = "; ".join(_name_error(each) for each in failed) or None
        if decision.get("kind") == "none":
            reasoning = f"{_describe_calls(executed)}The model decided that no tool was needed.{noted}"
            return not failed, decision["response"], reasoning, error
        last = len(find_tool_calls(answer)) or 1
        return (
            not failed,
            "\n".join(map(_format_result, executed[-last:])),
            f"{_describe_calls(executed).strip()}{noted}",
            error,
        )

    def _make_apology(self, board: Mapping[str, Any]) -> str:
        return f"Sorry: {self.name} could not work on the task {to_text(board.get('task', ''))!r}."

    def _make_unread(self, answer: Any, why: str, executed: list[Any]) -> tuple[bool, str, str, str]:
        text = "" if answer is None else to_text(answer)
        return (
            False,
            text if text.strip() else EMPTY,
            f"{_describe_calls(executed)}The model's answer could not be read: {why}.",
            why,
        )


def _name_error(tool: Mapping[str, Any]) -> str:
    """Return a tool's error, including its name."""
    name, error = f"{safe_repr(tool['name'])}", str(tool["error"])
    return error if name in error else f"Tool {name} failed: {error}"


def _describe_calls(executed: list[Any]) -> str:
    """Return a text about the tools that were called and their outcome; empty if there were none."""
    if not executed:
        return ""
    first = executed[0]
    success = _format_bool(first["success"])
    return f"Processed {len(executed)} tool actions; the first was {first['name']}, success: {success}. "


def _format_result(tool: Mapping[str, Any]) -> str:
    """Return one tool's result as text, or its error if it has none."""
    name, value = "Result", tool.get("result")
    if not is_truthy(value) and (is_truthy(tool.get("error")) or not tool["success"]):
        name, value = "Error", tool.get("error")
    return f"Tool {safe_str(tool['name'])} executed. Success: {_format_bool(tool['success'])}. {name}: {to_text(value)}"


def _format_bool(yes: bool) -> str:
    return "true" if yes else "false"
