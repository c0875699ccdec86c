"""What the servers of each vendor answer, in their own JSON, and how a client is pointed at one."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module

from agentnb.world.llm.base import LLMMessage, LLMRequest
from agentnb.world.llm.providers import PROVIDERS, client_of
from tests.world.llm.model_server import KEY, of_events, of_json


class OpenAI:
    name, prefix, path = "openai", "/v1", "/v1/chat/completions"

    @staticmethod
    def whole(text="Hello", *, model="gpt-x-2026", **message):
        answer = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        head = {"id": "c-1", "object": "chat.completion", "created": 1, "model": model}
        return of_json({**head, "choices": [answer], "usage": usage})

    @staticmethod
    def stream(*pieces, ends=True, **rest):
        head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x-2026"}
        rows = [{**head, "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        if ends:
            rows.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            rows.append({**head, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        return of_events(*rows, end="data: [DONE]\n\n" if ends else "", **rest)

    @staticmethod
    def calls(*calls, text=None, finish="tool_calls"):
        tool_calls = [
            {"id": f"t-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
        answer = {"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": tool_calls},
                  "finish_reason": finish}  # fmt: skip
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        return of_json({"id": "c-1", "object": "chat.completion", "created": 1, "model": "gpt-x-2026",
                        "choices": [answer], "usage": usage})  # fmt: skip

    @staticmethod
    def stream_calls(*calls, text=None, finish="tool_calls"):
        head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x-2026"}
        deltas = [{"content": text}] if text else []
        for n, (name, _) in enumerate(calls):
            tool_call = {"index": n, "id": f"t-{n}", "type": "function", "function": {"name": name, "arguments": ""}}
            deltas.append({"tool_calls": [tool_call]})
        longest = max(len(arguments) for _, arguments in calls)
        for at in range(0, longest, 3):  # pieces of parallel calls come by turns
            for n, (_, arguments) in enumerate(calls):
                if arguments[at : at + 3]:
                    piece = {"index": n, "function": {"arguments": arguments[at : at + 3]}}
                    deltas.append({"tool_calls": [piece]})
        rows = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        rows.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        rows.append({**head, "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        return of_events(*rows, end="data: [DONE]\n\n")

    @staticmethod
    def stream_fails(piece, message):
        head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x-2026"}
        first = {**head, "choices": [{"index": 0, "delta": {"content": piece}}]}
        return of_events(first, {"error": {"message": message, "type": "server_error", "code": None}})

    @staticmethod
    def failed(status, message, **headers):
        error = {"message": message, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
        return of_json({"error": error}, status=status, headers=headers)

    @staticmethod
    def said(body):
        return [(row["role"], row["content"]) for row in body["messages"]]


class Anthropic:
    name, prefix, path = "anthropic", "", "/v1/messages"

    @staticmethod
    def whole(text="Hello", *, content=None, stop_reason="end_turn", **usage):
        return of_json(
            {
                "id": "m-1", "type": "message", "role": "assistant", "model": "claude-x-2026",
                "content": [{"type": "text", "text": text}] if content is None else content,
                "stop_reason": stop_reason, "stop_sequence": None,
                "usage": {"input_tokens": 7, "output_tokens": 3, **usage},
            }
        )  # fmt: skip

    @staticmethod
    def stream(*pieces, ends=True, tool=False, **rest):
        usage = {"input_tokens": 7, "output_tokens": 1}
        message = {"id": "m-1", "type": "message", "role": "assistant", "model": "claude-x-2026", "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        block = {"type": "tool_use", "id": "t", "name": "answer", "input": {}} if tool else {"type": "text", "text": ""}
        kind, word = ("input_json_delta", "partial_json") if tool else ("text_delta", "text")
        rows = [{"type": "message_start", "message": message}, {"type": "ping"}]
        rows.append({"type": "content_block_start", "index": 0, "content_block": block})
        rows += [{"type": "content_block_delta", "index": 0, "delta": {"type": kind, word: piece}} for piece in pieces]
        if ends:
            rows.append({"type": "content_block_stop", "index": 0})
            stop = {"stop_reason": "end_turn", "stop_sequence": None}
            rows.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}})
            rows.append({"type": "message_stop"})
        return of_events(*((row["type"], row) for row in rows), **rest)

    @staticmethod
    def calls(*calls, text=None, finish="tool_use"):
        content = [{"type": "text", "text": text}] if text else []
        content += [
            {"type": "tool_use", "id": f"t-{n}", "name": name, "input": json.loads(arguments)}
            for n, (name, arguments) in enumerate(calls)
        ]
        return Anthropic.whole(content=content, stop_reason=finish)

    @staticmethod
    def stream_calls(*calls, text=None, finish="tool_use"):
        usage = {"input_tokens": 7, "output_tokens": 1}
        message = {"id": "m-1", "type": "message", "role": "assistant", "model": "claude-x-2026", "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        rows = [{"type": "message_start", "message": message}]
        blocks = [({"type": "text", "text": ""}, "text_delta", "text", text)] if text else []
        blocks += [
            (
                {"type": "tool_use", "id": f"t-{n}", "name": name, "input": {}},
                "input_json_delta",
                "partial_json",
                arguments,
            )
            for n, (name, arguments) in enumerate(calls)
        ]
        for index, (block, kind, word, content) in enumerate(blocks):
            rows.append({"type": "content_block_start", "index": index, "content_block": block})
            for at in range(0, len(content), 3):
                delta = {"type": kind, word: content[at : at + 3]}
                rows.append({"type": "content_block_delta", "index": index, "delta": delta})
            rows.append({"type": "content_block_stop", "index": index})
        stop = {"stop_reason": finish, "stop_sequence": None}
        rows.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}})
        rows.append({"type": "message_stop"})
        return of_events(*((row["type"], row) for row in rows))

    @staticmethod
    def stream_fails(piece, message):
        head_pieces = Anthropic.stream(piece, ends=False)
        error = of_events(("error", {"type": "error", "error": {"type": "overloaded_error", "message": message}}))
        return head_pieces._replace(body=head_pieces.body + error.body)

    @staticmethod
    def failed(status, message, **headers):
        error = {"type": "rate_limit_error", "message": message}
        return of_json({"type": "error", "error": error}, status=status, headers=headers)

    @staticmethod
    def said(body):
        system = [("system", body["system"])] if "system" in body else []
        return system + [(row["role"], row["content"]) for row in body["messages"]]


class Gemini:
    name, prefix, path = "gemini", "", "/v1beta/models/m-1:generateContent"

    @staticmethod
    def whole(text="Hello", *, reason="STOP", thoughts=None, **rest):
        parts = [{"text": "Let me think.", "thought": True}] * bool(thoughts) + [{"text": text}] * bool(text)
        usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
        if thoughts:
            usage["thoughtsTokenCount"] = thoughts
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}
        return of_json({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x-2026", **rest})

    @staticmethod
    def stream(*pieces, ends=True, **rest):
        rows = [
            {"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}],
             "usageMetadata": {"promptTokenCount": 7}, "modelVersion": "gemini-x-2026"}
            for piece in pieces
        ]  # fmt: skip
        if ends:
            rows[-1]["candidates"][0]["finishReason"] = "STOP"
            rows[-1]["usageMetadata"]["candidatesTokenCount"] = 3
        return of_events(*rows, **rest)

    @staticmethod
    def _called(calls, text, finish):
        parts = [{"text": text}] if text else []
        parts += [{"functionCall": {"name": name, "args": json.loads(arguments)}} for name, arguments in calls]
        usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x-2026"}

    @staticmethod
    def calls(*calls, text=None, finish="STOP"):
        return of_json(Gemini._called(calls, text, finish))

    @staticmethod
    def stream_calls(*calls, text=None, finish="STOP"):
        rows = [Gemini._called([call], None, None) for call in calls]
        if text:
            rows.insert(0, Gemini._called([], text, None))
        rows[-1]["candidates"][0]["finishReason"] = finish
        return of_events(*rows)

    @staticmethod
    def stream_fails(piece, message):
        opening = Gemini.stream(piece, ends=False)
        error = of_events({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}})
        return opening._replace(body=opening.body + error.body)

    @staticmethod
    def failed(status, message, **headers):
        error = {"code": status, "message": message, "status": "RESOURCE_EXHAUSTED", "details": []}
        return of_json({"error": error}, status=status, headers=headers)

    @staticmethod
    def said(body):
        rows = [(row["role"], row["parts"][0]["text"]) for row in body["contents"]]
        system = body.get("systemInstruction")
        return ([("system", system["parts"][0]["text"])] if system else []) + rows


PROTOCOLS = [OpenAI, Anthropic, Gemini]


def client(protocol, server, **settings):
    import_module(PROVIDERS[protocol.name].package)  # so that no test's time is spent on it
    settings_given = {"base_url": server.url + protocol.prefix, "api_key": KEY, **settings}
    return client_of(f"{protocol.name}:m-1", settings_given)


def request(*messages, **rest):
    rows = messages or (("user", "Hi"),)
    return LLMRequest(tuple(LLMMessage(*row) for row in rows), **{"node": "n", **rest})


def ask(asked, made=None):
    """Ask a client in a loop of its own."""

    async def main():
        return await asked.complete(made or request())

    return asyncio.run(main())
