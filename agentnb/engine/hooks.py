"""hooks: who is told of a run. Spectators cannot stop the play: one that raises is dropped with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentnb.errors import ExecutionError, Problem, did_you_mean

Listener = Callable[[Any], Any]
# When a listener is called: after each step, after a failed one, when a run ends, after anything at all changed, and
# for each piece of text of a model that streams.
MOMENTS: Final = ("step", "error", "end", "change", "token")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text that a model has just said to a node; each `attempt` of a call (from 1) begins anew.

    `call` tells the calls of a node apart: how many models it had asked before. `model` is the name that was asked for.
    """

    node: str
    text: str
    attempt: int = 1
    call: int = 0
    model: str = ""


class Hooks:
    """The listeners of one session, by moment.

    `step` and `error` are given the SimulationStep, `end` and `change` the session. `change` follows steps, travel,
    edits and status changes; while a run goes it comes a few times a second, not at each step. `token` is given a Token
    as its text arrives, before the step is over: in the thread of the loop that awaits the model, or, for a model that
    answers at once in a live run or under a time-out, in the thread of that call. Nobody listens, nothing is streamed.
    """

    def __init__(self, armed: Callable[[], None]) -> None:
        self.rows: dict[str, list[Listener]] = {moment: [] for moment in MOMENTS}
        self._armed = armed
        self.schedules: Any = None  # the registry of hooks that are called before and after nodes, where there is one

    def add(self, moment: str, listener: Listener) -> Callable[[], None]:
        """Add a listener and return the function that takes it away.

        Raises:
            ExecutionError: X114, there is no such moment.
        """
        if moment not in self.rows:
            raise ExecutionError(
                Problem("X114", f"there is no moment {moment!r} to listen to", "hooks",
                        f"the moments are: {', '.join(MOMENTS)}", did_you_mean(moment, MOMENTS, "use one of them"))
            )  # fmt: skip
        self.rows[moment].append(listener)
        self._armed()

        def remove() -> None:
            if listener in self.rows[moment]:
                self.rows[moment].remove(listener)
                self._armed()

        return remove

    def add_all(self, hooks: Any) -> None:
        """Add the listeners of a mapping from moment to one listener, or to several; or take a registry of schedules.

        A plugin is one that builds such a registry.

        Raises:
            ExecutionError: X114, there is no such moment, or this is neither.
        """
        if not isinstance(hooks, Mapping) and callable(build := getattr(hooks, "build", None)):
            hooks = build()
        if not isinstance(hooks, Mapping):
            if not callable(getattr(hooks, "tell", None)):
                raise ExecutionError(
                    Problem("X114", f"a {type(hooks).__name__} is no hooks", "Session(hooks=...)",
                            "hooks are a mapping from a moment to listeners, or a HooksAPI of schedules",
                            "write Session(recipe, hooks={'step': listener})")
                )  # fmt: skip
            self.schedules = hooks
            self._armed()
            return
        for moment, given in hooks.items():
            for listener in [given] if callable(given) else given:
                self.add(moment, listener)

    def tell(self, moment: str, what: Any) -> None:
        """Call the listeners of a moment; drop one that raises."""
        for listener in list(self.rows[moment]):
            try:
                listener(what)
            except Exception as error:  # noqa: BLE001  (a spectator cannot stop the play)
                if listener in self.rows[moment]:  # two threads may have told it at once
                    self.rows[moment].remove(listener)
                self._armed()
                warnings.warn(
                    f"a listener of {moment!r} was dropped, it raised {type(error).__name__}: {error}", stacklevel=2
                )
