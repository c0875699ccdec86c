"""A progress bar for work over many runs: a widget in a notebook, a line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agentnb.world.human_input import is_in_kernel

_WIDTH = 40


@contextmanager
def progress_bar(total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Show how many of `total` are done; yield a function to call with the number of those done since."""
    if is_in_kernel():
        yield from _show_widget(total, done)
    elif sys.stderr.isatty():
        yield from _show_line(total, done)
    else:
        yield lambda _count: None


def _show_widget(total: int, done: int) -> Iterator[Callable[[int], None]]:
    from IPython.display import display
    from ipywidgets import IntProgress

    bar = IntProgress(value=done, max=total, description=f"{done}/{total}")
    display(bar)  # type: ignore[no-untyped-call]

    def advance(more: int) -> None:
        bar.value += more
        bar.description = f"{bar.value}/{total}"

    yield advance
    bar.bar_style = "success"


def _show_line(total: int, done: int) -> Iterator[Callable[[int], None]]:
    count = done

    def advance(more: int) -> None:
        nonlocal count
        count += more
        filled = _WIDTH * count // total
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {count}/{total}")
        sys.stderr.flush()

    yield advance
    sys.stderr.write("\n")


__all__ = ["progress_bar"]
