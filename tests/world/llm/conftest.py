"""Servers on this machine, for the tests of clients."""

from __future__ import annotations

from tests.world.llm.model_server import serve

__all__ = ["serve"]
