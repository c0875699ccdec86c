"""Colors, fonts and the style sheet of all drawings, in one style for all dialects."""

from __future__ import annotations

import re
from typing import Final

from agentnb.draw.shapes import choose_shape

FONT: Final = "Helvetica Neue,Helvetica,Arial,DejaVu Sans,sans-serif"
MONO: Final = "DejaVu Sans Mono,Menlo,Consolas,monospace"

_FAMILIES: Final = {
    "think": ("agent", "llm", "chat", "parse", "task", "evaluator", "generative", "llm_behavior"),
    "act": ("function", "tool", "use", "prompt", "system", "noop"),
    "person": ("human", "approval"),
    "choose": ("router", "decision", "switch", "pick"),
    "frame": ("loop", "parallel", "join", "subgraph", "map"),
    "react": ("behavior", "relation_behavior"),
    "event": ("event",),
}
BEHAVIORS: Final = frozenset({"behavior", "relation_behavior", "llm_behavior"})
_FAMILY_OF: Final = {kind: family for family, kinds in _FAMILIES.items() for kind in kinds}
_SHAPES: Final = {
    "tool": "component",
    "use": "component",
    "pick": "diamond",
    "prompt": "note",
    "parse": "hexagon",
    "task": "tab",
    "human": "parallelogram",
    "router": "hexagon",
    "decision": "diamond",
    "switch": "hexagon",
    "evaluator": "hexagon",
    "generative": "folder",
    "loop": "octagon",
    "parallel": "trapezium",
    "join": "invtrapezium",
    "subgraph": "tab",
    "noop": "ellipse",
    "event": "pill",
}

# On white, and below on black. A picture uses them as variables `--agentnb-NAME`, so that a page can override them.
COLORS: Final[dict[str, str]] = {
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
    "act-text": "#0d6b64",
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
    "event": "#fdf1f7",
    "event-line": "#d99bbb",
    "event-text": "#a3286c",
    "plain": "#f7f8fa",
    "plain-line": "#a8b2c1",
    "plain-text": "#566275",
}
DARK: Final[dict[str, str]] = {
    "paper": "#14171c",
    "ink": "#e5e9f0",
    "faint": "#97a5b8",
    "edge": "#8693a8",
    "edge-text": "#b9c5d4",
    "flow": "#465163",
    "accent": "#60a5fa",
    "accent-fill": "#17345f",
    "failed": "#f87171",
    "failed-fill": "#4a1d20",
    "waiting": "#fbbf24",
    "waiting-fill": "#42310d",
    "written": "#43340f",
    "written-bar": "#f59e0b",
    "read": "#103552",
    "read-bar": "#38bdf8",
    "area": "#1a1e25",
    "area-line": "#465163",
    "board": "#171b21",
    "board-head": "#232934",
    "board-line": "#465163",
    "rule": "#272d37",
    "think": "#272950",
    "think-line": "#7c82e8",
    "think-text": "#b9bcff",
    "act": "#123732",
    "act-line": "#3f9a92",
    "act-text": "#83d8cf",
    "person": "#43290f",
    "person-line": "#d58a4f",
    "person-text": "#ffc393",
    "choose": "#3b3211",
    "choose-line": "#b59636",
    "choose-text": "#f0d77e",
    "frame": "#262d38",
    "frame-line": "#7789a1",
    "frame-text": "#bccada",
    "react": "#432036",
    "react-line": "#c6719e",
    "react-text": "#f8afd4",
    "event": "#33202c",
    "event-line": "#a4668a",
    "event-text": "#f8afd4",
    "plain": "#22262d",
    "plain-line": "#6b7686",
    "plain-text": "#b6c0cd",
}
FAMILIES: Final = (*_FAMILIES, "plain")


def get_family(kind: str) -> str:
    """Return the color family of a kind: think, act, person, choose, frame, react, event; otherwise plain."""
    return _FAMILY_OF.get(kind, "plain")


def get_shape(kind: str) -> str:
    """Return the shape of a kind; an unknown kind is a box."""
    return choose_shape(_SHAPES.get(kind, "box"))


def make_class(prefix: str, name: str) -> str:
    """Return a CSS class for a word of a recipe: `kind-` and the word, without CSS syntax."""
    return f"{prefix}-{re.sub(r'[^a-zA-Z0-9_-]', '-', name) or 'none'}"


_SHEET: Final = """
@ text{font-family:~font;fill:$ink}
@ .paper{fill:$paper}
@ .cluster>path{fill:$area;stroke:$area-line;stroke-width:1;stroke-dasharray:none}
@ .cluster-title>text{fill:$faint}
@ .cluster-title>rect{fill:$area;stroke:none}
@ .node .shape{stroke-width:1.2;stroke-dasharray:none}
@ .node .count{font-weight:bold}
@ .node .note{fill:$edge-text}
@ .node .dot{display:none;fill:$failed;stroke:$paper;stroke-width:1.5}
@ .node.breakpoint .dot{display:inline}
@ .start .shape{fill:$edge;stroke:none}
@ .edge path,@ .enter path{stroke:$edge;stroke-width:1.2;fill:none}
@ .edge polygon,@ .enter polygon{fill:$edge;stroke:none}
@ .edge text{fill:$edge-text}
@ .edge text{paint-order:stroke;stroke:$paper;stroke-width:3px;stroke-linejoin:round}
@ .edge-parallel path{stroke-width:2.4}
@ .edge-loop_back path{stroke-dasharray:1.5 3.5;stroke-linecap:round;stroke-width:1.6}
@ .edge-error path{stroke:$failed;stroke-dasharray:5 3}
@ .edge-error polygon,@ .edge-error text{fill:$failed}
@ .edge-timeout path{stroke:$waiting;stroke-dasharray:5 3}
@ .edge-timeout polygon,@ .edge-timeout text{fill:$waiting}
@ .edge-event path{stroke:$react-line;stroke-dasharray:7 3 1.5 3}
@ .edge-event polygon{fill:$react-line}
@ .edge-hears path,@ .edge-tells path{stroke:$event-line}
@ .edge-hears polygon,@ .edge-tells polygon{fill:$event-line}
@ .edge-relation path,@ .edge-causes path{stroke:$edge}
@ .node.new .shape,@ .node.self .shape{stroke:$accent;stroke-width:2.4;fill:$accent-fill}
@ .node.changed .shape{stroke:$written-bar;stroke-width:2.4;fill:$written}
@ .node.removed .shape{stroke:$failed;stroke-width:1.6;stroke-dasharray:5 3;fill:$paper}
@ .node.removed .label{text-decoration:line-through}
@ .node.ghost .shape,@ .node.rest .shape{stroke-dasharray:2 3}
@ .edge.new path{stroke:$accent;stroke-width:2.4}
@ .edge.new polygon{fill:$accent}
@ .edge.removed path{stroke:$failed;stroke-dasharray:5 3}
@ .edge.removed polygon{fill:$failed}
@ .edge.may path{stroke-dasharray:2 3}
@ .edge.only-a path{stroke:$accent;stroke-width:2.4}
@ .edge.only-a polygon{fill:$accent}
@ .edge.only-b path{stroke:$written-bar;stroke-width:2.4;stroke-dasharray:5 3}
@ .edge.only-b polygon{fill:$written-bar}
@ .edge.later{display:none}
@ .edge.later.taken{display:inline}
@ .edge.thin{display:none}
@ .edge.thin.taken{display:inline}
@ .enter path{stroke:$area-line}
@ .enter polygon{fill:$area-line}
@ .edge.taken path{stroke:$ink;stroke-width:1.8}
@ .edge.taken polygon{fill:$ink}
@ .edge.may.taken path{stroke-dasharray:none}
@ .edge.last path{stroke:$accent;stroke-width:3}
@ .edge.last polygon{fill:$accent}
@ .edge-error.taken path{stroke:$failed}
@ .edge-error.taken polygon{fill:$failed}
@ .edge-timeout.taken path{stroke:$waiting}
@ .edge-timeout.taken polygon{fill:$waiting}
@ .flow .line{fill:none;stroke:$flow;stroke-width:.8}
@ .flow .heads{fill:$flow;stroke:none}
@ .flow.seen .line{stroke-dasharray:3 2}
@ .dense .flow{opacity:.4}
@ .flow.active{opacity:1}
@ .flow.active .line{stroke:$accent;stroke-width:1.2}
@ .flow.active .heads{fill:$accent}
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
@.has-run .node:not(.kind-thing) .shape{fill:$paper}
@.has-run .visited.family-{f} .shape{fill:${f}}
"""
_STATE_SHEET: Final = """
@.has-run .node.last .shape{stroke:$accent;stroke-width:1.8;stroke-dasharray:6 2}
@.has-run .node.next .shape{stroke:$accent;stroke-width:2}
@.has-run .node.waiting .shape{stroke:$waiting;stroke-width:2.6;fill:$waiting-fill}
@.has-run .node.current .shape{stroke:$accent;stroke-width:3;fill:$accent-fill;filter:drop-shadow(0 0 3px $accent)}
@.has-run .node.current .shape{stroke-dasharray:none}
@.has-run .node.current.waiting .shape{stroke:$waiting;fill:$waiting-fill;filter:drop-shadow(0 0 3px $waiting)}
@.has-run .node.failed .shape{stroke:$failed;stroke-width:2.6;stroke-dasharray:6 3;fill:$failed-fill}
@.has-run .node.in-slice .shape{stroke:$accent;stroke-width:2.4}
@.has-run .node.maybe-in-slice .shape{stroke:$accent;stroke-width:1.6;stroke-dasharray:4 3}
@.has-run .node.only-a .shape{stroke:$accent;stroke-width:2.4}
@.has-run .node.only-b .shape{stroke:$written-bar;stroke-width:2.4;stroke-dasharray:6 3}
@.has-run .node.differs .shape{stroke:$failed;stroke-width:2}
@.has-run .node.parted .shape{stroke:$failed;stroke-width:3;fill:$failed-fill}
"""
# Heat, from few to many: the fill of a node, readable under dark ink; edges grow wider instead.
HEAT: Final = ("#fff7ec", "#fee8c8", "#fdd49e", "#fdbb84", "#fc8d59")


def make_stylesheet(scope: str = "svg.agentnb") -> str:
    """Return the CSS of the pictures, every rule under `scope`.

    Each color is a variable `--agentnb-NAME`, so that a page can set its theme (see `make_palette`). Without the
    variable, or without support for variables, the color on white is used.
    """
    rules = _SHEET + "".join(_FAMILY_SHEET.replace("{f}", family) for family in FAMILIES)
    per_family = _RUN_SHEET.strip().splitlines()
    rules += per_family[0] + "".join(f"\n{per_family[1].replace('{f}', family)}" for family in FAMILIES) + _STATE_SHEET
    rules += "".join(
        f"\n@.has-run .node.heat-{level} .shape{{fill:{fill}}}\n@.has-run .node.heat-{level} text{{fill:#1e293b}}"
        f"\n@ .edge.heat-{level} path{{stroke:$failed;stroke-width:{1 + 0.6 * level:g}}}"
        f"\n@ .edge.heat-{level} polygon{{fill:$failed}}"
        for level, fill in enumerate(HEAT, 1)
    )
    rules = re.sub(r"([a-z-]+):([^:;{}]*\$[^;{}]*)", _substitute_variable, rules)
    return rules.replace("~font", FONT).replace("~mono", MONO).replace("@", scope).strip()


def _substitute_variable(rule: re.Match[str]) -> str:
    """Return a rule with its color on white, for viewers without variables, followed by the variable."""

    def plain(match: re.Match[str]) -> str:
        return COLORS[match[1]]

    def variable(match: re.Match[str]) -> str:
        return f"var(--agentnb-{match[1]},{COLORS[match[1]]})"

    name = re.compile(r"\$([a-z]+(?:-[a-z]+)*)")
    return f"{rule[1]}:{name.sub(plain, rule[2])};{rule[1]}:{name.sub(variable, rule[2])}"


def make_palette(scope: str, *, dark: bool = False) -> str:
    """Return one CSS rule that sets the colors of a light or dark page for everything under `scope`."""
    colors = DARK if dark else COLORS
    return f"{scope}{{{''.join(f'--agentnb-{name}:{value};' for name, value in colors.items())}}}"


def make_own_sheet() -> str:
    """Return the CSS of a self-contained picture; it follows the viewer's light or dark setting."""
    scope = "svg.agentnb[data-static]"
    dark = make_palette(scope, dark=True)
    return f"{make_stylesheet(scope)}\n@media screen and (prefers-color-scheme:dark){{{dark}}}"
