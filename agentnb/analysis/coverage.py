"""Coverage of many runs, and fault localization: the nodes, edges and conditions that failing runs visited.

Suspicion is the Ochiai coefficient (Abreu, Zoeteweij and van Gemund, "An evaluation of similarity coefficients for
software fault localization", PRDC 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from agentnb.analysis.judging import Judge
from agentnb.analysis.merged_rows import MergedColumns, MergedRows
from agentnb.analysis.runs import get_recipe, get_runs, get_trace, masking_for_runs
from agentnb.arguments import plain_arguments
from agentnb.engine.core.history import AGAIN, ENTER, ERROR, LEAVE, RUN, STATUS
from agentnb.engine.core.plan import describe_edge, match_edges
from agentnb.errors import ExecutionError, Problem
from agentnb.recipe.descriptions import CHOOSERS
from agentnb.secrets import masks_by, remember_masking
from agentnb.text import replace_surrogates, safe_repr, safe_str
from agentnb.trace.edge_rows import find_taken_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agentnb.draw.drawing import Drawing
    from agentnb.recipe.model import Recipe

_BRANCHING: Final = frozenset({"decision", "switch"})  # kinds that open one of several regions
_KINDS: Final = ("error", "node", "condition", "edge")  # at equal suspicion, the first of these kinds comes first
_TYPES: Final = {"element": "object", "kind": "category", "outcome": "object", "visits": "int64", "runs": "int64"}
_MOST_HEAT: Final = 5


class Element(NamedTuple):
    """A part of a recipe that a run may visit.

    `name` is a node's id, `source -> target` for an edge, or `node: text` for a condition; `outcome` is the value of
    the condition (True, False, or the name of a branch), None for other elements. `edge` is an index in `recipe.edges`,
    or -1. `kind` is node, edge, condition, or error: the node failed.
    """

    name: str
    kind: str
    outcome: Any = None
    edge: int = -1
    node: str = ""

    @property
    def text(self) -> str:
        """The element and its outcome as one text."""
        if self.kind == "error":
            return f"{self.name} failed"
        return self.name if self.outcome is None else f"{self.name} is {self.outcome}"


@masks_by(lambda shown: shown.masking())
class Coverage:
    """How often the runs visited each node, edge and outcome of a condition.

    `visits` maps each element to one number per run. Elements that no run visited are included.
    """

    def __init__(self, recipe: Recipe, visits: Mapping[Element, NDArray[np.int64]], runs: int) -> None:
        self.recipe, self.visits, self.runs = recipe, visits, runs
        self.masking = remember_masking()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per element: element, kind (node, edge, condition), outcome, visits, runs.

        `outcome` is NA except for conditions; `runs` counts the runs that visited the element.
        """
        from agentnb.trace.frames import make_table

        rows = [
            {"element": safe_str(element.name), "kind": element.kind,
             "outcome": pd.NA if element.outcome is None else element.outcome,
             "visits": int(counts.sum()), "runs": int((counts > 0).sum())}
            for element, counts in self.visits.items() if element.kind != "error"
        ]  # fmt: skip
        return make_table(rows, _TYPES)

    @property
    def unvisited(self) -> list[str]:
        """The elements that no run visited."""
        return [element.text for element, counts in self.visits.items()
                if element.kind != "error" and not counts.any()]  # fmt: skip

    @plain_arguments
    def draw(self, board: bool = False, direction: str = "TB") -> Drawing:
        """Return the recipe's drawing as a heat map: the more visits, the darker a node and the wider an edge."""
        totals = {element: int(counts.sum()) for element, counts in self.visits.items()}
        highest = max(totals.values(), default=0) or 1
        shares = {element: visits / highest for element, visits in totals.items()}
        counts = {element.name: f"×{visits}" for element, visits in totals.items() if element.kind == "node" and visits}
        return _draw_heat_map(self.recipe, shares, counts, board=board, direction=direction, what="coverage of")

    def __repr__(self) -> str:
        """Return one line: how many nodes, edges and outcomes were visited."""
        parts = []
        for kind, name in (("node", "nodes"), ("edge", "edges"), ("condition", "outcomes of conditions")):
            visited = [counts.any() for element, counts in self.visits.items() if element.kind == kind]
            parts += [f"{sum(visited)} of {len(visited)} {name}"] if visited else []
        return f"<Coverage of {self.runs} runs: {', '.join(parts) or 'nothing to visit'}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = self.draw()._repr_mimebundle_(include, exclude)
        return bundle | {"text/plain": repr(self)}


class Suspects(pd.DataFrame):
    """A ranking of elements by suspicion, a DataFrame that can also be drawn on the graph."""

    _metadata = ("ranking", "recipe")
    ranking: Mapping[Element, float]
    recipe: Recipe

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    @plain_arguments
    def draw(self, board: bool = False, direction: str = "TB") -> Drawing:
        """Return the recipe's drawing as a heat map of suspicion."""
        counts = {element.name: f"{share:.2f}" for element, share in self.ranking.items()
                  if element.kind == "node" and share}  # fmt: skip
        return _draw_heat_map(self.recipe, self.ranking, counts, board=board, direction=direction, what="suspects in")


@plain_arguments
def coverage(runs: Any) -> Coverage:
    """Return how often runs visited the nodes, edges and outcomes of conditions of their recipe.

    Args:
        runs: an iterable of runs, one run, a Sweep, or a store. Parts of all their recipes are listed.

    Raises:
        ExecutionError: A101, one of them is not a run; A103, there are no runs.
    """
    run_list = get_runs(runs, "nb.coverage()")
    with masking_for_runs(*run_list):
        return _measure(run_list, "nb.coverage()")


@plain_arguments
def suspects(runs: Any, ok: Any) -> Suspects:
    """Return the elements of a recipe, ranked by how likely they are at fault.

    The columns are element, kind, failed and passed (how many wrong and right runs visited it) and ochiai, from 0 to 1.
    Elements that no wrong run visited are omitted.

    Args:
        runs: an iterable of runs, one run, a Sweep, or a store.
        ok: which runs are right: a function of a run, or one truth value per run, in order. A run for which the
            function raises is wrong.

    Raises:
        ExecutionError: A101, one of them is not a run; A103, there are no runs; A104, there is not one value per run;
            A118, the function raised for every run.
    """
    run_list = get_runs(runs, "nb.suspects()")
    with masking_for_runs(*run_list):
        return _rank(run_list, ok)


def _rank(run_list: list[Any], ok: Any) -> Suspects:
    covered = _measure(run_list, "nb.suspects()")
    right = np.array(_judge_all(ok, run_list) if callable(ok) else _get_values(ok, len(run_list)), dtype=bool)
    failures = int((~right).sum())
    rows: list[tuple[Element, int, int, float]] = []
    for element, counts in covered.visits.items():
        failed, passed = int((counts > 0)[~right].sum()), int((counts > 0)[right].sum())
        if failed:
            rows.append((element, failed, passed, failed / sqrt(failures * (failed + passed))))
    # stable: equal elements stay in the order of the recipe
    rows.sort(key=lambda row: (-row[3], _KINDS.index(row[0].kind)))
    result = Suspects(
        {
            "element": [replace_surrogates(safe_str(element.text)) for element, *_ in rows],
            "kind": pd.Categorical([element.kind for element, *_ in rows], categories=_KINDS),
            "failed": np.array([failed for _, failed, _, _ in rows], dtype=np.int64),
            "passed": np.array([passed for _, _, passed, _ in rows], dtype=np.int64),
            "ochiai": np.array([score for *_, score in rows], dtype=float),
        }
    )
    result.ranking, result.recipe = {element: score for element, _, _, score in rows}, covered.recipe
    return result


def _judge_all(ok: Callable[[Any], Any], runs: list[Any]) -> list[bool]:
    judge = Judge(ok, "nb.suspects()")
    right = [judge.is_right(run) for run in runs]
    judge.check()
    return right


def _get_values(ok: Iterable[Any], size: int) -> list[bool]:
    verdicts = [bool(value) for value in ok] if isinstance(ok, Iterable) else []
    if len(verdicts) != size:
        raise ExecutionError(
            Problem("A104", f"ok has {len(verdicts)} values for {size} runs", "nb.suspects()",
                    "each run is either right or wrong", "pass one truth value per run, or a function of a run")
        )  # fmt: skip
    return verdicts


def _measure(runs: list[Any], where: str) -> Coverage:
    """Return the coverage of several runs.

    A103: there are no runs to analyze.
    """
    if not runs:
        raise ExecutionError(
            Problem("A103", "there are no runs", where, "what was visited is counted over runs",
                    "pass at least one run, or a store that has some")
        )  # fmt: skip
    groups: dict[Any, list[int]] = {}
    readings = [get_trace(run, where).reading() for run in runs]
    for index, reading in enumerate(readings):
        groups.setdefault((reading.nodes, reading.edges), []).append(index)
    visits: dict[Element, NDArray[np.int64]] = {}
    recipe = get_recipe(runs[next(iter(groups.values()))[0]])
    for indices in groups.values():
        own = get_recipe(runs[indices[0]])
        rows = _Visits(MergedRows([readings[index] for index in indices]), own, len(indices))
        for element, counts in rows.every():
            total = visits.setdefault(element, np.zeros(len(runs), dtype=np.int64))
            total[indices] += counts
    return Coverage(recipe, visits, len(runs))


@dataclass
class _Visits:
    """The visits of runs of one recipe."""

    merged: MergedRows
    recipe: Recipe
    runs: int

    @cached_property
    def columns(self) -> MergedColumns:
        return MergedColumns(self.merged)

    def _count(self, steps: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many of these steps each run has."""
        return np.bincount(self.merged.runs_of(steps), minlength=self.runs).astype(np.int64)

    def every(self) -> Iterator[tuple[Element, NDArray[np.int64]]]:
        """Yield each element with the number of its visits in each run."""
        columns = self.columns
        steps = np.arange(1, columns.tip + 1)
        phase, failed = columns.flag & 3, (columns.flag & STATUS) == ERROR
        entered = (phase == RUN) | (phase == ENTER)
        for number, row in enumerate(self.merged.nodes):
            rows = columns.node == number
            yield Element(row.id, "node", node=row.id), self._count(steps[rows & entered])
            if (rows & failed).any():
                yield Element(row.id, "error", node=row.id), self._count(steps[rows & failed])
        yield from self._iter_edges(steps, phase, failed)
        yield from self._iter_branches()
        yield from self._loops(steps, phase)
        yield from self._filters()

    def _iter_edges(
        self, steps: NDArray[Any], phase: NDArray[Any], failed: NDArray[np.bool_]
    ) -> Iterator[tuple[Element, NDArray[np.int64]]]:
        columns, rows = self.columns, self.merged.edges
        edges_taken = find_taken_edges(columns)
        kinds = {row.id: row.kind for row in self.merged.nodes}
        pairs = [(row.source, row.target) for row in rows]
        taken = [edges_taken.steps[edges_taken.edge == at] for at in range(len(rows))]
        places = match_edges([row[:4] for row in rows], map(describe_edge, self.recipe.edges))
        for at, row in enumerate(rows):
            name = f"{row.source} -> {row.target}"
            if pairs.count((row.source, row.target)) > 1:
                name += f" [{row.condition or row.kind}]"
            yield Element(name, "edge", edge=places[at]), self._count(taken[at])
        index = {row.id: number for number, row in enumerate(self.merged.nodes)}
        for at, row in enumerate(rows):
            if not row.asks or kinds[row.source] in CHOOSERS:
                continue
            ended = (columns.node == index[row.source]) & ((phase == RUN) | (phase == LEAVE)) & ~failed
            decisions = steps[ended]
            if self.recipe.routing == "first" and row.kind != "parallel":
                ahead = [
                    taken[other]
                    for other, each in enumerate(rows)
                    if each.source == row.source
                    and places[other] < places[at]
                    and each.kind not in ("parallel", "error", "timeout")
                ]
                if ahead:
                    decisions = np.setdiff1d(decisions, np.concatenate(ahead))
            name = f"{row.source}: {row.condition or 'a function'}"
            yield (
                Element(name, "condition", outcome=True, node=row.source),
                self._count(np.intersect1d(decisions, taken[at])),
            )
            yield (
                Element(name, "condition", outcome=False, node=row.source),
                self._count(np.setdiff1d(decisions, taken[at])),
            )

    def _iter_branches(self) -> Iterator[tuple[Element, NDArray[np.int64]]]:
        """Yield the regions of decisions and switches, with the number of times each was opened."""
        frames, nodes = self.merged.tables.frames, self.merged.nodes
        run, opened = -1, dict[tuple[str, str], list[int]]()
        for row in frames[1:]:  # the frames of a run follow its root
            if row.owner < 0:
                run += 1
            elif nodes[row.owner].kind in _BRANCHING:
                opened.setdefault((nodes[row.owner].id, row.region), []).append(run)
        for node in self.recipe.nodes.values():
            for body in node.bodies if node.kind in _BRANCHING else ():
                opening_runs = np.array(opened.get((node.id, body), []), dtype=np.int64)
                question = node.params.get("predicate") or node.params.get("discriminator")
                region = self.recipe.regions.get(body)
                name = f"{node.id}: {getattr(question, 'text', None) or node.kind}"
                outcome = body if region is None else region.title or body
                yield (Element(name, "condition", outcome, node=node.id),
                       np.bincount(opening_runs, minlength=self.runs).astype(np.int64))  # fmt: skip

    def _loops(self, steps: NDArray[Any], phase: NDArray[Any]) -> Iterator[tuple[Element, NDArray[np.int64]]]:
        """Yield the outcomes of loop conditions, evaluated before each iteration (`while`) or after it (`until`)."""
        index = {row.id: number for number, row in enumerate(self.merged.nodes)}
        goes_on = {"while": (True, (ENTER, AGAIN), (RUN, LEAVE)), "until": (False, (AGAIN,), (LEAVE,))}
        for node in self.recipe.nodes.values():
            for word, (outcome, repeated, ended) in goes_on.items() if node.kind == "loop" and node.id in index else ():
                condition = node.params.get(word)
                if condition is None:
                    continue
                name = f"{node.id}: {getattr(condition, 'text', None) or 'a function'}"
                rows = self.columns.node == index[node.id]
                for answer, phases in ((outcome, repeated), (not outcome, ended)):
                    counts = self._count(steps[rows & np.isin(phase, phases)])
                    yield Element(name, "condition", outcome=answer, node=node.id), counts

    def _filters(self) -> Iterator[tuple[Element, NDArray[np.int64]]]:
        """Yield the outcomes of behavior filters: events of their types that were delivered or not."""
        filtered = [node for node in self.recipe.nodes.values() if node.on and node.params.get("where")]
        if not filtered:
            return
        index = {row.id: number for number, row in enumerate(self.merged.nodes)}
        delivered = {
            (activation.node, activation.event)
            for activation in self.merged.tables.activations
            if activation.event >= 0
        }
        events = self.merged.events()
        runs = self.merged.runs_of(np.array([event.at for event in events], dtype=np.int64)).tolist()
        for node in filtered:
            counts = {answer: np.zeros(self.runs, dtype=np.int64) for answer in (True, False)}
            for event, run in zip(events, runs, strict=True):
                if event.type in node.on:
                    counts[(index.get(node.id), event.seq) in delivered][run] += 1
            name = f"{node.id}: {safe_repr(node.params['where'], 200)}"
            for answer, visits in counts.items():
                yield Element(name, "condition", outcome=answer, node=node.id), visits


def _draw_heat_map(recipe: Recipe, shares: Mapping[Element, float], counts: Mapping[str, str], **look: Any) -> Drawing:
    from agentnb.draw.overlay import draw_overlay

    def to_heat_class(share: float) -> tuple[str, ...]:
        return (f"heat-{max(1, min(_MOST_HEAT, 1 + int(share * _MOST_HEAT)))}",)

    nodes = {element.name: ("visited", *to_heat_class(share)) for element, share in shares.items()
             if element.kind == "node" and share > 0}  # fmt: skip
    edges = {element.edge: to_heat_class(share) for element, share in shares.items() if element.edge >= 0 and share > 0}
    return draw_overlay(recipe, nodes=nodes, edges=edges, counts=counts, **look)


__all__ = ["Coverage", "Element", "Suspects", "coverage", "suspects"]
