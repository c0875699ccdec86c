"""The timeline: a window of a run's steps, the marks on them, and an overview of all steps in a few numbers.

A page never receives the whole of a long run: it requests the steps that it shows, and at most about 240 buckets that
summarize all of them. A position is where a run can be: position 0 is before the first step, position k after step k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.draw.label_text import clean
from agentnb.engine.core.history import PHASES, STATUSES, History
from agentnb.session.forks import find_parting
from agentnb.ui.intervention_texts import BREAK, describe_intervention, is_shown

if TYPE_CHECKING:
    from agentnb.session import Session
    from agentnb.trace.row_index import StepIndex

WINDOW: Final = 400  # maximum number of steps sent at once
BUCKETS: Final = 240
_MARKS: Final = 200  # maximum number of marks sent at once
_WIDTH: Final = 80
_STATUS: Final = bytes(flag >> 2 & 3 for flag in range(256))  # a step's flag -> its index in STATUSES
_NUMBERS: Final[WeakKeyDictionary[History, int]] = WeakKeyDictionary()
_NEW: Final = count(1)

Mark = tuple[
    int, str, Any
]  # the position, the kind (stop, intervention, fork), and the intervention or the fork's text


def list_branches(session: Session) -> list[list[int]]:
    """Return the branches of history that a run consists of: [branch number, position where it begins] each.

    The page compares two such lines to decide which steps it has already received are unchanged: those before they
    diverge.
    """
    return [[_number(history), history.base] for history in session.trace.reading().chain]


def _number(history: History) -> int:
    number = _NUMBERS.get(history)
    if number is None:
        number = _NUMBERS[history] = next(_NEW)
    return number


def make_timeline(session: Session, request: Any) -> dict[str, Any]:
    """Return the steps of a window, the marks on them, and the overview of all steps.

    `steps` are rows of [index into `names`, phase, depth, branch or -1, status, ms]; `marks` of [position, kind, text].
    Phase and status are indices into PHASES and STATUSES. `overview` has the numbers per bucket of `size` steps: for
    each kind of mark [bucket, count] where there are any: error, other (cancelled, skipped), stop, intervention,
    fork.

    Args:
        request: {from, to}: the first and last step of the window; without it, no steps are sent.
    """
    reading = session.trace.reading()
    query = request if isinstance(request, Mapping) else {}
    first = max(_make_reply(query.get("from"), 1), 1)
    last = min(_make_reply(query.get("to"), 0), reading.tip, first + WINDOW - 1)
    marks = list(_iter_marks(session, reading))
    names: dict[str, int] = {}
    rows = [_make_row(reading, step, names) for step in range(first, last + 1)]
    return {
        "line": list_branches(session),
        "length": reading.tip,
        "first": first,
        "names": [clean(name) for name in names],
        "steps": rows,
        "marks": [_make_words(*mark) for mark in marks if first - 1 <= mark[0] <= last][:_MARKS],
        "overview": _make_overview(reading, marks),
    }


def _make_reply(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _make_row(reading: StepIndex, step: int, names: dict[str, int]) -> list[Any]:
    history, row = reading.owner(step)
    activation, flag = reading.activation(step), history.step_flags[row]
    branch = reading.branch(activation.frame)
    return [
        names.setdefault(reading.nodes[activation.node].id, len(names)),
        flag & 3,
        reading.depth(activation.frame),
        -1 if branch is None else branch,
        flag >> 2 & 3,
        round(history.working_time(row) / 1e6, 2),
    ]


def _iter_marks(session: Session, reading: StepIndex) -> Iterator[Mark]:
    """Yield the marks: interventions and breakpoints hit, then where forks begin."""
    for intervention in reading.interventions():
        if is_shown(intervention):
            yield intervention.step, "stop" if intervention.action == BREAK else "intervention", intervention
    yield from _fork_marks(session)


def fork_marks(session: Session) -> list[list[Any]]:
    """Return [position, kind, text] of each place where a fork begins, or where this run left its parent."""
    return [[*mark] for mark in _fork_marks(session)]


def _fork_marks(session: Session) -> Iterator[Mark]:
    above = session.parent
    for other in session.forks if above is None else (above, *session.forks):
        position = find_parting(session, other)
        if position is not None:
            label = f"{clean(other.name)[:_WIDTH]!r}"
            yield position, "fork", f"here this run left {label}" if other is above else f"{label} starts here"


def _make_words(position: int, kind: str, marked: Any) -> list[Any]:
    return [position, kind, marked if kind == "fork" else describe_intervention(marked)]


def _make_overview(reading: StepIndex, marks: list[Mark]) -> dict[str, Any]:
    places = reading.tip + 1
    size = min(BUCKETS, places)
    overview: dict[str, Counter[int]] = {"error": Counter(), "other": Counter()}
    flags = b"\0" + b"".join(part.step_flags[1 : last + 1].tobytes() for part, last in reading.parts())
    statuses = flags.translate(_STATUS)
    if statuses.count(0) < places:
        error = STATUSES.index("error")
        for bucket in range(size):
            chunk = statuses[-(-bucket * places // size) : -(-(bucket + 1) * places // size)]
            overview["error"][bucket] += chunk.count(error)
            overview["other"][bucket] += len(chunk) - chunk.count(0) - chunk.count(error)
    for position, kind, _ in marks:
        overview.setdefault(kind, Counter())[position * size // places] += 1
    rows = {kind: [[bucket, counts[bucket]] for bucket in sorted(+counts)] for kind, counts in overview.items()}
    return {"size": size, **{kind: some for kind, some in rows.items() if some}}


__all__ = ["BUCKETS", "PHASES", "STATUSES", "WINDOW", "fork_marks", "list_branches", "make_timeline"]
