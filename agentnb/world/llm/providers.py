"""providers: the table of providers: what their settings call them, and the client that asks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentnb.errors import AgentRuntimeError, Problem, did_you_mean
from agentnb.world.llm.anthropic import AnthropicClient
from agentnb.world.llm.gemini import GeminiClient
from agentnb.world.llm.openai import OpenAIClient, OpenAICompatibleClient
from agentnb.world.llm.simulated import SimulatedClient
from agentnb.world.llm.vendor import VendorClient

PROVIDERS: Final[Mapping[str, type[VendorClient]]] = {
    "openai": OpenAIClient,
    "openai_compatible": OpenAICompatibleClient,
    "lmstudio": OpenAICompatibleClient,
    "anthropic": AnthropicClient,
    "claude": AnthropicClient,
    "gemini": GeminiClient,
}
SIMULATED: Final = "simulated"


def client_of(
    llm: str, settings: Mapping[str, Any] | None = None, temperature: float | None = None
) -> VendorClient | SimulatedClient:
    """Return the client that a text "provider:model" names.

    The text may be the provider alone, where the settings or the requests name the model; a model's own name may hold
    colons. No provider before the colon means openai. Nothing is imported and nobody is asked yet.

    Args:
        settings: those of the provider; `type` says which one it is, where the text calls it by a name of its own.
        temperature: where the settings set none.

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
            Problem("X330", f"{kind!r} is no provider of models", f"llm {llm!r}",
                    f"the providers are: {', '.join(known)}; they are written as provider:model",
                    did_you_mean(kind, known, "name one of them, or give settings={'type': ...}"))
        )  # fmt: skip
    return PROVIDERS[kind](model or None, settings, temperature=temperature, provider=name or kind)


__all__ = ["PROVIDERS", "SIMULATED", "client_of"]
