"""The cyclic garbage collector, paused while much is read that stays in use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY_OBJECTS: Final = 50_000


@contextmanager
def pause_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector while reading: it would scan millions of new objects repeatedly.

    What was read stays in use, so it joins the oldest generation at once, instead of being scanned as young objects;
    but not if there is little, because counting objects frozen by other code may take longer than such a scan.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # Unfreezing would also release objects frozen by other code.
            if gc.get_count()[0] > _MANY_OBJECTS and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


__all__ = ["pause_collection"]
