"""`Session.replay` and its report: a row for each difference, and a text summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT
from agentnb.engine.replay.divergence import LEVELS, Divergence
from agentnb.engine.replay.runner import Replay
from agentnb.errors import ExecutionError, Problem, ReplayDivergence, did_you_mean
from agentnb.secrets import Masking, masks_by, remember_masking
from agentnb.session.checks import check_not_running
from agentnb.session.recipe_swap import make_replay_plan
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    import pandas as pd

    from agentnb.recipe.model import Recipe
    from agentnb.session.rollback import Rollback
    from agentnb.session.state import State

SHOWN: Final = 5  # number of differences that the report prints
_COLUMNS: Final = {
    "step": "Int64", "node": "category", "what": "category", "path": object, "recorded": object, "replayed": object,
}  # fmt: skip
_CELL: Final = "text-align:left;vertical-align:top;padding:2px 10px;border-top:1px solid #8884"


def replay(state: State, rollback: Rollback, from_step: int, recipe: Recipe | None, strict: str) -> ReplayReport:
    """Replay a session up to its current position; the session does not change, and no tool or model is called.

    Raises:
        ExecutionError: X112, it is running; L431, there is no such level; L432, the run is not past such a step.
        RecipeError: the other recipe has errors.
    """
    # With a recipe, a run that can only be read is replayed as well
    if state.read_only_reason is None or recipe is None:
        check_not_running(state, "replay()")
    rollback.repair()
    run = state.run
    if state.replayable_from and isinstance(from_step, int):
        from_step = max(from_step, state.replayable_from)
    if strict not in LEVELS:
        raise ExecutionError(
            Problem("L431", f"there is no level {strict!r} to compare on", "session.replay(strict=...)",
                    f"the levels are: {', '.join(LEVELS)}; each compares more than the previous one",
                    did_you_mean(str(strict), LEVELS, "use one of them"))
        )  # fmt: skip
    if isinstance(from_step, bool) or not isinstance(from_step, int) or not 0 <= from_step <= run.position:
        raise ExecutionError(
            Problem("L432", f"there is no step {from_step!r} to start after", "session.replay(from_step=...)",
                    f"the session is at step {run.position} and replays the steps up to there",
                    f"pass a number from 0 to {run.position}")
        )  # fmt: skip
    plan = None if recipe is None else make_replay_plan(run, recipe)
    state.sync_calls += 1  # functions that nodes call may not move the session
    try:
        report = Replay(run, plan=plan, start=from_step, level=strict).execute()  # type: ignore[arg-type]  # as just asked
    finally:
        state.sync_calls -= 1
    steps = (from_step, run.position)
    return ReplayReport(
        state.name, strict, steps, report.compared_steps, tuple(report.divergences), tuple(report.unsure)
    )


@masks_by(lambda shown: shown.masking())
@dataclass(frozen=True, slots=True, repr=False)
class ReplayReport:
    """The result of a replay. `ok` is true if nothing differs and every step could be replayed.

    Attributes:
        strict: what was compared: path, values, reads.
        steps: the step after which it began, and the last one of the record.
        compared: how many steps were replayed; cancelled ones are skipped.
        divergences: every difference, in the order of the steps, including those that follow from another.
        unsure: the paths for which a difference cannot be determined: masked values, objects stored by reference.
    """

    name: str
    strict: str
    steps: tuple[int, int]
    compared: int
    divergences: tuple[Divergence, ...] = ()
    unsure: tuple[Divergence, ...] = ()
    masking: Callable[[], Masking] = field(default_factory=remember_masking, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.divergences

    @property
    def first_divergence(self) -> Divergence | None:
        """The first difference; None if there is none."""
        return self.divergences[0] if self.divergences else None

    @property
    def ended(self) -> Divergence | None:
        """The difference after which the replay could not continue; None if it reached the end of the record."""
        return next((row for row in self.divergences if row.ends), None)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per difference: step, node, what, path, recorded, replayed; secrets masked, NA if absent."""
        from agentnb.trace.frames import make_table, to_cell

        rows = [
            {"step": row.step, "node": row.node, "what": row.what, "path": safe_str(row.path),
             "recorded": to_cell(row.recorded, row.path), "replayed": to_cell(row.replayed, row.path)}
            for row in self.divergences
        ]  # fmt: skip
        return make_table(rows, _COLUMNS)

    def raise_for_divergence(self) -> ReplayReport:
        """Return this report if nothing differs.

        L430: a replay differs from what was recorded.

        Raises:
            ReplayDivergence: L430, names the first difference.
        """
        first = self.first_divergence
        if first is None:
            return self
        more = f"; {len(self.divergences) - 1} more in the report" if len(self.divergences) > 1 else ""
        raise ReplayDivergence(
            Problem("L430", str(first), f"session {self.name!r}, replay(strict={self.strict!r})",
                    f"the nodes ran again on the recorded answers and gave different results{more}",
                    "see report.to_frame(): undo the change, or pass external data to functions as inputs")
        )  # fmt: skip

    def _format_head(self) -> str:
        first, last = self.steps
        span = f"steps {first + 1} to {last}" if last > first else "no step"
        if self.ok:
            return f"{span} replayed, nothing differs ({self.strict})"
        size = len(self.divergences)
        counted = "1 difference" if size == 1 else f"{size} differences"
        return f"{span}: {counted} ({self.strict})"

    def _format_tail(self) -> list[str]:
        lines = [f"and {len(self.divergences) - SHOWN} more"] if len(self.divergences) > SHOWN else []
        if self.ended is not None:
            remaining = self.steps[1] - self.ended.step
            note = f", {remaining} steps before the end of the record" if remaining > 1 else ""
            lines.append(f"the replay ended at step {self.ended.step}{note}")
        if self.unsure:
            places = dict.fromkeys(safe_str(f"{row.path or row.what} (step {row.step})") for row in self.unsure)
            lines.append(
                f"not known here (masked, or by reference), so it cannot be compared: {_join_fields(list(places))}"
            )
        return lines

    def __repr__(self) -> str:
        """Return a text summary: the first differences, and where the replay ended."""
        lines = [
            f"<ReplayReport of {safe_repr(self.name, 200)}: {self._format_head()}>",
            *map(str, self.divergences[:SHOWN]),
            *self._format_tail(),
        ]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        head = f"<p><strong>{escape(safe_str(self.name))}</strong>: {escape(self._format_head())}</p>"
        header = "".join(f'<th style="{_CELL};opacity:.65">{word}</th>' for word in _COLUMNS)
        rows = "".join(map(_format_row, self.divergences[:SHOWN]))
        table = f'<table style="color:inherit;border-collapse:collapse"><thead><tr>{header}</tr></thead>{rows}</table>'
        tail = "".join(f"<p>{escape(line)}</p>" for line in self._format_tail())
        return head + (table if self.divergences else "") + tail


def _format_row(row: Divergence) -> str:
    values = ("" if value is ABSENT else safe_repr(value, key=row.key) for value in (row.recorded, row.replayed))
    cells = (str(row.step), safe_str(row.node or ""), row.what, safe_str(row.path), *values)
    line = "".join(f'<td style="{_CELL};overflow-wrap:anywhere">{escape(cell)}</td>' for cell in cells)
    heading = f'<td style="{_CELL};border:none;opacity:.65" colspan="6">{escape(str(row))}</td>'
    return f"<tr>{line}</tr><tr>{heading}</tr>"


def _join_fields(values: Sequence[Any]) -> str:
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(values[:SHOWN]) + more


__all__ = ["ReplayReport", "replay"]
