"""The commands of the cockpit: one row per command, for the queue, the page and `%agent`.

The page receives the rows in its first message and keeps no list of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from agentnb.draw.reactive import get_event_type
from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.session.parts import get_parts
from agentnb.ui import actions, prompts, value_editor
from agentnb.ui.breakpoint_form import add_breakpoint
from agentnb.ui.fork_tree import find_session
from agentnb.ui.page_queries import run_query
from agentnb.ui.second_run import show_beside

if TYPE_CHECKING:
    from agentnb.session import Session

Run = Callable[["Session", Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it calls, and how the page offers it.

    `run` is called with the session, a value (a step number, an answer) and a target (a node, a breakpoint's number).
    `arun` replaces it where the kernel has an event loop, and may return an awaitable.
    """

    name: str
    run: Run
    arun: Run | None = None
    label: str = ""  # the text of its button
    tip: str = ""  # what it does, in one sentence without its full stop
    keys: tuple[str, ...] = ()  # as in aria-keyshortcuts; the first one is shown
    icon: str = ""  # path data of 16 by 16; with an icon it is a button of the toolbar
    needs: str | None = ""  # the entry of `list_abilities` that allows it; empty: its own name; None: always allowed
    waits_for_step: bool = True  # False: it does not wait for a step in flight
    ends: Literal["", "queue", "step"] = ""  # what it discards: waiting commands; the step in flight as well
    repeats: bool = False  # pressed again or held, it is repeated
    returns_session: bool = False  # it returns the session to show from now on

    def row(self) -> dict[str, Any]:
        """Return what the page needs of this command."""
        return {
            "name": self.name,
            "label": self.label,
            "tip": self.tip,
            "keys": list(self.keys),
            "icon": self.icon,
            "needs": self.name if self.needs == "" else self.needs,
            "repeats": self.repeats,
        }


def _stop_at(session: Session, _: Any, node: Any) -> None:
    """Toggle a breakpoint before a node or at events of a type."""
    type_ = get_event_type(session.recipe, str(node))
    if type_ is None:
        breakpoints = [row for row in session.breakpoints if row.node == node and row.side == "before"]
    else:
        breakpoints = [row for row in session.breakpoints if row.event == type_ and row.node is None]
    for row in breakpoints:
        session.breakpoints.remove(row)
    if not breakpoints:
        session.breakpoints.add(None if type_ is not None else node, event=type_)


def _log_at(session: Session, message: Any, node: Any) -> None:
    session.breakpoints.log(str(message), str(node))


def _enable(session: Session, on: Any, number: Any) -> None:
    for row in session.breakpoints:
        if row.id == number:
            row.enabled = bool(on)
    session.breakpoints.on_change()


def _set_speed(session: Session, steps: Any, _: Any) -> None:
    session.speed = steps


def _remove(session: Session, _: Any, number: Any) -> None:
    session.breakpoints.remove(number)


def _unwatch(session: Session, _: Any, text: Any) -> None:
    session.watches.remove(str(text))
    get_parts(session).notifications.save_and_notify()


def _fork(session: Session, value: Any, at: Any) -> Session:
    """Create a fork at the current step or after a given one, with this session's breakpoints, and show it.

    `value` is its name, or {name, expect}: a condition that the fork is expected to satisfy.
    """
    options = value if isinstance(value, dict) else {"name": value}
    name, expect = (str(options.get(word) or "").strip() or None for word in ("name", "expect"))
    fork = session.fork(at, name=name, expect=expect)
    fork.breakpoints.from_rows(session.breakpoints.to_rows())
    for source in session.watches.sources():
        fork.watch(source)
    return fork


_ROWS: Final = (
    Command("back", lambda session, _, __: session.back(), label="Back", tip="one step back",
            keys=("ArrowLeft", ","), icon="M12 3v10L4 8zM3 3h2v10H3z", ends="step", repeats=True),
    Command("step", lambda session, _, __: session.step(), lambda session, _, __: session.astep(),
            label="Step", tip="run the next node", keys=("ArrowRight", "."), icon="M4 3v10l8-5zM11 3h2v10h-2z",
            repeats=True),
    Command("into", lambda session, _, __: session.step_into(), lambda session, _, __: session.astep_into(),
            label="Into", tip="step into: stop at each event of the node, before and after each of its calls",
            keys=("I", "F11"), icon="M7 1h2v7h3l-4 5-4-5h3zM4 14h8v1.5H4z", repeats=True),
    Command("over", lambda session, _, __: session.step_over(), lambda session, _, __: session.astep_over(),
            label="Over", tip="step over: run the next node and everything inside it", keys=("O", "F10"),
            icon="M2 10a6 6 0 0 1 11-3l1.5-1.5V11H9l2-2a4 4 0 0 0-7 1zM6 13h4v2H6z", repeats=True),
    Command("out", lambda session, _, __: session.step_out(), lambda session, _, __: session.astep_out(),
            label="Out", tip="step out: run to the end of this loop or subgraph", keys=("U", "Shift+F11"),
            icon="M7 13h2V6h3L8 1 4 6h3zM4 14h8v1.5H4z", repeats=True),
    Command("run", lambda session, _, __: session.run(), lambda session, _, __: session.start(),
            label="Run", tip="run to the next breakpoint, question or the end", keys=("Space", "F5"),
            icon="M2 3v10l6-5zM8 3v10l6-5z"),
    Command("run_back", lambda session, _, __: session.run_back(), lambda session, _, __: session.arun_back(),
            label="Run back", tip="go back to a breakpoint or the start", keys=("Shift+Space",),
            icon="M14 3v10L8 8zM8 3v10L2 8z", ends="step"),
    Command("pause", lambda session, _, __: session.pause(), label="Pause", tip="start no further node",
            keys=("Space", "F6"), icon="M4 3h3v10H4zM9 3h3v10H9z", waits_for_step=False, ends="queue"),
    Command("stop", lambda session, _, __: session.stop(), label="Stop",
            tip="pause, and cancel the node in flight; it runs again at the next step", keys=("X", "Shift+F5"),
            icon="M4 4h8v8H4z", ends="step"),
    Command("reset", lambda session, _, __: session.reset(), label="Reset",
            tip="start over from the inputs; the run so far stays among the forks", keys=("Shift+R",), ends="step",
            icon="M8 3V.5L4 4l4 3.5V5a3.5 3.5 0 1 1-3.5 3.5h-2A5.5 5.5 0 1 0 8 3z"),
    Command("goto", lambda session, place, _: session.goto(int(place)), tip="go to this step", ends="step"),
    Command("run_to", lambda session, _, node: session.run(until=str(node)),
            lambda session, _, node: session.start(str(node)), label="Run to here", tip="run until this node is next"),
    Command("set_next", lambda session, _, node: session.set_next(str(node)), label="Make it next",
            tip="continue with this node instead of the scheduled one"),
    Command("speed", _set_speed, tip="steps per second of Run", needs=None, waits_for_step=False),
    Command("answer", prompts.give, prompts.agive, label="Answer"),
    Command("approve", lambda session, _, which: session.approve(which),
            lambda session, _, which: get_parts(session).interventions.adecide("approve", which, None),
            label="Approve", needs="answer"),
    Command("deny", lambda session, why, which: session.deny(which, str(why or "")),
            lambda session, why, which: get_parts(session).interventions.adecide("deny", which, None, str(why or "")),
            label="Deny", needs="answer"),
    Command("change", prompts.apply_change),
    Command("retry", lambda session, _, __: session.retry(), lambda session, _, __: session.astep(),
            label="Try again", tip="run the failed node again, as a new step"),
    Command("skip", actions.skip, label="Skip", tip="continue as if the failed node had written nothing"),
    Command("set_budget", actions.raise_limit, label="Raise the limit"),
    Command("emit", actions.emit, label="Emit", tip="emit this event; its listeners will run"),
    Command("edit", value_editor.edit, label="Save"),
    Command("delete", value_editor.delete, label="Delete", needs="edit",
            tip="delete it from the board; going back restores it"),
    Command("fork", _fork, label="Fork here", returns_session=True,
            tip="continue in a fork from here; this run is unchanged"),
    Command("beside", show_beside, label="Compare", tip="show this run beside the other; one slider moves both",
            needs=None, waits_for_step=False),
    Command("switch", lambda session, _, run: find_session(session, run), waits_for_step=False, returns_session=True),
    Command("query", run_query, needs=None, waits_for_step=False),
    Command("stop_at", _stop_at, label="Breakpoint", tip="set or remove a breakpoint before this node",
            keys=("B", "F9"), needs=None, waits_for_step=False),
    Command("stop_when", lambda session, typed, _: add_breakpoint(session, typed), label="Add",
            tip="add this breakpoint", needs=None, waits_for_step=False),
    Command("log_at", _log_at, label="Log a message here", tip="write a message before this node, and do not stop",
            needs=None, waits_for_step=False),
    Command("enable", _enable, needs=None, waits_for_step=False),
    Command("remove", _remove, tip="remove this breakpoint", needs=None, waits_for_step=False),
    Command("watch", lambda session, text, _: session.watch(str(text)), label="Add", tip="watch this", needs=None,
            waits_for_step=False),
    Command("unwatch", _unwatch, tip="stop watching", needs=None, waits_for_step=False),
)  # fmt: skip
COMMANDS: Final[dict[str, Command]] = {command.name: command for command in _ROWS}


def get_command(name: str) -> Command:
    """Return a command by its name.

    Raises:
        AgentNbError: U301, the command does not exist.
    """
    if name not in COMMANDS:
        raise AgentNbError(
            Problem("U301", f"the cockpit has no command {name!r}", "a message from the page",
                    f"its commands are: {', '.join(COMMANDS)}",
                    did_you_mean(name, COMMANDS, "reload the page so that it matches this version"))
        )  # fmt: skip
    return COMMANDS[name]


def run_command(session: Session, name: str, value: Any = None, target: Any = None) -> Any:
    """Run a command; return the result of a query, or the session to show from now on.

    Raises:
        AgentNbError: U301, the command does not exist; otherwise what the session raises.
    """
    command = get_command(name)
    result = command.run(session, value, target)
    return result if name == "query" or command.returns_session else None


def list_commands() -> list[dict[str, Any]]:
    """Return the table as the page receives it."""
    return [command.row() for command in COMMANDS.values()]
