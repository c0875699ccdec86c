"""The open journals of this process: flushed together, and never two for one run."""

from __future__ import annotations

import atexit
import contextlib
import gc
import weakref
from typing import TYPE_CHECKING, Final

from agentnb.errors import Problem, StoreError

if TYPE_CHECKING:
    from agentnb.engine.persistence.journal import Journal

LIVE: Final[weakref.WeakSet[Journal]] = weakref.WeakSet()


def flush_all() -> None:
    """Save what the journals of this process have not saved yet.

    Failures are ignored, whatever the exception (a user's codec may raise anything): the session that owns the journal
    reports them when it continues or is closed.
    """
    for journal in list(LIVE):
        with contextlib.suppress(Exception):
            journal.flush()


def check_alone(journal: Journal) -> None:
    """Raise an error if another session of this process writes the same run and does not release it.

    Raises:
        StoreError: L453, another session writes it.
    """
    key = (journal.run_id, journal.log)
    for once_more in (True, False):
        others = [other for other in list(LIVE) if other.is_writer and (other.run_id, other.log) == key]
        if not any(other is not journal and not (journal.takes_over and _release(other)) for other in others):
            return
        if once_more:
            gc.collect()  # the run may belong to an unreferenced session
    raise StoreError(
        Problem("L453", f"another session of this process is writing run {journal.run_id!r}", journal.log.url,
                "only one session can write a run", "close that session with session.close(), then open the run again")
    )  # fmt: skip


def _release(journal: Journal) -> bool:
    hand_over = journal.get_release()
    return hand_over is not None and hand_over()


@atexit.register
def _close_all() -> None:
    for journal in list(LIVE):
        with contextlib.suppress(Exception):
            journal.close()


__all__ = ["LIVE", "check_alone", "flush_all"]
