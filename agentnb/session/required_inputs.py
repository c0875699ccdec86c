"""Required inputs: what a recipe requires of the board before its first step."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from agentnb.board.scopes import Board
from agentnb.engine.control.interventions import here
from agentnb.errors import Problem
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run
    from agentnb.recipe.model import Requirement


def unmet(run: Run, *, required: bool = True) -> list[Requirement]:
    """Return the requirements that are not met before the first step; none once the run has begun.

    With `required` false, those that only warn. A requirement that cannot be evaluated is not met.
    """
    if run.position or not run.plan.recipe.requires:
        return []
    board = Board(lambda: here(run))
    return [rule for rule in run.plan.recipe.requires if rule.required is required and not _holds(rule, board)]


def _holds(rule: Requirement, board: Board) -> bool:
    try:
        return bool(rule.holds(board))
    except Exception:  # noqa: BLE001  (whatever it stumbles over is not what it asks for)
        return False


def refusal(run: Run) -> Problem | None:
    """X121: the board does not hold what the recipe requires.

    None if it does.
    """
    rules = unmet(run)
    if not rules:
        return None
    place = next((str(rule.place) for rule in rules if rule.place), f"recipe {run.plan.recipe.name!r}")
    return Problem(
        "X121",
        "; ".join(rule.message for rule in rules),
        place,
        "the recipe requires it before its first step; nothing has run",
        "pass other inputs, or edit the board: session.edit({KEY: VALUE}); then run again",
    )


def advise(run: Run) -> None:
    """Warn of optional requirements that are not met."""
    for rule in unmet(run, required=False):
        where = f" ({rule.place})" if rule.place else ""
        warnings.warn(f"{safe_str(rule.message)}{where}: a requirement that is not required", stacklevel=4)
