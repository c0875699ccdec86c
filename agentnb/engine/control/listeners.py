"""Listeners. A listener that raises is removed with a warning; the run continues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentnb.errors import ExecutionError, Problem, did_you_mean, warn_caller, with_article
from agentnb.recipe.user_functions import GENERATES, check_ran, is_async, is_generator
from agentnb.text import get_class_name

Listener = Callable[[Any], Any]
# When listeners are called: after each step, after a failed step, when a run ends, after any change, and for each piece
# of streamed model output.
MOMENTS: Final = ("step", "error", "end", "change", "token")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text streamed by a model to a node; each `attempt` of a call (from 1) starts over.

    `call` is the index of the call among the node's model calls. `model` is the requested model name.
    """

    node: str
    text: str
    attempt: int = 1
    call: int = 0
    model: str = ""


def check_listener(listener: Any, who: str) -> None:
    """Raise an error if a listener or hook cannot be called, or is async, so that calling it would run nothing.

    X469: a listener or a hook is not a plain callable.

    Raises:
        ExecutionError: X469, it is not a plain callable.
    """
    if not callable(listener):
        what, why = f"it is {with_article(type(listener).__name__)}", "pass a function: lambda event: ..."
    elif is_async(listener):
        what, why = "it is async", "write a plain function; it may start a task: asyncio.create_task(...)"
    elif is_generator(listener):
        what, why = GENERATES, "write a plain function"
    else:
        return
    raise ExecutionError(
        Problem("X469", f"{who} cannot be called", who, f"{what}; listeners are called synchronously", why)
    )


_NO_LISTENERS: Final[Mapping[str, tuple[Listener, ...]]] = dict.fromkeys(MOMENTS, ())


class Hooks:
    """The listeners of one session, by moment.

    `step` and `error` listeners receive the SimulationStep, `end` and `change` listeners the session. `change` follows
    steps, time travel, edits and status changes; during a run it is sent a few times per second, not for each step.
    `token` listeners receive a Token as its text arrives, before the step ends: in the thread of the event loop that
    awaits the model or, for a synchronous model in a live run or under a timeout, in the thread of that call. Without
    listeners, nothing is streamed.
    """

    def __init__(self, armed: Callable[[], None]) -> None:
        self.rows = _NO_LISTENERS
        self._armed = armed
        self.schedules: Any = None  # the registry of hooks called before and after nodes, if there is one

    def add(self, moment: str, listener: Listener) -> Callable[[], None]:
        """Add a listener and return the function that removes it.

        Raises:
            ExecutionError: X114, there is no such moment; X469, the listener cannot be called, or is async.
        """
        if moment not in self.rows:
            raise ExecutionError(
                Problem("X114", f"there is no hook {moment!r}", "hooks",
                        f"the hooks are: {', '.join(MOMENTS)}", did_you_mean(moment, MOMENTS, "use one of them"))
            )  # fmt: skip
        check_listener(listener, f"a listener of {moment!r}")
        self.rows = {**self.rows, moment: (*self.rows[moment], listener)}
        self._armed()

        def remove() -> None:
            self._remove(moment, listener)

        return remove

    def add_all(self, hooks: Any) -> None:
        """Add the listeners in a mapping from moment to one or several listeners, or set a registry of schedules.

        Raises:
            ExecutionError: X114, there is no such moment, or `hooks` is neither of these.
        """
        if not isinstance(hooks, Mapping):
            if not callable(getattr(hooks, "notify", None)):
                raise ExecutionError(
                    Problem("X114", f"{with_article(get_class_name(hooks))} is not a mapping of hooks", "hooks=...",
                            "hooks map a hook name to listeners, or are a HooksAPI of schedules",
                            "write Session(recipe, hooks={'step': listener})")
                )  # fmt: skip
            self.schedules = hooks
            self._armed()
            return
        for moment, hook in hooks.items():
            for listener in hook if isinstance(hook, list | tuple) else [hook]:
                self.add(moment, listener)

    def _remove(self, moment: str, listener: Listener) -> None:
        rows = [*self.rows[moment]]
        if listener in rows:
            rows.remove(listener)
            self.rows = {**self.rows, moment: tuple(rows)}
            self._armed()

    def notify(self, moment: str, what: Any) -> None:
        """Call the listeners of a moment; remove one that raises."""
        for listener in self.rows[moment]:
            try:
                check_ran(listener(what))
            except Exception as error:  # noqa: BLE001  (a listener must not stop the run)
                self._remove(moment, listener)  # unless another thread has removed it
                warn_caller(f"a listener of {moment!r} raised {type(error).__name__} and was removed: {error}")
