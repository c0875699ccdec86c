from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentnb.dialects.agentruntime.parts.settings import Defaults, MemoryConfig, MetaConfig, RetryConfig


@pytest.mark.parametrize(
    ("llm", "provider"),
    [
        (None, None),
        ("openai:gpt-4o", ("openai", "gpt-4o")),
        (":gpt-4o", ("openai", "gpt-4o")),
        ("local:family:tag", ("local", "family:tag")),
        ("local", ("local", None)),
        ("local:", ("local", None)),
    ],
)
def test_the_default_model_names_its_provider(llm, provider):
    assert Defaults(llm=llm).provider == provider


def test_providers_are_free_mappings():
    assert MetaConfig(name="t", providers={"a": None, "b": {"model": "m"}}).providers == {"a": {}, "b": {"model": "m"}}


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "file", "path": "h/{session_id}.json"},
        {"kind": "sqlite", "dsn": "sqlite:///h.db"},
        {"kind": "redis", "dsn": "redis://x"},
        {"kind": "postgres", "dsn": "postgresql://x"},
        {"kind": "custom", "config": {"impl": "m#f"}},
        {"kind": "inmemory"},
    ],
)
def test_a_memory_with_a_location_is_accepted(settings):
    memory = MemoryConfig(enabled=True, **settings)
    assert (memory.session_key, memory.k) == ("session_id", None)


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"kind": "file"}, "'path'"),
        ({"kind": "file", "dsn": "x"}, "'path'"),
        ({"kind": "sqlite", "path": "x"}, "'dsn'"),
        ({"kind": "redis"}, "'dsn'"),
        ({"kind": "postgres"}, "'dsn'"),
        ({"kind": "custom"}, "'config.impl'"),
        ({"kind": "custom", "config": {"x": 1}}, "'config.impl'"),
    ],
)
def test_a_memory_needs_a_location(settings, needed):
    with pytest.raises(ValidationError, match=needed):
        MemoryConfig(enabled=True, **settings)
    assert MemoryConfig(**settings).enabled is False


@pytest.mark.parametrize("retry", [{"max_attempts": 0}, {"backoff": -1}, {"backoff_seconds": float("inf")}])
def test_an_invalid_retry_is_rejected(retry):
    with pytest.raises(ValidationError):
        RetryConfig.model_validate(retry)
