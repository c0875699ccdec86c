"""Compare two runs: where they diverged, what led to it, and all later differences."""

from __future__ import annotations

from functools import cached_property
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentnb.analysis.alignment import Pair, align, make_step_keys
from agentnb.analysis.runs import get_recipe, get_session, get_trace, masking_for_runs
from agentnb.analysis.slices import Slice, Slices
from agentnb.analysis.step_differences import Difference, StepRows, iter_differences
from agentnb.arguments import plain_arguments
from agentnb.board.values import ABSENT
from agentnb.engine.core.plan import describe_edge
from agentnb.recipe.model import Recipe
from agentnb.secrets import masks_by
from agentnb.session.state import get_state
from agentnb.text import safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.draw.drawing import Drawing

Change = Literal["same", "differs", "only_a", "only_b"]
_TYPES = {
    "change": "category", "node": "category", "frame": "category", "visit": "Int64", "step_a": "Int64",
    "step_b": "Int64", "paths": "object",
}  # fmt: skip
_MOST_LINES = 12


class Row(NamedTuple):
    """A pair of corresponding steps and what differs between them."""

    change: Change
    pair: Pair
    differences: tuple[Difference, ...]


@masks_by(lambda comparison: masking_for_runs(comparison.a, comparison.b))
class Comparison:
    """Two runs, aligned by node, frame and visit.

    `first_divergence` is the first difference in the order of the runs; None if they do not differ. `a` and `b` are the
    runs; `rows` are all pairs of steps.
    """

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b
        self._keys = make_step_keys(get_trace(a).reading(), get_trace(b).reading())
        rows_a, rows_b = map(StepRows, self._keys, (get_trace(run).run_id for run in (a, b)))
        self.start = tuple(iter_differences(rows_a, rows_b, 0, 0))
        self.rows = tuple(self._row(pair, rows_a, rows_b) for pair in align(*self._keys))

    def _row(self, pair: Pair, a: StepRows, b: StepRows) -> Row:
        if pair.step_a is None or pair.step_b is None:
            only: Change = "only_b" if pair.step_a is None else "only_a"
            return Row(only, pair, (self._make_missing(pair),))
        differences = tuple(iter_differences(a, b, pair.step_a, pair.step_b))
        return Row("differs" if differences else "same", pair, differences)

    def _make_missing(self, pair: Pair) -> Difference:
        present, absent = ("b", "a") if pair.step_a is None else ("a", "b")
        visit = "" if pair.visit == 1 else f" for the {_format_ordinal(pair.visit)} time"
        tip = self._keys[absent == "b"].reading.tip
        ended = f"; {absent} ended after step {tip}" if tip < (pair.step_a or pair.step_b or 0) else ""
        node_a, node_b = (ABSENT if step is None else pair.key.node for step in (pair.step_a, pair.step_b))
        reason = f"it ran{visit} in {present} only{ended}"
        return Difference(pair.step_a, pair.step_b, pair.key.node, "", node_a, node_b, reason)

    @property
    def differences(self) -> list[Difference]:
        """All differences, in the order of the runs, starting with those in the inputs."""
        return [*self.start, *(each for row in self.rows for each in row.differences)]

    @property
    def first_divergence(self) -> Difference | None:
        """The first difference: step_a, step_b, node, path, the values a and b, the reason; None if there is none."""
        if self.start:
            return self.start[0]
        return next((row.differences[0] for row in self.rows if row.differences), None)

    @cached_property
    def slices(self) -> tuple[Slice | None, Slice | None]:
        """The backward slices of the first divergence, in a and in b; None if a run has no such step."""
        divergence = self.first_divergence
        if divergence is None:
            return None, None
        a, b = self._slice(0, divergence.step_a), self._slice(1, divergence.step_b)
        return a, b

    def _slice(self, side: int, step: int | None) -> Slice | None:
        divergence = self.first_divergence
        assert divergence is not None
        if step is None:
            step = self._step_before(side)
            return None if step is None else Slices((self.a, self.b)[side]).of_step(step)
        is_board = divergence.path not in ("", "error", "route") and not divergence.path.startswith(("event:", "call:"))
        slices = Slices((self.a, self.b)[side])
        if not is_board:
            return slices.of_step(step)
        scope = self._map_scope(side, divergence.scope)
        return slices.of_write(scope, tuple(divergence.path.split(".")), step)

    def _step_before(self, side: int) -> int | None:
        """Return the last step of a run that both runs have, before the first divergence."""
        steps = [(row.pair.step_a, row.pair.step_b)[side] for row in self._list_rows_before()]
        return max((step for step in steps if step is not None), default=None)

    def _list_rows_before(self) -> list[Row]:
        rows = []
        for row in self.rows:
            if row.differences:
                break
            rows.append(row)
        return rows

    def _map_scope(self, side: int, scope: int) -> int:
        """Return the number of a scope in run `side`, given its number in the run that has the write."""
        if not scope:
            return 0
        names = self._keys[0].frames.get(scope) or self._keys[1].frames.get(scope)
        return next((number for number, name in self._keys[side].frames.items() if name == names), scope)

    # -- views --------------------------------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair of steps: change, node, frame, visit, step_a, step_b, paths.

        `change` is same, differs, only_a or only_b; `paths` lists the places that differ. Different inputs are a row of
        step 0 without a node.
        """
        from agentnb.trace.frames import make_table

        rows: list[dict[str, Any]] = []
        if self.start:
            rows.append({"change": "differs", "node": None, "frame": "root", "visit": None, "step_a": 0, "step_b": 0,
                         "paths": _get_paths(self.start)})  # fmt: skip
        for row in self.rows:
            key = row.pair.key
            steps = {"step_a": row.pair.step_a, "step_b": row.pair.step_b}
            rows.append({"change": row.change, "node": key.node, "frame": key.frame, "visit": row.pair.visit, **steps,
                         "paths": _get_paths(row.differences)})  # fmt: skip
        return make_table(rows, _TYPES)

    @plain_arguments
    def draw(self, board: bool = False, direction: str = "TB") -> Drawing:
        """Return one drawing with both routes.

        Blue nodes and edges were visited only by a, dashed orange ones only by b; a red border marks a node with
        different results, a filled node the first divergence. The counts are the steps in a and in b.
        """
        from agentnb.draw.overlay import draw_overlay

        recipe = _join_recipes(get_recipe(self.a), get_recipe(self.b))
        visits = self._count_visits()
        marks = self.node_marks()
        divergence = self.first_divergence
        counts = {node: _count(visits[0].get(node, 0), visits[1].get(node, 0)) for node in marks}
        tips = (
            {}
            if divergence is None or divergence.node is None
            else {divergence.node: f"first divergence: {divergence}"}
        )
        return draw_overlay(
            recipe, nodes=marks, edges=self._mark_edges(recipe), counts=counts, tips=tips, board=board,
            direction=direction, what="two runs of",
        )  # fmt: skip

    def _count_visits(self) -> tuple[dict[str, int], dict[str, int]]:
        visits: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for side, keys in enumerate(self._keys):
            for key in keys.keys:
                visits[side][key.node] = visits[side].get(key.node, 0) + 1
        return visits

    def node_marks(self) -> dict[str, tuple[str, ...]]:
        """Return the marks of each node that a run visited, as drawn: only-a, only-b, differs, parted."""
        visits, divergence = self._count_visits(), self.first_divergence
        differing = {row.pair.key.node for row in self.rows if row.change == "differs"}
        marks = {}
        for node in {**visits[0], **visits[1]}:
            own = ["visited"]
            if node not in visits[1]:
                own.append("only-a")
            elif node not in visits[0]:
                own.append("only-b")
            elif node in differing:
                own.append("differs")
            if divergence is not None and node == divergence.node:
                own.append("parted")
            marks[node] = tuple(own)
        return marks

    def _mark_edges(self, recipe: Recipe) -> dict[int, tuple[str, ...]]:
        taken = tuple({edge[:4] for step in range(1, len(keys.keys) + 1)
                       for edge in StepRows(keys).route(step)[2] if edge} for keys in self._keys)  # fmt: skip
        marks: dict[int, tuple[str, ...]] = {}
        for number, edge in enumerate(recipe.edges):
            in_a, in_b = (describe_edge(edge) in each for each in taken)
            if in_a or in_b:
                marks[number] = ("taken",) if in_a and in_b else ("taken", "only-a" if in_a else "only-b")
        return marks

    @property
    def verdicts(self) -> dict[str, bool]:
        """For each of the runs `a` and `b` that is a fork with an expectation: whether it holds."""
        sessions = {"a": get_session(self.a), "b": get_session(self.b)}
        holds = {name: session.expectation_holds for name, session in sessions.items() if session is not None}
        return {name: held for name, held in holds.items() if held is not None}

    def _format_verdict(self) -> list[str]:
        lines = []
        for name, is_met in self.verdicts.items():
            session = get_session(self.a if name == "a" else self.b)
            assert session is not None
            expectation = get_state(session).expectation
            text = "" if expectation is None else safe_str(expectation.text, 200)
            note = f" ({session.note})" if session.note else ""
            lines.append(f"{name} was expected to satisfy {text!r}{note}: {'it does' if is_met else 'it does not'}")
        return lines

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two runs."""
        run_names = [getattr(get_session(run), "name", None) or get_trace(run).agent_id for run in (self.a, self.b)]
        return safe_str(run_names[0], 200), safe_str(run_names[1], 200)

    def lines(self) -> list[str]:
        """Return the comparison as lines of text, without secrets."""
        a, b = self.names
        sizes = tuple(keys.reading.tip for keys in self._keys)
        lines = [
            f"a: {a}, {_format_steps_count(sizes[0])}",
            f"b: {b}, {_format_steps_count(sizes[1])}",
            *self._format_verdict(),
        ]
        divergence = self.first_divergence
        if divergence is None:
            return [*lines, "the runs do not differ"]
        counts = {change: sum(row.change == change for row in self.rows) for change in ("differs", "only_a", "only_b")}
        lines.append(f"first divergence, {divergence}")
        for name, part in zip("ab", self.slices, strict=True):
            if part is not None and len(part):
                lines.append(f"what led to it in {name}:")
                lines += [f"  {line}" for line in part.lines(6)]
        lines.append(
            f"aligned steps that differ: {counts['differs']}; only in a: {counts['only_a']}, in b: {counts['only_b']}"
        )
        lines += [f"  {each}" for each in islice(self.differences, 1, _MOST_LINES)]
        rest = len(self.differences) - _MOST_LINES
        return [*lines, f"  and {rest} more"] if rest > 0 else lines

    def __repr__(self) -> str:
        """Return the comparison as text, without secrets."""
        return "\n".join(["<Comparison>", *self.lines()])

    def _repr_html_(self) -> str:
        lines = escape("\n".join(self.lines()))
        return f'<div class="agentnb-comparison">{self.draw().svg}<pre>{lines}</pre></div>'


@plain_arguments
def compare(a: Any, b: Any) -> Comparison:
    """Return what differs between two runs: sessions, forks, traces, stored runs, runs of an edited recipe.

    Steps are aligned by node, frame and visit, so that a loop that runs once more shifts nothing after it.

    Raises:
        ExecutionError: A101, one of them is not a run.

    Example:
        >>> import agentnb as nb
        >>> recipe = nb.samples("refine")
        >>> a, b = nb.Session(recipe, {"number": 2.0}), nb.Session(recipe, {"number": 9.0})
        >>> _ = a.run(), b.run()
        >>> parted = nb.compare(a, b).first_divergence
        >>> parted.path, parted.a, parted.b
        ('number', 2.0, 9.0)
    """
    with masking_for_runs(a, b):
        return Comparison(a, b)


def _get_paths(differences: tuple[Difference, ...]) -> list[str]:
    return [safe_str(path) for path in dict.fromkeys(each.path for each in differences) if path]


def _join_recipes(a: Recipe, b: Recipe) -> Recipe:
    """Return a recipe with the nodes and edges of both."""
    from dataclasses import replace

    if a is b or a.fingerprint == b.fingerprint:
        return a
    known = {(edge.source, edge.target, edge.kind, edge.condition) for edge in a.edges}
    more = tuple(edge for edge in b.edges if (edge.source, edge.target, edge.kind, edge.condition) not in known)
    return replace(a, nodes={**b.nodes, **a.nodes}, edges=(*a.edges, *more), regions={**b.regions, **a.regions})


def _count(a: int, b: int) -> str:
    return f"×{a}" if a == b else f"×{a}/{b}"


def _format_steps_count(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _format_ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


__all__ = ["Comparison", "compare"]
