"""Models with OpenAI's protocol (chat completions): OpenAI's own, and any compatible server."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any, ClassVar, Final

from agentnb.board.values import freeze, thaw
from agentnb.world.llm.base import LLMMessage
from agentnb.world.llm.errors import UnreadableResponse, refuses_format
from agentnb.world.llm.vendor import LONGEST_ANSWER, Reply, VendorClient, VendorRequest, adapt_arguments

LM_STUDIO: Final = "http://127.0.0.1:1234/v1"


class OpenAIClient(VendorClient):
    """A client of OpenAI's models, through the `openai` package."""

    package: ClassVar[str] = "openai"
    extra: ClassVar[str] = "openai"
    variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)

    def connect(self) -> Any:
        """Return a new client of the SDK without retries of its own."""
        import openai

        # A server without keys gets a placeholder; otherwise the SDK would send it the key from the environment.
        options = self.connection(api_key=self.key or "none", base_url=self.base_url, default_headers=self.headers)
        sdk = openai.AsyncOpenAI(**{"max_retries": 0, "timeout": LONGEST_ANSWER, **options})
        _ = sdk.chat.completions  # imported here on its first use, so that this does not count towards the first answer
        return sdk

    async def converse(self, sdk: Any, ask: VendorRequest) -> Reply:
        """Send one request and return the answer; pass pieces of text to `ask.on_token` as they arrive."""
        create = sdk.chat.completions.create
        body = adapt_arguments(create, _make_body(ask), "extra_body")
        answer = await create(**{"timeout": ask.timeout, **body})
        return await _read_stream(answer, ask) if body.get("stream") else _make_reply(answer)


class OpenAICompatibleClient(OpenAIClient):
    """A client of a server with OpenAI's protocol, such as LM Studio, Ollama or vLLM; no key is required.

    If the settings have no `base_url`, it is taken from the environment variable OPENAI_BASE_URL, otherwise it is that
    of LM Studio. `lmstudio` always uses its own address.

    Not every such server has a JSON mode. If a server rejects it, the request is sent again at once without it, and so
    are later requests to this model: a rejection uses no tokens, and the prompt describes the form.
    """

    variables: ClassVar[tuple[str, ...]] = ()
    default_url: ClassVar[str | None] = LM_STUDIO
    needs_key: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._without_json_mode: set[str] = set()

    def find_url(self) -> str | None:
        """Return the URL to use if the settings have none."""
        return os.environ.get("OPENAI_BASE_URL") or self.default_url

    async def converse(self, sdk: Any, ask: VendorRequest) -> Reply:
        """Send one request and return the answer; pass pieces of text to `ask.on_token` as they arrive."""
        if ask.json_object and ask.model not in self._without_json_mode:
            try:
                return await super().converse(sdk, ask)
            except Exception as error:
                if not refuses_format(error):
                    raise
            self._without_json_mode.add(ask.model)
        return await super().converse(sdk, replace(ask, json_object=False))


class LMStudioClient(OpenAICompatibleClient):
    """A client of LM Studio on this machine."""

    def find_url(self) -> str | None:
        """Return the URL to use if the settings have none."""
        return self.default_url


def _make_body(ask: VendorRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": ask.model,
        "messages": [_make_message(message) for message in ask.messages] or [{"role": "user", "content": ""}],
        **ask.sampling,
    }
    if ask.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description,
                                              "parameters": thaw(freeze(tool.input_schema))}}
            for tool in ask.tools
        ]  # fmt: skip
    if ask.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ask.schema}}
    elif ask.json_object:
        body["response_format"] = {"type": "json_object"}
    if ask.on_token is not None:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return ask.merge_arguments(body)


def _make_message(message: LLMMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["content"] = message.content or None
        fields["tool_calls"] = [
            {"id": call.id, "type": "function",
             "function": {"name": call.name, "arguments": json.dumps(thaw(freeze(call.arguments)))}}
            for call in message.tool_calls
        ]  # fmt: skip
    return {**fields, "tool_call_id": message.tool_call_id} if message.tool_call_id else fields


def _take_calls(reply: Reply, part: Any) -> None:
    """Add the tool calls of a message, or the pieces of some in a chunk; the older form has one, without an id."""
    for number, call in enumerate(getattr(part, "tool_calls", None) or ()):
        named = getattr(call, "function", None)  # otherwise a custom tool, whose input is text
        if named is not None:
            reply.call(getattr(call, "index", number), call.id, named.name, named.arguments or "")
        elif (custom := getattr(call, "custom", None)) is not None:
            reply.call(getattr(call, "index", number), call.id, custom.name, {"input": custom.input})
    old = getattr(part, "function_call", None)
    if old is not None:
        reply.call("function_call", None, old.name, old.arguments or "")


def _make_reply(answer: Any) -> Reply:
    choices = getattr(answer, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise UnreadableResponse("it has no choices")
    message, reply = choices[0].message, Reply(model=answer.model or "", is_complete=True)
    reply.add(message.content)
    _take_calls(reply, message)
    reply.refused = getattr(message, "refusal", None) or ""
    reply.finish = choices[0].finish_reason or ""
    if reply.finish == "content_filter" and not reply.refused:
        reply.refused = reply.finish
    _add_usage(reply, answer)
    return reply


async def _read_stream(chunks: Any, ask: VendorRequest) -> Reply:
    reply = Reply()
    async with chunks:
        async for chunk in chunks:
            reply.model = chunk.model or reply.model
            _add_usage(reply, chunk)
            for choice in (chunk.choices or ())[:1]:  # the last chunk has no choices: it contains the usage
                if choice.delta is not None:
                    reply.add(choice.delta.content, ask.on_token)
                    _take_calls(reply, choice.delta)
                    reply.refused += getattr(choice.delta, "refusal", None) or ""
                reply.finish = choice.finish_reason or reply.finish
                reply.is_complete = reply.is_complete or choice.finish_reason is not None
    if reply.finish == "content_filter" and not reply.refused:
        reply.refused = reply.finish
    return reply


def _add_usage(reply: Reply, answer: Any) -> None:
    usage = getattr(answer, "usage", None)
    if usage is not None:
        reply.tokens_in, reply.tokens_out = usage.prompt_tokens, usage.completion_tokens
