"""look: colours, fonts and the style sheet of every picture. One look for all dialects."""

from __future__ import annotations

import re
from typing import Final

from agentnb.draw.shapes import known_shape

FONT: Final = "Helvetica Neue,Helvetica,Arial,DejaVu Sans,sans-serif"
MONO: Final = "DejaVu Sans Mono,Menlo,Consolas,monospace"

_FAMILIES: Final = {
    "think": ("agent", "llm", "evaluator"),
    "act": ("function", "tool", "noop"),
    "person": ("human", "approval"),
    "choose": ("router", "decision", "switch"),
    "frame": ("loop", "parallel", "join", "subgraph", "map"),
    "react": ("behavior", "relation_behavior"),
}
_FAMILY_OF: Final = {kind: family for family, kinds in _FAMILIES.items() for kind in kinds}
_SHAPES: Final = {
    "tool": "component",
    "human": "parallelogram",
    "router": "hexagon",
    "decision": "diamond",
    "switch": "hexagon",
    "evaluator": "hexagon",
    "loop": "octagon",
    "parallel": "trapezium",
    "join": "invtrapezium",
    "subgraph": "tab",
    "noop": "ellipse",
}

COLOURS: Final[dict[str, str]] = {
    "paper": "#ffffff",
    "ink": "#1e293b",
    "faint": "#64748b",
    "edge": "#7c8aa0",
    "edge-text": "#475569",
    "flow": "#c3cddb",
    "accent": "#2563eb",
    "accent-fill": "#dbeafe",
    "failed": "#dc2626",
    "failed-fill": "#fee2e2",
    "waiting": "#b45309",
    "waiting-fill": "#fef3c7",
    "written": "#fef3c7",
    "written-bar": "#d97706",
    "read": "#e0f2fe",
    "read-bar": "#0284c7",
    "area": "#f8fafc",
    "area-line": "#cbd5e1",
    "board": "#ffffff",
    "board-head": "#f1f5f9",
    "board-line": "#cbd5e1",
    "rule": "#eef2f6",
    "think": "#eef0ff",
    "think-line": "#8d93ee",
    "think-text": "#4a4fc4",
    "act": "#eaf7f6",
    "act-line": "#5fb3ac",
    "act-text": "#0f766e",
    "person": "#fff1e6",
    "person-line": "#f0a36b",
    "person-text": "#a8480f",
    "choose": "#fdf7dc",
    "choose-line": "#d9b84a",
    "choose-text": "#85600a",
    "frame": "#f0f3f8",
    "frame-line": "#94a3b8",
    "frame-text": "#4b5a70",
    "react": "#fdeef6",
    "react-line": "#e08ab8",
    "react-text": "#a3286c",
    "plain": "#f7f8fa",
    "plain-line": "#a8b2c1",
    "plain-text": "#566275",
}
FAMILIES: Final = (*_FAMILIES, "plain")


def family_of(kind: str) -> str:
    """Return the family whose colours a kind wears: think, act, person, choose, frame, react; else plain."""
    return _FAMILY_OF.get(kind, "plain")


def shape_of(kind: str) -> str:
    """Return the shape that a kind is drawn with; an unknown kind is a box."""
    return known_shape(_SHAPES.get(kind, "box"))


def class_of(prefix: str, name: str) -> str:
    """Return a CSS class for a word of a recipe: `kind-` and the word, with nothing that CSS would read."""
    return f"{prefix}-{re.sub(r'[^a-zA-Z0-9_-]', '-', name) or 'none'}"


_SHEET: Final = """
@ text{font-family:~font;fill:$ink}
@ .paper{fill:$paper}
@ .cluster>path{fill:$area;stroke:$area-line;stroke-width:1;stroke-dasharray:none}
@ .cluster>text{fill:$faint}
@ .node .shape{stroke-width:1.2;stroke-dasharray:none}
@ .node .count{font-weight:bold}
@ .node .dot{display:none;fill:$failed;stroke:$paper;stroke-width:1.5}
@ .node.breakpoint .dot{display:inline}
@ .start .shape{fill:$edge;stroke:none}
@ .edge path,@ .enter path{stroke:$edge;stroke-width:1.2;fill:none}
@ .edge polygon,@ .enter polygon{fill:$edge;stroke:none}
@ .edge text{fill:$edge-text}
@ .edge text,@ .cluster>text{paint-order:stroke;stroke:$paper;stroke-width:3px;stroke-linejoin:round}
@ .edge-parallel path{stroke-width:2.4}
@ .edge-loop_back path{stroke-dasharray:1.5 3.5;stroke-linecap:round;stroke-width:1.6}
@ .edge-error path{stroke:$failed;stroke-dasharray:5 3}
@ .edge-error polygon,@ .edge-error text{fill:$failed}
@ .edge-timeout path{stroke:$waiting;stroke-dasharray:5 3}
@ .edge-timeout polygon,@ .edge-timeout text{fill:$waiting}
@ .edge-event path{stroke:$react-line;stroke-dasharray:7 3 1.5 3}
@ .edge-event polygon{fill:$react-line}
@ .enter path{stroke:$area-line}
@ .enter polygon{fill:$area-line}
@ .flow path{fill:none;stroke:$flow;stroke-width:.8}
@ .flow polygon{fill:$flow}
@ .flow.active path{stroke:$accent;stroke-width:1.2}
@ .flow.active polygon{fill:$accent}
@ .board .frame{fill:none;stroke:$board-line}
@ .board .back{fill:$board}
@ .board .head{fill:$board-head}
@ .board .value{font-family:~mono;fill:$ink}
@ .board .more{fill:$faint}
@ .row .cell{fill:$board;stroke:none}
@ .row .rule{stroke:$rule}
@ .row .bar{fill:none}
@ .row.read .cell{fill:$read}
@ .row.read .bar{fill:$read-bar}
@ .row.written .cell{fill:$written}
@ .row.written .bar{fill:$written-bar}
@ .row.written .key{font-weight:bold}
"""
_FAMILY_SHEET: Final = """
@ .family-{f} .shape{fill:${f};stroke:${f}-line}
@ .family-{f} .kind{fill:${f}-text}
"""
_RUN_SHEET: Final = """
@.has-run .node .shape{fill:$paper}
@.has-run .visited.family-{f} .shape{fill:${f}}
"""
_STATE_SHEET: Final = """
@ .node.next .shape{stroke:$accent;stroke-width:2}
@ .node.waiting .shape{stroke:$waiting;stroke-width:2.6;fill:$waiting-fill}
@ .node.current .shape{stroke:$accent;stroke-width:3;fill:$accent-fill;filter:drop-shadow(0 0 3px $accent)}
@ .node.current.waiting .shape{stroke:$waiting;fill:$waiting-fill;filter:drop-shadow(0 0 3px $waiting)}
@ .node.failed .shape{stroke:$failed;stroke-width:2.6;stroke-dasharray:6 3;fill:$failed-fill}
"""


def stylesheet(scope: str = "svg.agentnb[data-static]", *, themed: bool = False) -> str:
    """Return the CSS of the pictures, every rule under `scope`.

    With `themed`, each colour is a variable `--agentnb-NAME` that falls back to its colour on white, so that a page
    can give the picture its own theme.
    """
    rules = _SHEET + "".join(_FAMILY_SHEET.replace("{f}", family) for family in FAMILIES)
    per_family = _RUN_SHEET.strip().splitlines()
    rules += per_family[0] + "".join(f"\n{per_family[1].replace('{f}', family)}" for family in FAMILIES) + _STATE_SHEET

    def colour(match: re.Match[str]) -> str:
        name = match[1]
        return f"var(--agentnb-{name},{COLOURS[name]})" if themed else COLOURS[name]

    rules = re.sub(r"\$([a-z]+(?:-[a-z]+)*)", colour, rules)
    rules = rules.replace("~font", FONT).replace("~mono", MONO).replace("@", scope)
    return rules.strip()
