"""Calls, tasks and questions that a LangGraph node's function makes while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID, uuid4

from agentnb.board.values import thaw
from agentnb.dialects import langchain_calls
from agentnb.dialects.inner_calls import CALLS, PERFORMED, Calls, Suspended
from agentnb.dialects.langgraph.errors import make_answer_problem, make_inner_breakpoints_problem
from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.plain_values import (
    from_plain_command,
    from_plain_write,
    to_plain_command,
    to_plain_write,
)
from agentnb.engine.core.waits import hide_untracked
from agentnb.errors import ExecutionError
from agentnb.world.effect import Effect


@dataclass
class NodeCalls(Calls):
    """The calls of a node's function. After an answer to a question, the function runs again.

    In this repetition, tasks that have succeeded return their recorded results (`finished`: records, by path).
    `answers` contains the answers to the questions of the function (at "") and of its tasks (by path).
    `background_tasks` are the tasks started by an async function. `sends` are the writes that the function and its
    calls made besides their results, such as those of `push_message`.
    """

    stops: ClassVar[tuple[type[BaseException], ...]] = (lg.GraphInterrupt, Suspended)

    finished: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, list[Any]] = field(default_factory=lambda: {"": []})
    background_tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    sends: list[tuple[str, Any]] = field(default_factory=list)

    async def resume(self, stopped: BaseException) -> None:
        """Wait for the end of a paused call, or for the answer to a question; then the function can run again."""
        if isinstance(stopped, lg.GraphInterrupt):
            await self._ask(stopped)
        else:
            await super().resume(stopped)

    async def _ask(self, interrupt: Any) -> None:
        """Ask a person the question that interrupted the function or one of its tasks.

        The function's calls are then repeated, as in LangGraph, except for the tasks that have succeeded.
        """
        if not interrupt.args or not interrupt.args[0]:
            raise ExecutionError(make_inner_breakpoints_problem(f"node {self.work.node.id!r}"))
        question = interrupt.args[0][0]
        answer = thaw(await self.work.call(Effect("human", self.work.node.id, {"prompt": question.value})))
        if isinstance(answer, lg.Command):
            raise ExecutionError(make_answer_problem(f"node {self.work.node.id!r}"))
        self.answers.setdefault(find_asking_task(question), []).append(answer)
        hide_untracked(self.work)
        self.ends.clear()
        self.call_count = 0

    async def wait(self) -> None:
        """Wait until all tasks that the function has started have ended."""
        while self.background_tasks:
            await asyncio.wait(self.background_tasks)

    def cancel(self) -> None:
        """Cancel the tasks that the function has started."""
        for task in self.background_tasks:
            with suppress(RuntimeError):  # their loop is closed
                task.cancel()

    def to_question(self, error: Exception) -> dict[str, Any] | None:
        """Return the record of a tool that a question interrupted; None for any other error."""
        return to_question(error) if isinstance(error, lg.GraphInterrupt) else None

    def to_recorded(self, answer: Any) -> Any:
        """Return the form in which a tool's answer is recorded."""
        return {"command": to_plain_command(answer)} if isinstance(answer, lg.Command) else super().to_recorded(answer)

    def answer_in(self, result: Any) -> Any:
        """Return the answer of a tool, or raise its question."""
        return get_answer(result)

    def send(self, writes: Iterable[tuple[str, Any]]) -> None:
        """Keep writes to channels: with the record of the call that makes them or, if there is none, as `sends`."""
        performed = PERFORMED.get()
        kept = self.sends if performed is None else performed.writes
        kept.extend(write for write in writes if write[0] != lg.keys.RESUME)  # LangGraph's note of a person's answer

    def add_writes(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of the call being performed with its writes to channels, if there are any."""
        performed = PERFORMED.get()
        if performed is None or not performed.writes:
            return record
        return {**record, "writes": [to_plain_write(*write) for write in performed.writes]}

    def repeat_writes(self, record: Any) -> None:
        """Write to channels what a call wrote."""
        if isinstance(record, Mapping):
            self.send(from_plain_write(*write) for write in record.get("writes", ()))


def find_asking_task(question: Any) -> str:
    """Return the path of the task that asks a question; "" if the function itself asks.

    The task may be unknown, because a task inside a recorded call is not performed. LangGraph's own ids contain no
    slash.
    """
    return question.id if question.id.startswith("/") else ""


def to_question(interrupt: Any, path: str = "", finished: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the record of a tool or a task that a question interrupted.

    `path` is the task's path; `finished` contains the records of the tasks inside it, which are not called again.
    """
    record = {"asks": interrupt.args[0][0].value, "by": path}
    return {**record, "finished": dict(finished)} if finished else record


def find_finished_inside(record: Any, attempt: str) -> dict[str, Any]:
    """Return the records, by path, of the tasks that had succeeded inside an attempt before it asked or failed."""
    finished = record.get("finished") if isinstance(record, Mapping) and "value" not in record else None
    return list_inside(finished, attempt) if isinstance(finished, Mapping) else {}


def list_inside(finished: Mapping[str, Any], attempt: str) -> dict[str, Any]:
    """Return those records, by path, that belong to tasks inside an attempt."""
    return {path: record for path, record in finished.items() if str(path).startswith(f"{attempt}/")}


def get_answer(result: Any) -> Any:
    """Return the answer of a tool or a task, whether new, recorded, or changed by a person.

    Raises:
        GraphInterrupt: the tool or task asks a person.
    """
    if isinstance(result, Mapping):
        if "asks" in result:
            raise lg.GraphInterrupt((lg.Interrupt(value=result["asks"], id=result.get("by", "")),))
        if "command" in result:
            return from_plain_command(result["command"])
        if "value" in result:
            return result["value"]
    return result


class _Ids:
    """Random ids of messages, in place of the module `uuid`, so that a replay draws the same ids."""

    def uuid4(self) -> UUID:
        """Return a random id."""
        calls = CALLS.get()
        return uuid4() if calls is None else calls.work.make_uuid()


def install() -> None:
    """Attribute calls of LangChain's models and tools, and ids of messages, to the step in which they are made."""
    langchain_calls.install()
    if not isinstance(lg.message_module.uuid, _Ids):
        lg.message_module.uuid = _Ids()
