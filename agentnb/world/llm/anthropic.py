"""Anthropic's models (the messages protocol), through the `anthropic` package."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from agentnb.board.values import freeze, thaw
from agentnb.world.llm.base import LLMMessage
from agentnb.world.llm.errors import UnreadableResponse
from agentnb.world.llm.vendor import LONGEST_ANSWER, Reply, VendorClient, VendorRequest, adapt_arguments

MAX_TOKENS: Final = 1024  # the protocol requires a number
ANSWER: Final = "answer"  # the tool whose arguments are an answer with a schema


class AnthropicClient(VendorClient):
    """A client of Anthropic's models. With a schema, the answer arrives as the arguments of a tool that must be called.

    There is no JSON mode: for `json_object`, the model only gets the description in the prompt.
    """

    package: ClassVar[str] = "anthropic"
    extra: ClassVar[str] = "anthropic"
    variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY",)

    def connect(self) -> Any:
        """Return a new client of the SDK without retries of its own."""
        import anthropic

        options = self.connection(api_key=self.key, base_url=self.base_url, default_headers=self.headers)
        sdk = anthropic.AsyncAnthropic(**{"max_retries": 0, "timeout": LONGEST_ANSWER, **options})
        _ = sdk.messages  # imported here on its first use, so that this does not count towards the first answer
        return sdk

    async def converse(self, sdk: Any, ask: VendorRequest) -> Reply:
        """Send one request and return the answer; pass pieces of text to `ask.on_token` as they arrive."""
        create = sdk.messages.create
        body = adapt_arguments(create, _make_body(ask), "extra_body")
        answer = await create(**{"timeout": ask.timeout, **body})
        reply = await _read_stream(answer, ask) if body.get("stream") else _make_reply(answer, ask)
        if reply.value is not None and not _is_object(ask.schema):
            reply.value = reply.value.get(ANSWER)
        return reply


def _is_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def _make_body(ask: VendorRequest) -> dict[str, Any]:
    sampling = {"max_tokens": MAX_TOKENS, **ask.sampling}
    stop = sampling.pop("stop", None)
    body: dict[str, Any] = {
        "model": ask.model,
        "messages": _make_messages(ask.conversation),
        "system": ask.system or None,
        "stop_sequences": [stop] if isinstance(stop, str) else stop,
        "stream": True if ask.on_token is not None else None,
        **sampling,
    }
    if ask.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": thaw(freeze(tool.input_schema))}
            for tool in ask.tools
        ]
    if ask.schema is not None:
        wrapped = {"type": "object", "properties": {ANSWER: ask.schema}, "required": [ANSWER]}
        schema = ask.schema if _is_object(ask.schema) else wrapped  # a tool's arguments are an object
        answer = {"name": ANSWER, "description": "Give the answer.", "input_schema": schema}
        body["tools"] = [*body.get("tools", ()), answer]
        body["tool_choice"] = {"type": "any"} if ask.tools else {"type": "tool", "name": ANSWER}
    return ask.merge_arguments(body)


def _make_messages(messages: Sequence[LLMMessage]) -> list[dict[str, Any]]:
    """Return a conversation in the protocol's form: all tool results of a round are one user message."""
    converted: list[dict[str, Any]] = []
    for message in messages:
        if message.tool_call_id:
            result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
            if not (converted and converted[-1]["role"] == "user" and isinstance(converted[-1]["content"], list)):
                converted.append({"role": "user", "content": []})
            converted[-1]["content"].append(result)
            continue
        content: Any = message.content
        if message.tool_calls:
            content = [{"type": "text", "text": content}] if content else []
            content += [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": thaw(freeze(call.arguments))}
                for call in message.tool_calls
            ]
        converted.append({"role": "assistant" if message.role == "assistant" else "user", "content": content})
    return converted


def _make_reply(answer: Any, ask: VendorRequest) -> Reply:
    content = getattr(answer, "content", None)
    if not isinstance(content, list):
        raise UnreadableResponse("it has no content")
    reply = Reply(model=answer.model or "", is_complete=True)
    for number, block in enumerate(content):
        if block.type == "text":
            reply.add(block.text)
        elif block.type == "tool_use" and block.name == ANSWER and ask.schema is not None:
            reply.value = block.input
        elif block.type == "tool_use":
            reply.call(number, block.id, block.name, block.input)
    _note_refusal(reply, answer)
    usage = getattr(answer, "usage", None)
    if usage is not None:
        reply.tokens_in, reply.tokens_out = _count_input_tokens(usage), usage.output_tokens
    return reply


async def _read_stream(events: Any, ask: VendorRequest) -> Reply:
    reply, pieces = Reply(), Reply()  # `pieces`: the JSON of a tool's arguments
    async with events:
        async for event in events:
            if event.type == "message_start":
                reply.model, usage = event.message.model or "", event.message.usage
                reply.tokens_in, reply.tokens_out = _count_input_tokens(usage), usage.output_tokens
            elif event.type == "content_block_delta":
                if event.delta.type == "text_delta":
                    reply.add(event.delta.text, ask.on_token)
                elif event.delta.type == "input_json_delta" and event.index in reply.keys:
                    reply.call(event.index, arguments=event.delta.partial_json)
                elif event.delta.type == "input_json_delta":
                    pieces.add(event.delta.partial_json, ask.on_token)
            elif event.type == "content_block_start" and event.content_block.type == "tool_use":
                if event.content_block.name != ANSWER or ask.schema is None:
                    reply.call(event.index, event.content_block.id, event.content_block.name)
            elif event.type == "message_delta":
                reply.tokens_out = event.usage.output_tokens
                _note_refusal(reply, event.delta)
            reply.is_complete = reply.is_complete or event.type == "message_stop"
    if pieces.text and reply.is_complete:
        reply.value = json.loads("".join(pieces.text))
    return reply


def _count_input_tokens(usage: Any) -> int:
    """Return the number of input tokens, including those from the server's cache."""
    cached = (getattr(usage, f"cache_{word}_input_tokens", None) or 0 for word in ("creation", "read"))
    return int(usage.input_tokens or 0) + sum(cached)


def _note_refusal(reply: Reply, answer: Any) -> None:
    reply.finish = getattr(answer, "stop_reason", None) or reply.finish
    if reply.finish == "refusal":
        reply.refused = "refusal"
