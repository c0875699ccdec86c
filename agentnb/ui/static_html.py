"""A session as static HTML that needs no kernel and no script: for nbconvert, GitHub and e-mail."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import Any, Final

_ANSWERS: Final = ("where", "why", "do")
_CELL: Final = "padding:2px 10px;text-align:left;vertical-align:top;border-top:1px solid #8884"


def render_still(state: dict[str, Any], picture: str) -> str:
    """Return HTML without scripts: the current step, the problems, the picture and the board.

    Args:
        state: the result of `make_screen`.
        picture: an SVG, or empty; it is embedded as an image, so nothing in it can run.
    """
    summary = ", ".join([f"step {state['position']} of {state['length']}", state["status"], *state["chips"]])
    source = f"data:image/svg+xml;base64,{b64encode(picture.encode()).decode()}"
    image = f'<p><img alt="{escape(summary)}" style="max-width:100%" src="{source}"></p>' if picture else ""
    parts = [
        f"<p><strong>{escape(state['name'])}</strong>: {escape(summary)}. {escape(state['sentence'])}</p>",
        *(_render_problem(problem) for problem in state["problems"]),
        *(_render_question(pending) for pending in state["pending"] if pending["kind"] != "call"),
        image,
        _render_board(state),
    ]
    return f'<div class="agentnb-still">{"".join(parts)}</div>'


def _render_question(pending: dict[str, Any]) -> str:
    role = f" for role {pending['role']}" if pending["role"] else ""
    return f"<p>{escape(pending['node'])} asks{escape(role)}: {escape(pending['prompt'])}</p>"


def _render_problem(problem: dict[str, Any]) -> str:
    answers = "".join(f"<dt>{name}</dt><dd>{escape(str(problem[name]))}</dd>" for name in _ANSWERS)
    return f"<div><strong>{escape(problem['code'])}: {escape(problem['what'])}</strong><dl>{answers}</dl></div>"


def _render_board(state: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th style="{_CELL}">{escape(key)}{" ●" if "written" in marks else ""}</th>'
        f'<td style="{_CELL}"><code>{escape(value or "")}</code></td></tr>'
        for key, value, marks, *_ in state["board"]
    )
    more = f"<p>and {state['more']} more keys</p>" if state["more"] else ""
    return f"<details><summary>Blackboard</summary><table>{rows}</table>{more}</details>"
