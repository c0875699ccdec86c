"""printed: what every command prints: problems, and with `--json` one document."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TextIO

from agentnb.errors import Problem

LONGEST: Final = 4096  # bits of a whole number that Python still writes in digits


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
    """Print a document: JSON, whatever is in it, in letters that the stream takes."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    print(text, flush=True)


def is_missing(value: Any) -> bool:
    """Say whether a cell of a DataFrame stands for nothing."""
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: what is missing is null, and what JSON lacks is text."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a DataFrame
        value = value.astype(object).to_dict("records")
    elif hasattr(value, "tolist"):  # numpy's own, and a Series
        value = value.tolist()
    if is_missing(value):
        return None
    match value:
        case None | bool():
            return value
        case int():
            return value if value.bit_length() < LONGEST else hex(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value.encode("utf-8", "backslashreplace").decode()  # half a pair of UTF-16 is no text elsewhere
        case Mapping():
            return {_plain(key if isinstance(key, str) else str(key)): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else _plain(str(value))
