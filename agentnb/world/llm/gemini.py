"""gemini: Google's models (generateContent), through the `google-genai` package."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from agentnb.world.llm.failures import Unreadable, unfit
from agentnb.world.llm.vendor import LONGEST_ANSWER, Ask, Reply, VendorClient

_DONE: Final = frozenset({"STOP", "MAX_TOKENS"})


class GeminiClient(VendorClient):
    """Asks Gemini models by an API key. `kwargs` are fields of the SDK's GenerateContentConfig."""

    package: ClassVar[str] = "google.genai"
    extra: ClassVar[str] = "gemini"
    variables: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

    def connected(self) -> Any:
        """Return a new client of the SDK, that never tries again by itself."""
        from google import genai

        words = self.connection(api_key=self.key)
        options = {
            "base_url": self.base_url,
            "headers": self.headers,
            "timeout": round(LONGEST_ANSWER * 1000),
            "retry_options": {"attempts": 1},
            **words.pop("http_options", {}),
        }
        return genai.Client(**{"vertexai": False, "http_options": options, **words})

    async def closed(self, sdk: Any) -> None:
        """Close a client of the SDK: the part that awaits, and the part that does not."""
        await sdk.aio.aclose()
        sdk.close()

    async def converse(self, sdk: Any, ask: Ask) -> Reply:
        """Send one request and return the answer; pieces of text are told to `ask.tell` as they arrive."""
        words = _config(ask)
        streams = bool(words.pop("stream", ask.tell is not None))
        asked = {"model": words.pop("model", ask.model), "contents": _contents(ask), "config": _checked(words, ask)}
        reply = Reply()
        if not streams:
            _take(reply, await sdk.aio.models.generate_content(**asked), ask)
            if not (reply.ended or reply.refused):
                raise Unreadable("it has no candidates that have ended")
            return reply
        async for chunk in await sdk.aio.models.generate_content_stream(**asked):
            _take(reply, chunk, ask)
        return reply


def _contents(ask: Ask) -> list[dict[str, Any]]:
    return [
        {"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.content}]}
        for message in ask.talk
    ]


def _config(ask: Ask) -> dict[str, Any]:
    sampling = dict(ask.sampling)
    stop = sampling.pop("stop", None)
    words = {
        "system_instruction": ask.system or None,
        "max_output_tokens": sampling.pop("max_tokens", None),
        "stop_sequences": [stop] if isinstance(stop, str) else stop,
        **sampling,
    }
    if ask.schema is not None:
        words |= {"response_mime_type": "application/json", "response_json_schema": ask.schema}
    elif ask.json_object:
        words["response_mime_type"] = "application/json"
    return ask.onto(words)


def _checked(words: dict[str, Any], ask: Ask) -> Any:
    """Return the SDK's own object for the settings.

    Raises:
        AgentRuntimeError: X334, it has no such field.
    """
    from google.genai import types

    try:
        return types.GenerateContentConfig(**{"automatic_function_calling": {"disable": True}, **words})
    except ValueError as error:
        raise unfit(f"gemini:{ask.model}", error) from None


def _take(reply: Reply, answer: Any, ask: Ask) -> None:
    """Take what one answer, or one chunk of it, holds of the first candidate."""
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
                reply.add(part.text, ask.tell)
        reason = _name(candidate.finish_reason)
        if reason:
            reply.ended = True
            reply.refused = "" if reason in _DONE else reason


def _name(word: Any) -> str:
    """Return the text of one of the SDK's enums; empty for None."""
    return "" if word is None else str(getattr(word, "value", word))
