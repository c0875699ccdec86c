"""The Problem of a library that an export needs and that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agentnb.errors import ExecutionError, Problem


@contextmanager
def needed(library: str, extra: str, where: str) -> Iterator[None]:
    """Raise a Problem with the cure if the import inside the block fails.

    L590: an export needs a package that is not installed.

    Raises:
        ExecutionError: L590.
    """
    try:
        yield
    except ImportError:
        raise ExecutionError(
            Problem("L590", f"{where} needs the package {library}", where, "it is not installed",
                    f'run: pip install "agentnb[{extra}]"')
        ) from None  # fmt: skip


__all__ = ["needed"]
