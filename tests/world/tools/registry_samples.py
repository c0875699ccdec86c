"""Tools and the ways to run them, for the tests of the registry."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from agentnb.clock import Clock
from agentnb.world.tools.registry import ToolRegistry
from agentnb.world.tools.tool_config import ToolMetrics

OWN = {
    "city": {"type": "string", "required": True, "minLength": 2},
    "meta": {"type": "object", "objectSchema": {"role": {"type": "string", "required": True}}},
}


class City(BaseModel):
    city: str
    days: int = 1


class Pauses(Clock):
    """A clock that notes how long it is asked to wait, and does not."""

    def __init__(self):
        super().__init__()
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)


def executed(registry, name, params=None, **words):
    return registry.execute_tool(name, params, **words)


def awaited(registry, name, params=None, **words):
    return asyncio.run(registry.aexecute_tool(name, params, **words))


def beside_a_loop(registry, name, params=None, **words):
    async def main():
        await asyncio.sleep(0)
        return registry.execute_tool(name, params, **words)

    return asyncio.run(main())


def in_parts(registry, name, params=None, allowed=None):
    """Execute a tool as one who makes the call itself, once and without a limit."""
    refused = registry.check(name, params, allowed)
    if refused is not None:
        return refused
    call, began = registry.attempt(name), datetime.now(UTC)
    try:
        answer = call(params or {})
        answer = asyncio.run(answer) if inspect.iscoroutinefunction(call) else answer
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001  (it is told as a failure)
        answer = error
    return registry.result_of(answer, name, ToolMetrics.between(began, datetime.now(UTC)))


WAYS = pytest.mark.parametrize("run", [executed, awaited, beside_a_loop])
ALL_WAYS = pytest.mark.parametrize("run", [executed, awaited, beside_a_loop, in_parts])


def echo(params):
    return params


async def aecho(params):
    await asyncio.sleep(0)
    return params


def registry_of(**tools):
    registry = ToolRegistry()
    for name, tool in tools.items():
        registry.register_tool(name, tool)
    return registry


class Failing:
    """A handler that fails until its last attempt."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.seen = []

    def __call__(self, params):
        self.seen.append(dict(params))
        params.clear()  # the next attempt shall not see it
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer
