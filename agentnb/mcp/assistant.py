"""Calls of an assistant: checked, performed on the loop of the sessions, bounded in time, answered as small JSON."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentnb.engine.control.interventions import acting_as
from agentnb.errors import AgentNbError, ExecutionError, Problem, did_you_mean, format_error_line
from agentnb.mcp.answers import to_json_text, to_line
from agentnb.mcp.tools import TOOLS, Tool, Tools, parse_seconds
from agentnb.text import safe_repr
from agentnb.world.tools.function_schema import describe, wrap_by_keyword

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agentnb.mcp.open_runs import OpenRuns

_END_SECONDS: Final = 2.0  # how long to wait for the end of the sessions' thread
_KEPT: Final = 100  # calls that are remembered
_SHORT: Final = 60  # characters of an argument in the record of calls
_UNNAMED: Final = frozenset({"", "user"})  # names that would hide that an assistant did it


class OfferedTool(NamedTuple):
    """A tool as it is offered: its row, what it does, the JSON Schema of its arguments, and its function."""

    tool: Tool
    description: str
    schema: dict[str, Any]
    call: Callable[[dict[str, Any]], Any]
    model: type[BaseModel]


class Answer(NamedTuple):
    """What the assistant receives: JSON as text, and whether it is an error."""

    text: str
    failed: bool = False


class Assistant:
    """The tools over some runs. `calls` are the last calls, one line each, with the name of the assistant.

    Args:
        loop: where the sessions live; None: a thread of their own, so that a node that blocks does not block answers.
        name: under which interventions are recorded; None: the name that the assistant's program gives itself.
    """

    def __init__(self, runs: OpenRuns, loop: asyncio.AbstractEventLoop | None = None, name: str | None = None) -> None:
        self.runs, self.name = runs, name
        self.calls: deque[str] = deque(maxlen=_KEPT)
        self._loop = loop
        self._thread: threading.Thread | None = None
        tools = Tools(runs)
        self.offers: dict[str, OfferedTool] = {}
        for tool in TOOLS:
            method = getattr(tools, tool.name)
            call, model = wrap_by_keyword(method)
            self.offers[tool.name] = OfferedTool(tool, describe(method), model.model_json_schema(), call, model)

    async def call(self, name: str, arguments: Mapping[str, Any], client: str = "") -> Answer:
        """Perform a call of a tool; errors are answers too. It takes at most a minute, whatever the nodes do.

        Args:
            client: how the assistant's program names itself.
        """
        with self.runs.masking():
            return await self._call(name, arguments, client)

    async def _call(self, name: str, arguments: Mapping[str, Any], client: str) -> Answer:
        actor = to_line(self.name or client, _SHORT).strip()
        actor = "assistant" if actor in _UNNAMED else actor
        shown = ", ".join(f"{key}={safe_repr(value, _SHORT, key=key)}" for key, value in arguments.items())
        try:
            offer = self._offer(name, arguments)
            answer = Answer(to_json_text(await self._perform_within_limit(offer, dict(arguments), actor)))
            outcome = ""
        except AgentNbError as error:
            answer, outcome = _answer_error(error), f": {error.problems[0].code if error.problems else 'failed'}"
        except Exception as error:  # noqa: BLE001  (an assistant gets a reason, never a broken connection)
            problem = Problem("X525", f"{name} failed: {format_error_line(error)}", f"the tool {name}",
                              "agentnb did not expect this error", "try something else, or report it")  # fmt: skip
            answer, outcome = _answer_error(AgentNbError(problem)), ": X525"
        self.calls.append(f"{datetime.now():%H:%M:%S} {actor}: {to_line(name, 60)}({shown}){outcome}")  # noqa: DTZ005  (for a person, here)
        return answer

    def close(self) -> None:
        """Close the runs that were opened here, and end the thread of their own, if there is one."""
        self.runs.close()
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS)  # a node that never ends is left to the end of Python
            self._loop = self._thread = None

    # -- checks -------------------------------------------------------------------------------------------------------

    def _offer(self, name: str, arguments: Mapping[str, Any]) -> OfferedTool:
        """Return a tool whose arguments are right.

        X526: there is no such tool.
        X527: the arguments of a tool are wrong.

        Raises:
            ExecutionError: X526, X527.
        """
        from pydantic import ValidationError

        offer = self.offers.get(name)
        if offer is None:
            raise ExecutionError(
                Problem("X526", f"there is no tool {safe_repr(name, 100)}", "the tools of this server",
                        f"they are: {', '.join(self.offers)}", did_you_mean(name, self.offers, "call one of them"))
            )  # fmt: skip
        try:
            offer.model.model_validate(dict(arguments))
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
            raise ExecutionError(
                Problem(
                    "X527",
                    f"the arguments of {name} are not valid",
                    f"the tool {name}",
                    to_line("; ".join(faults), 600),
                    f"its arguments are: {', '.join(offer.schema.get('properties', {})) or 'none'}",
                )
            ) from None
        return offer

    def _check_allowed(self, offer: OfferedTool, arguments: Mapping[str, Any]) -> None:
        """Raise if a tool would change a run that may only be read.

        X528: this server only reads.

        Raises:
            ExecutionError: X528.
        """
        needs = offer.tool.needs
        if needs == "nothing" or self.runs.changes:
            return
        if needs == "own" and self.runs.is_free(self.runs.get(str(arguments.get("run", "")))):
            return
        live = self.runs.live is not None
        cure = "session.serve_mcp(changes=True)" if live else "agentnb mcp STORE --recipe FILE --changes"
        raise ExecutionError(
            Problem("X528", f"{offer.tool.name} is not allowed: this server only reads", f"the tool {offer.tool.name}",
                    "it would run nodes or change what a person sees; tools that only read accept a step as `at`",
                    f"ask the person to start it with: {cure}")
        )  # fmt: skip

    # -- performed ----------------------------------------------------------------------------------------------------

    async def _perform_within_limit(self, offer: OfferedTool, arguments: dict[str, Any], actor: str) -> Any:
        """Perform a call on the sessions' loop; after its time limit, pause the run and return its status.

        X529: a call took longer than its limit.

        Raises:
            ExecutionError: X529.
        """
        seconds = parse_seconds(arguments)
        pending = asyncio.run_coroutine_threadsafe(self._perform(offer, arguments, actor), self._get_loop())
        waited = asyncio.wrap_future(pending)
        done, _ = await asyncio.wait([waited], timeout=seconds)
        if done:
            return waited.result()
        waited.add_done_callback(lambda late: late.cancelled() or late.exception())  # its result is no longer needed
        if "seconds" in offer.schema["properties"]:
            self._get_loop().call_soon_threadsafe(self._give_up, str(arguments.get("run", "")))
        raise ExecutionError(
            Problem("X529", f"{offer.tool.name} did not finish within {seconds:g} s", f"the tool {offer.tool.name}",
                    "a node or a cell is still running; the run pauses after it, and nothing is lost",
                    "call `where` later; tools that move a run accept a longer limit as `seconds`, at most 60")
        )  # fmt: skip

    async def _perform(self, offer: OfferedTool, arguments: dict[str, Any], actor: str) -> Any:
        self._check_allowed(offer, arguments)
        with acting_as(actor):
            answer = offer.call(arguments)
            return await answer if isawaitable(answer) else answer

    def _give_up(self, run: str) -> None:
        try:
            self.runs.get(run).pause()
        except AgentNbError:  # there is no such run, or it can only be read
            return

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(loop,), name="agentnb-mcp-sessions", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, then cancel what is left in it."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


def _answer_error(error: AgentNbError) -> Answer:
    problems = [asdict(problem) for problem in error.problems[:5]]
    rows = [{key: to_line(value, 1000) for key, value in problem.items()} for problem in problems]
    return Answer(to_json_text({"problems": rows or [{"what": to_line(error, 1000)}]}), failed=True)


__all__ = ["Answer", "Assistant", "OfferedTool"]
