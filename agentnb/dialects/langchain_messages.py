"""LangChain's messages and options as a request to a session's model, and the model's response as a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from agentnb.errors import ExecutionError, Problem
from agentnb.text import safe_repr
from agentnb.world.llm.base import LLMResponse
from agentnb.world.llm.settings import SAMPLING
from agentnb.world.llm.structured import find_json
from agentnb.world.llm.text import to_json_text, to_text

_ROLES: Final = {"ai": "assistant", "human": "user", "system": "system", "tool": "tool"}
_TEXTS: Final = frozenset({"text", "reasoning", "thinking", "tool_call", "tool_use"})  # blocks that need no conversion
_REQUIRED: Final = frozenset({"any", "required"})  # tool choices that require a call but not a specific tool
_SIGNATURES: Final = "agentnb_signatures"  # data that a vendor requires back with the calls of a message


class Exchange:
    """One call of a LangChain model, answered by a model of agentnb.

    `arguments` describe the request, like those of an effect. If the program requires one tool, or an answer that
    matches a schema, the model is asked for matching JSON.

    Raises:
        ExecutionError: L545, a message contains something other than text.
    """

    def __init__(self, messages: Sequence[BaseMessage], stop: Any, options: Mapping[str, Any]) -> None:
        self.arguments: dict[str, Any] = {name: value for name, value in options.items() if name in SAMPLING}
        if stop:
            self.arguments["stop"] = list(stop)
        self.arguments["messages"] = [_to_dict(message) for message in messages]
        tools = [_to_definition(tool) for tool in options.get("tools") or ()]
        self.required = _find_required_tool(tools, options.get("tool_choice"))
        schema = _find_schema(options) if self.required is None else self.required["input_schema"]
        self.is_structured = schema is not None and self.required is None
        if schema is not None:
            self.arguments["schema"] = schema
        elif tools:
            self.arguments["tools"] = tools

    def to_message(self, response: LLMResponse) -> AIMessage:
        """Return the response as the message that the program expects."""
        used, content = response.usage, response.content
        text = "" if content is None else to_text(content)
        calls = [{"name": call.name, "args": dict(call.arguments), "id": call.id} for call in response.tool_calls]
        extra: dict[str, Any] = {}
        if signatures := {call.id: call.signature for call in response.tool_calls if call.signature}:
            extra[_SIGNATURES] = signatures
        if self.required is not None and not calls:
            with suppress(ValueError):  # text without JSON is passed on unchanged
                arguments = find_json(content)
                if isinstance(arguments, Mapping):
                    calls, text = [{"name": self.required["name"], "args": dict(arguments), "id": "call_1"}], ""
        if self.is_structured:
            with suppress(ValueError):
                extra["parsed"] = find_json(content)
                text = to_json_text(extra["parsed"])
        usage = None
        if used.tokens_in is not None and used.tokens_out is not None:
            total = used.tokens_in + used.tokens_out
            usage = {"input_tokens": used.tokens_in, "output_tokens": used.tokens_out, "total_tokens": total}
        return AIMessage(text, tool_calls=calls, additional_kwargs=extra, usage_metadata=usage)


def _to_dict(message: BaseMessage) -> dict[str, Any]:
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, "user")
    fields: dict[str, Any] = {"role": role, "content": _to_text(message)}
    if isinstance(message, AIMessage) and message.tool_calls:
        signatures = message.additional_kwargs.get(_SIGNATURES, {})
        fields["tool_calls"] = [
            {"id": call["id"], "name": call["name"], "arguments": call["args"],
             "signature": signatures.get(call["id"], "")}
            for call in message.tool_calls
        ]  # fmt: skip
    if isinstance(message, ToolMessage):
        fields["tool_call_id"] = message.tool_call_id
    return fields


def _to_text(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    others = [block for block in content if not isinstance(block, str) and block.get("type") not in _TEXTS]
    if others:
        raise ExecutionError(
            Problem("L545", f"a message contains {safe_repr(others[0], 200)}", "the messages of a LangChain model",
                    "the session's model replaces the program's, and accepts only text",
                    "leave out llm= to use the program's own model")
        )  # fmt: skip
    return "".join(block if isinstance(block, str) else str(block.get("text", "")) for block in content)


def _to_definition(tool: Any) -> dict[str, Any]:
    function = convert_to_openai_tool(tool)["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _find_required_tool(tools: Sequence[Mapping[str, Any]], choice: Any) -> Mapping[str, Any] | None:
    """Return the one tool that a model must call; None if it may choose."""
    if isinstance(choice, Mapping):
        function = choice.get("function")
        choice = function.get("name") if isinstance(function, Mapping) else choice.get("name") or choice.get("type")
    if choice is True or choice in _REQUIRED:
        return tools[0] if len(tools) == 1 else None
    return next((tool for tool in tools if tool["name"] == choice), None)


def _find_schema(options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema that an answer must match, from OpenAI's or Anthropic's option; None without one."""
    form = options.get("response_format") or options.get("output_format") or options.get("output_config")
    if isinstance(form, type):
        return dict(convert_to_openai_tool(form)["function"]["parameters"])
    for key in ("format", "json_schema", "schema"):
        form = form.get(key, form) if isinstance(form, Mapping) else None
    return form if form and "type" in form and form["type"] != "json_object" else None


__all__ = ["Exchange"]
