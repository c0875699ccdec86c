"""Evaluates a predicate on a stored output and runs one of two bodies, which share the board."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Body, Enter, Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem
from agentnb.kinds.typed_values import TypedCondition, format_position
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that evaluates `params["predicate"]` and opens the region for it in `params["branches"]`.

    `branches` maps "true" and "false" to a region, or to None for a branch that is intentionally empty: the node's
    edges are taken then. Reaching a branch that is missing from the mapping is a failure. The observation states which
    branch was taken.
    """
    predicate: TypedCondition = node.params["predicate"]
    branches = node.params["branches"]
    labels = {region: label for label, region in branches.items() if region is not None}
    openings = {label: Enter([Body(region)]) for region, label in labels.items()}

    def perform(work: Work) -> Any:
        if work.phase == "resume":
            return _choose(labels[work.frames[0].row.region])
        label = "true" if predicate.answer(work) else "false"
        if label in openings:
            return openings[label]
        if label not in branches:
            raise ExecutionError(_make_missing_branch_problem(work, label))
        return _choose(label)

    def _choose(label: str) -> Outcome:
        return Outcome(thought=f"{predicate.text} is {label}", observation={"branch": label})

    return perform


def _make_missing_branch_problem(work: Work, label: str) -> Problem:
    """X453: the branch that a decision selected is empty."""
    return Problem("X453", f"decision {work.node.id!r} has no branch for {label}", format_position(work),
                   "its predicate selected this branch, but its builder added no nodes",
                   "add a system to it, or leave the branch out of add_conditional_branch")  # fmt: skip


KIND = Kind("decision", bind, step_type="REASONING")
