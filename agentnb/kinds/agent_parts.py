"""Shared by the nodes inside an agent: each writes to the board why it failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Append, Work
from agentnb.errors import AgentRuntimeError, ExecutionError, advice, error_text
from agentnb.kinds.context import own_id

# Keys that the steps of an agent write to its board.
LEFT = ("tools", "answer", "model", "usage", "decision", "calls", "calls_on", "tools_executed", "goes_on",
        "conversation", "failure", "result")  # fmt: skip
FAILURE = "failure"  # the key for the last failure: node, type, message


@contextmanager
def recording_failure(work: Work) -> Iterator[None]:
    """Write a failure to the board for the node that assembles the result, and re-raise it.

    A failure that would end the whole run (no model is available) and a time-out are handled like all others: they are
    raised as an ExecutionError.
    """
    try:
        yield
    except Exception as error:
        leave(work, error)
        if isinstance(error, AgentRuntimeError | TimeoutError):
            raise ExecutionError(*getattr(error, "problems", (error_text(error),))) from error
        raise


def clear_attempt(work: Work) -> None:
    """Delete from the board what an earlier attempt of the agent has written."""
    for key in LEFT:
        if work.scope.look((key,)) is not ABSENT:
            work.write(key, ABSENT)


def note_tool(work: Work, decision: Mapping[str, Any], parameters: Any, result: Mapping[str, Any]) -> None:
    """Append the result of a tool to `tools_executed`; a native call is identified there by its number, `call`."""
    named = {"call": decision["call"]} if "call" in decision else {}
    work.write("tools_executed", Append({"name": decision["tool_name"], "parameters": parameters, **named, **result}))


def leave(work: Work, error: BaseException) -> None:
    """Write to the board what failed, why, and the remedy."""
    why = {"node": own_id(work.node), "type": type(error).__name__, "message": advice(error)}
    work.write(FAILURE, why)
