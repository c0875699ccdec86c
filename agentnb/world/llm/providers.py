"""The table of model providers: their names in settings, and their clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentnb.arguments import plain_arguments
from agentnb.errors import AgentRuntimeError, Problem, did_you_mean
from agentnb.text import safe_str
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
# What a recipe may set of an SDK's client. Other arguments read files, or use accounts that the recipe does not name.
_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "client_kwargs": frozenset(
        {"base_url", "timeout", "max_retries", "default_headers", "default_query", "organization", "project"}
        | {"http_options"}
    ),
    "http_options": frozenset({"base_url", "api_version", "timeout", "headers", "extra_body"}),
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
    kind = _find_kind(name, settings)
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


def client_of_recipe(
    llm: str, settings: Mapping[str, Any], temperature: float | None = None, where: str | None = None
) -> VendorClient | SimulatedClient:
    """Return the client for the provider of a recipe, whose text alone must not send anything of this machine away.

    Raises:
        AgentRuntimeError: X367, an argument of the SDK's client is not allowed; X368, a key that the recipe does not
            name would be sent to its own address; others as of `client_of`.
    """
    place = where or f"llm {llm!r}"
    problems = [*_check_arguments(settings, place), *_check_key(llm.partition(":")[0].strip(), settings, place)]
    if problems:
        raise AgentRuntimeError(*problems)
    return client_of(llm, settings, temperature, where)


def _find_kind(name: str, settings: Mapping[str, Any] | None) -> str:
    return str((settings or {}).get("type") or name or "openai")


def _iter_arguments(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield each argument of the SDK's client: the kind of its mapping, its path and its value."""
    for word in ("client_kwargs", "kwargs"):
        arguments = settings.get(word)
        for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
            if word == "client_kwargs":
                yield word, f"{word}.{name}", value
            if name == "http_options" and isinstance(value, Mapping):
                yield from ((name, f"{word}.{name}.{key}", part) for key, part in value.items())


def _check_arguments(settings: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """X367: a recipe may not set an argument of a model's client."""
    for sort, path, _ in _iter_arguments(settings):
        if path.rpartition(".")[2] not in _ARGUMENTS[sort]:
            yield Problem("X367", f"the recipe sets {safe_str(path, 200)!r}, which is not allowed", where,
                          "some arguments of a model's client read files or use accounts of this machine; "
                          f"a recipe may set: {', '.join(sorted(_ARGUMENTS[sort]))}",
                          "remove it, or pass the model in Python: llm=nb.client_of(...)")  # fmt: skip


def _check_key(name: str, settings: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """X368: a recipe has its own address for a model, but names no key."""
    addresses = [value for _, path, value in _iter_arguments(settings) if path.endswith(".base_url")]
    variables = PROVIDERS[kind].variables if (kind := _find_kind(name, settings)) in PROVIDERS else ()
    if variables and any((settings.get("base_url"), *addresses)) and not settings.get("api_key"):
        yield Problem("X368", "the recipe sends requests to an address of its own, but names no API key", where,
                      f"{' or '.join(variables)} is sent only to its vendor, unless the recipe names it",
                      f"write it in the settings: api_key: '{{{{env.{variables[0]}}}}}'")  # fmt: skip


__all__ = ["PROVIDERS", "SIMULATED", "client_of", "client_of_recipe"]
