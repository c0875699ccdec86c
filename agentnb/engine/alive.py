"""alive: the journals of this process that may still have something to keep: all at once, and never two for one run."""

from __future__ import annotations

import atexit
import contextlib
import gc
import weakref
from typing import TYPE_CHECKING, Final

from agentnb.errors import Problem, StoreError

if TYPE_CHECKING:
    from agentnb.engine.journal import Journal

LIVE: Final[weakref.WeakSet[Journal]] = weakref.WeakSet()


def flush_all() -> None:
    """Keep what no journal of this process has kept yet, as far as it can be kept."""
    for journal in list(LIVE):
        with contextlib.suppress(StoreError):
            journal.flush()


def check_alone(journal: Journal) -> None:
    """Raise where another session of this process writes the same run.

    Raises:
        StoreError: L453, it does.
    """
    key = (journal.run_id, journal.log)
    for once_more in (True, False):
        if not any(other.holds and (other.run_id, other.log) == key for other in list(LIVE)):
            return
        if once_more:
            gc.collect()  # it may be one that nobody has any more
    raise StoreError(
        Problem("L453", f"another session of this process writes run {journal.run_id!r}", journal.log.url,
                "only one may write a run, else what they do would be mixed", "close() it, then open the run anew")
    )  # fmt: skip


@atexit.register
def _close_all() -> None:
    for journal in list(LIVE):
        with contextlib.suppress(Exception):
            journal.close()


__all__ = ["LIVE", "check_alone", "flush_all"]
