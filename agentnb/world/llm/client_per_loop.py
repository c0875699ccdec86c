"""One SDK client for each event loop, because connections belong to the loop that opened them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from threading import Lock
from typing import Any


class PerLoop:
    """Creates a client at a loop's first request, and closes it when that loop ends.

    `asyncio.run` and its like shut down a loop's async generators while it can still await: each client lives in one.
    If a loop is closed without that, its client's connections are lost with it.

    Args:
        make: returns a new client. It is called in a thread: building one may block longer than a loop allows.
        close: awaited with the client when its loop ends.
    """

    def __init__(self, make: Callable[[], Any], close: Callable[[Any], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._lock = Lock()
        self._open: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None]]] = {}
        self._gates: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def __len__(self) -> int:
        """Return how many clients are open."""
        return len(self._open)

    async def client(self) -> Any:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for known in (self._open, self._gates):
                for ended in [other for other in known if other.is_closed()]:
                    del known[ended]
            if loop in self._open:
                return self._open[loop][0]
            gate = self._gates.setdefault(loop, asyncio.Lock())
        async with gate:  # one client for all concurrent first requests
            if loop not in self._open:
                made = await asyncio.to_thread(self._make)
                life = self._manage_client(loop, made)
                with self._lock:
                    self._open[loop] = made, life
                await anext(life)  # from here on the loop closes it
            return self._open[loop][0]

    async def _manage_client(self, loop: asyncio.AbstractEventLoop, made: Any) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._open.pop(loop, None)
            await self._close(made)
