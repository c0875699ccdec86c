"""Interfaces to the parts above the core, which are passed to a `Run`.

The core imports none of these parts. A `Dispatcher` performs effects, a `Limiter` is a budget with limits on them, a
`Recorder` saves what a step does before it is committed, `RecordedSteps` provides the recorded calls and events of
earlier executions, and each `CallChange` that a person has made, and an `AnswerSource` answers the calls of a run from
the record of another one.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agentnb.board.codec import is_known
from agentnb.board.values import ABSENT, thaw

if TYPE_CHECKING:
    from datetime import datetime

    from agentnb.engine.core.frames import Activation
    from agentnb.engine.core.history import Call, Event
    from agentnb.engine.core.run import Run
    from agentnb.engine.core.work import SentCall, Work
    from agentnb.world.effect import Effect


class StepAbandoned(BaseException):
    """Raised to abandon a step that runs again later: a limit is reached, or a call cannot be recorded or replayed.

    It does not derive from Exception, because nodes must not catch it and the step has not failed.
    """


class Dispatcher(Protocol):
    """Performs the effects of nodes."""

    def call(self, work: Work, effect: Effect) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that performs an effect and returns the answer.

        Raises:
            Exception: the effect failed.
            StepAbandoned: a limit of the run is reached; the run knows which.
        """
        ...

    def end_calls(self, work: Work) -> None:
        """Record the unanswered calls of a step as interrupted."""
        ...

    def remember(self, work: Work) -> None:
        """Remember what an interrupted step has done; when it runs again, it does not repeat answered calls."""
        ...


class Limiter(Protocol):
    """Admits each attempt of a call and each opened frame, for runs that have limits on them."""

    def admit_call(self, run: Run, work: Work, effect: Effect, delay: float, which: tuple[int, int]) -> bool:
        """Return True if one more attempt may be sent after a delay in seconds, and count it.

        `which` is the index of the call within the step and the number of the attempt within the call.
        """
        ...

    def admit_frame(self, run: Run, activation: Activation) -> bool:
        """Return True if a composite node may open its frame; if not, its step is abandoned."""
        ...

    def limit_for(self, run: Run, kinds: Iterable[str]) -> str | None:
        """Return the name of the limit that prevents calls of these kinds; None if there is none."""
        ...


class CallChange(NamedTuple):
    """What a person has changed of a paused call, in case its step is interrupted and runs again.

    `request` are the arguments that the node passed, `arguments` those to send in their place, and `answer` is the
    answer in place of the call's own; both are ABSENT if unchanged. All three are frozen. `position` is the run's at
    the time of the change.
    """

    kind: str
    name: str
    request: Any
    arguments: Any
    answer: Any
    position: int

    @property
    def is_known(self) -> bool:
        """False if parts of the change were masked or are of an unknown class: it cannot be made again."""
        return is_known(self.arguments) and is_known(self.answer)

    def apply(self, effect: Effect) -> Effect:
        """Return an effect with the changed arguments."""
        return effect if self.arguments is ABSENT else replace(effect, arguments=thaw(self.arguments))


class RecordedSteps(Protocol):
    """The recorded calls and events of steps that run again: interrupted steps, or those of a replay."""

    def attempts(self, work: Work, number: int, effect: Effect) -> Sequence[Call]:
        """Return the recorded attempts of a step's call, in order; none if the call is not recorded."""
        ...

    def find_change(self, work: Work, number: int, effect: Effect) -> CallChange | None:
        """Return what a person has changed of a step's call before it was interrupted; None if nothing was."""
        ...

    def get_next_kind(self, work: Work) -> str | None:
        """Return the kind of the step's next call if that call was made before, else None."""
        ...

    def get_sent_time(self, work: Work, number: int) -> int | None:
        """Return when a step's call without a recorded response was sent (ns); None for any other call."""
        ...

    def find_emitted(self, work: Work, type: str, payload: Any, options: Mapping[str, Any]) -> Event | None:
        """Return the event that a step emitted at this point before; None if none is recorded.

        The step's clock is read as it was for that event: not if its time is one of the `options`.
        """
        ...

    def next_event(self, work: Work) -> Event | None:
        """Return the next event that the step emitted before; None if none is recorded."""
        ...

    def time(self, work: Work) -> datetime | None:
        """Return the clock time that the step read at this point before; None if none is recorded."""
        ...

    def last_event(self) -> int:
        """Return the highest number of an event already emitted by a step that has not started again.

        0 if there is none. These numbers are reserved for those steps.
        """
        ...

    def forget_step(self, run: Run, activation: int) -> None:
        """Forget the step of an activation, which is now committed."""
        ...

    def leave(self, run: Run) -> None:
        """Forget every step: the run leaves its history for a separate branch."""
        ...


class AnswerSource(Protocol):
    """The recorded calls of another run, which answer the equal calls of this one."""

    def get_kind(self, work: Work) -> str | None:
        """Return the kind of the recorded calls of a step's node to models or agents; None if none is recorded."""
        ...

    def take(self, work: Work, number: int, effect: Effect) -> Call | None:
        """Add the recorded attempts of an equal call to a step's calls and return the last; None if it is to be sent.

        Raises:
            StepAbandoned: it is not recorded, and must not be sent.
        """
        ...

    def add_attempt(self, row: Call) -> None:
        """Notice the end of an attempt of a call that was sent."""
        ...


class Recorder(Protocol):
    """Notified of the actions of a step before it is committed, so that they survive a crash."""

    def record_sent(self, work: Work, number: int, call: SentCall) -> None:
        """Record that a call is being sent.

        Raises:
            StepAbandoned: this cannot be recorded, so the call must not be sent.
        """
        ...

    def record_response(self, row: Call) -> None:
        """Record the end of an attempt. If that fails, the run stops after its step."""
        ...

    def record_withdrawal(self, activation: int, number: int) -> None:
        """Record that a call of a step was not sent, or that a person's question was withdrawn."""
        ...

    def drop(self, activation: int) -> None:
        """Record that a step was abandoned for good: what it has done does not count when it runs again."""
        ...

    def record_event(self, work: Work, event: Event, *, alone: bool) -> None:
        """Record an event of a step: at once if `alone`, else with the next record. If that fails, the run stops."""
        ...
