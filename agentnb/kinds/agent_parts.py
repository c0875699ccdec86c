"""agent_parts: what the nodes inside an agent share: each leaves on the board why it has failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agentnb.board.secrets import hidden
from agentnb.board.values import ABSENT
from agentnb.engine.work import Work
from agentnb.errors import AgentRuntimeError, ExecutionError, told
from agentnb.kinds.context import own_id

# What the steps of an agent leave on its board.
LEFT = ("answer", "model", "usage", "decision", "tools_executed", "goes_on", "conversation", "failure", "result")
FAILURE = "failure"  # the key that says what failed last: node, type, message


@contextmanager
def told_why(work: Work) -> Iterator[None]:
    """Leave a failure on the board for the node that puts the result together, and let it through.

    A failure that would end the whole run (no model is there), and a time-out, go the way of every other one: they are
    raised as an ExecutionError.
    """
    try:
        yield
    except Exception as error:
        leave(work, error)
        if isinstance(error, AgentRuntimeError | TimeoutError):
            raise ExecutionError(*getattr(error, "problems", (told(error),))) from error
        raise


def begin_anew(work: Work) -> None:
    """Take from the board what an earlier attempt of the agent has left there."""
    for key in LEFT:
        if work.scope.look((key,)) is not ABSENT:
            work.write(key, ABSENT)


def leave(work: Work, error: BaseException) -> None:
    """Leave on the board what has failed, and why, in words."""
    why = {"node": own_id(work.node), "type": type(error).__name__, "message": hidden(told(error))}
    work.write(FAILURE, why)
