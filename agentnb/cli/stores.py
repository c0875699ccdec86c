"""`agentnb runs` and `agentnb trace`: list recorded runs, and show what happened in one."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.masking import mask_value
from agentnb.cli.output import is_missing, print_json
from agentnb.errors import pluralize
from agentnb.session.state import get_state
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.trace.trace import SimulationTrace

TABLES: Final = ("steps", "writes", "reads", "edges", "calls", "interventions", "events")
FILTERS: Final = ("recipe", "fingerprint", "status", "since", "until", "contains", "limit", "after")  # of `nb.runs`
# The columns shown of tables that are wider than a terminal
_SHOWN: Final = {
    "steps": ["step", "node", "phase", "status", "seconds", "inputs", "outputs", "error"],
    "calls": ["step", "node", "kind", "name", "attempt", "seconds", "arguments", "result", "error"],
}


def run_runs(args: argparse.Namespace) -> int:
    """Print the runs of a store, one per line, the newest first; forks follow the run that they were forked from."""
    from agentnb.session.run_list import runs

    filters = {name: getattr(args, name) for name in FILTERS}
    frame = runs(args.store, **filters)
    if args.json:
        print_json({"runs": frame})
        return 0
    children: dict[Any, list[Any]] = {}
    known = set(frame["run_id"])
    for row in frame.to_dict("records"):
        children.setdefault(row["parent"] if row["parent"] in known else None, []).append(row)
    rest = [(0, row) for row in reversed(children.get(None, []))]
    while rest:
        depth, row = rest.pop()
        origin = f", from step {row['forked']}" if depth else ""
        when = row["created"].strftime("%Y-%m-%d %H:%M:%S")
        state = f"{row['status']}, {pluralize(row['steps'], 'step')}{origin}"
        print(f"{'  ' * depth}{_to_line(row['run_id'])}  {when}  {_to_line(row['name'])}: {state}")
        rest += [(depth + 1, fork) for fork in reversed(children.get(row["run_id"], []))]
    older = f"; older ones: --after {_to_line(frame['run_id'].iloc[-1])}" if len(frame) == args.limit else ""
    print(f"{pluralize(len(frame), 'run')}{older}")
    return 0


def trace_command(args: argparse.Namespace) -> int:
    """Print one table of a run, from a trace file or a store."""
    trace, source = _load_trace(args.source, args.run)
    if args.output is not None:
        trace.to_json(args.output)
    frame = getattr(trace.frames, args.table)
    if args.json:
        summary = {
            "run": trace.run_id,
            "recipe": trace.agent_id,
            "source": source,
            "outcome": mask_value(trace.outcome),
        }
        print_json({**summary, args.table: frame})
        return 0
    shown = frame[_SHOWN.get(args.table, list(frame.columns))].astype(object).map(_format_cell)
    print(shown.to_string(index=False, max_colwidth=60) if len(shown) else f"no {args.table}")
    print(f"{_to_line(trace.agent_id)}, run {_to_line(trace.run_id)}: {trace.outcome_line()}")
    return 0


def _load_trace(source: str, run_id: str | None) -> tuple[SimulationTrace, str]:
    """Return the trace of a file or of a run in a store, and its current step."""
    from agentnb.recordings.formats import open as open_run

    session = open_run(source, run_id)
    log = get_state(session).log
    return session.trace, source if log is None else log.url


def _to_line(text: str) -> str:
    """Return a text unchanged unless it contains line breaks or terminal control characters, which are escaped."""
    return text if text.isprintable() else safe_repr(text, limit=200)


def _format_cell(value: Any) -> Any:
    """Return a cell of a printed table: on one line, empty if the value is missing."""
    if is_missing(value):
        return ""
    if isinstance(value, str):
        return _to_line(value)
    return value if isinstance(value, int | float | datetime) else safe_repr(value)


__all__ = ["FILTERS", "TABLES", "run_runs", "trace_command"]
