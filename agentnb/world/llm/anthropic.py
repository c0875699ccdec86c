"""anthropic: Anthropic's models (the messages protocol), through the `anthropic` package."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from agentnb.world.llm.failures import Unreadable
from agentnb.world.llm.vendor import LONGEST_ANSWER, Ask, Reply, VendorClient, accepted

MAX_TOKENS: Final = 1024  # the protocol asks for a number
ANSWER: Final = "answer"  # the tool that an answer with a schema is given to


class AnthropicClient(VendorClient):
    """Asks Anthropic's models. An answer with a schema comes as the arguments of a tool that it must call.

    There is no JSON mode: where `json_object` asks for one, what the prompt says of it must do.
    """

    package: ClassVar[str] = "anthropic"
    extra: ClassVar[str] = "anthropic"
    variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY",)

    def connected(self) -> Any:
        """Return a new client of the SDK, that never tries again by itself."""
        import anthropic

        words = self.connection(api_key=self.key, base_url=self.base_url, default_headers=self.headers)
        return anthropic.AsyncAnthropic(**{"max_retries": 0, "timeout": LONGEST_ANSWER, **words})

    async def converse(self, sdk: Any, ask: Ask) -> Reply:
        """Send one request and return the answer; pieces of text are told to `ask.tell` as they arrive."""
        create = sdk.messages.create
        words = accepted(create, _body(ask), "extra_body")
        answer = await create(**{"timeout": ask.timeout, **words})
        reply = await _streamed(answer, ask) if words.get("stream") else _whole(answer)
        if reply.value is not None and not _is_object(ask.schema):
            reply.value = reply.value.get(ANSWER)
        return reply


def _is_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def _body(ask: Ask) -> dict[str, Any]:
    sampling = {"max_tokens": MAX_TOKENS, **ask.sampling}
    stop = sampling.pop("stop", None)
    words: dict[str, Any] = {
        "model": ask.model,
        "messages": [
            {"role": "assistant" if message.role == "assistant" else "user", "content": message.content}
            for message in ask.talk
        ],
        "system": ask.system or None,
        "stop_sequences": [stop] if isinstance(stop, str) else stop,
        "stream": True if ask.tell is not None else None,
        **sampling,
    }
    if ask.schema is not None:
        wrapped = {"type": "object", "properties": {ANSWER: ask.schema}, "required": [ANSWER]}
        schema = ask.schema if _is_object(ask.schema) else wrapped  # a tool's arguments are an object
        words["tools"] = [{"name": ANSWER, "description": "Give the answer.", "input_schema": schema}]
        words["tool_choice"] = {"type": "tool", "name": ANSWER}
    return ask.onto(words)


def _whole(answer: Any) -> Reply:
    content = getattr(answer, "content", None)
    if not isinstance(content, list):
        raise Unreadable("it has no content")
    reply = Reply(model=answer.model or "", ended=True)
    for block in content:
        if block.type == "text":
            reply.add(block.text)
        elif block.type == "tool_use" and block.name == ANSWER:
            reply.value = block.input
    _refused(reply, answer)
    usage = getattr(answer, "usage", None)
    if usage is not None:
        reply.tokens_in, reply.tokens_out = _tokens_in(usage), usage.output_tokens
    return reply


async def _streamed(events: Any, ask: Ask) -> Reply:
    reply, pieces = Reply(), Reply()  # `pieces`: the JSON of a tool's arguments
    async with events:
        async for event in events:
            if event.type == "message_start":
                reply.model, usage = event.message.model or "", event.message.usage
                reply.tokens_in, reply.tokens_out = _tokens_in(usage), usage.output_tokens
            elif event.type == "content_block_delta":
                if event.delta.type == "text_delta":
                    reply.add(event.delta.text, ask.tell)
                elif event.delta.type == "input_json_delta":
                    pieces.add(event.delta.partial_json, ask.tell)
            elif event.type == "message_delta":
                reply.tokens_out = event.usage.output_tokens
                _refused(reply, event.delta)
            reply.ended = reply.ended or event.type == "message_stop"
    if pieces.text and reply.ended:
        reply.value = json.loads("".join(pieces.text))
    return reply


def _tokens_in(usage: Any) -> int:
    """Count what went in, the parts that the server had kept included."""
    cached = (getattr(usage, f"cache_{word}_input_tokens", None) or 0 for word in ("creation", "read"))
    return int(usage.input_tokens or 0) + sum(cached)


def _refused(reply: Reply, answer: Any) -> None:
    if getattr(answer, "stop_reason", None) == "refusal":
        reply.refused = "refusal"
