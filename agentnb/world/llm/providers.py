"""The table of model providers: their names in settings, and their clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentnb.arguments import plain_arguments
from agentnb.errors import AgentRuntimeError, Problem, did_you_mean
from agentnb.world.llm.anthropic import AnthropicClient
from agentnb.world.llm.base import SIMULATED
from agentnb.world.llm.gemini import GeminiClient
from agentnb.world.llm.openai import LMStudioClient, OpenAIClient, OpenAICompatibleClient
from agentnb.world.llm.simulated import SimulatedClient
from agentnb.world.llm.vendor import VendorClient

PROVIDERS: Final[Mapping[str, type[VendorClient]]] = {
    "openai": OpenAIClient,
    "openai_compatible": OpenAICompatibleClient,
    "lmstudio": LMStudioClient,
    "anthropic": AnthropicClient,
    "claude": AnthropicClient,
    "gemini": GeminiClient,
}


@plain_arguments
def client_of(
    llm: str, settings: Mapping[str, Any] | None = None, temperature: float | None = None, where: str | None = None
) -> VendorClient | SimulatedClient:
    """Return the client for a text "provider:model".

    The string may be the provider alone, if the settings or the requests name the model; a model's name may contain
    colons. An empty provider means openai. Nothing is imported or requested yet.

    Args:
        llm: the text.
        settings: those of the provider; `type` says which one it is, if the text uses a custom name.
        temperature: where the settings set none.
        where: the place of the settings in a file, for Problems.

    Raises:
        AgentRuntimeError: X330, there is no such provider; X331, its package is not installed; X332, its key is
            missing; X333, an environment variable is not set; X334, a setting is wrong.
    """
    name, _, model = (part.strip() for part in llm.partition(":"))
    kind = str((settings or {}).get("type") or name or "openai")
    if kind == SIMULATED:
        return SimulatedClient()
    if kind not in PROVIDERS:
        known = [*PROVIDERS, SIMULATED]
        raise AgentRuntimeError(
            Problem("X330", f"{kind!r} is not a provider of models", where or f"llm {llm!r}",
                    f"the providers are: {', '.join(known)}; write provider:model",
                    did_you_mean(kind, known, "use one of them, or pass settings={'type': ...}"))
        )  # fmt: skip
    return PROVIDERS[kind](model or None, settings, temperature=temperature, provider=name or kind, where=where)


__all__ = ["PROVIDERS", "SIMULATED", "client_of"]
