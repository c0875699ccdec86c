"""Plain ipywidgets controls for a session: buttons, a slider, an answer box and a status line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ipywidgets

from agentnb.ui.command_queue import CommandQueue, Request
from agentnb.ui.commands import COMMANDS
from agentnb.ui.view_model import format_status_line, list_abilities

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.session.pending import Pending

_ICONS: Final = {
    "back": "step-backward", "step": "step-forward", "into": "level-down", "over": "share", "out": "level-up",
    "run": "fast-forward", "run_back": "fast-backward", "pause": "pause", "stop": "stop", "reset": "undo",
}  # fmt: skip
_SPEEDS: Final = (("full", 0.0), ("10 a second", 10.0), ("3 a second", 3.0), ("1 a second", 1.0))


class Controls(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets carries no types
    """Controls bound to a session, to be placed beside other widgets; the session's cockpit is unaffected.

    `buttons` maps back, step, into, over, out, run, run_back, pause, stop and reset to their Button. `speed` is the
    number of steps per second of Run, `to` the node to run to. The others are `slider`, `answer` and `line`.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._painting = False
        auto = ipywidgets.Layout(width="auto")
        self.buttons = {
            verb: ipywidgets.Button(
                description=COMMANDS[verb].label, icon=icon, tooltip=COMMANDS[verb].tip, layout=auto
            )
            for verb, icon in _ICONS.items()
        }
        self.slider = ipywidgets.IntSlider(0, 0, 0, description="step")
        self.speed = ipywidgets.Dropdown(options=_SPEEDS, value=0.0, description="speed", layout=auto)
        self.to = ipywidgets.Dropdown(options=["", *session.recipe.nodes], value="", description="run to", layout=auto)
        self.answer = ipywidgets.Text(continuous_update=False, layout=ipywidgets.Layout(display="none", width="auto"))
        self.line = ipywidgets.Label()
        shown = [*self.buttons.values(), self.speed, self.to, self.slider]
        row = ipywidgets.HBox(shown, layout=ipywidgets.Layout(flex_flow="row wrap"))
        super().__init__([row, self.line, self.answer])
        self._command_queue = CommandQueue(session, self._paint)
        for verb, button in self.buttons.items():
            button.on_click(lambda _, verb=verb: self._command_queue.ask(Request(verb)))
        self.slider.observe(self._handle_slider, "value")
        self.answer.observe(self._on_answer, "value")
        self.speed.observe(self._on_speed, "value")
        self.to.observe(self._on_target, "value")
        self._command_queue.refresh()

    def close(self) -> None:
        """Remove the controls from every page and unsubscribe from the session."""
        desk = getattr(self, "_command_queue", None)
        if desk is not None:
            desk.close()
        super().close()

    def _handle_slider(self, change: dict[str, Any]) -> None:
        if not self._painting:
            self._command_queue.ask(Request("goto", change["new"]))

    def _on_speed(self, change: dict[str, Any]) -> None:
        if not self._painting:
            self._command_queue.ask(Request("speed", change["new"] or None))

    def _on_target(self, change: dict[str, Any]) -> None:
        """Run to a node and clear the selection, so that the same node can be selected again."""
        if not self._painting and change["new"]:
            self._command_queue.ask(Request("run_to", target=change["new"]))
            self.to.value = ""

    def _on_answer(self, change: dict[str, Any]) -> None:
        pending = self._find_question()
        if not self._painting and change["new"] and pending is not None:
            self._command_queue.ask(Request("answer", change["new"], pending.node))

    def _find_question(self) -> Pending | None:
        """Return the pending question or approval, if any; a pending call is neither."""
        return next((pending for pending in self.session.pending if pending.kind != "call"), None)

    def _show_speed(self, steps: float) -> None:
        """Show a speed; add it to the choices if a cell has set another value."""
        known = [value for _, value in self.speed.options]
        if steps not in known:
            self.speed.options = [*_SPEEDS, (f"{steps:g} a second", steps)]
        self.speed.value = steps

    def _paint(self) -> None:
        session = self.session
        able = list_abilities(session, at_work=self._command_queue.at_work)
        problems = "; ".join(f"{problem.code}: {problem.what}" for problem in self._command_queue.problems)
        self._painting = True
        try:
            for verb, button in self.buttons.items():
                button.disabled = not able[verb]
            self.slider.max = len(session.trace)
            self.slider.value = session.position
            self.slider.disabled = not able["goto"]
            self._show_speed(session.speed or 0.0)
            self.to.disabled = not able["run_to"]
            pending = self._find_question()
            if pending is None:
                self.answer.value = ""
            self.answer.layout.display = "none" if pending is None else ""
            self.answer.placeholder = "" if pending is None else pending.node
        finally:
            self._painting = False
        self.line.value = problems or (
            f"{session.current!r} is at work." if self._command_queue.at_work else format_status_line(session)
        )
