"""Output shared by all commands: problems, and with `--json` a single document."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from agentnb.errors import Problem
from agentnb.secrets import mask_text
from agentnb.text import to_json_integer


class _NullStream(io.TextIOBase):
    """A stream that discards what is written to it."""

    def write(self, text: str) -> int:
        """Return the length of the text."""
        return len(text)


class Output:
    """A stream that may stop taking output: what cannot be written is discarded, and the command finishes.

    So the store and the trace of `agentnb run ... | head -1` are complete. A reader that has closed its pipe wants no
    more, which is no failure; any other reason (a full disk) is in `failure`.

    Args:
        stream: None if the process was started without it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = _NullStream() if stream is None else stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text with secrets masked, or discard it; what the stream cannot encode is written as an escape."""
        masked = mask_text(text)
        try:
            self._try(self._stream.write, masked)
        except UnicodeEncodeError as error:
            self._try(self._stream.write, masked.encode(error.encoding, "backslashreplace").decode(error.encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._try(self._stream.flush)

    def _try(self, write: Callable[..., object], *args: str) -> None:
        try:
            write(*args)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.failure = self.failure or error
            # The stream flushes the rest of its buffer once more, at exit at the latest.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def refuse(problems: Sequence[Problem], *, as_json: bool) -> int:
    """Print why the command was refused, and return the exit code 1."""
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
    """Print a document as JSON, whatever it contains, in characters that the stream can encode."""
    text = json.dumps(_to_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    print(text, flush=True)


def is_missing(value: Any) -> bool:
    """Return True if a cell of a DataFrame is a missing value."""
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, float) and math.isnan(value))


def _to_plain(value: Any) -> Any:
    """Return a value in JSON form: missing values as null, and values that JSON lacks as text."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a DataFrame
        value = value.astype(object).to_dict("records")
    elif hasattr(value, "tolist"):  # a numpy value or a Series
        value = value.tolist()
    if is_missing(value):
        return None
    match value:
        case None | bool():
            return value
        case int():
            return to_json_integer(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot be encoded
        case Mapping():
            return {
                _to_plain(key if isinstance(key, str) else str(key)): _to_plain(item) for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_to_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else _to_plain(str(value))
