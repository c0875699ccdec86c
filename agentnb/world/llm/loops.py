"""loops: one client of an SDK for each event loop; connections belong to the loop that opened them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from threading import Lock
from typing import Any


class PerLoop:
    """Makes a client when a loop first asks for one, and closes it when that loop ends.

    `asyncio.run` and its like shut down a loop's async generators while it can still await: each client lives in one.
    A loop that is closed without that takes its client's connections with it.

    Args:
        make: returns a new client.
        close: awaited with the client when its loop ends.
    """

    def __init__(self, make: Callable[[], Any], close: Callable[[Any], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._lock = Lock()
        self._open: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None]]] = {}

    def __len__(self) -> int:
        """Return how many clients are open."""
        return len(self._open)

    async def client(self) -> Any:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for ended in [other for other in self._open if other.is_closed()]:
                del self._open[ended]
            if loop in self._open:
                return self._open[loop][0]
            made = self._make()
            life = self._life(loop, made)
            self._open[loop] = made, life
        await anext(life)  # from here on the loop knows it
        return made

    async def _life(self, loop: asyncio.AbstractEventLoop, made: Any) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._open.pop(loop, None)
            await self._close(made)
