"""debugger: the cockpit, a widget that shows a session and steers it: graph, board, buttons, slider, answers, problems.

One widget for all of it. The drawing is laid out and sent once; after that only what changes of `state` is sent, and
the page restyles what is there. Everything from the page comes as a message, never as a changed trait: a trait may be
held back while a cell runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import anywidget
import traitlets

from agentnb.draw.look import palette, stylesheet
from agentnb.draw.text import clean
from agentnb.errors import AgentNbError, Problem
from agentnb.ui.changes import changes
from agentnb.ui.desk import Command, Desk, problems_of
from agentnb.ui.drawn import at_once, closed_at_first, drawing_of
from agentnb.ui.screen import screen
from agentnb.ui.still import still_html
from agentnb.ui.streams import Streams

if TYPE_CHECKING:
    from agentnb.session import Session

_STATIC: Final = Path(__file__).parent / "static"
_MODULES: Final = (
    "dom.js",
    "chosen.js",
    "panes.js",
    "tape.js",
    "rail.js",
    "steps.js",
    "timeline.js",
    "forks.js",
    "zoom.js",
    "sheet.js",
    "tips.js",
    "nodes.js",
    "folds.js",
    "drawnboard.js",
    "graphtable.js",
    "standing.js",
    "graph.js",
    "objects.js",
    "fields.js",
    "editor.js",
    "tree.js",
    "board.js",
    "cards.js",
    "questions.js",
    "remedies.js",
    "people.js",
    "streams.js",
    "stack.js",
    "events.js",
    "stops.js",
    "details_parts.js",
    "details_sections.js",
    "details.js",
    "speed.js",
    "bar.js",
    "wire.js",
    "cockpit.js",
)  # each after those whose words it uses
_STYLES: Final = (
    "cockpit.css",
    "fields.css",
    "panes.css",
    "rail.css",
    "timeline.css",
    "forks.css",
    "graph.css",
    "board.css",
    "streams.css",
    "stack.css",
    "events.css",
    "stops.css",
    "details.css",
    "speed.css",
)
_IMPORT: Final = re.compile(r'^import .*? from "\./[\w.]+";\n', re.MULTILINE | re.DOTALL)
_EXPORT: Final = re.compile(r"^export (?=function|const|class)", re.MULTILINE)
_STILL_NODES: Final = 200  # beyond that, a picture takes long to lay out and is too large anyhow
_STILL_SIZE: Final = 300_000  # characters of a picture that a notebook is made to carry
_BLANK: Final = {
    "name": "", "status": "failed", "position": 0, "length": 0, "current": None, "said": "This cannot be shown.",
    "chips": [], "picture": {}, "board": [], "more": 0, "pending": [], "problems": [], "can": ["reset"],
    "line": [], "forks": 0, "frames": [], "next": [], "later": 0, "breakpoints": [], "watches": [],
}  # fmt: skip


def page_module() -> str:
    """Return the cockpit's ES module: its files joined to one, since a widget's module cannot import its neighbours."""
    texts = ((_STATIC / name).read_text(encoding="utf-8") for name in _MODULES)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def page_style() -> str:
    """Return the cockpit's CSS: the pictures' rules, their colours in the dark, and the cockpit's own."""
    own = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
    dark = palette('.agentnb-cockpit[data-theme="dark"]', dark=True)
    return f"{stylesheet('.agentnb-cockpit svg.agentnb')}\n{dark}\n{own}"


class Debugger(anywidget.AnyWidget):
    """The cockpit of a session: what a Session shows when it is the last line of a cell.

    Several views of it stay the same, and a view that is opened late shows where the session stands. Where no page can
    run it (GitHub, nbconvert), a picture stands in its place.

    Example:
        >>> nb.Debugger(session)                # doctest: +SKIP
    """

    _esm = page_module()
    _css = page_style()
    svg = traitlets.Unicode().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, **options: Any) -> None:
        self.session = session
        super().__init__(**options)
        self._draw()
        self._streams = Streams(session, self._say)
        self._desk = Desk(session, self._paint, self._turned)
        self._left: list[Desk] = []
        self._desk.refresh()
        self.send_state("state")
        self.on_msg(self._hear)

    def close(self) -> None:
        """Take the cockpit off every page, and hear no more of the session."""
        desk = getattr(self, "_desk", None)
        if desk is not None:
            desk.close()
            self._streams.close()
        super().close()

    def turn_to(self, session: Session) -> None:
        """Show another session in this cockpit, on every page: a fork, or any other. `session` says which is shown.

        The one before stays as it is; what it does goes on.
        """
        self._turned(session)
        self._desk.refresh()

    def _draw(self) -> None:
        """Lay the recipe out. To be laid out once is enough for sessions of one recipe."""
        self._drawing = drawing_of(self.session)
        self.svg = at_once(self.session)

    def _turned(self, session: Session) -> None:
        """Take over what the desk has turned to; from now on this is that session's cockpit, if it has no other."""
        before, self.session = self.session, session
        if session is before:
            return
        self._desk.close()
        self._desk = self._desk_of(session)
        self._streams.close()
        self._streams = Streams(session, self._say)
        if session.recipe is not before.recipe:
            self._draw()
        if _OPEN.get(id(before)) is self:
            del _OPEN[id(before)]
            _OPEN.setdefault(id(session), self)

    def _desk_of(self, session: Session) -> Desk:
        """Return the desk that takes commands for a session: the one that is still at work for it, else a new one."""
        self._left = [desk for desk in (*self._left, self._desk) if desk.at_work]
        for desk in self._left:
            if desk.session is session:
                desk.open()
                return desk
        return Desk(session, self._paint, self._turned)

    def _paint(self) -> None:
        try:
            desk = self._desk
            self._show(screen(self.session, self._drawing, desk.problems, at_work=desk.at_work))
        except Exception as error:  # noqa: BLE001  (a picture that fails must neither stop the run nor stay silent)
            problems = [asdict(problem) for problem in problems_of(error, "view")]
            self._show({**_BLANK, **self.state, "problems": problems})
        self._streams.settle()

    def _say(self, rows: list[dict[str, Any]]) -> None:
        """Send what models say at this moment; it is no part of the state."""
        self.send({"streams": rows})

    def _show(self, now: dict[str, Any]) -> None:
        """Take over a screen, and send the pages what has changed, with a number, so that they know if one is lost."""
        before = self.state
        changed = changes(before, {**now, "number": before.get("number", 0)})
        if changed:
            number = before.get("number", 0) + 1
            self.state = {**now, "number": number}
            self.send({"changed": changed, "number": number})

    def _should_send_property(self, key: str, value: Any) -> bool:
        """Keep the whole state at home: pages are sent what changes of it, and the whole when they ask for it."""
        return key != "state" and bool(super()._should_send_property(key, value))

    def _hear(self, _: object, message: Any, __: object = None) -> None:
        """Take a message of a page: {do, value, target, view, number}; `number` comes back once it is carried out."""
        if not isinstance(message, dict):
            return
        if message.get("do") == "whole":  # a page that has just been opened, or that has missed something
            self.send_state("state")
            return
        if message.get("do") == "text":  # all that a model has said so far, where a page has missed a piece
            whole = self._streams.whole(message.get("target"))
            self.send({"streams": [whole] if whole else []})
            return
        answer = {"heard": message.get("number"), "view": message.get("view")}
        command = Command(str(message.get("do")), message.get("value"), message.get("target"))
        command.done = lambda: self.send(answer if command.found is None else {**answer, "found": command.found})
        self._desk.ask(command)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        content, metadata = bundle
        return {**content, **self._still(), "text/plain": repr(self)}, metadata

    def _still(self) -> dict[str, str]:
        """What stands in the notebook for those who cannot run the page; without the picture where it is very large."""
        try:
            drawing = self.session.draw(collapsed=closed_at_first(self.session))
            picture = drawing.svg if len(drawing.picture.boxes) <= _STILL_NODES else ""
            small = 0 < len(picture) <= _STILL_SIZE
            html = still_html({**_BLANK, **self.state}, picture if small else "")
        except Exception:  # noqa: BLE001  (the cockpit itself is shown all the same, and says what is wrong)
            return {}
        return {"text/html": html, **({"image/svg+xml": picture} if small else {})}

    def __repr__(self) -> str:
        """Return one line: the recipe, where its run stands and what just happened."""
        state = {**_BLANK, **self.state}
        where = ", ".join([f"step {state['position']} of {state['length']}", state["status"], *state["chips"]])
        return f"<Debugger of {self.session.recipe.name!r}: {where}. {clean(state['said'])}>"


_OPEN: Final[WeakValueDictionary[int, Debugger]] = WeakValueDictionary()


def cockpit(session: Session) -> Debugger:
    """Return the cockpit of a session, the same one each time: every cell that shows it is a view of one widget."""
    found = _OPEN.get(id(session))
    if found is None or found.comm is None:
        found = _OPEN[id(session)] = Debugger(session)
    return found


def debug(recipe: Any, inputs: Mapping[str, Any] | None = None, **options: Any) -> Debugger:
    """Return the cockpit of a new session: what `Debugger(Session(recipe, inputs, **options))` is, in one word.

    Args:
        recipe: a Recipe, or anything that `load` takes; of a Session, its own cockpit is returned.
        options: those of Session.

    Raises:
        RecipeError: as `load` and Session do.
        AgentNbError: U304, inputs or options are given for a session that has begun.

    Example:
        >>> debug("support.yaml", {"ticket": "My invoice is wrong"})        # doctest: +SKIP
    """
    from agentnb.load import load
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session

    if isinstance(recipe, Session):
        if inputs is not None or options:
            raise AgentNbError(
                Problem("U304", "a session that has begun takes no other inputs or options", "debug(session, ...)",
                        f"given were: {', '.join([*(['inputs'] if inputs is not None else []), *options])}",
                        "write debug(session); or debug(session.recipe, inputs, ...) for a new one")
            )  # fmt: skip
        return cockpit(recipe)
    known = recipe if isinstance(recipe, Recipe) else load(recipe)
    return cockpit(Session(known, inputs, **options))
