"""Providers and tool invokers that write answers to a folder of JSON files or read them back, for offline tests.

A file is named after the digest of the request, which does not include the time of the recording. The digests are those
of the log (`prompt_hash`, `args_hash`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Protocol

from agentnb.dialects.activegraph.errors import LLMBehaviorError, ToolError
from agentnb.dialects.activegraph.parts.caches import CachedToolResponse, parse_response
from agentnb.dialects.activegraph.parts.events import to_plain
from agentnb.dialects.activegraph.parts.models import (
    DEFAULT_MODEL,
    LLMMessage,
    LLMResponse,
    to_prompt_fields,
    to_response_dict,
)
from agentnb.dialects.activegraph.parts.tools import Tool, ToolContext, digest, hash_args

_CHARACTERS_PER_TOKEN: Final = 4  # for estimates only


class ToolInvoker(Protocol):
    """Calls tools in place of a runtime: `Runtime(graph, tool_invoker=...)`."""

    def invoke(self, tool: Tool, args: Any, ctx: ToolContext) -> CachedToolResponse:
        """Call a tool with validated arguments, and return its answer; raise ToolError if it fails."""
        ...


class RecordedLLMProvider:
    """Answers from the files that a `RecordingLLMProvider` has written; no model is called.

    Args:
        folder: the folder of the files.
        structured_output_mode: "native" if the recorded run used its provider's structured output.
        default_model: the default model of the recorded provider; it is part of each request.
    """

    def __init__(self, folder: str | Path, *, structured_output_mode: str = "prompt",
                 default_model: str = DEFAULT_MODEL) -> None:  # fmt: skip
        self._folder, self.default_model = Path(folder), default_model
        self._native = structured_output_mode == "native"

    def recognizes_model(self, name: str) -> bool:
        """Return True: any model may have been recorded."""
        return True

    def supports_native_structured_output(self, model: str) -> bool:
        """Return True if the provider was created with `structured_output_mode="native"`."""
        return self._native

    def complete(self, **request: Any) -> LLMResponse:
        """Return the recorded answer to a request.

        Raises:
            LLMBehaviorError: llm.fixture_missing, no answer is recorded for the request.
        """
        prompt_hash = digest(to_prompt_fields(request))
        recorded = _load(self._folder / f"{prompt_hash}.json")
        if recorded is None:
            raise LLMBehaviorError("llm.fixture_missing", f"{self._folder} has no answer to prompt_hash={prompt_hash}",
                                   payload_extras={"prompt_hash": prompt_hash,
                                                   "fixtures_dir": str(self._folder)})  # fmt: skip
        response, schema = parse_response(recorded["response"]), request.get("output_schema")
        if schema is not None and response.parsed is not None:
            response = replace(response, parsed=schema.model_validate(response.parsed))
        return response

    def estimate_cost(self, **_: Any) -> Decimal:
        """Return 0: a recorded answer costs nothing."""
        return Decimal(0)

    def count_tokens(self, *, system: str, messages: list[LLMMessage], model: str) -> int:
        """Estimate the number of tokens from the number of characters."""
        return max(1, (len(system) + sum(len(each.content) for each in messages)) // _CHARACTERS_PER_TOKEN)


class RecordingLLMProvider:
    """Calls another provider and writes each answer to a folder, for a `RecordedLLMProvider`."""

    def __init__(self, inner: Any, folder: str | Path) -> None:
        self._inner, self._folder = inner, Path(folder)

    @property
    def default_model(self) -> str:
        """The default model of the wrapped provider."""
        return str(getattr(self._inner, "default_model", DEFAULT_MODEL))

    def recognizes_model(self, name: str) -> bool:
        """Return the wrapped provider's result."""
        return bool(getattr(self._inner, "recognizes_model", _always)(name))

    def supports_native_structured_output(self, model: str) -> bool:
        """Return the wrapped provider's result."""
        return bool(getattr(self._inner, "supports_native_structured_output", _never)(model))

    def complete(self, **request: Any) -> Any:
        """Return the wrapped provider's answer after writing it to the folder."""
        response, fields = self._inner.complete(**request), to_prompt_fields(request)
        prompt_hash = digest(fields)
        _save(self._folder / f"{prompt_hash}.json",
              {"prompt_hash": prompt_hash, "model": request["model"], "prompt": fields,
               "response": to_response_dict(response)})  # fmt: skip
        return response

    def estimate_cost(self, **kwargs: Any) -> Any:
        """Return the wrapped provider's result."""
        return self._inner.estimate_cost(**kwargs)

    def count_tokens(self, **kwargs: Any) -> Any:
        """Return the wrapped provider's result."""
        return self._inner.count_tokens(**kwargs)


class DirectToolInvoker:
    """Calls the tool's function."""

    def invoke(self, tool: Tool, args: Any, ctx: ToolContext) -> CachedToolResponse:
        """Call the function, and return its result.

        Raises:
            ToolError: the function raised it; any other exception becomes a ToolError with tool.execution_error.
        """
        start = perf_counter()
        try:
            result = tool.fn(args, ctx)
        except ToolError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ToolError("tool.execution_error", f"{kind}: {error}",
                            payload_extras={"tool": tool.name, "exception_type": kind}) from error  # fmt: skip
        return CachedToolResponse(to_plain(result), None, perf_counter() - start, tool.cost_per_call)


class RecordedToolProvider:
    """Answers from the files that a `RecordingToolProvider` has written; no tool is called."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def invoke(self, tool: Tool, args: Any, ctx: ToolContext) -> CachedToolResponse:
        """Return the recorded answer to a call.

        Raises:
            ToolError: tool.fixture_missing, no answer is recorded for the call.
        """
        hash_ = hash_args(tool.name, to_plain(args))
        recorded = _load(self._folder / tool.name / f"{hash_}.json")
        if recorded is None:
            raise ToolError("tool.fixture_missing", f"{self._folder} has no answer of {tool.name!r} to {hash_}",
                            payload_extras={"tool": tool.name, "args_hash": hash_,
                                            "fixtures_dir": str(self._folder)})  # fmt: skip
        return CachedToolResponse(
            recorded["output"], recorded["error"], recorded["latency_seconds"], Decimal(recorded["cost_usd"])
        )


class RecordingToolProvider:
    """Calls tools through another invoker and writes each answer to a folder, for a `RecordedToolProvider`."""

    def __init__(self, inner: ToolInvoker, folder: str | Path) -> None:
        self._inner, self._folder = inner, Path(folder)

    def invoke(self, tool: Tool, args: Any, ctx: ToolContext) -> CachedToolResponse:
        """Return the wrapped invoker's answer after writing it to the folder."""
        response, plain = self._inner.invoke(tool, args, ctx), to_plain(args)
        hash_ = hash_args(tool.name, plain)
        _save(self._folder / tool.name / f"{hash_}.json",
              {"tool": tool.name, "args_hash": hash_, "args": plain, "output": response.output,
               "error": response.error, "latency_seconds": response.latency_seconds,
               "cost_usd": str(response.cost_usd)})  # fmt: skip
        return response


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _save(path: Path, fields: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**fields, "recorded_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}, indent=2, sort_keys=True)
    path.write_text(text, encoding="utf-8")


_always: Callable[[str], bool] = lambda _name: True  # noqa: E731  (a provider without this method)
_never: Callable[[str], bool] = lambda _name: False  # noqa: E731

__all__ = ["DirectToolInvoker", "RecordedLLMProvider", "RecordedToolProvider", "RecordingLLMProvider",
           "RecordingToolProvider", "ToolInvoker"]  # fmt: skip
