"""Google's models (generateContent), through the `google-genai` package."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, ClassVar, Final

from agentnb.board.values import freeze, thaw
from agentnb.world.llm.base import ToolCall
from agentnb.world.llm.errors import UnreadableResponse, make_settings_error
from agentnb.world.llm.vendor import LONGEST_ANSWER, Reply, VendorClient, VendorRequest

_DONE: Final = frozenset({"STOP", "MAX_TOKENS"})


class GeminiClient(VendorClient):
    """A client of Gemini models with an API key. `kwargs` are fields of the SDK's GenerateContentConfig."""

    package: ClassVar[str] = "google.genai"
    extra: ClassVar[str] = "gemini"
    variables: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    of_connection: ClassVar[frozenset[str]] = frozenset({"http_options"})
    plain_calls: ClassVar[bool] = False  # a call is sent back with the signature that it came with

    def connect(self) -> Any:
        """Return a new client of the SDK without retries of its own."""
        from google import genai

        kwargs = self.connection(api_key=self.key)
        options = {
            "base_url": self.base_url,
            "headers": self.headers,
            "timeout": round(LONGEST_ANSWER * 1000),
            "retry_options": {"attempts": 1},
            **kwargs.pop("http_options", {}),
        }
        return genai.Client(**{"vertexai": False, "http_options": options, **kwargs})

    async def close_sdk(self, sdk: Any) -> None:
        """Close a client of the SDK: the part that awaits, and the part that does not."""
        await sdk.aio.aclose()
        sdk.close()

    async def converse(self, sdk: Any, ask: VendorRequest) -> Reply:
        """Send one request and return the answer; pass pieces of text to `ask.on_token` as they arrive."""
        config = _make_config(ask)
        streams = bool(config.pop("stream", ask.on_token is not None))
        request = {
            "model": config.pop("model", ask.model),
            "contents": _make_contents(ask),
            "config": _check(config, ask),
        }
        reply = Reply()
        if not streams:
            _take(reply, await sdk.aio.models.generate_content(**request), ask)
            if not (reply.is_complete or reply.refused):
                raise UnreadableResponse("it has no candidates that have ended")
            return reply
        async for chunk in await sdk.aio.models.generate_content_stream(**request):
            _take(reply, chunk, ask)
        return reply


def _make_contents(ask: VendorRequest) -> list[dict[str, Any]]:
    """Return a conversation in the protocol's form: a tool's result is identified by the tool's name."""
    contents: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in ask.conversation:
        names |= {call.id: call.name for call in message.tool_calls}
        if message.tool_call_id:
            name = names.get(message.tool_call_id, message.tool_call_id)
            part = {"function_response": {"name": name, "response": {"result": message.content}}}
            if not (contents and contents[-1]["role"] == "user" and "function_response" in contents[-1]["parts"][0]):
                contents.append({"role": "user", "parts": []})
            contents[-1]["parts"].append(part)
            continue
        parts: list[dict[str, Any]] = [{"text": message.content}] if message.content or not message.tool_calls else []
        parts += map(_call_part, message.tool_calls)
        contents.append({"role": "model" if message.role == "assistant" else "user", "parts": parts})
    return contents


def _call_part(call: ToolCall) -> dict[str, Any]:
    """Return a call as received; newer models reject calls without their signature."""
    part: dict[str, Any] = {"function_call": {"name": call.name, "args": thaw(freeze(call.arguments))}}
    return {**part, "thought_signature": b64decode(call.signature)} if call.signature else part


def _make_config(ask: VendorRequest) -> dict[str, Any]:
    sampling = dict(ask.sampling)
    stop = sampling.pop("stop", None)
    config = {
        "system_instruction": ask.system or None,
        "max_output_tokens": sampling.pop("max_tokens", None),
        "stop_sequences": [stop] if isinstance(stop, str) else stop,
        **sampling,
    }
    if ask.tools:
        declared = [
            {"name": tool.name, "description": tool.description,
             "parameters_json_schema": thaw(freeze(tool.input_schema))}
            for tool in ask.tools
        ]  # fmt: skip
        config["tools"] = [{"function_declarations": declared}]
    if ask.schema is not None:
        config |= {"response_mime_type": "application/json", "response_json_schema": ask.schema}
    elif ask.json_object:
        config["response_mime_type"] = "application/json"
    return ask.merge_arguments(config)


def _check(config: dict[str, Any], ask: VendorRequest) -> Any:
    """Return the SDK's own object for the settings.

    Raises:
        AgentRuntimeError: X334, it has no such field.
    """
    from google.genai import types

    try:
        return types.GenerateContentConfig(**{"automatic_function_calling": {"disable": True}, **config})
    except ValueError as error:
        raise make_settings_error(f"gemini:{ask.model}", error) from None


def _take(reply: Reply, answer: Any, ask: VendorRequest) -> None:
    """Add the first candidate of a response, or of one of its chunks."""
    reply.model = answer.model_version or reply.model
    usage = answer.usage_metadata
    if usage is not None:
        reply.tokens_in = usage.prompt_token_count
        reply.tokens_out = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    blocked = answer.prompt_feedback and answer.prompt_feedback.block_reason
    if blocked:
        reply.refused = _name(blocked)
    for candidate in (answer.candidates or ())[:1]:
        for part in (candidate.content.parts if candidate.content else None) or ():
            if not part.thought:
                reply.add(part.text, ask.on_token)
            called = part.function_call
            if called is not None:  # always whole
                signature = b64encode(part.thought_signature or b"").decode()
                reply.call(len(reply.calls), called.id, called.name, dict(called.args or {}), signature)
        reason = _name(candidate.finish_reason)
        if reason:
            reply.is_complete, reply.finish = True, reason
            reply.refused = "" if reason in _DONE else reason


def _name(word: Any) -> str:
    """Return the text of one of the SDK's enums; empty for None."""
    return "" if word is None else str(getattr(word, "value", word))
