"""A run as an event log for process mining: the columns of the XES standard, as pm4py and others read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentnb.trace.trace import SimulationTrace

if TYPE_CHECKING:
    import pandas as pd


def to_event_log(trace: SimulationTrace) -> pd.DataFrame:
    """Return one row per step, in the order in which they were made.

    Columns: `case:concept:name` (the run), `concept:name` (the node), `time:timestamp` (when the step ended, UTC),
    `start_timestamp`, `lifecycle:transition` (`start` where a composite node is entered, else `complete`),
    `org:resource` (the kind of the node), `step`, `frame`, `status`.
    """
    steps = trace.frames.steps
    log = steps[["step", "frame", "status"]].astype({"frame": str, "status": str})
    log.insert(0, "case:concept:name", trace.run_id)
    log.insert(1, "concept:name", steps["node"].astype(str))
    log.insert(2, "time:timestamp", _compute_ends(steps))
    log.insert(3, "start_timestamp", steps["timestamp"])
    log.insert(4, "lifecycle:transition", steps["phase"].eq("enter").map({True: "start", False: "complete"}))
    log.insert(5, "org:resource", steps["kind"].astype(str))
    return log


def _compute_ends(steps: pd.DataFrame) -> pd.Series[pd.Timestamp]:
    """Return when each step ended; a later step never ends before an earlier one."""
    import pandas as pd

    ends = steps["timestamp"] + pd.to_timedelta(steps["seconds"], unit="s")
    return ends.cummax()


__all__ = ["to_event_log"]
