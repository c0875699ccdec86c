"""display: what a lower object shows through a higher one: Problems as cards, a Session as its cockpit."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentnb.errors import Problem
    from agentnb.session import Session

_COLOURS: Final = {"error": "var(--jp-error-color1, #d32f2f)", "warning": "var(--jp-warn-color1, #f57c00)"}
_CARD: Final = "border-left:4px solid {colour};padding:.4em .8em;margin:.4em 0;overflow-wrap:anywhere;"
_WORD: Final = "opacity:.65;padding-right:.8em;text-align:left;vertical-align:top;white-space:nowrap"


def problems_html(problems: Iterable[Problem]) -> str:
    """Return problems as cards: code and what, then where, why and what to do. All of it is escaped."""
    return "".join(map(_card, problems))


def _card(problem: Problem) -> str:
    rows = "".join(
        f'<tr style="background:none"><td style="{_WORD}">{word}</td>'
        f'<td style="text-align:left;white-space:pre-wrap">{escape(text)}</td></tr>'
        for word, text in (("where", problem.where), ("why", problem.why), ("do", problem.do))
    )
    style = _CARD.format(colour=_COLOURS[problem.severity])
    head = f"<b>{escape(problem.code)}</b> {escape(problem.what)}"
    return f'<div role="alert" style="{style}">{head}<table style="margin:.2em 0 0;border:none">{rows}</table></div>'


def session_bundle(session: Session, include: Any = None, exclude: Any = None) -> Any:
    """Return what a session shows as the last line of a cell: its cockpit, with a picture where no widget can run."""
    from agentnb.ui import cockpit

    return cockpit(session)._repr_mimebundle_(include=include, exclude=exclude)


def session_controls(session: Session) -> Any:
    """Return new ipywidgets controls bound to a session."""
    from agentnb.ui import Controls

    return Controls(session)
