"""openai: models behind OpenAI's protocol (chat completions): its own, and any server that speaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from agentnb.world.llm.failures import Unreadable, refuses_format
from agentnb.world.llm.vendor import LONGEST_ANSWER, Ask, Reply, VendorClient, accepted


class OpenAIClient(VendorClient):
    """Asks OpenAI's models through the `openai` package."""

    package: ClassVar[str] = "openai"
    extra: ClassVar[str] = "openai"
    variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)

    def connected(self) -> Any:
        """Return a new client of the SDK, that never tries again by itself."""
        import openai

        # A server without keys is given a word of no meaning: the SDK would send it the key of the environment.
        words = self.connection(api_key=self.key or "none", base_url=self.base_url, default_headers=self.headers)
        return openai.AsyncOpenAI(**{"max_retries": 0, "timeout": LONGEST_ANSWER, **words})

    async def converse(self, sdk: Any, ask: Ask) -> Reply:
        """Send one request and return the answer; pieces of text are told to `ask.tell` as they arrive."""
        create = sdk.chat.completions.create
        words = accepted(create, _body(ask), "extra_body")
        answer = await create(**{"timeout": ask.timeout, **words})
        return await _streamed(answer, ask) if words.get("stream") else _whole(answer)


class OpenAICompatibleClient(OpenAIClient):
    """Asks a server that speaks OpenAI's protocol, such as LM Studio, Ollama or vLLM; it needs no key.

    Not every such server has a JSON mode. One that refuses it is asked again at once without it, and not for it any
    more with this model: a refusal takes no tokens, and the prompt says what is wanted.
    """

    variables: ClassVar[tuple[str, ...]] = ()
    default_url: ClassVar[str | None] = "http://127.0.0.1:1234/v1"
    needs_key: ClassVar[bool] = False

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self._without_json_mode: set[str] = set()

    async def converse(self, sdk: Any, ask: Ask) -> Reply:
        """Send one request and return the answer; pieces of text are told to `ask.tell` as they arrive."""
        if ask.json_object and ask.model not in self._without_json_mode:
            try:
                return await super().converse(sdk, ask)
            except Exception as error:
                if not refuses_format(error):
                    raise
            self._without_json_mode.add(ask.model)
        return await super().converse(sdk, replace(ask, json_object=False))


def _body(ask: Ask) -> dict[str, Any]:
    words: dict[str, Any] = {
        "model": ask.model,
        "messages": [{"role": message.role, "content": message.content} for message in ask.messages]
        or [{"role": "user", "content": ""}],
        **ask.sampling,
    }
    if ask.schema is not None:
        words["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ask.schema}}
    elif ask.json_object:
        words["response_format"] = {"type": "json_object"}
    if ask.tell is not None:
        words |= {"stream": True, "stream_options": {"include_usage": True}}
    return ask.onto(words)


def _whole(answer: Any) -> Reply:
    choices = getattr(answer, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise Unreadable("it has no choices")
    message, reply = choices[0].message, Reply(model=answer.model or "", ended=True)
    reply.add(message.content)
    reply.refused = getattr(message, "refusal", None) or ""
    _count(reply, answer)
    return reply


async def _streamed(chunks: Any, ask: Ask) -> Reply:
    reply = Reply()
    async with chunks:
        async for chunk in chunks:
            reply.model = chunk.model or reply.model
            _count(reply, chunk)
            for choice in (chunk.choices or ())[:1]:  # the last chunk has none: it tells the tokens
                if choice.delta is not None:
                    reply.add(choice.delta.content, ask.tell)
                    reply.refused += getattr(choice.delta, "refusal", None) or ""
                reply.ended = reply.ended or choice.finish_reason is not None
    return reply


def _count(reply: Reply, answer: Any) -> None:
    usage = getattr(answer, "usage", None)
    if usage is not None:
        reply.tokens_in, reply.tokens_out = usage.prompt_tokens, usage.completion_tokens
