"""requirements: what a recipe asks of the board before its first step, looked at where a run stands at its start."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from agentnb.board.scopes import Board
from agentnb.board.secrets import hidden
from agentnb.engine.people import here
from agentnb.errors import Problem

if TYPE_CHECKING:
    from agentnb.engine.run import Run
    from agentnb.recipe.model import Requirement


def unmet(run: Run, *, required: bool = True) -> list[Requirement]:
    """Return the requirements that do not hold where a run stands before its first step; none once it has begun.

    With `required` false, those that only warn. One that cannot be worked out does not hold.
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
    """X121: the board does not hold what the recipe requires; None where it does."""
    rules = unmet(run)
    if not rules:
        return None
    place = next((str(rule.place) for rule in rules if rule.place), f"recipe {run.plan.recipe.name!r}")
    return Problem(
        "X121",
        "; ".join(rule.message for rule in rules),
        place,
        "the recipe requires it of the blackboard before its first step, and nothing has run",
        "pass other inputs, or edit the board: session.edit({KEY: VALUE}); then run again",
    )


def advise(run: Run) -> None:
    """Warn of the requirements that do not hold and are not required."""
    for rule in unmet(run, required=False):
        where = f" ({rule.place})" if rule.place else ""
        warnings.warn(f"{hidden(rule.message)}{where}: a requirement that is not required", stacklevel=4)
