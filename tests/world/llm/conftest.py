"""conftest: servers on this machine, for the tests of clients."""

from __future__ import annotations

from tests.world.llm.serving import serve

__all__ = ["serve"]
