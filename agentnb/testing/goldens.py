"""Recording goldens and replaying them; see `agentnb.recordings.golden_files` for the file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agentnb.arguments import plain_arguments
from agentnb.engine.replay.divergence import Divergence
from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean, format_error
from agentnb.recipe.model import Recipe
from agentnb.recordings.golden_files import find_redacted_paths, matches, open_golden, to_json_text
from agentnb.session.session import Session
from agentnb.session.state import get_state

if TYPE_CHECKING:
    import pandas as pd

Level = Literal["route", "values", "reads", "calls"]
LEVELS: Final[tuple[Level, ...]] = ("route", "values", "reads", "calls")
USUAL: Final = ("route", "values", "calls")
# The differences that each level is about; those after which a replay cannot continue always count.
_ABOUT: Final[Mapping[str, frozenset[str]]] = {
    "route": frozenset({"node", "frame", "phase", "error", "edge", "act"}),
    "values": frozenset({"write", "event"}),
    "reads": frozenset({"read"}),
    "calls": frozenset({"call", "setting"}),
}
_COLUMNS: Final = {
    "golden": "object", "recipe": "object", "ok": "bool", "step": "Int64", "node": "object", "what": "object",
    "path": "object", "recorded": "object", "replayed": "object", "differences": "int64", "reason": "object",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GoldenReport:
    """What a golden and a recipe have shown.

    Attributes:
        golden: the path of the file.
        recipe: the name of the recipe.
        steps: how many steps were replayed.
        differences: the differences at the levels that must hold, in order; without the declared volatile paths.
    """

    golden: str
    recipe: str
    steps: int
    differences: tuple[Divergence, ...]

    @property
    def ok(self) -> bool:
        """Whether everything that must hold holds."""
        return not self.differences

    def __str__(self) -> str:
        """Return the differences, one per line: step, node, path and both values."""
        name = Path(self.golden).stem
        if self.ok:
            return f"golden {name!r} matches {self.recipe!r}: {self.steps} steps"
        lines = [f"golden {name!r} does not match {self.recipe!r}:"]
        lines += [f"  {row}" for row in self.differences[:10]]
        if len(self.differences) > 10:
            lines.append(f"  and {len(self.differences) - 10} more")
        return "\n".join([*lines, f"  file: {self.golden}; record it again with: pytest --update-goldens"])


@plain_arguments
def record_golden(
    session: Session,
    path: str | os.PathLike[str],
    redact: Sequence[str] = (),
    holds: Collection[Level] = USUAL,
) -> Path:
    """Write the run of a session to a golden; a session before its first step is run first. Secrets are masked.

    Args:
        redact: volatile paths that are not recorded: on the board (`answer.id`), in calls
            (`calls.NAME.arguments.when`, `calls.NAME.result.id`) or in events (`events.TYPE.id`); `*` stands for any
            one part. A golden that would not hold any more, because a route or another value depends on a redacted
            one, is not written.
        holds: what must be as recorded when the golden is replayed; see `replay_golden`.

    Raises:
        ExecutionError: L582, there is no such level, or none; L584, nothing in the run is at a redacted path; L585, the
            golden does not hold without a redacted value; L586, the run has no step.
    """
    levels, paths = _check_levels(holds), (redact,) if isinstance(redact, str) else tuple(redact)
    is_read_only = get_state(session).read_only_reason is not None
    if not session.position and not is_read_only:
        session.run()
    if not len(session.trace):
        raise ExecutionError(
            Problem("L586", "there is nothing to record: the run has no step", f"session {session.name!r}",
                    f"its status is {session.status}; a golden without steps would match every recipe",
                    "run it first, with its inputs, answers or events")
        )  # fmt: skip
    text = to_json_text(session.trace, paths)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_name(f".{target.name}.new")
    try:
        written.write_text(text, encoding="utf-8")
        if paths and not is_read_only:
            _check_redacted(replay_golden(session.recipe, written, levels), paths)
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)
    return target


def _check_redacted(report: GoldenReport, redact: Sequence[str]) -> None:
    """Raise if a run does not repeat itself without its redacted values.

    L585: a golden would not hold, because something depends on a redacted value.
    """
    if report.ok:
        return
    first = report.differences[0]
    if first.what in {"write", "call", "event"}:
        subject = {"write": f"{first.path!r}", "call": "this argument", "event": "this event"}[first.what]
        do = f"redact {subject} too, or neither of the two"
    else:
        do = "do not redact what it depends on; make it the same in each run instead: clock=, seed=, llm=, answers="
    raise ExecutionError(
        Problem("L585", f"without the redacted values, the golden does not match: {first}", f"redact={list(redact)!r}",
                "in a replay nodes and conditions run again on redacted values, and this one needs the real one",
                do)
    )  # fmt: skip


def _check_levels(holds: Collection[Level] | str) -> tuple[Level, ...]:
    """Return the levels that must hold.

    L582: there is no such level, or none is given.

    Raises:
        ExecutionError: L582, there is no such level, or none.
    """
    levels = cast("tuple[Level, ...]", (holds,) if isinstance(holds, str) else tuple(holds))
    unknown = [level for level in levels if level not in LEVELS]
    if levels and not unknown:
        return levels
    what = f"there is no level {unknown[0]!r}" if unknown else "no level is selected, so nothing would be compared"
    do = "name some of them"
    raise ExecutionError(
        Problem("L582", what, "holds=...", f"the levels are: {', '.join(LEVELS)}",
                did_you_mean(str(unknown[0]), LEVELS, do) if unknown else f"{do}, or leave `holds` out")
    )  # fmt: skip


@plain_arguments
def replay_golden(
    recipe: Recipe | Session, path: str | os.PathLike[str], holds: Collection[Level] = USUAL
) -> GoldenReport:
    """Replay a golden with a recipe; no model, tool or person is called.

    Args:
        recipe: a recipe, or a session, of which only the recipe is used.
        holds: what must be as recorded: `route` (nodes, frames, edges, failures), `values` (writes and events),
            `reads`, `calls` (what is sent to whom: arguments, and the settings of the tool or the model in the recipe).

    Raises:
        StoreError: L580, the golden is missing or damaged.
        RecipeError: the recipe has errors.
        ExecutionError: L582, there is no such level, or none.
    """
    holds = _check_levels(holds)
    known = recipe.recipe if isinstance(recipe, Session) else recipe
    recorded = open_golden(os.fspath(path))
    strict = "reads" if "reads" in holds else "values" if {"values", "calls"} & set(holds) else "path"
    report = recorded.replay(recipe=known, strict=strict)  # type: ignore[arg-type]  # one of the levels
    volatile = [_shorten_pattern(pattern) for pattern in find_redacted_paths(os.fspath(path))]
    aspects = frozenset[str]().union(*(_ABOUT[level] for level in holds))
    divergences = [row for row in report.divergences if row.ends or row.what in aspects]
    divergences = [row for row in divergences if not any(matches(_find_parts(row), pattern) for pattern in volatile)]
    return GoldenReport(os.fspath(path), known.name, report.compared, tuple(divergences))


def _find_parts(row: Divergence) -> list[str]:
    """Return the path of a difference in the form of a shortened pattern."""
    prefix = {"call": ["calls"], "setting": ["settings"], "event": ["events"]}.get(row.what, [])
    return [*prefix, *row.path.split(".")]


def _shorten_pattern(pattern: str) -> list[str]:
    """Return the parts of a redacted path; that of a call's arguments without this word, as differences have it."""
    parts = pattern.split(".")
    if parts[0] == "calls" and "arguments" in parts[2:]:  # a call's name may have dots
        parts.pop(parts.index("arguments", 2))
    return parts


def list_goldens(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files of goldens in these places: a folder stands for the `.jsonl` files in it."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    return files


@plain_arguments
def replay_goldens(
    goldens: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    recipes: Recipe | Iterable[Recipe] | Mapping[str, Recipe],
    holds: Collection[Level] = USUAL,
) -> pd.DataFrame:
    """Replay every golden with every recipe; return one row for each pair.

    Columns: golden, recipe, ok, and of the first difference: step, node, what, path, recorded, replayed, reason;
    `differences` counts them. A golden that does not fit a recipe at all is a row with `ok` False and the reason.

    Args:
        goldens: a folder, or paths of files or folders.
        recipes: a recipe, several, or a mapping of names of your own to recipes.

    Raises:
        ExecutionError: L582, there is no such level, or none.
    """
    holds = _check_levels(holds)
    from agentnb.trace.frames import make_table, to_cell

    paths = list_goldens([goldens] if isinstance(goldens, str | os.PathLike) else goldens)
    named = {recipes.name: recipes} if isinstance(recipes, Recipe) else recipes
    pairs = list(named.items()) if isinstance(named, Mapping) else [(recipe.name, recipe) for recipe in named]
    rows: list[dict[str, Any]] = []
    for path in paths:
        for name, recipe in pairs:
            row: dict[str, Any] = dict.fromkeys(_COLUMNS)
            row |= {"golden": Path(path).stem, "recipe": name, "ok": False, "differences": 1}
            try:
                report = replay_golden(recipe, path, holds)
            except (ExecutionError, RecipeError) as error:
                rows.append({**row, "reason": format_error(error)})
                continue
            row |= {"ok": report.ok, "differences": len(report.differences)}
            if report.differences:
                first = report.differences[0]
                row |= {
                    "step": first.step,
                    "node": first.node,
                    "what": first.what,
                    "path": first.path,
                    "recorded": to_cell(first.recorded, first.path),
                    "replayed": to_cell(first.replayed, first.path),
                    "reason": str(first),
                }
            rows.append(row)
    return make_table(rows, _COLUMNS)


__all__ = ["LEVELS", "GoldenReport", "list_goldens", "record_golden", "replay_golden", "replay_goldens"]
