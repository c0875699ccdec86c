"""The tables of a trace as Arrow tables and Parquet files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentnb.errors import require_library
from agentnb.text import safe_str
from agentnb.trace.frames import NAMES
from agentnb.trace.trace import SimulationTrace

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET_VERSION: Final = 1  # of the tables and their columns


def to_arrow(trace: SimulationTrace) -> dict[str, pa.Table]:
    """Return the tables as Arrow tables, by name; each has the run, the recipe and its fingerprint as metadata.

    Raises:
        ExecutionError: L590, pyarrow is not installed.
    """
    with require_library("pyarrow", "parquet", "trace.to_arrow()"):
        import pyarrow as pa

    about = {
        "version": PARQUET_VERSION,
        "run_id": trace.run_id,
        "recipe": safe_str(trace.agent_id),
        "fingerprint": trace.fingerprint or "",
    }
    tables = {}
    for name in NAMES:
        table = pa.Table.from_pandas(trace.frames[name], preserve_index=False)
        for at, column in enumerate(table.schema):
            if pa.types.is_dictionary(column.type):  # categories differ between runs, and files may be joined
                table = table.set_column(at, column.name, table.column(at).cast(column.type.value_type))
        metadata = {**(table.schema.metadata or {}), b"agentnb": json.dumps(about).encode()}
        tables[name] = table.replace_schema_metadata(metadata)
    return tables


def to_parquet(trace: SimulationTrace, path: str | os.PathLike[str]) -> None:
    """Write the tables to a folder, one file each, or to one file if the path ends with `.parquet`.

    The single file has the rows of all tables, with the name of the table in the column `table`; columns that a table
    does not have are null.

    Raises:
        ExecutionError: L590, pyarrow is not installed.
    """
    tables = to_arrow(trace)
    import pyarrow as pa
    from pyarrow import parquet

    target = Path(path)
    if target.suffix != ".parquet":
        target.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            parquet.write_table(table, target / f"{name}.parquet")
        return
    metadata = tables["steps"].schema.metadata[b"agentnb"]
    named = [
        table.replace_schema_metadata(None).add_column(0, "table", pa.array([name] * len(table), pa.string()))
        for name, table in tables.items()
    ]
    combined = pa.concat_tables(named, promote_options="permissive")
    parquet.write_table(combined.replace_schema_metadata({b"agentnb": metadata}), target)


__all__ = ["to_arrow", "to_parquet"]
