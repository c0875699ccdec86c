"""Where a process is at this moment, in a file that is mapped into memory: it can be read after a SIGKILL."""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PLACES: Final = ("commit", "call", "checkpoint", "fork")
_CALLS, _WIDTH = 8, 64  # calls that are out at a time, and how long the name of one may be
_SIZE: Final = len(PLACES) + _CALLS * _WIDTH


class Marks:
    """For each place how often this process is in it at this moment, and the calls that are out."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._lock = threading.Lock()

    @staticmethod
    def make(path: Path) -> None:
        path.write_bytes(bytes(_SIZE))

    @contextlib.contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Be at a place."""
        number = PLACES.index(place)
        self._count(number, 1)
        try:
            yield
        finally:
            self._count(number, -1)

    @contextlib.contextmanager
    def calling(self, call: str) -> Iterator[None]:
        """Be in a call, after it went out and before it is answered."""
        name = call.encode()
        assert len(name) < _WIDTH
        with self._lock:
            starts = (len(PLACES) + number * _WIDTH for number in range(_CALLS))
            start = next(start for start in starts if not self._map[start])
            self._map[start + 1 : start + 1 + len(name)] = name
            self._map[start] = len(name)  # last: half a name is none
        with self.at("call"):
            yield
        with self._lock:
            self._map[start] = 0

    def _count(self, number: int, more: int) -> None:
        with self._lock:
            self._map[number] += more


def read(path: Path) -> tuple[set[str], set[str]]:
    """Return the places at which a process was when it was killed, and the calls that were out."""
    content = path.read_bytes()
    places = {name for number, name in enumerate(PLACES) if content[number]}
    starts = [len(PLACES) + number * _WIDTH for number in range(_CALLS)]
    return places, {content[start + 1 : start + 1 + content[start]].decode() for start in starts if content[start]}
