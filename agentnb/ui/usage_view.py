"""Usage by node: steps, time, calls, tokens and cost of each node up to the current step, for a chart in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentnb.draw.label_text import clean

if TYPE_CHECKING:
    from agentnb.session import Session

NODES: Final = 60  # nodes sent, those with the most time


def look_usage(session: Session, _: Any = None) -> dict[str, Any]:
    """Return rows of [node, steps, seconds, calls, tokens, cost in USD], the longest time first, and how many more.

    The steps of a composite node count for it; those inside count for their own nodes.
    """
    frames, position = session.trace.frames, session.position
    steps, calls = frames.steps, frames.calls
    steps, calls = steps[steps.step <= position], calls[calls.step <= position]
    found = steps.groupby("node", observed=True).agg(steps=("step", "size"), seconds=("seconds", "sum"))
    sums = calls.groupby("node", observed=True).agg(
        calls=("call", "size"),
        tokens_in=("tokens_in", "sum"),
        tokens_out=("tokens_out", "sum"),
        cost=("cost_usd", "sum"),
    )
    table = found.join(sums).fillna(0).sort_values("seconds", ascending=False)
    tokens = (table.tokens_in + table.tokens_out).astype(int)
    columns = (table.steps, table.seconds, table.calls.astype(int), tokens, table.cost)
    rows = [
        [clean(str(node)), *numbers]
        for node, *numbers in zip(table.index[:NODES], *(column.tolist() for column in columns), strict=False)
    ]
    return {"rows": rows, "more": max(len(table) - NODES, 0)}
