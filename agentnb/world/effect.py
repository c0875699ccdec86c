"""Effects: calls to the outside world, and the protocol of the step that makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from agentnb.recipe.model import Node


@dataclass(slots=True)
class Effect:
    """A call that a node requests; the engine performs it.

    `arguments` are sent. `timeout` is in seconds, `attempts` is their total number, `backoff` is the delay between two
    attempts in seconds. `blocking` means that the call may block its thread; `repeatable` that it may be sent again
    after a crash. `target` is the callable that performs it, if the node has its own (a tool, a bound agent). `check`
    is called with each attempt's answer, and raises if it is a failure. `is_simulated` means that nothing is called and
    the answer is deterministic: it is recorded with its step, not before, because an interrupted run makes it again.
    `prepare` is called before the first attempt and returns an awaitable or None; its time is not counted.
    `reads_board` means that `target` reads the board, so that equal arguments do not make an equal call.
    """

    kind: str
    name: str
    arguments: Mapping[str, Any]
    timeout: float | None = None
    attempts: int = 1
    backoff: float = 0.0
    blocking: bool = False
    repeatable: bool = False
    target: Callable[..., Any] | None = None
    check: Callable[[Any], None] | None = None
    is_simulated: bool = False
    prepare: Callable[[], Awaitable[None] | None] | None = None
    reads_board: bool = False


class CallingRun(Protocol):
    """The run of a calling step: the earlier calls, the steps in flight, and the listener of a model's tokens."""

    @property
    def on_token(self) -> Callable[[str, str, int, int, str], None] | None:
        """The listener called with each piece of a streamed answer; None if there is none."""

    @property
    def pending_steps(self) -> Mapping[int, Any]:
        """The steps that have started and are not committed yet."""

    def count_calls(self, kind: str, node: str | None = None) -> int:
        """Return how many calls of a kind (of one node) the committed steps have made."""


class CallingStep(Protocol):
    """A calling step: its node, its run, and its calls so far."""

    busy: bool

    @property
    def node(self) -> Node:
        """The node that runs."""

    @property
    def run(self) -> CallingRun:
        """The run that the step belongs to."""

    @property
    def call_count(self) -> int:
        """The number of calls that the step has started."""

    @property
    def calls(self) -> list[Any]:
        """The rows of its attempts so far."""

    @property
    def asked_kinds(self) -> list[str]:
        """The kinds of its calls, in order."""

    @property
    def has_ended(self) -> bool:
        """True if the step was cancelled; its further calls are ignored."""
