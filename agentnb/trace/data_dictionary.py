"""The data dictionary of a trace's tables: for each column its dtype, its unit and its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Column(NamedTuple):
    """A column of a table; the unit is empty where there is none."""

    dtype: str
    unit: str
    meaning: str


_STEP: Final = Column("int64", "", "number of the step, from 1")
_NODE: Final = Column("category", "", "id of the node")
_SCOPE: Final = Column("category", "", "scope of the board: `root`, or the frame that it belongs to")
_KEY: Final = Column("category", "", "top-level key of the board")
_FRAME: Final = Column("category", "", "frame of the node: `root`, or the region's owner @ the step that opened it")

DATA_DICTIONARY: Final[Mapping[str, Mapping[str, Column]]] = MappingProxyType({
    "steps": {
        "step": _STEP,
        "node": _NODE,
        "kind": Column("category", "", "kind of the node"),
        "phase": Column("category", "", "`run` of a leaf; `enter`, `again` or `leave` of a composite node"),
        "frame": _FRAME,
        "depth": Column("int64", "frames", "number of open frames around the node; 0 in the root"),
        "branch": Column("Int64", "", "number of the parallel branch, from 0; NA outside of branches"),
        "type": Column("category", "", "tool_execution, interaction, reasoning, system_event or error"),
        "status": Column("category", "", "ok, error, cancelled or skipped"),
        "timestamp": Column("datetime64[ns, UTC]", "UTC", "when the step began"),
        "seconds": Column("float64", "s", "duration of the step"),
        "inputs": Column("value", "", "what the node read or received: a mapping"),
        "outputs": Column("value", "", "what the node wrote: a mapping"),
        "error": Column("string", "", "type, message and line of the failure; NA if the step did not fail"),
    },
    "writes": {
        "step": _STEP,
        "node": Column("category", "", "id of the node; NA if a person made the change"),
        "frame": _FRAME,
        "scope": _SCOPE,
        "key": _KEY,
        "op": Column("category", "", "set, delete or append"),
        "old": Column("value", "", "value of the key before; NA if it was absent"),
        "new": Column("value", "", "value of the key after, or what was appended; NA if it was deleted"),
        "in_place": Column("bool", "", "whether the node changed a value that it had read, without assigning it"),
        "changed": Column("bool", "", "whether the value differs from before; False if an equal value was written"),
        "paths": Column("value", "", "paths below the key that differ, a list of texts; empty: the value as a whole"),
    },
    "reads": {"step": _STEP, "node": _NODE, "scope": _SCOPE, "key": _KEY},
    "edges": {
        "step": Column("int64", "", "step after which the edge was followed; for an event, the step that it activated"),
        "source": Column("category", "", "id of the node that the edge leaves; NA for an event from outside"),
        "target": Column("category", "", "id of the node that the edge leads to"),
        "kind": Column(
            "category",
            "",
            "sequential, conditional, route, parallel, loop_back, error, timeout or event; NA if it is not known",
        ),
        "condition": Column("string", "", "text of the condition, or type of the event; NA if there is none"),
        "value": Column("value", "", "value of the condition, or id of the event; NA if nothing was evaluated"),
    },
    "calls": {
        "step": Column("Int64", "", "number of the step; NA for an attempt of a step that was interrupted"),
        "node": _NODE,
        "call": Column("Int64", "", "number of the call within its step, from 0; its attempts share it"),
        "kind": Column("category", "", "llm, tool, agent, human, approval, sleep and the like"),
        "name": Column("string", "", "name of the tool, or of the node that made the call"),
        "provider": Column("string", "", "provider of the model; `simulated` or `scripted` if no model was called"),
        "model": Column("string", "", "name of the model that answered"),
        "attempt": Column("int64", "", "number of the attempt, from 1"),
        "backoff_seconds": Column("float64", "s", "time waited before the attempt"),
        "arguments": Column("value", "", "arguments of the call, secrets masked"),
        "result": Column("value", "", "answer; NA or None if there was none"),
        "finish_reason": Column("string", "", "why the model stopped, in the provider's words"),
        "error": Column("string", "", "error of the attempt; NA if it succeeded"),
        "seconds": Column("float64", "s", "duration of the attempt"),
        "tokens_in": Column("Int64", "tokens", "tokens of the request; NA if the model reported none"),
        "tokens_out": Column("Int64", "tokens", "tokens of the answer; NA if the model reported none"),
        "cost_usd": Column("float64", "USD", "cost for computing and plotting; NaN if unknown"),
        "cost_usd_exact": Column("value", "USD", "the exact cost, as a Decimal"),
    },
    "interventions": {
        "step": Column("int64", "", "step after which the intervention was made; 0 before the first"),
        "action": Column("string", "", "edit, answer, approve, deny, change, set_next, skip, emit and the like"),
        "target": Column("string", "", "path, node or call that it changed"),
        "old": Column("value", "", "value before; NA if there was none"),
        "new": Column("value", "", "value after; NA if there is none"),
        "actor": Column("string", "", "who made it"),
        "time": Column("datetime64[ns, UTC]", "UTC", "when it was made"),
    },
    "events": {
        "seq": Column("int64", "", "number of the event, in the order of emission"),
        "step": Column("Int64", "", "step that emitted it; NA if it came from outside"),
        "id": Column("string", "", "id of the event"),
        "type": Column("string", "", "type of the event"),
        "actor": Column("string", "", "who emitted it"),
        "cause": Column("string", "", "id of the event that led to it; NA if there is none"),
        "time": Column("datetime64[ns, UTC]", "UTC", "when it was emitted"),
        "payload": Column("value", "", "content of the event"),
    },
})  # fmt: skip

_HEAD: Final = """\
# Data dictionary

The columns of the tables of `trace.frames`. `nb.frames(runs)` has the same tables for many runs, each with a column
`run_id` in front. Every table has a RangeIndex. `string` is pandas' string dtype. `value` holds values of the board;
its cells are JSON in Parquet, Feather and SQL. A missing value is `pd.NA`, or NaN in a column of floats; None is a
value.

This page is generated from the code: `pytest tests/trace/test_data_dictionary.py --update-golden`.
"""


def render_data_dictionary(tables: Mapping[str, str]) -> str:
    """Return the dictionary as Markdown; `tables` has a line about each table."""
    parts = [_HEAD]
    for name, columns in DATA_DICTIONARY.items():
        rows = [f"| `{column}` | {row.dtype} | {row.unit} | {row.meaning} |" for column, row in columns.items()]
        head = [f"## {name}", "", tables[name], "", "| column | dtype | unit | meaning |", "|---|---|---|---|"]
        parts.append("\n".join([*head, *rows]) + "\n")
    return "\n".join(parts)


__all__ = ["DATA_DICTIONARY", "Column", "render_data_dictionary"]
