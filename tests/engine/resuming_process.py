"""Another process: revives runs from JSON, goes on, and tells how they ended."""

from __future__ import annotations

import json
import sys

from agentnb.engine.persistence.snapshot import restore_run
from tests.engine.graph_shapes import board, path, shape_of, step


def main() -> None:
    request = json.load(sys.stdin)
    ends = []
    for document in request["runs"]:
        run = restore_run(shape_of(request["name"]).plan(), document)
        while run.queue_start < run.current_history.push_ends[run.position - run.current_history.base]:
            step(run)
        ends.append({"path": path(run), "board": board(run)})
    json.dump(ends, sys.stdout)


if __name__ == "__main__":
    main()
