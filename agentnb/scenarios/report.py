"""The report of a scenario run: one result each, as text, as a table in a notebook, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final, overload

from agentnb.errors import Problem
from agentnb.scenarios.compare import Mismatch, to_displayed
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.session import Session

COLUMNS: Final = (
    *("scenario", "about", "compare", "passed", "score", "status"),
    *("steps", "seconds", "problem", "expected", "actual"),
)
# Colors legible on white and on black; JupyterLab's own where available.
_MARKS: Final = {
    True: ("✓ passed", "var(--jp-success-color1, #2e8b57)"),
    False: ("✗ failed", "var(--jp-error-color1, #d9534f)"),
}
_CELL: Final = "text-align:left;vertical-align:top;padding:2px 10px;border-top:1px solid #8884"
_HEAD: Final = ("", "scenario", "score", "steps", "seconds", "differences")


@dataclass(frozen=True, slots=True, repr=False)
class ScenarioResult:
    """The result of one scenario. Its values are unmasked; everything displayed is masked.

    Attributes:
        passed: whether the run finished with the expected values.
        score: 0 to 1; None if nothing was compared.
        status: the final status of the run: finished, failed, exhausted, waiting ...
        seconds: the duration of the run by the session's clock, without the judge.
        problem: what prevented the run's end or its judgment; None if only values differ.
        expected: the expected values by board key; None: only that the run ends well.
        actual: the final values of those keys; without `expected`, the whole board.
        mismatches: each place that differs.
        reason: the judge's reason.
        session: the run itself, to be stepped through; None if it could not start.
    """

    id: str
    about: str
    compare: str
    passed: bool
    score: float | None
    status: str
    steps: int
    seconds: float
    problem: Problem | None
    expected: Mapping[str, Any] | None
    actual: Mapping[str, Any]
    mismatches: tuple[Mismatch, ...] = ()
    reason: str = ""
    session: Session | None = field(default=None, compare=False)

    @property
    def description(self) -> str | None:
        """What is wrong, on one line without secrets; None if it passed."""
        if self.passed:
            return None
        if self.problem is not None:
            return _to_line(f"{self.problem.code}: {self.problem.what}")
        if not self.mismatches:
            return _to_line(f"the judge: {self.reason or 'it is not as expected'}")
        more = f"; and {len(self.mismatches) - 3} more" if len(self.mismatches) > 3 else ""
        return _to_line("; ".join(map(str, self.mismatches[:3])) + more)

    def row(self) -> dict[str, Any]:
        """Return this result as a row of the report's table, with secrets masked."""
        values = (
            *(safe_str(self.id), safe_str(self.about), self.compare, self.passed, self.score, self.status),
            *(self.steps, self.seconds, self.description, to_displayed(self.expected), to_displayed(self.actual)),
        )
        return dict(zip(COLUMNS, values, strict=True))

    def __str__(self) -> str:
        """Return one line: passed or FAILED, its id, the score, the duration, what is wrong."""
        mark = "passed" if self.passed else "FAILED"
        description = "" if self.description is None else f"  {self.description}"
        return f"{mark}  {_to_line(self.id):<24} {_score(self.score):>6} {self.seconds:>8.2f} s{description}"

    def __repr__(self) -> str:
        """Return the same in brackets: the values themselves may be secrets."""
        return f"<ScenarioResult {' '.join(str(self).split())}>"


class ScenarioReport(Sequence[ScenarioResult]):
    """The results of a recipe's scenarios, in the order in which they ran; `report["id"]` is the result of that id.

    Attributes:
        recipe: the recipe's name.
        results: a ScenarioResult for each scenario.
    """

    def __init__(self, recipe: str, results: Sequence[ScenarioResult]) -> None:
        self.recipe, self.results = recipe, tuple(results)

    @property
    def ok(self) -> bool:
        """True if every scenario passed."""
        return all(result.passed for result in self.results)

    @property
    def passed(self) -> int:
        """The number of scenarios that passed."""
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> int:
        """The number of scenarios that did not pass."""
        return len(self.results) - self.passed

    @property
    def counts(self) -> str:
        """The numbers passed and failed, as text."""
        parts = [f"{self.passed} passed"] if self.passed or not self.failed else []
        return ", ".join([*parts, *([f"{self.failed} failed"] if self.failed else [])])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per scenario: scenario, about, compare, passed, score, status, steps, seconds, problem, ...

        `problem` is what is wrong, on one line, NA if it passed; `expected` and `actual` are the values by key. Secrets
        are masked.
        """
        from agentnb.trace.frames import make_table

        return make_table([result.row() for result in self.results]).astype({"score": "Float64", "problem": "string"})

    @overload
    def __getitem__(self, key: int | str) -> ScenarioResult: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[ScenarioResult, ...]: ...
    def __getitem__(self, key: int | str | slice) -> ScenarioResult | tuple[ScenarioResult, ...]:
        """Return a result by its index or by the scenario's id."""
        if isinstance(key, str):
            found = next((result for result in self.results if result.id == key), None)
            if found is None:
                raise KeyError(key)
            return found
        return self.results[key]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[ScenarioResult]:
        return iter(self.results)

    def __repr__(self) -> str:
        """Return how many passed, then one line per result."""
        head = f"<ScenarioReport {safe_repr(self.recipe, 200)}: {self.counts}>"
        return "\n".join([head, *(f"  {result}" for result in self.results)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("..." if cycle else repr(self))  # IPython would print it as a sequence

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="{_CELL};opacity:.65;white-space:nowrap">{word}</th>' for word in _HEAD)
        rows = "".join(map(_format_row, self.results))
        title = f"<p><strong>{escape(self.recipe)}</strong>: {self.counts}</p>"
        table = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        return f'{title}<table style="color:inherit;border-collapse:collapse">{table}</table>'


def _format_row(result: ScenarioResult) -> str:
    word, color = _MARKS[result.passed]
    description = (
        f'<div style="opacity:.65;overflow-wrap:anywhere">{escape(safe_str(result.about))}</div>'
        if result.about
        else ""
    )
    cells = (
        f'<span style="color:{color};white-space:nowrap">{word}</span>',
        f"<b>{escape(safe_str(result.id))}</b>{description}",
        _score(result.score),
        str(result.steps),
        f"{result.seconds:.2f}",
        _format_mismatches(result),
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _format_mismatches(result: ScenarioResult) -> str:
    description = f'<span style="overflow-wrap:anywhere">{escape(result.description or "")}</span>'
    if result.passed or result.problem is None:
        return description
    return f'{description}<div style="opacity:.65">{escape(_to_line(result.problem.do))}</div>'


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def _to_line(text: str) -> str:
    """Return a text on one line without terminal control characters."""
    text = " ".join(safe_str(text).split())
    return text if text.isprintable() else safe_repr(text, limit=400)
