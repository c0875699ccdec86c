"""Nodes that wait until a test lets them go, and a loop to run such a test in."""

from __future__ import annotations

import asyncio
import threading


class Gate:
    """A node that waits until the test lets it go; it says when it has begun."""

    def __init__(self):
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, board):
        self.begun.set()
        await self.go.wait()
        return {"gate": board.get("gate", 0) + 1}


class Barrier:
    """The same for a plain function, which holds its thread."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, board):
        self.begun.set()
        assert self.go.wait(20)
        return {"gate": 1}


def live(test):
    """Run a test in a loop, as a kernel would, and no longer than it may take."""

    async def main():
        await asyncio.wait_for(test(), 5)

    asyncio.run(main())


async def until(holds):
    while not holds():  # noqa: ASYNC110  (what a plain thread or run has come to is not an event of a loop)
        await asyncio.sleep(0.001)
