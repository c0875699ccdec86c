"""Charts of the runs of a sweep, by Altair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentnb.export.charts import import_altair, make_chart

if TYPE_CHECKING:
    import pandas as pd


class SweepCharts:
    """The charts of a sweep, each created on first access: outcomes, durations, outputs."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self._runs = runs
        self._by = next((name for name in ("model", "recipe") if name in runs.columns), "")

    def __repr__(self) -> str:
        """Return the names of the charts."""
        return "<charts: outcomes, durations, outputs>"

    @property
    def outcomes(self) -> Any:
        """How many runs ended with each status: one bar per model, recipe or seed."""
        alt = import_altair()
        by = self._by or "seed"
        frame = self._runs.groupby([by, "status"], sort=False, observed=True).size().rename("runs").reset_index()
        return make_chart(frame, "Outcomes").mark_bar().encode(
            x=alt.X("runs:Q"), y=alt.Y(f"{by}:N"), color=alt.Color("status:N"),
            tooltip=[alt.Tooltip(field) for field in (f"{by}:N", "status:N", "runs:Q")],
        )  # fmt: skip

    @property
    def durations(self) -> Any:
        """How long the runs took, in seconds: a histogram, colored by status."""
        alt = import_altair()
        return make_chart(self._runs[["seconds", "status"]], "Time of the runs").mark_bar().encode(
            x=alt.X("seconds:Q", bin=alt.Bin(maxbins=40)), y=alt.Y("count()", title="runs"),
            color=alt.Color("status:N"),
        )  # fmt: skip

    @property
    def outputs(self) -> Any:
        """The numeric outputs: one histogram each, colored by status."""
        alt = import_altair()
        rows = [
            {"output": str(key), "value": value, "status": row["status"]}
            for row in self._runs[["outputs", "status"]].to_dict("records")
            for key, value in (row["outputs"] or {}).items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        import pandas as pd

        frame = pd.DataFrame(rows, columns=["output", "value", "status"])
        return make_chart(frame, "Outputs").mark_bar().encode(
            x=alt.X("value:Q", bin=alt.Bin(maxbins=40)), y=alt.Y("count()", title="runs"), color=alt.Color("status:N"),
            row=alt.Row("output:N", title=None),
        )  # fmt: skip


def make_sweep_charts(sweep: Any) -> SweepCharts:
    """Return the charts of a sweep."""
    return SweepCharts(sweep.runs)


__all__ = ["SweepCharts", "make_sweep_charts"]
