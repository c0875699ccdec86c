"""`agentnb export`: write a run in a format for others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from agentnb.cli.output import print_json
from agentnb.errors import AgentNbError, Problem, did_you_mean
from agentnb.session import Session
from agentnb.testing.goldens import record_golden

GOLDEN: Final = ".jsonl"
# File suffix -> format:
FORMATS: Final[Mapping[str, Callable[[Session, Path], object]]] = {
    ".html": lambda session, path: session.to_html(path),
    ".json": lambda session, path: session.trace.to_json(path),
    GOLDEN: record_golden,
    ".parquet": lambda session, path: session.trace.to_parquet(path),
    ".csv": lambda session, path: session.trace.to_event_log().to_csv(path, index=False),
    ".mmd": lambda session, path: path.write_text(session.trace.sequence_diagram(), encoding="utf-8"),
}


def export_command(args: argparse.Namespace) -> int:
    """Write a run as a file; the suffix of the file decides the format.

    Raises:
        AgentNbError: U592, no format has this suffix; U594, its format has nothing to redact; otherwise what `nb.open`
            raises.
    """
    from agentnb.recordings.formats import open as open_run

    path: Path = args.output or Path(f"{Path(args.source).stem or 'run'}.html")
    write = FORMATS.get(path.suffix.casefold())
    if write is None:
        raise AgentNbError(
            Problem("U592", f"unsupported suffix {path.suffix!r}", str(path),
                    f"a run is exported as: {', '.join(FORMATS)}",
                    did_you_mean(path.suffix, FORMATS, "use one of these suffixes"))
        )  # fmt: skip
    if args.redact and path.suffix.casefold() != GOLDEN:
        raise AgentNbError(
            Problem("U594", f"--redact does not apply to {path.suffix!r}", str(path),
                    f"paths can be left out only of a golden ({GOLDEN}); secrets are masked in every format",
                    f"write a {GOLDEN} file, or leave --redact out")
        )  # fmt: skip
    session = open_run(args.source, args.run)
    if args.redact:
        record_golden(session, path, args.redact)
    else:
        write(session, path)
    if args.json:
        print_json({"run": session.run_id, "steps": len(session.trace), "output": str(path)})
    else:
        print(f"{path}: {len(session.trace)} steps")
    return 0
