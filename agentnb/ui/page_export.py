"""The cockpit of a finished run as data for an exported page: what each step shows, and the answers to its queries.

The data are chunks. `main` has the drawing, the commands, the nodes, the forks and the exercises; `timeline` the row of
every step; chunk `k` the positions from k * CHUNK on: the state at the first one, the changes to each following one,
and the details of each step. A page unpacks a chunk when it shows a step in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from agentnb.display import view
from agentnb.errors import AgentNbError, Problem
from agentnb.export.html import page, steps_table
from agentnb.session import Session
from agentnb.trace.trace import SimulationTrace
from agentnb.ui.actions import look_events
from agentnb.ui.board_view import VALUE_WIDTH, text_of
from agentnb.ui.commands import command_rows
from agentnb.ui.debugger import page_parts, page_style
from agentnb.ui.details import pane
from agentnb.ui.details.cells import Cells
from agentnb.ui.details.step import step_details
from agentnb.ui.fork_tree import forks
from agentnb.ui.graph_view import MOST, closed_at_first, drawing_of, look_flows
from agentnb.ui.static_html import still_html
from agentnb.ui.timeline import WINDOW, timeline
from agentnb.ui.value_editor import looked
from agentnb.ui.view_changes import changes, without_secrets
from agentnb.ui.view_model import screen

CHUNK: Final = 400  # positions per chunk
ROWS: Final = 500  # steps in the table for readers without JavaScript
FREELY_FOLDED: Final = 3  # up to this number of regions, a page has a drawing of each combination of collapsed ones
FOLDED: Final = 12  # up to this number, of each one alone
OBJECTS: Final = 300  # above this number of steps, the pictures of a reactive run's objects are left out
LONGEST: Final = 4_000  # characters of a value
_OFFERED: Final = {"back", "step", "over", "run", "run_back"}  # the buttons of the page
_STYLES: Final = re.compile(r' style="[^"]*"')  # texts are escaped, so that no text has one
_FOLDERS: Final = re.compile(r"^(?:[A-Za-z]:)?[/\\].*[/\\](?=[^/\\]+$)")
_OPENS: Final = re.compile(r"\[(\d+)\]$")
Chunk = dict[str, Any]


def to_html(
    source: Session | SimulationTrace, path: str | Path | None = None, *, quiz: Sequence[Any] = ()
) -> str | None:
    """Write a run as one HTML file, or return its text if no path is given. See `SimulationTrace.to_html`."""
    recording = _recording_of(source)
    text = _html(recording, _forks(source if isinstance(source, Session) else recording), quiz)
    if path is None:
        return text
    Path(path).write_text(text, encoding="utf-8")
    return None


def _recording_of(source: Session | SimulationTrace) -> Session:
    """Return a read-only session of a run, so that moving through it does not move the original. It is masked."""
    trace = source.trace if isinstance(source, Session) else source
    recipe = source.recipe if isinstance(source, Session) else None
    document = json.loads(str(trace.to_json()))
    found: Session = view("recording")(document, "an exported page", recipe)
    return found


def _forks(session: Session) -> dict[str, Any]:
    """Return the tree of forks; a page has the states of one run, so the others can only be read about."""
    tree = forks(session)
    return {**tree, "rows": [row if row["shown"] else {**row, "absent": True} for row in tree["rows"]]}


def _html(session: Session, tree: Mapping[str, Any], quiz: Sequence[Any]) -> str:
    length = len(session.trace)
    exercises = [_exercise(session, each) for each in quiz]
    chunks: dict[str, Any] = {}
    nodes = {name: _node(session, name) for name in session.recipe.nodes}
    state: dict[str, Any] = {}
    for first in range(0, length + 1, CHUNK):
        chunk, state = _chunk(session, first, min(first + CHUNK, length + 1))
        chunks[str(first // CHUNK)] = without_secrets(chunk)
    main = {
        "drawings": [_drawn(session, closed) for closed in _foldings(session)],
        "begins_closed": bool(closed_at_first(session)),
        "commands": [row if row["name"] in _OFFERED else {**row, "icon": "", "keys": []} for row in command_rows()],
        "nodes": nodes,
        "forks": tree,
        "length": length,
        "chunk": CHUNK,
        "quiz": exercises,
    }
    parts = page_parts(exported=True)
    return page(
        f"{state['name']}: a run of {length} steps",
        "\n".join([*parts.values(), "recordedPart.open();"]),
        page_style(),
        without_secrets(_without_script(session, state, length, exercises)),
        {"main": without_secrets(main), "timeline": without_secrets(_timeline(session)), **chunks},
        version("agentnb"),
    )


def _without_script(session: Session, state: dict[str, Any], length: int, exercises: Sequence[Any]) -> str:
    """Return the page for readers without JavaScript: the last state and a table of the steps, unless it is a quiz."""
    if exercises:
        return "<p>This page has exercises. They need JavaScript.</p>"
    drawing = session.draw(collapsed=closed_at_first(session))
    picture = drawing.svg if len(drawing.picture.boxes) <= MOST else ""
    still = _STYLES.sub("", still_html(state, picture))  # the page's policy refuses style attributes
    return still + steps_table(("step", "node", "status", "outputs"), _table_rows(session), max(length - ROWS, 0))


def _node(session: Session, name: str) -> dict[str, Any]:
    """Return the details of a node, with file names in place of paths of this machine."""
    found = _without_cuts(pane.of_node(session, name, _cells())["node"])
    cells = [{**cell, "name": _FOLDERS.sub("", cell["name"])} for cell in found["definition"]]
    return {**found, "now": "", "place": _FOLDERS.sub("", found["place"] or ""), "definition": cells, "settable": False}


def _cells() -> Cells:
    return Cells(cut=LONGEST, lines=400)


def _chunk(session: Session, first: int, end: int) -> tuple[Chunk, dict[str, Any]]:
    """Return the chunk of the positions from `first` to before `end`, and the state at the last of them."""
    drawing = drawing_of(session)
    found: Chunk = {"state": None, "changes": [], "steps": {}, "values": {}, "flows": {}, "events": {}, "objects": {}}
    before: dict[str, Any] = {}
    for position in range(first, end):
        session.goto(position)
        state = _still(screen(session, drawing))
        if not before:
            found["state"] = state
        else:
            found["changes"].append(changes(before, state))
        _look_around(session, found, state, position)
        if position:
            found["steps"][position] = _step(session, position)
        before = state
    return found, before


def _still(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without what only a running session has."""
    board = [[key, text, marks, _OPENS.sub(r" (\1)", kind), *rest] for key, text, marks, kind, *rest in state["board"]]
    return {**state, "board": board, "pending": [], "can": [], "limit": None, "speed": None}


def _look_around(session: Session, found: Chunk, state: Mapping[str, Any], position: int) -> None:
    """Add the answers to the queries of a page that differ from those at the position before."""
    word = state["picture"].get("board", {}).get("flows", "")
    if word and word not in found["flows"]:
        found["flows"][word] = look_flows(session, [])
    if state["reactive"]:
        found["events"][position] = look_events(session, None)
        if len(session.trace) <= OBJECTS:
            found["objects"][position] = session.draw_objects().bare_svg
    rows = [row for row in state["board"] if row[1] is not None and ("written" in row[2] or not position)]
    found["values"][position] = {
        row[0]: _value(session, row[0]) for row in rows if len(row[1]) >= VALUE_WIDTH - 1 or row[3].endswith(")")
    }


def _value(session: Session, key: str) -> dict[str, Any]:
    about = looked(session, [key])
    field = about["field"]
    text = field["text"] if len(field["text"]) <= LONGEST else f"{field['text'][:LONGEST]}…"
    return {**about, "field": {**field, "text": text, "as": "fixed", "note": ""}}


def _step(session: Session, number: int) -> dict[str, Any]:
    """Return the details of a step; the page knows its node, and the steps of that node before and after it."""
    found: dict[str, Any] = _without_cuts(step_details(session, number, _cells()))
    return found


def _without_cuts(content: Any) -> Any:
    """Return details in which truncated cells end with an ellipsis: a page without a kernel cannot load the rest."""
    if isinstance(content, list):
        return [_without_cuts(each) for each in content]
    if not isinstance(content, dict):
        return content
    found = {name: _without_cuts(each) for name, each in content.items()}
    return {**found, "cut": False, "text": f"{found['text']} …"} if found.get("cut") else found


def _foldings(session: Session) -> list[list[str]]:
    """Return the lists of collapsed regions that a page has drawings of: none, all at first, and then others.

    With few regions these are all combinations; with more, each region alone, and all but one; with many, all.
    """
    every = [area.scope for area in drawing_of(session).picture.areas]
    first = list(closed_at_first(session)) or every
    found = [[], first, every]
    if len(every) <= FREELY_FOLDED:
        found += [list(some) for size in range(1, len(every)) for some in combinations(every, size)]
    elif len(every) <= FOLDED:
        found += [[one] for one in every] + [[each for each in every if each != one] for one in every]
    return [some for place, some in enumerate(found) if place < 1 or (some and some not in found[:place])]


def _drawn(session: Session, closed: list[str]) -> dict[str, Any]:
    """Return the picture with regions collapsed."""
    drawing = drawing_of(session, closed)
    folds = drawing.picture.folds
    return {
        "svg": drawing.bare_svg,
        "closed": closed,
        "folds": {
            "regions": dict(folds.regions) if folds else {},
            "nodes": dict(folds.nodes) if folds else {},
            "edges": {str(index): stands for index, stands in folds.edges.items()} if folds else {},
        },
    }


def _timeline(session: Session) -> dict[str, Any]:
    """Return the rows of all steps, with one table of names, the marks, and the overview."""
    names: dict[str, int] = {}
    rows: list[list[Any]] = []
    marks: list[Any] = []
    found = timeline(session, {"from": 1, "to": 0})
    for first in range(1, len(session.trace) + 1, WINDOW):
        found = timeline(session, {"from": first, "to": first + WINDOW - 1})
        numbers = [names.setdefault(name, len(names)) for name in found["names"]]
        rows += [[numbers[row[0]], *row[1:]] for row in found["steps"]]
        marks += [mark for mark in found["marks"] if mark[0] >= first or first == 1]
    return {**found, "first": 1, "names": list(names), "steps": rows, "marks": marks}


def _table_rows(session: Session) -> Iterator[tuple[object, ...]]:
    for step in session.trace.steps[:ROWS]:
        outputs = ", ".join(f"{key} = {text_of(str(key), value, 60)}" for key, value in list(step.outputs.items())[:4])
        yield step.step, step.node_id, step.status, outputs


def _exercise(session: Session, asked: Any) -> dict[str, Any]:
    """Return an exercise: the step after which it is asked, the question, the options, and the answer.

    Raises:
        AgentNbError: U590, it is neither a step nor a mapping with a step; U591, the run has no such step or key.
    """
    wanted = dict(asked) if isinstance(asked, Mapping) else {"step": asked}
    step, key = wanted.get("step"), wanted.get("key")
    if not isinstance(step, int) or isinstance(step, bool) or set(wanted) - {"step", "key", "question"}:
        raise AgentNbError(
            Problem("U590", f"{asked!r} is not an exercise", "to_html(quiz=[...])",
                    "an exercise is the number of a step, or a mapping with `step` and optionally `key` and `question`",
                    'write quiz=[3] to ask which node runs after step 3, or quiz=[{"step": 3, "key": "reply"}] to ask '
                    "for the value that the next step writes")
        )  # fmt: skip
    last = len(session.trace)
    if not 0 <= step < last:
        raise AgentNbError(
            Problem("U591", f"no step follows step {step}", "to_html(quiz=[...])", f"the run has {last} steps",
                    f"choose a step from 0 to {last - 1}")
        )  # fmt: skip
    following = session.trace.steps[step]
    if key is None:
        options = sorted(session.recipe.nodes) if len(session.recipe.nodes) <= 40 else _near(session, following.node_id)
        question = wanted.get("question") or "Which node runs next?"
        return {"step": step, "question": str(question), "options": options, "answer": following.node_id}
    if key not in following.outputs:
        raise AgentNbError(
            Problem("U591", f"step {step + 1} does not write {key!r}", "to_html(quiz=[...])",
                    f"it writes: {', '.join(map(repr, following.outputs)) or 'nothing'}",
                    "choose a key that the next step writes")
        )  # fmt: skip
    value = following.outputs[key]
    answer = value if isinstance(value, str) else text_of(str(key), value, LONGEST)
    question = wanted.get("question") or f"What does {following.node_id!r} write to {key!r}?"
    return {"step": step, "question": str(question), "options": [], "answer": answer}


def _near(session: Session, node: str) -> list[str]:
    """Return the nodes of the same region, for the options of an exercise in a large recipe."""
    scope = session.recipe.nodes[node].scope
    return sorted(name for name, each in session.recipe.nodes.items() if each.scope == scope)[:40]
