"""A second run beside the shown one: aligned with it, read-only, at the corresponding step.

The runs are aligned again when one of them has got longer and rests. A page receives the marks, the keys that differ
and a sentence with each state; it requests the steps of the second run, which are many.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from agentnb.analysis.runs import get_recipe, get_session, get_trace
from agentnb.board.values import ABSENT
from agentnb.display import get_view
from agentnb.draw.label_text import clean
from agentnb.errors import AgentNbError, Problem
from agentnb.secrets import masking_for
from agentnb.session.state import get_state
from agentnb.text import safe_str
from agentnb.ui.board_view import format_value
from agentnb.ui.fork_tree import find_session
from agentnb.ui.status_line import describe_step

if TYPE_CHECKING:
    from agentnb.analysis.compare import Comparison
    from agentnb.analysis.step_differences import Difference
    from agentnb.secrets import Masking
    from agentnb.session import Session

WINDOW: Final = 400  # steps of the second run sent at once
KEYS: Final = 200  # differing keys sent
STEPS: Final = 4_000  # changed steps of the first run sent
_WIDTH: Final = 48  # characters of a value
_COMPARED: Final = 4_000
_SAID: Final = 300
_CHANGES: Final = ("differs", "only_a", "only_b")


@dataclass(slots=True)
class ComparedRun:
    """The second run and its alignment with the first; `places[k]` is its step that corresponds to step k."""

    run: Any
    lengths: tuple[object, ...] = ()
    comparison: Comparison | None = None
    positions: tuple[int, ...] = (0,)
    revision: int = 0
    recorded: Session | None = None

    def follow(self, session: Session) -> Comparison:
        """Return the comparison, recomputed if a run has changed and is not running."""
        from agentnb.analysis.compare import compare  # it needs numpy: a cockpit opens without

        trace = get_trace(self.run)
        lengths = (session.run_id, len(session.trace), str(trace.run_id), len(trace))
        if self.comparison is None or (lengths != self.lengths and not get_state(session).moves):
            self.comparison, self.lengths = compare(session, self.run), lengths
            self.positions = _map_steps(self.comparison)
            self.revision += 1
            self.recorded = None
        return self.comparison

    def board_at(self, position: int) -> Mapping[str, Any]:
        """Return the board of the second run after a step, as its next node sees it; the run itself does not move."""
        if self.recorded is None:
            trace = get_trace(self.run)
            self.recorded = get_view("recording")(
                json.loads(str(trace.to_json())), "the second run", get_recipe(self.run)
            )
        self.recorded.goto(position)
        return self.recorded.board

    def at(self, position: int) -> int:
        """Return the step of the second run that corresponds to a position of the first."""
        return self.positions[min(position, len(self.positions) - 1)]


_SECOND: Final[WeakKeyDictionary[Session, ComparedRun]] = WeakKeyDictionary()


def _map_steps(comparison: Comparison) -> tuple[int, ...]:
    """Return for each step of the first run the last step of the second up to there; at its end, the other's end."""
    places, last = [0], 0
    for row in comparison.rows:
        last = max(last, row.pair.step_b or 0)
        if row.pair.step_a is not None:
            places.append(last)
    places[-1] = max(last, len(get_trace(comparison.b)) if len(places) > 1 else 0)
    return tuple(places)


def open_beside(session: Session, run: Any) -> None:
    """Show a run beside a session: another session, a trace, a stored run; None removes it.

    U593: a run cannot be shown beside itself.

    Raises:
        AgentNbError: U593, it is the session itself.
        ExecutionError: A101, it is not a run.
    """
    if run is None:
        _SECOND.pop(session, None)
        return
    get_trace(run, "Debugger.beside()")
    if get_session(run) is session:
        raise AgentNbError(
            Problem("U593", "a run cannot be compared with itself", "the second run of the cockpit",
                    f"both are {session.name!r}",
                    "choose a fork, another session, or a stored run opened with nb.open()")
        )  # fmt: skip
    _SECOND[session] = ComparedRun(run)


def mask_for_cockpit(session: Session) -> Masking:
    """Return a context in which texts are masked by the secrets of a session and of the run beside it."""
    second = _SECOND.get(session)
    owners = [get_state(session).run.tables.secrets]
    if second is not None:
        owners.append(get_trace(second.run).reading().tables.secrets)
    return masking_for(*dict.fromkeys(owners))


def show_beside(session: Session, _: Any, run_id: Any) -> None:
    """Show a run of the tree of forks beside the shown one; None removes the second run."""
    open_beside(session, None if run_id is None else find_session(session, run_id))


def describe_second_run(session: Session) -> dict[str, Any] | None:
    """Return the second run as the page shows it at the current step; None without one.

    `board` are the keys whose values differ here: their text in the second run, None where it has no such key. The page
    asks for the rest with `query_second` when the `revision` changes.
    """
    second = _SECOND.get(session)
    if second is None:
        return None
    comparison = second.follow(session)
    position, trace = second.at(session.position), get_trace(second.run)
    divergence = comparison.first_divergence
    return {
        "revision": second.revision,
        "name": clean(comparison.names[1]),
        "length": len(trace),
        "position": position,
        "node": trace.steps[position - 1].node_id if position else None,
        "sentence": _format_status(get_session(second.run), position),
        "parted": None if divergence is None else _describe_divergence(divergence),
        "board": _compare_boards(session.board, second.board_at(position)),
    }


def _describe_divergence(difference: Difference) -> dict[str, Any]:
    return {
        "text": clean(str(difference))[:_SAID],
        "a": difference.step_a,
        "b": difference.step_b,
        "node": difference.node,
    }


def _format_status(other: Session | None, position: int) -> str:
    if not position:
        return "At its start."
    return "" if other is None else describe_step(other, position)


def _compare_boards(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, str | None]:
    differing: dict[str, str | None] = {}
    for key in dict.fromkeys([*left, *right]):
        if len(differing) < KEYS and not _are_alike(key, left.get(key, ABSENT), right.get(key, ABSENT)):
            differing[safe_str(key)] = format_value(key, right[key], _WIDTH) if key in right else None
    return differing


def _are_alike(key: str, left: Any, right: Any) -> bool:
    """Return True if two values are equal, or look the same: what has no codec is recorded as its text."""
    if left is ABSENT or right is ABSENT:
        return left is right
    try:
        return bool(left == right) or format_value(key, left, _COMPARED) == format_value(key, right, _COMPARED)
    except Exception:  # noqa: BLE001  (a value's own == may raise anything)
        return False


def query_second(session: Session, request: Any) -> dict[str, Any]:
    """Return the steps of the second run around one, and what differs as a whole.

    `rows` are [node, status, change, the corresponding step of the first run or None] from step `first` on; `steps` the
    changed steps of the first run, by number; `nodes` the marks of the nodes; `counts` the numbers of changes;
    `verdict` whether the runs satisfy what was expected. `request` is {around}: a step of the second run.
    """
    second = _SECOND.get(session)
    if second is None:
        return {"first": 1, "rows": [], "steps": {}, "nodes": {}, "counts": {}, "verdict": []}
    comparison, trace = second.follow(session), get_trace(second.run)
    around = request.get("around") if isinstance(request, dict) else None
    middle = around if isinstance(around, int) and not isinstance(around, bool) else 1
    first = max(min(middle - WINDOW // 2, len(trace) - WINDOW + 1), 1)
    pairs = {row.pair.step_b: (row.change, row.pair.step_a) for row in comparison.rows if row.pair.step_b}
    rows = []
    for step in trace.steps[first - 1 : first - 1 + WINDOW]:
        change, own_step = pairs.get(step.step, ("only_b", None))
        rows.append([clean(step.node_id), step.status, change, own_step])
    names = dict(zip("ab", comparison.names, strict=True))
    changed = [(row.pair.step_a, row.change) for row in comparison.rows if row.change != "same" and row.pair.step_a]
    return {
        "first": first,
        "rows": rows,
        "steps": {str(step): change for step, change in changed[:STEPS]},
        "nodes": {node: list(marks[1:]) for node, marks in comparison.node_marks().items() if marks[1:]},
        "counts": {change: sum(row.change == change for row in comparison.rows) for change in _CHANGES},
        "verdict": [clean(f"{names[run]!r} {'satisfies' if held else 'does not satisfy'} its expectation")
                    for run, held in comparison.verdicts.items()],
    }  # fmt: skip


__all__ = ["describe_second_run", "open_beside", "query_second", "show_beside"]
