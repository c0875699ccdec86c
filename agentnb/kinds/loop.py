"""Runs its body while a condition holds, until one holds, or a number of times; the body shares the board."""

from __future__ import annotations

from typing import Any, Final

from agentnb.engine.core.work import Body, Enter, Kind, Outcome, Perform, Repeat, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.kinds.context import ContextCondition, find_oddity, make_strict
from agentnb.recipe.model import Node

MAX_ROUNDS: Final = 1000


def bind(node: Node, world: Any) -> Perform:
    """Return the function that checks `params`: `while` before each round, `until` after it, or `times`.

    Exceeding `max` rounds (1,000 by default) is a failure, X401: the condition was never met. An `until` that uses the
    result receives that of the body's last node, which is also the loop's result; the same holds for a loop that
    `tells`. A loop without a body (`hollow`) only counts its rounds.
    """
    params = node.params
    while_condition, until = (make_strict(params.get(word), world.strict) for word in ("while", "until"))
    times, tells = params.get("times"), params.get("tells") or isinstance(until, ContextCondition)
    limit = int(params.get("max") or (MAX_ROUNDS if times is None else times))
    opening = Enter([Body(region) for region in node.bodies])

    def continues(work: Work, done: int) -> bool:
        if times is not None and done >= times:
            return False
        if while_condition is not None and not while_condition(work.board):
            return False
        return not (until is not None and done and until(work.board))

    def perform(work: Work) -> Any:
        done = work.iteration
        if tells and done:
            work.result = work.last_observation
        if not continues(work, done):
            return Outcome(thought=find_oddity(until), observation=work.result, result=work.result) if tells else {}
        if not node.bodies and while_condition is None and until is None:
            return {}
        if done >= limit or not node.bodies:  # nothing inside could change the condition
            raise ExecutionError(_make_endless_problem(node, limit))
        return Repeat() if done else opening

    return perform


def _make_endless_problem(node: Node, limit: int) -> Problem:
    """X401: a loop has reached its `max` number of rounds."""
    condition = "`while` condition still holds" if node.params.get("until") is None else "`until` is still false"
    unmet = node.params.get("unmet", f"its {condition}")
    return Problem(
        "X401",
        f"loop {node.id!r} has run {limit} times without ending",
        str(node.place or f"node {node.id!r}"),
        f"{unmet}, and its {node.params.get('limit', '`max`')} is reached",
        node.params.get("cure", "fix what the condition reads, or raise the loop's `max`"),
    )


KIND = Kind("loop", bind, step_type="SYSTEM_EVENT")
