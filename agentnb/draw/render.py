"""Layout and rendering: with Graphviz's `dot`, otherwise with pygraphviz, otherwise with the plain layout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from agentnb.draw.diagram import Picture
from agentnb.draw.geometry import MANY, Geometry, make_skeleton, read_geometry
from agentnb.errors import AgentNbError, Problem, did_you_mean

BACKENDS: Final = ("dot", "pygraphviz", "plain")
VARIABLE: Final = "AGENTNB_LAYOUT"
# pygraphviz includes its own Graphviz. It runs in a separate process, because a layout there can have a time limit, its
# library is not known to be thread-safe, and its font warnings go to a pipe instead of the notebook.
_WORKER: Final = (
    "import sys, pygraphviz\n"
    "graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())\n"
    "sys.stdout.buffer.write(graph.draw(format=sys.argv[1], prog='dot'))\n"
)
_KEPT: Final = 32
_layouts: OrderedDict[tuple[str, str], Geometry] = OrderedDict()
_lock = threading.Lock()


def choose_backend() -> str:
    """Return the layout backend in use: `dot`, `pygraphviz` or `plain`.

    The environment variable AGENTNB_LAYOUT selects one.

    Raises:
        AgentNbError: U202, the variable names an unknown backend; U203, it names one that is not installed.
    """
    requested = os.environ.get(VARIABLE, "").strip()
    if not requested:
        return next(name for name in BACKENDS if _is_there(name))
    if requested not in BACKENDS:
        raise AgentNbError(
            Problem(
                code="U202",
                what=f"{VARIABLE}={requested!r} is not a layout engine",
                where="environment",
                why=f"the layout engines are: {', '.join(BACKENDS)}",
                do=did_you_mean(requested, BACKENDS, f"set {VARIABLE} to one of them, or unset it"),
            )
        )
    if not _is_there(requested):
        raise AgentNbError(
            Problem(
                code="U203",
                what=f"{VARIABLE}={requested!r} selects a layout that is not installed",
                where="environment",
                why="no program `dot` on PATH" if requested == "dot" else "the package pygraphviz is not installed",
                do=f"install it ({_suggest_cure(requested)}), or unset {VARIABLE}",
            )
        )
    return requested


def _is_there(name: str) -> bool:
    if name == "dot":
        return shutil.which("dot") is not None
    return name == "plain" or find_spec("pygraphviz") is not None


def _suggest_cure(name: str) -> str:
    return "Graphviz, from your system's packages" if name == "dot" else "`pip install pygraphviz`"


def lay_out(picture: Picture, *, seconds: float = 6.0) -> Geometry:
    """Return the layout of a picture from the best available backend, after about `seconds` at the latest.

    The plain backend always succeeds. The same picture is laid out only once: a run changes only texts and classes, so
    its pictures share one layout.
    """
    first, text = choose_backend(), make_skeleton(picture)
    with _lock:
        known = _layouts.get((first, text))
    if known is None:
        known = next(_try_layouts(picture, text, first, seconds))
        with _lock:
            _layouts[first, text] = known
            while len(_layouts) > _KEPT:
                _layouts.popitem(last=False)
    return known


def _try_layouts(picture: Picture, text: str, first: str, seconds: float) -> Iterator[Geometry]:
    """Yield each layout that succeeds. After a timeout, straight lines are tried, then the plain layout.

    For a large graph, most of the time is reserved for straight lines: if its layout is not fast, it never finishes.
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    share = 0.6 if len(picture.links) <= MANY else 0.3
    for name in (first,) if chosen else BACKENDS[BACKENDS.index(first) : -1]:
        if name == "plain" or not _is_there(name):
            continue
        try:
            yield read_geometry(_run_graphviz(name, text, "json0", seconds * share).decode(), name)
        except subprocess.TimeoutExpired:
            try:
                cheap = make_skeleton(picture, cheap=True)
                yield read_geometry(_run_graphviz(name, cheap, "json0", seconds * (1 - share)).decode(), name)
            except (subprocess.SubprocessError, OSError, ValueError):
                break
        except (subprocess.SubprocessError, OSError, ValueError):
            continue
    from agentnb.draw.plain_layout import compute_plain_layout

    yield compute_plain_layout(picture)


def _run_graphviz(name: str, text: str, format: str, seconds: float) -> bytes:
    command = ["dot", f"-T{format}"] if name == "dot" else [sys.executable, "-P", "-c", _WORKER, format]
    done = subprocess.run(  # noqa: S603  # our own command, and its input holds no text of the recipe but for PNG
        command,
        input=text.encode(),
        capture_output=True,
        timeout=seconds,
        check=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    return done.stdout


def render_png(dot_text: str, *, seconds: float = 20.0) -> bytes:
    """Return a PNG image of DOT text, drawn by Graphviz.

    Raises:
        AgentNbError: U204, neither `dot` nor pygraphviz is installed, or it could not draw this.
    """
    why = "a PNG needs Graphviz: no program `dot` on PATH, and the package pygraphviz is not installed"
    names = [name for name in BACKENDS[:-1] if _is_there(name) and os.environ.get(VARIABLE, name) == name]
    for name in names:
        try:
            return _run_graphviz(name, dot_text, "png", seconds)
        except (subprocess.SubprocessError, OSError) as error:
            stderr = getattr(error, "stderr", None) or b""
            why = f"{name} could not draw it: {type(error).__name__} {stderr.decode(errors='replace')[-200:]}".strip()
    raise AgentNbError(
        Problem(
            code="U204",
            what="cannot save this drawing as 'png'",
            where="Drawing.save",
            why=why,
            do="run `pip install pygraphviz`, or install Graphviz from your system's packages, or save as '.svg'",
        )
    )
