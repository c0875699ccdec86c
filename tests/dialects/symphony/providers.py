"""What the tests of LLMHandler share: a handler of one server, a provider of one's own, no keys around."""

from __future__ import annotations

import threading

import pytest

from agentnb.dialects.symphony.parts.llm_handler import LLMHandler
from agentnb.dialects.symphony.parts.llm_types import LLMMessage
from agentnb.world.llm.providers import PROVIDERS
from tests.world.llm.model_server import KEY, serve

__all__ = ["HI", "Meeting", "Own", "no_keys", "serve", "served"]

HI = [LLMMessage("user", "Hi")]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for kind in PROVIDERS.values():
        for name in kind.variables:
            monkeypatch.delenv(name, raising=False)


def served(serve, *answers, **settings):
    """Return a handler whose one provider is a server of this test, and that server."""
    server, handler = serve(*answers), LLMHandler()
    words = {"provider": "openai", "model": "m-1", "api_key": KEY, "base_url": server.url + "/v1", **settings}
    handler.register_provider(words)
    return handler, server


class Meeting(threading.Barrier):
    """Holds answers back until both requests have come; instead of a result's event."""

    def set(self):
        self.abort()


class Own:
    name = "own"

    def complete(self, request):
        return f"{request.provider}: {request.prompt}"
