"""The cockpit of a finished run as data for an exported page: what each step shows, and the answers to its queries.

The page has the runs of the session's tree as stretches of positions: a fork begins at the last position that it shares
with its parent and names the stretch before. A run with exercises is cut at them, and what follows an exercise is
encrypted with its answer.

The data are chunks. `main` has the drawings, the nodes, the commands, the tree of forks and the first stretches;
`K-timeline` the rows of the steps of stretch K; `K-N` the positions of its Nth chunk: the state at the first one, the
changes to each following one, the values of the board, and the details of each step; `stretch K` an encrypted stretch's
own description. A page unpacks a chunk when it shows a step in it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from pathlib import Path, PurePath
from typing import Any, Final

from agentnb.display import get_view
from agentnb.distribution import get_version
from agentnb.draw.label_text import clean
from agentnb.engine.control.interventions import get_current_scope
from agentnb.errors import AgentNbError, Problem
from agentnb.export.html import Seal, pack, render_page, render_steps_table
from agentnb.session import Session
from agentnb.session.state import get_state
from agentnb.text import replace_surrogates, safe_str
from agentnb.trace.trace import SimulationTrace
from agentnb.ui.actions import query_events
from agentnb.ui.board_view import VALUE_WIDTH, format_value
from agentnb.ui.commands import list_commands
from agentnb.ui.debugger import build_page_style, read_page_parts
from agentnb.ui.details import pane
from agentnb.ui.details.cells import Cells
from agentnb.ui.details.step import describe_step
from agentnb.ui.fork_tree import find_session, list_forks, run_of
from agentnb.ui.graph_view import MOST, find_collapsed, get_drawing, query_flows
from agentnb.ui.page_values import LONGEST, compute_changes
from agentnb.ui.static_html import render_still
from agentnb.ui.timeline import WINDOW, fork_marks, make_timeline
from agentnb.ui.value_editor import describe_value
from agentnb.ui.view_changes import find_changes, mask_content
from agentnb.ui.view_model import make_screen

CHUNK: Final = 400  # positions per chunk
ROWS: Final = 500  # steps in the tables for readers without JavaScript
FREELY_FOLDED: Final = 3  # up to this number of regions, a page has a drawing of each combination of collapsed ones
FOLDED: Final = 12  # up to this number, of each one alone
OBJECTS: Final = 300  # above this number of steps, the pictures of a reactive run's objects are left out
_OFFERED: Final = {"back", "step", "over", "run", "run_back"}  # the buttons of the page
_STYLES: Final = re.compile(r' style="[^"]*"')  # texts are escaped, so that no text has one
_FOLDERS: Final = re.compile(r"^(?:[A-Za-z]:)?[/\\].*[/\\](?=[^/\\]+$)")
_OPENS: Final = re.compile(r"\[(\d+)\]$")
_BLANKS: Final = re.compile(r"[ \t\n\r\f\v\u00a0]+")
_NEXT_MARKS: Final = {"current", "next", "waiting"}
Chunk = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Positions of one run: from where it leaves its parent, or from an exercise, to its end or the next exercise.

    `original` is the session that the recording was made of; `previous` the number of the stretch that has the
    positions before the first one; `exercise` what is asked at the last position, and `answer` what is answered.
    """

    recording: Session
    original: Session
    first: int
    last: int
    previous: int | None = None
    view: int = 0
    exercise: Mapping[str, Any] | None = None
    answer: str = ""
    number: str = ""  # of the exercise, as "1 of 3"

    @property
    def is_shortened(self) -> bool:
        """Whether the run continues after the last position."""
        return self.exercise is not None

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to know of it; `state` is what all of its states have in common."""
        return {
            "id": self.original.run_id,
            "first": self.first,
            "last": self.last,
            "before": self.previous,
            "view": self.view,
            "position": min(self.original.position, self.last),
            "state": {"run": run_of(self.original), "forks": 0 if self.number else len(self.original.forks)},
            "exercise": self.exercise,
        }


def to_html(
    source: Session | SimulationTrace, path: str | Path | None = None, *, quiz: Sequence[Any] = ()
) -> str | None:
    """Write a run as one HTML file, or return its text if no path is given. See `SimulationTrace.to_html`."""
    text = _render_html(source, quiz)
    if path is None:
        return text
    Path(path).write_text(replace_surrogates(text), encoding="utf-8")
    return None


def _make_recording(source: Session | SimulationTrace) -> Session:
    """Return a read-only session of a run, so that moving through it does not move the original. It is masked."""
    trace = source.trace if isinstance(source, Session) else source
    recipe = source.recipe if isinstance(source, Session) else None
    document = json.loads(str(trace.to_json()))
    recording: Session = get_view("recording")(document, "an exported page", recipe)
    return recording


def _render_html(source: Session | SimulationTrace, quiz: Sequence[Any]) -> str:
    recording = _make_recording(source)
    shown = source if isinstance(source, Session) else recording
    tree = list_forks(shown)
    if quiz:
        rows = [{**row, "position": 0, "length": 0, "status": "ready"} for row in tree["rows"] if row["shown"]]
        tree = {"rows": rows, "more": 0}
        stretches = _split_at_exercises(recording, shown, quiz)
    else:
        stretches = _make_stretches(tree["rows"], recording, shown)
    shown_at = next(at for at, each in enumerate(stretches) if each.original is shown)
    portable = _without_folders(each.original for each in stretches)
    chunks = _Chunks(portable)
    views: list[dict[str, Any]] = []
    described: list[dict[str, Any]] = []
    stills: list[str] = []
    seal: Seal | None = None
    for at, each in enumerate(stretches):
        description = each.describe()
        if each.view == len(views):
            views.append(_make_view(each.recording))
        following = None
        if each.exercise is not None:
            following = Seal.of(each.answer, f"{each.original.run_id} {at + 1}", seal)
            description["exercise"] = {**each.exercise, "salt": following.salt, "check": following.check}
        chunks.seal = seal
        state = _pack(each, str(at), chunks)
        if seal is None:
            described.append(description)
            stills.append(_render_still(each, state, portable, main=at == shown_at))
        else:
            chunks.add(f"stretch {at}", description)
        seal = following
    length = len(recording.trace)
    main = {
        "views": views,
        "commands": [row if row["name"] in _OFFERED else {**row, "icon": "", "keys": []} for row in list_commands()],
        "forks": tree,
        "stretches": described,
        "shown": shown_at,
        "chunk": CHUNK,
        "exercises": len(quiz),
    }
    chunks.seal = None
    chunks.add("main", main)
    title = str(mask_content(_make_still_name(recording)))
    return render_page(
        f"{title}: exercises" if quiz else f"{title}: a run of {length} steps",
        "\n".join([*read_page_parts(exported=True).values(), "recordedPart.open();"]),
        build_page_style(exported=True),
        "<p>This page has exercises. They need JavaScript.</p>"
        if quiz
        else portable(mask_content("".join([stills[shown_at], *stills[:shown_at], *stills[shown_at + 1 :]]))),
        {"main": chunks.packed.pop("main"), **chunks.packed},
        get_version(),
    )


def _make_still_name(recording: Session) -> str:
    return clean(recording.recipe.name)


def _make_stretches(rows: Sequence[Mapping[str, Any]], recording: Session, shown: Session) -> list[_Stretch]:
    """Return a stretch for each run of a tree of forks, each after its parent's."""
    stretches: list[_Stretch] = []
    recipes: list[Any] = []
    places: dict[int, int] = {}
    for row in rows:
        session = shown if row["shown"] else find_session(shown, row["id"])
        recorded_run = recording if row["shown"] else _make_recording(session)
        before = None if row["from"] is None else places.get(id(session.parent))
        view_number = next((at for at, recipe in enumerate(recipes) if recipe is session.recipe), len(recipes))
        recipes += [session.recipe] if view_number == len(recipes) else []
        places[id(session)] = len(stretches)
        first = 0 if before is None else row["from"]
        stretches.append(_Stretch(recorded_run, session, first, len(recorded_run.trace), before, view_number))
    return stretches


def _split_at_exercises(recording: Session, original: Session, quiz: Sequence[Any]) -> list[_Stretch]:
    """Return the stretches of a run that exercises cut."""
    exercises = sorted((_make_exercise(recording, each) for each in quiz), key=lambda each: int(each["step"]))
    stretches: list[_Stretch] = []
    first = 0
    for at, each in enumerate(exercises):
        exercise = {"question": each["question"], "options": each["options"]}
        number, answer = f"{at + 1} of {len(exercises)}", _to_plain(each["answer"])
        previous_step = at - 1 if at else None
        stretches.append(_Stretch(recording, original, first, each["step"], previous_step, 0, exercise, answer, number))
        first = each["step"]
    last = _Stretch(recording, original, first, len(recording.trace), len(exercises) - 1, number="the end")
    return [*stretches, last]


def _to_plain(answer: str) -> str:
    """Return an answer normalized for comparison: without case, blanks and surrounding quotes.

    The page does the same.
    """
    text = _BLANKS.sub(" ", unicodedata.normalize("NFC", answer)).strip(" ").lower()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _make_view(session: Session) -> dict[str, Any]:
    """Return what the runs of one recipe share: its drawings and its nodes."""
    return {
        "drawings": [_draw(session, closed) for closed in _list_foldings(session)],
        "begins_closed": bool(find_collapsed(session)),
        "nodes": {name: _describe_node(session, name) for name in session.recipe.nodes},
    }


def _pack(stretch: _Stretch, name: str, chunks: _Chunks) -> dict[str, Any]:
    """Add the chunks of a stretch; return its last state."""
    state: dict[str, Any] = {}
    for number, first in enumerate(range(stretch.first, stretch.last + 1, CHUNK)):
        chunk, state = _make_chunk(stretch, first, min(first + CHUNK, stretch.last + 1))
        chunks.add(f"{name}-{number}", chunk)
    chunks.add(f"{name}-timeline", _make_timeline(stretch))
    return state


class _Chunks:
    """The packed data of a page, by name: masked, and without the folders of this machine."""

    def __init__(self, portable: Callable[[str], str]) -> None:
        self.packed: dict[str, str] = {}
        self.seal: Seal | None = None  # of the chunks that are added next
        self._portable = portable

    def add(self, name: str, content: Any) -> None:
        """Pack a JSON value."""
        self.packed[name] = pack(mask_content(content), name, self.seal, self._portable)


def _without_folders(sessions: Iterable[Session]) -> Callable[[str], str]:
    """Return a function that removes the folders of the recipes' and the user's files from a text, JSON or HTML.

    A page says in which file and line a node is, or failed, not where that file is on the machine that made the page.
    """
    files: set[str] = set()
    for session in sessions:
        recipe = session.recipe
        places = [*(node.place for node in recipe.nodes.values()), *(edge.place for edge in recipe.outgoing_edges)]
        files.update(place.file for place in places if place is not None)
        files.update([recipe.file] if recipe.file is not None else [])
        files.update(failure.line for history in session.trace.reading().chain for failure in history.errors.values())
    folders = {str(PurePath(file).parent) for file in files if PurePath(file).is_absolute()}
    starts = {folder.rstrip("/\\") + sep for folder in folders for sep in "/\\" if folder.rstrip("/\\")}
    forms = {form for start in starts for form in (start, json.dumps(start)[1:-1], escape(start))}
    if not forms:
        return lambda text: text
    pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
    return lambda text: pattern.sub("", text)


def _render_still(stretch: _Stretch, state: dict[str, Any], portable: Callable[[str], str], *, main: bool) -> str:
    """Return a run for readers without JavaScript: the last state and a table of its own steps."""
    session = stretch.recording
    drawing = session.draw(collapsed=find_collapsed(session))
    picture = portable(drawing.svg) if main and len(drawing.picture.boxes) <= MOST else ""
    still = _STYLES.sub("", render_still(state, picture))  # the page's policy refuses style attributes
    columns = ("step", "node", "status", "outputs and errors")
    table = render_steps_table(columns, _iter_table_rows(stretch), max(stretch.last - stretch.first - ROWS, 0))
    if main:
        return still + table
    run = run_of(stretch.original)
    origin = f", a fork of {run['of']} from step {stretch.first}" if run["of"] is not None else ""
    return f"<h2>{escape(run['name'] + origin)}</h2>{still}{table}"


def _describe_node(session: Session, name: str) -> dict[str, Any]:
    """Return the details of a node, with file names in place of paths of this machine."""
    details = _mark_cuts(pane.describe_node_pane(session, name, _make_cells())["node"])
    cells = [{**cell, "name": _FOLDERS.sub("", cell["name"])} for cell in details["definition"]]
    return {
        **details,
        "now": "",
        "place": _FOLDERS.sub("", details["place"] or ""),
        "definition": cells,
        "settable": False,
    }


def _make_cells() -> Cells:
    return Cells(cut=LONGEST, lines=400)


def _make_chunk(stretch: _Stretch, first: int, end: int) -> tuple[Chunk, dict[str, Any]]:
    """Return the chunk of the positions from `first` to before `end`, and the state at the last of them."""
    session = stretch.recording
    drawing = get_drawing(session)
    chunk: Chunk = {
        "state": None, "changes": [], "board": [], "steps": {}, "values": {}, "flows": {}, "events": {}, "objects": {},
    }  # fmt: skip
    previous_state: dict[str, Any] = {}
    values: dict[str, Any] | None = None
    if first > stretch.first:
        session.goto(first - 1)
        values = get_current_scope(get_state(session).run).visible_items()
    for position in range(first, end):
        session.goto(position)
        state = _make_still_state(make_screen(session, drawing))
        is_exercise = stretch.is_shortened and position == stretch.last
        if is_exercise:
            state = _hide_next(stretch, state, previous_state)
        if not previous_state:
            chunk["state"] = state
        else:
            chunk["changes"].append(find_changes(previous_state, state))
        seen = get_current_scope(get_state(session).run).visible_items()
        chunk["board"].append(compute_changes(values, seen))
        values = seen
        _add_surroundings(session, chunk, state, position)
        if position:
            details = _describe_step(session, position)
            chunk["steps"][position] = {**details, **_NOTHING_FOLLOWS} if is_exercise else details
        previous_state = state
    return chunk, previous_state


# What the details of a step say about the next one; the thought of a router names it.
_NOTHING_FOLLOWS: Final[dict[str, Any]] = {"targets": [], "sets_off": [], "why": [], "interventions": [], "notes": []}


def _hide_next(stretch: _Stretch, state: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the state at an exercise without what comes next, with the question in its place."""
    assert stretch.exercise is not None
    if not before and stretch.last:
        stretch.recording.goto(stretch.last - 1)
        before = make_screen(stretch.recording, get_drawing(stretch.recording))
        stretch.recording.goto(stretch.last)
    taken = before["picture"].get("edges", {}) if before else {}
    nodes = {}
    for name, marks in state["picture"].get("nodes", {}).items():
        classes = [mark for mark in marks["classes"] if mark not in _NEXT_MARKS]
        if classes:
            nodes[name] = {**marks, "classes": classes}
    question = f"Exercise {stretch.number}: {stretch.exercise['question']}"
    return {
        **state,
        "current": None, "next": [], "later": 0, "frames": [], "sentence": question, "pending": [],
        "picture": {**state["picture"], "nodes": nodes, "edges": taken},
    }  # fmt: skip


def _make_still_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without the parts that only a running session has."""
    board = [[key, text, marks, _OPENS.sub(r" (\1)", kind), *rest] for key, text, marks, kind, *rest in state["board"]]
    return {**state, "board": board, "can": [], "limit": None, "speed": None}


def _add_surroundings(session: Session, chunk: Chunk, state: Mapping[str, Any], position: int) -> None:
    """Add the answers to the queries of a page that differ from those at the position before."""
    word = state["picture"].get("board", {}).get("flows", "")
    if word and word not in chunk["flows"]:
        chunk["flows"][word] = query_flows(session, [])
    if state["reactive"]:
        chunk["events"][position] = query_events(session, None)
        if len(session.trace) <= OBJECTS:
            chunk["objects"][position] = session.draw_objects().bare_svg
    rows = [row for row in state["board"] if row[1] is not None and ("written" in row[2] or not position)]
    chunk["values"][position] = {
        row[0]: _get_value(session, row[0]) for row in rows if len(row[1]) >= VALUE_WIDTH - 1 or row[3].endswith(")")
    }


def _get_value(session: Session, key: str) -> dict[str, Any]:
    description = describe_value(session, [key])
    field = description["field"]
    text = field["text"] if len(field["text"]) <= LONGEST else f"{field['text'][:LONGEST]}…"
    return {**description, "field": {**field, "text": text, "as": "fixed", "note": ""}}


def _describe_step(session: Session, number: int) -> dict[str, Any]:
    """Return the details of a step; the page knows its node, and the steps of that node before and after it."""
    details: dict[str, Any] = _mark_cuts(describe_step(session, number, _make_cells()))
    return details


def _mark_cuts(content: Any) -> Any:
    """Return details in which truncated cells end with an ellipsis: a page without a kernel cannot load the rest."""
    if isinstance(content, list):
        return [_mark_cuts(each) for each in content]
    if not isinstance(content, dict):
        return content
    marked = {name: _mark_cuts(each) for name, each in content.items()}
    return {**marked, "cut": False, "text": f"{marked['text']} …"} if marked.get("cut") else marked


def _list_foldings(session: Session) -> list[list[str]]:
    """Return the lists of collapsed regions that a page has drawings of: none, all at first, and then others.

    With few regions these are all combinations; with more, each region alone, and all but one; with many, all.
    """
    every = [area.scope for area in get_drawing(session).picture.areas]
    first = list(find_collapsed(session)) or every
    foldings = [[], first, every]
    if len(every) <= FREELY_FOLDED:
        foldings += [list(some) for size in range(1, len(every)) for some in combinations(every, size)]
    elif len(every) <= FOLDED:
        foldings += [[one] for one in every] + [[each for each in every if each != one] for one in every]
    return [some for index, some in enumerate(foldings) if index < 1 or (some and some not in foldings[:index])]


def _draw(session: Session, closed: list[str]) -> dict[str, Any]:
    """Return the picture with regions collapsed."""
    drawing = get_drawing(session, closed)
    folds = drawing.picture.folds
    return {
        "svg": drawing.bare_svg,
        "closed": closed,
        "folds": {
            "regions": dict(folds.regions) if folds else {},
            "nodes": dict(folds.nodes) if folds else {},
            "edges": {str(index): end for index, end in folds.edges.items()} if folds else {},
        },
    }


def _make_timeline(stretch: _Stretch) -> dict[str, Any]:
    """Return the rows of the steps after the first position, with their names; the marks; and the overview.

    `marks` are those of interventions and breakpoints from the first position on, `forks` those of forks.
    """
    session, last = stretch.recording, stretch.last
    names: dict[str, int] = {}
    rows: list[list[Any]] = []
    marks: list[Any] = []
    for first in range(stretch.first + 1, last + 1, WINDOW):
        timeline = make_timeline(session, {"from": first, "to": min(first + WINDOW - 1, last)})
        numbers = [names.setdefault(name, len(names)) for name in timeline["names"]]
        rows += [[numbers[row[0]], *row[1:]] for row in timeline["steps"]]
        marks += [mark for mark in timeline["marks"] if mark[0] >= first or first == stretch.first + 1]
    if stretch.number:
        overview, all_marks = {"size": 1}, []
    else:
        about = make_timeline(stretch.original, {"from": 1, "to": 0})
        overview, all_marks = about["overview"], fork_marks(stretch.original)
    marks = [mark for mark in marks if mark[0] < last or not stretch.is_shortened]
    return {"names": list(names), "steps": rows, "marks": marks, "forks": all_marks, "overview": overview}


def _iter_table_rows(stretch: _Stretch) -> Iterator[tuple[object, ...]]:
    for step in stretch.recording.trace.steps[stretch.first : stretch.first + ROWS]:
        outputs = [f"{key} = {format_value(str(key), value, 60)}" for key, value in list(step.outputs.items())[:4]]
        outputs += [] if step.error is None else [safe_str(step.error, LONGEST)]
        node = step.node_id if step.phase == "run" else f"{step.node_id} ({step.phase})"
        yield step.step, node, step.status, ", ".join(outputs)


def _make_exercise(session: Session, exercise: Any) -> dict[str, Any]:
    """Return an exercise: the step after which it is asked, the question, the options, and the answer.

    Raises:
        AgentNbError: U590, it is neither a step nor a mapping with a step; U591, the run has no such step or key.
    """
    fields = dict(exercise) if isinstance(exercise, Mapping) else {"step": exercise}
    step, key = fields.get("step"), fields.get("key")
    if not isinstance(step, int) or isinstance(step, bool) or set(fields) - {"step", "key", "question"}:
        raise AgentNbError(
            Problem("U590", f"{exercise!r} is not an exercise", "to_html(quiz=[...])",
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
        options = (
            sorted(session.recipe.nodes)
            if len(session.recipe.nodes) <= 40
            else _list_siblings(session, following.node_id)
        )
        question = fields.get("question") or "Which node runs next?"
        return {"step": step, "question": str(question), "options": options, "answer": following.node_id}
    if key not in following.outputs:
        raise AgentNbError(
            Problem("U591", f"step {step + 1} does not write {key!r}", "to_html(quiz=[...])",
                    f"it writes: {', '.join(map(repr, following.outputs)) or 'nothing'}",
                    "choose a key that the next step writes")
        )  # fmt: skip
    value = following.outputs[key]
    answer = value if isinstance(value, str) else format_value(str(key), value, LONGEST)
    question = fields.get("question") or f"What does {following.node_id!r} write to {key!r}?"
    return {"step": step, "question": str(question), "options": [], "answer": answer}


def _list_siblings(session: Session, node: str) -> list[str]:
    """Return the nodes of the same region, for the options of an exercise in a large recipe."""
    scope = session.recipe.nodes[node].scope
    return sorted(name for name, each in session.recipe.nodes.items() if each.scope == scope)[:40]
