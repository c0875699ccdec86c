"""inside: what happens inside an agent, as functions of its blackboard: the request, the next round, the result.

An agent's blackboard has `task`, `system_prompt`, `request`, `answer`, `model`, `usage`, `decision`, `tools_executed`,
`conversation` (what was said after the task), `failure` (what failed last) and, at the end, `result`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentnb.dialects.symphony.prompts import SystemPromptService, tool_report
from agentnb.dialects.symphony.schema import AgentConfig
from agentnb.world.llm.decision import EMPTY, as_text

NO_TOOLS: Final = "The agent has no tools: the model's answer is the result."
FENCED: Final = " The JSON of its answer stood in a code fence."


def composed(config: Mapping[str, Any], tools: Any) -> str:
    """Return what an agent's model is told first."""
    return SystemPromptService.generate_system_prompt(config, bool(config.get("tools")), tools=tools)


class Requesting:
    """Puts together what the model is asked: its messages, and the settings of this one request."""

    def __init__(self, config: AgentConfig) -> None:
        model = config.model
        known = {"model": model.model, "temperature": model.temperature, "max_tokens": model.max_tokens}
        self.settings = {name: value for name, value in known.items() if value is not None}
        if model.provider is not None:
            self.settings["provider"] = model.provider
        if config.tools:
            self.settings["json_object"] = True

    def __call__(self, board: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request."""
        messages = [
            {"role": "system", "content": board["system_prompt"]},
            {"role": "user", "content": board["task"]},
            *(board.get("conversation") or ()),
        ]
        return {"request": {"messages": messages, **self.settings}}


class GoingOn:
    """After a tool: tells the model what came of it, where it may be asked once more."""

    def __init__(self, config: AgentConfig) -> None:
        self.most = config.max_calls

    def __call__(self, board: Mapping[str, Any]) -> dict[str, Any]:
        """Return whether it goes on, and what is said then."""
        left = self.most - board["usage"]["requests"]
        if left <= 0:
            return {"goes_on": False}
        tool = board["tools_executed"][-1]
        said = [*(board.get("conversation") or ()), {"role": "assistant", "content": as_text(board["answer"])}]
        said.append({"role": "user", "content": tool_report(tool, left)})
        return {"goes_on": True, "conversation": said}


class Concluding:
    """Puts the agent's result together from what happened, as the truth table of its protocol says."""

    def __init__(self, config: AgentConfig) -> None:
        self.name, self.tools = config.name, tuple(config.tools)

    def __call__(self, board: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result: success, response, reasoning, tools_executed, error, agent, model, usage."""
        executed = list(board.get("tools_executed") or ())
        success, response, reasoning, error = self._came(board, executed)
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

    def _came(self, board: Mapping[str, Any], executed: list[Any]) -> tuple[bool, str, str, str | None]:
        failure, decision = board.get("failure") or {}, board.get("decision") or {}
        if "answer" not in board or failure.get("node") == "llm":
            why = str(failure.get("message") or "the model was not asked")
            return False, self._sorry(board), f"The model could not be asked: {why}", why
        answer = board["answer"]
        if not self.tools:
            return True, "" if answer is None else as_text(answer), NO_TOOLS, None
        noted = FENCED if decision.get("fenced") else ""
        if failure.get("node") == "parse":
            return self._unread(answer, str(failure["message"]), executed)
        if decision.get("kind") == "other":
            why = f"the model's answer is JSON, but not what was asked for: {decision['why']}"
            return False, decision["response"], f"No tool was called: {decision['why']}.{noted}", why
        failed = [each for each in executed if not each["success"]]
        error = "; ".join(_named(each) for each in failed) or None
        if decision.get("kind") == "none":
            reasoning = f"{_used(executed)}The model decided that no tool was needed.{noted}"
            return not failed, decision["response"], reasoning, error
        return not failed, _summary(executed[-1]), f"{_used(executed).strip()}{noted}", error

    def _sorry(self, board: Mapping[str, Any]) -> str:
        return f"Sorry: {self.name} could not work on the task {as_text(board.get('task', ''))!r}."

    def _unread(self, answer: Any, why: str, executed: list[Any]) -> tuple[bool, str, str, str]:
        text = "" if answer is None else as_text(answer)
        return (
            False,
            text if text.strip() else EMPTY,
            f"{_used(executed)}The model's answer could not be read: {why}.",
            why,
        )


def _named(tool: Mapping[str, Any]) -> str:
    """Return a tool's error with its name in it."""
    name, error = f"{tool['name']!r}", str(tool["error"])
    return error if name in error else f"Tool {name} failed: {error}"


def _used(executed: list[Any]) -> str:
    """Say which tools were called, and how that went; empty where none was."""
    if not executed:
        return ""
    first = executed[0]
    return (
        f"Processed {len(executed)} tool actions; the first was {first['name']}, success: {_said(first['success'])}. "
    )


def _summary(tool: Mapping[str, Any]) -> str:
    """Return one tool's result in words; its error, where it has none."""
    found, known = ("Result", tool["result"]) if tool.get("result") else ("Error", tool.get("error"))
    if tool["success"] and found == "Error" and not known:
        found, known = "Result", tool.get("result")
    return f"Tool {tool['name']} executed. Success: {_said(tool['success'])}. {found}: {as_text(known)}"


def _said(yes: bool) -> str:
    return "true" if yes else "false"
