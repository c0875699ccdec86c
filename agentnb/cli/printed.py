"""printed: what every command prints: problems, and with `--json` one document."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from agentnb.errors import Problem


def refuse(problems: Sequence[Problem], *, as_json: bool) -> int:
    """Print why nothing was done, and return the exit code 1."""
    if as_json:
        print_json({"problems": list(map(asdict, problems))})
    else:
        print_all(problems, sys.stderr)
    return 1


def print_all(problems: Sequence[Problem], file: TextIO | None = None) -> None:
    """Print problems, four lines each."""
    for problem in problems:
        print(problem, file=file)


def print_json(value: Any) -> None:
    """Print a document."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str), flush=True)
