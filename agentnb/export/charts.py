"""Charts of a run, by Altair. They contain their data, and JupyterLab renders them itself, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentnb.errors import require_library
from agentnb.trace.trace import SimulationTrace

if TYPE_CHECKING:
    import pandas as pd

_DRAWN_BY_LAB: Final = "application/vnd.vegalite.v5+json"
_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"  # an identifier; nothing loads it
_ROWS: Final = 50  # rows of the table for viewers that cannot render charts


class Charts:
    """The charts of a trace, each created on first access: timeline, durations, board, usage."""

    def __init__(self, trace: SimulationTrace) -> None:
        self._trace = trace

    def __repr__(self) -> str:
        """Return the names of the charts."""
        return "<charts: timeline, durations, board, usage>"

    @property
    def timeline(self) -> Any:
        """When each step ran: one bar per step, one row per node, in seconds since the start of the run."""
        alt = import_altair()
        steps = self._trace.frames.steps
        frame = steps[["step", "node", "status", "seconds"]].copy()
        frame["begin"] = (steps["timestamp"] - steps["timestamp"].min()).dt.total_seconds()
        frame["end"] = frame["begin"] + frame["seconds"]
        return make_chart(frame, "Steps over time").mark_bar().encode(
            x=alt.X("begin:Q", title="seconds"), x2=alt.X2("end:Q"),
            y=alt.Y("node:N", sort=_order_nodes(steps), title=None),
            color=alt.Color("status:N"),
            tooltip=[alt.Tooltip(field) for field in ("step:Q", "node:N", "status:N", "seconds:Q")],
        )  # fmt: skip

    @property
    def durations(self) -> Any:
        """The total duration of the steps of each node, in seconds, and their number."""
        alt = import_altair()
        steps = self._trace.frames.steps
        frame = steps.groupby(steps["node"].astype(str), sort=False)["seconds"].agg(["sum", "count"]).reset_index()
        frame.columns = frame.columns.map({"node": "node", "sum": "seconds", "count": "steps"})
        return make_chart(frame, "Time by node").mark_bar().encode(
            x=alt.X("seconds:Q"), y=alt.Y("node:N", sort="-x", title=None),
            tooltip=[alt.Tooltip(field) for field in ("node:N", "seconds:Q", "steps:Q")],
        )  # fmt: skip

    @property
    def board(self) -> Any:
        """Which step wrote which key: one column per step, one row per key, colored by the number of writes."""
        alt = import_altair()
        writes = self._trace.frames.writes
        keys = writes["key"].astype(str).str.partition(".")[0]
        frame = writes.assign(top=keys).groupby(["step", "top"], sort=False).size().rename("writes").reset_index()
        return make_chart(frame, "Writes to the blackboard").mark_rect().encode(
            x=alt.X("step:O"), y=alt.Y("top:N", title="key", sort=list(dict.fromkeys(keys))),
            color=alt.Color("writes:Q"),
            tooltip=[alt.Tooltip(field) for field in ("step:Q", "top:N", "writes:Q")],
        )  # fmt: skip

    @property
    def usage(self) -> Any:
        """The tokens used by the model calls of each node, and their cost (US dollars)."""
        alt = import_altair()
        calls = self._trace.frames.calls
        sums = ["tokens_in", "tokens_out", "cost_usd"]
        frame = calls.groupby(calls["node"].astype(str), sort=False)[sums].sum().astype(float).reset_index()
        long = frame.melt(["node", "cost_usd"], ["tokens_in", "tokens_out"], var_name="side", value_name="tokens")
        return make_chart(long, "Tokens by node").mark_bar().encode(
            x=alt.X("tokens:Q"), y=alt.Y("node:N", sort="-x", title=None), color=alt.Color("side:N", title=None),
            tooltip=[alt.Tooltip(field) for field in ("node:N", "side:N", "tokens:Q", "cost_usd:Q")],
        )  # fmt: skip


def make_chart(frame: pd.DataFrame, title: str) -> Any:
    """Return an Altair chart of a frame, as plain rows, because Altair rejects frames of more than 5,000 rows.

    JupyterLab and Notebook 7 render it with their own Vega-Lite; other viewers show its data as a table. If another of
    Altair's renderers is enabled, it is used instead.
    """
    alt = import_altair()
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    plain = [{str(key): _to_plain(value) for key, value in row.items()} for row in rows]
    return _make_offline_chart()(alt.InlineData(values=plain), title=title)


def make_charts(trace: SimulationTrace) -> Charts:
    """Return the charts of a trace."""
    return Charts(trace)


def import_altair() -> Any:
    """Return Altair.

    Raises:
        AgentNbError: it is not installed.
    """
    with require_library("altair", "charts", "trace.charts"):
        import altair as alt
    return alt


@cache
def _make_offline_chart() -> Any:
    """Return a class of Altair charts that are rendered without a network; Altair loads Vega from one by default."""
    import altair as alt

    class OfflineChart(alt.Chart):
        """An Altair chart that contains all it needs to be shown."""

        def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
            if alt.renderers.active != "default":
                return super()._repr_mimebundle_(*args, **options)
            bundle = {**self.to_dict(), "$schema": _SCHEMA}
            rows = getattr(self.data, "values", None)
            table = {"text/html": _make_html_table(rows)} if isinstance(rows, list) else {}
            return {_DRAWN_BY_LAB: bundle, **table, "text/plain": f"<chart: {self.title}>"}

    return OfflineChart


def _make_html_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the data of a chart as an HTML table, for viewers that cannot render charts."""
    columns = list(rows[0]) if rows else []
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    cells = ([row.get(name) for name in columns] for row in islice(rows, _ROWS))
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in cells)
    more = f"<p>The first {_ROWS} of {len(rows)} rows.</p>" if len(rows) > _ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _order_nodes(steps: pd.DataFrame) -> Sequence[str]:
    """Return the nodes in the order in which they first ran."""
    return list(dict.fromkeys(steps["node"].astype(str)))


def _to_plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


__all__ = ["Charts", "import_altair", "make_chart", "make_charts"]
