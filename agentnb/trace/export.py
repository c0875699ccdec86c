"""Write a trace to a file and as a small HTML table, with secrets masked; reading a file runs nothing."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import decode, encode
from agentnb.engine.persistence.checksums import add_checksum, is_intact
from agentnb.engine.persistence.delta_loader import DeltaLoader, check_version, load_document, reading_document
from agentnb.engine.persistence.deltas import VERSION, encode_call, encode_whole
from agentnb.errors import Problem, StoreError
from agentnb.secrets import mask_text
from agentnb.trace.recipe_snapshot import ORIGIN, check_snapshot
from agentnb.trace.row_index import EdgeRow, NodeRow
from agentnb.trace.validation import check_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentnb.trace.trace import SimulationTrace

FORMAT: Final = "agentnb.trace"
ROWS: Final = 10


def to_json_text(trace: SimulationTrace) -> str:
    """Return a trace as JSON text: its metadata and its histories."""
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
        "edges": [[*edge[:3], mask_text(edge.condition), edge.asks] for edge in reading.edges],
        **trace.origin(),
        "version": VERSION,
        "slices": [encode_whole(reading.chain, lenient=True)],
    }
    rows = [
        ["back", row.activation, encode_call(row, lenient=True), False] for row in reading.chain[-1].uncommitted_calls
    ]
    rows += [["out", *call[:5], encode(call.arguments, lenient=True), *call[6:]] for call in trace.unanswered()]
    if rows:
        document["slices"].append({"told": rows})
    return add_checksum(_dump(document))


def _dump(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


def parse_trace_text(source: str | bytes, where: str = "the text") -> SimulationTrace:
    """Return the trace that `to_json_text` wrote.

    Raises:
        StoreError: L402, it is not a trace or is damaged; L403, a newer agentnb wrote it.
    """
    return parse_trace(parse_document(source, where), where)


def parse_document(source: str | bytes, where: str = "the text") -> dict[str, Any]:
    """Return the JSON document of a trace, after checking its format, version and checksum.

    Raises:
        StoreError: L402, it is not a trace or is damaged; L403, a newer agentnb wrote it.
    """
    try:
        text = source if isinstance(source, str) else source.decode("utf-8")
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: the parser's depth limit
        raise _make_format_error(where, f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _make_format_error(where, f"it does not have the format {FORMAT!r}")
    check_version(document.get("version"))
    claimed = document.pop("crc", None)
    if claimed is not None and not is_intact(text) and not _matches_checksum(claimed, document):
        raise _make_format_error(where, "its checksum does not match: it is damaged, or was changed")
    return document


def parse_trace(document: dict[str, Any], where: str = "the text") -> SimulationTrace:
    """Return the trace in a document.

    Raises:
        StoreError: L402, it is damaged.
    """
    loader = load_document(document)
    try:
        with reading_document():
            trace = _build_trace(document, loader)
            check_trace(trace)
            if "recipe" in document:
                check_snapshot(document["recipe"])
            return trace
    except StoreError as error:
        raise _make_format_error(where, error.problems[0].why) from error.__cause__


def _matches_checksum(checksum: Any, document: dict[str, Any]) -> bool:
    """Return True if a checksum is that of a document, which may have been reformatted."""
    text = add_checksum(_dump(document))
    return text.endswith(f'"{checksum}"}}') and is_intact(text)


def _build_trace(document: Mapping[str, Any], loader: DeltaLoader) -> SimulationTrace:
    from agentnb.trace.trace import SimulationTrace

    nodes = [
        NodeRow(id, kind, type, tuple((name, tuple(path)) for name, path in inputs))
        for id, kind, type, inputs in document["nodes"]
    ]
    edges = [EdgeRow(*row) for row in document["edges"]]
    outcome, metadata = decode(document["outcome"]), decode(document["metadata"])
    origin = {name: document[name] for name in ORIGIN if name in document}
    score, histories = document["score"], loader.histories
    unanswered = list(loader.collect_interrupted().iter_unanswered())
    return SimulationTrace(
        lambda: histories,
        nodes,
        edges,
        agent_id=document["agent_id"],
        run_id=document["run_id"],
        outcome=lambda: outcome,
        unanswered=lambda: unanswered,
        agent_version=document["agent_version"],
        score=lambda: score,
        metadata=metadata,
        origin=lambda: origin,
    )


def _make_format_error(where: str, why: str) -> StoreError:
    return StoreError(
        Problem("L402", "this is not a trace of agentnb, or it is damaged", where, why, "open a file of trace.to_json")
    )


def render_html(trace: SimulationTrace) -> str:
    """Return the first steps as a small table with a line on the status of the run; everything in it is escaped."""
    from agentnb.trace.frames import render_head

    rest = len(trace) - ROWS
    more = f", {rest} more steps" if rest > 0 else ""
    line = f"<b>{escape(trace.agent_id)}</b>: {len(trace)} steps, {escape(trace.outcome_line())}{more}"
    return f"<div>{render_head(trace.to_frame(), ROWS)}<p>{line}</p></div>"


__all__ = ["parse_document", "parse_trace", "parse_trace_text", "render_html", "to_json_text"]
