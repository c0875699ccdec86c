"""export: a trace as a file and as a small table for the screen. What leaves is masked; what comes in runs nothing."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import decode, encode
from agentnb.board.secrets import hidden
from agentnb.engine.joining import joined
from agentnb.engine.slices import VERSION, whole
from agentnb.errors import Problem, StoreError
from agentnb.trace.reading import EdgeRow, NodeRow

if TYPE_CHECKING:
    from agentnb.trace.trace import SimulationTrace

FORMAT: Final = "agentnb.trace"
ROWS: Final = 10


def text_of(trace: SimulationTrace) -> str:
    """Return a trace as JSON text: what it is of, and its histories."""
    reading = trace.reading()
    document: dict[str, Any] = {
        "format": FORMAT,
        "agent_id": trace.agent_id,
        "agent_version": trace.agent_version,
        "run_id": trace.run_id,
        "score": trace.score,
        "outcome": encode(trace.outcome, lenient=True),
        "metadata": encode(trace.metadata, lenient=True),
        "nodes": [list(node) for node in reading.nodes],
        "edges": [[*edge[:3], hidden(edge.condition), edge.asks] for edge in reading.edges],
        "version": VERSION,
        "slices": [whole(reading.chain, lenient=True)],
    }
    return json.dumps(document, separators=(",", ":"))


def trace_of(text: str, where: str = "the text") -> SimulationTrace:
    """Return the trace that `text_of` wrote.

    Raises:
        StoreError: L402, it is none of ours or is damaged; L403, a newer agentnb wrote it.
    """
    from agentnb.trace.trace import SimulationTrace

    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_ours(where, f"it is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _not_ours(where, f"it does not say that its format is {FORMAT!r}")
    _, histories = joined(document)
    try:
        nodes = [
            NodeRow(id, kind, type, tuple((name, tuple(path)) for name, path in inputs))
            for id, kind, type, inputs in document["nodes"]
        ]
        edges = [EdgeRow(*row) for row in document["edges"]]
        outcome, metadata = decode(document["outcome"]), decode(document["metadata"])
        score = document["score"]
        return SimulationTrace(
            lambda: histories,
            nodes,
            edges,
            agent_id=document["agent_id"],
            run_id=document["run_id"],
            outcome=lambda: outcome,
            agent_version=document["agent_version"],
            score=lambda: score,
            metadata=metadata,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _not_ours(where, f"{type(error).__name__}: {error}") from error


def _not_ours(where: str, why: str) -> StoreError:
    return StoreError(
        Problem("L402", "this is not a trace of agentnb, or it is damaged", where, why, "open a file of trace.to_json")
    )


def html_of(trace: SimulationTrace) -> str:
    """Return the first steps as a small table with a line on how the run stands; everything in it is escaped."""
    from agentnb.trace.frames import head_html

    rest = len(trace) - ROWS
    more = f", {rest} more steps" if rest > 0 else ""
    line = f"<b>{escape(trace.agent_id)}</b>: {len(trace)} steps, {escape(trace.outcome_line())}{more}"
    return f"<div>{head_html(trace.to_frame(), ROWS)}<p>{line}</p></div>"


__all__ = ["html_of", "text_of", "trace_of"]
