"""Computes a key from a stored output and runs the body of the first case that equals it."""

from __future__ import annotations

from typing import Any

from agentnb.engine.core.work import Body, Enter, Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.kinds.typed_values import TypedCondition, format_position
from agentnb.recipe.model import Node
from agentnb.text import safe_repr


def bind(node: Node, world: Any) -> Perform:
    """Return the function that calls `params["discriminator"]` for a key and opens the region of its case.

    `params["cases"]` are pairs of a key and a region; the first equal one is taken, otherwise the region `default`. The
    observation states which.
    """
    discriminator: TypedCondition = node.params["discriminator"]
    cases, default = node.params["cases"], node.params.get("default")
    labels = {region: str(key) for key, region in cases} | ({} if default is None else {default: "default"})
    openings = {region: Enter([Body(region)]) for region in labels}

    def perform(work: Work) -> Any:
        if work.phase == "resume":
            region: str | None = work.frames[0].row.region
            assert region is not None
            text = f"{discriminator.text} is {labels[region]}" if region != default else "no case matches: the default"
            return Outcome(thought=text, observation={"case": labels[region], "used_default": region == default})
        key = discriminator.answer(work)
        region = next((region for case, region in cases if case == key), default)
        if region is None:
            raise ExecutionError(_make_unmatched_problem(work, key, [str(case) for case, _ in cases]))
        return openings[region]

    return perform


def _make_unmatched_problem(work: Work, key: Any, known: list[str]) -> Problem:
    """X452: a switch has neither a case for a key nor a default."""
    return Problem("X452", f"switch {work.node.id!r} has no case for {safe_repr(key)}", format_position(work),
                   f"its cases are: {', '.join(known) or 'none'}, and it has no default",
                   did_you_mean(str(key), known, "add a case for it, or a default"))  # fmt: skip


KIND = Kind("switch", bind, step_type="REASONING")
