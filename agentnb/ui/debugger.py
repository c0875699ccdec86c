"""The cockpit: a widget that shows and controls a session with graph, board, buttons, slider, answers and problems.

The cockpit is a single widget. The drawing is laid out and sent once; after that only changes of `state` are sent, and
the page restyles what it has. Everything from the page arrives as a message, never as a changed trait: trait updates
may be delayed while a cell runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import anywidget
import traitlets

from agentnb.arguments import plain_arguments
from agentnb.draw.label_text import clean
from agentnb.draw.style import make_palette, make_stylesheet
from agentnb.errors import AgentNbError, Problem
from agentnb.secrets import masks_by
from agentnb.text import safe_repr
from agentnb.ui.command_queue import CommandQueue, Request, to_problems
from agentnb.ui.commands import list_commands
from agentnb.ui.graph_view import draw_at_once, find_collapsed, get_drawing
from agentnb.ui.second_run import mask_for_cockpit, open_beside
from agentnb.ui.static_display import (
    MOST,
    TWIN,
    StaticDisplay,
    get_cell_id,
    is_headless,
    publish,
    runs_in_jupyter,
)
from agentnb.ui.static_html import render_still
from agentnb.ui.token_streams import Streams
from agentnb.ui.view_changes import find_changes, mask_content, mask_screen
from agentnb.ui.view_model import RUNNING, make_screen

if TYPE_CHECKING:
    from agentnb.session import Session

_STATIC: Final = Path(__file__).parent / "static"
# In this order, because each uses only those before it
_PARTS: Final = (
    "dom",
    "panes",
    "drawing",
    "graph",
    "timeline",
    "board",
    "artifacts",
    "cards",
    "details",
    "lists",
    "second",
    "bar",
    "wire",
    "cockpit",
)
_STYLES: Final = (
    "cockpit.css",
    "fields.css",
    "artifacts.css",
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
    "second.css",
)
_STILL_NODES: Final = 200  # larger graphs take long to lay out and their pictures are too large
_STILL_SIZE: Final = 300_000  # maximum characters of a picture stored in a notebook
_BLANK: Final = {
    "name": "", "status": "failed", "position": 0, "length": 0, "current": None, "sentence": "This cannot be shown.",
    "chips": [], "picture": {}, "board": [], "more": 0, "pending": [], "problems": [], "can": ["reset"],
    "line": [], "forks": 0, "frames": [], "next": [], "later": 0, "breakpoints": [], "watches": [], "messages": [],
    "beside": None,
}  # fmt: skip


def read_page_parts(*, exported: bool = False) -> dict[str, str]:
    """Return the files of the page's JavaScript by name, in order; an exported page has two more in a kernel's place.

    Each defines one name, such as `domPart`: an object with what the others use of it. Everything else in it is local
    to a function, so joining the files cannot make two names collide.
    """
    return {
        name: (_STATIC / f"{name}.js").read_text(encoding="utf-8")
        for name in (*_PARTS, *(["conditions", "recorded"] if exported else []))
    }


def build_page_module() -> str:
    """Return the cockpit's ES module: its files one after the other, since a widget's module cannot import others."""
    return "\n".join([*read_page_parts().values(), "export default { render: cockpitPart.render };\n"])


def build_page_style(*, exported: bool = False) -> str:
    """Return the cockpit's CSS: the rules of the drawings, their dark colors, and the cockpit's own rules.

    An exported page has rules for paper, too.
    """
    names = (*_STYLES, "print.css") if exported else _STYLES
    own = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in names)
    dark = make_palette('.agentnb-cockpit[data-theme="dark"]', dark=True)
    return f"{make_stylesheet('.agentnb-cockpit svg.agentnb')}\n{dark}\n{own}"


@masks_by(
    lambda debugger: mask_for_cockpit(debugger.session),
    private=("_draw", "_paint", "_show", "_post", "_get_picture", "_get_twin"),
)
class Debugger(anywidget.AnyWidget):
    """The cockpit of a session, displayed for a Session on the last line of a cell.

    All views of a cockpit show the same state; a view opened later shows the current step. Where scripts cannot run
    (GitHub, nbconvert), a static picture is shown instead.

    Example:
        >>> nb.Debugger(session)                # doctest: +SKIP
    """

    _esm = build_page_module()
    _css = build_page_style()
    svg = traitlets.Unicode().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    commands = traitlets.List(list_commands()).tag(sync=True)

    def __init__(self, session: Session, **options: Any) -> None:
        self.session = session
        super().__init__(**options)
        self._draw()
        self._streams = Streams(session, self._send_tokens)
        self._command_queue = CommandQueue(session, self._paint, self._switch_session)
        self._closing_queues: list[CommandQueue] = []
        self._has_page = False  # a page has sent a message
        self._static: dict[str, StaticDisplay] = {}  # by the id of the cell
        self._command_queue.refresh()
        self.send_state("state")
        self.on_msg(self._handle_message)

    def close(self) -> None:
        """Remove the cockpit from every page and unsubscribe from the session."""
        desk = getattr(self, "_command_queue", None)
        if desk is not None:
            desk.close()
            self._streams.close()
            for shown in self._static.values():
                shown.close()
        super().close()

    def turn_to(self, session: Session) -> None:
        """Show another session in this cockpit on every page: a fork, or any other; `session` is the one shown.

        The previous session is unchanged and continues to run if it was running.
        """
        self._switch_session(session)
        self._command_queue.refresh()

    def beside(self, run: Any) -> None:
        """Show a second run beside this one on every page; one slider moves both. None removes it.

        The runs are aligned as `nb.compare` aligns them; what differs is marked on the graph, the board and the
        timeline.

        Args:
            run: another session, a fork, a trace, or a stored run that `nb.open` has opened.

        Raises:
            AgentNbError: U593, it is the session itself.
            ExecutionError: A101, it is not a run.
        """
        open_beside(self.session, run)
        self._command_queue.refresh()

    def _draw(self) -> None:
        """Lay out the recipe, unless the session shown before has the same recipe."""
        self._drawing = get_drawing(self.session)
        self.svg = draw_at_once(self.session)

    def _switch_session(self, session: Session) -> None:
        """Switch to the queue's new session and register this cockpit as the session's, unless it has one."""
        previous_session, self.session = self.session, session
        if session is previous_session:
            return
        self._command_queue.close()
        self._command_queue = self._get_queue(session)
        self._streams.close()
        self._streams = Streams(session, self._send_tokens)
        if session.recipe is not previous_session.recipe:
            self._draw()
        if _OPEN.get(id(previous_session)) is self:
            del _OPEN[id(previous_session)]
            _OPEN.setdefault(id(session), self)

    def _get_queue(self, session: Session) -> CommandQueue:
        """Return the command queue of a session: the one in use if there is one, otherwise a new one."""
        self._closing_queues = [desk for desk in (*self._closing_queues, self._command_queue) if desk.at_work]
        for desk in self._closing_queues:
            if desk.session is session:
                desk.open()
                return desk
        return CommandQueue(session, self._paint, self._switch_session)

    def _paint(self) -> None:
        try:
            desk = self._command_queue
            self._show(make_screen(self.session, self._drawing, desk.problems, at_work=desk.at_work))
        except Exception as error:  # noqa: BLE001  (a picture that fails must neither stop the run nor stay silent)
            problems = [asdict(problem) for problem in to_problems(error, "view")]
            self._show({**_BLANK, **self.state, "problems": problems})
        self._streams.settle()

    def _send_tokens(self, rows: list[dict[str, Any]]) -> None:
        """Send the partial texts of models; they are not part of the state."""
        self._post({"streams": rows})

    def _show(self, now: dict[str, Any]) -> None:
        """Set the state and send its changes to the pages, numbered so that a page notices a lost message."""
        old_state, now = self.state, mask_screen(now)
        changed = find_changes(old_state, {**now, "number": old_state.get("number", 0)})
        if changed:
            number = old_state.get("number", 0) + 1
            self.state = {**now, "number": number}
            self.send({"changed": changed, "number": number})  # already masked
            if now["status"] not in RUNNING:
                for shown in self._static.values():
                    shown.follow_soon()

    def _post(self, content: dict[str, Any]) -> None:
        """Send a masked message to the pages. Only this method and `_show` send anything of a run to them."""
        self.send(mask_content(content))

    def _should_send_property(self, key: str, value: Any) -> bool:
        """Return False for the whole state: pages receive its changes, and the whole on request."""
        return key != "state" and bool(super()._should_send_property(key, value))

    def _handle_message(self, _: object, message: Any, __: object = None) -> None:
        """Handle a message of a page: {do, value, target, view, number}; `number` is returned once it is done."""
        if not isinstance(message, dict):
            return
        self._has_page = True
        if message.get("do") == "whole":  # the page has just been opened or has missed a message
            self.send_state("state")
            return
        if message.get("do") == "text":  # the page has missed a part of a model's text
            whole = self._streams.get_full_text(message.get("target"))
            self._post({"streams": [whole] if whole else []})
            return
        answer = {"answers": message.get("number"), "view": message.get("view")}
        request = Request(str(message.get("do")), message.get("value"), message.get("target"))
        request.done = lambda: self._post(answer if request.result is None else {**answer, "result": request.result})
        self._command_queue.ask(request)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        content, metadata = bundle
        return {**content, **self._render_still(), "text/plain": repr(self)}, metadata

    def _ipython_display_(self) -> None:
        """Display the widget and, for the notebook's file, a picture that follows it; without a page the picture alone.

        Raises:
            NotImplementedError: the front end may not know how; IPython then asks for `_repr_mimebundle_`.
        """
        paged = self._has_page or not is_headless()
        if paged and not runs_in_jupyter():
            raise NotImplementedError
        bundle = super()._repr_mimebundle_() if paged else None
        if bundle is not None:
            content, metadata = bundle
            publish({**content, "text/plain": f"<Debugger of {safe_repr(self.session.recipe.name, 200)}>"}, metadata)
        cell = get_cell_id()
        replaced = [cell] if cell in self._static else list(self._static)[: max(len(self._static) + 1 - MOST, 0)]
        for old in replaced:
            self._static.pop(old).close()
        self._static[cell] = StaticDisplay(self._get_twin if paged else self._get_picture)

    def _get_picture(self) -> tuple[dict[str, str], int]:
        """Return the static forms of the current state, and its number."""
        self._command_queue.refresh()
        return {**self._render_still(), "text/plain": repr(self)}, int(self.state.get("number", 0))

    def _get_twin(self) -> tuple[dict[str, str], int]:
        """Return the same for a page that shows the widget: there the picture is hidden."""
        data, number = self._get_picture()
        return {**data, "text/html": f'<div class="{TWIN}">{data.get("text/html", "")}</div>'}, number

    def _render_still(self) -> dict[str, str]:
        """Return the static HTML for viewers without scripts, without the picture if it is very large."""
        try:
            drawing = self.session.draw(collapsed=find_collapsed(self.session))
            picture = drawing.svg if len(drawing.picture.boxes) <= _STILL_NODES else ""
            small = 0 < len(picture) <= _STILL_SIZE
            html = render_still({**_BLANK, **self.state}, picture if small else "")
        except Exception:  # noqa: BLE001  (the cockpit itself is shown all the same, and says what is wrong)
            return {}
        return {"text/html": html, **({"image/svg+xml": picture} if small else {})}

    def __repr__(self) -> str:
        """Return one line: the recipe, the current step and the last event of the run."""
        state = {**_BLANK, **self.state}
        summary = ", ".join([f"step {state['position']} of {state['length']}", state["status"], *state["chips"]])
        return f"<Debugger of {safe_repr(self.session.recipe.name, 200)}: {summary}. {clean(state['sentence'])}>"


_OPEN: Final[WeakValueDictionary[int, Debugger]] = WeakValueDictionary()


def open_cockpit(session: Session) -> Debugger:
    """Return the cockpit of a session, always the same one: every cell that displays it is a view of one widget."""
    cockpit = _OPEN.get(id(session))
    if cockpit is None or cockpit.comm is None:
        cockpit = _OPEN[id(session)] = Debugger(session)
    return cockpit


@plain_arguments
def debug(recipe: Any, inputs: Mapping[str, Any] | object | None = None, **options: Any) -> Debugger:
    """Create a session and return its cockpit: short for `Debugger(Session(recipe, inputs, **options))`.

    Args:
        recipe: a Recipe or anything that `load` accepts; for a Session, its own cockpit is returned.
        options: the options of Session.

    Raises:
        RecipeError: as `load` and Session do.
        AgentNbError: U304, inputs or options are passed with an existing session.

    Example:
        >>> debug("support.yaml", {"ticket": "My invoice is wrong"})        # doctest: +SKIP
    """
    from agentnb.load import load
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session

    if isinstance(recipe, Session):
        if inputs is not None or options:
            raise AgentNbError(
                Problem("U304", "a session that has started accepts no new inputs or options", "debug(session, ...)",
                        f"passed: {', '.join([*(['inputs'] if inputs is not None else []), *options])}",
                        "write debug(session); or debug(session.recipe, inputs, ...) for a new one")
            )  # fmt: skip
        return open_cockpit(recipe)
    known = recipe if isinstance(recipe, Recipe) else load(recipe)
    return open_cockpit(Session(known, inputs, **options))
