"""chance: a run's own source of chance. It counts what was drawn, so that another process can go on from there."""

from __future__ import annotations

import random
from typing import Any, Final

WORD: Final = 32  # bits of one draw of the generator
AT_ONCE: Final = 1 << 16


class Chance(random.Random):
    """A seeded source of chance that can be told how far it has come.

    Example:
        >>> one = Chance(7)
        >>> drawn = [one.random(), one.randint(1, 6), one.gauss(0, 1)]
        >>> other = Chance(7)
        >>> other.forward(one.kept())
        >>> other.random() == one.random(), other.gauss(0, 1) == one.gauss(0, 1)
        (True, True)
    """

    def __init__(self, seed: int = 0) -> None:
        self.words = 0
        super().__init__(seed)

    def random(self) -> float:
        """Return the next number from 0 up to 1."""
        self.words += 2
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """Return the next `k` bits."""
        self.words += (k + WORD - 1) // WORD
        return super().getrandbits(k)

    def kept(self) -> list[Any]:
        """Return how far it has come, as JSON: how many words were drawn, and what `gauss` has left for later."""
        return [self.words, self.gauss_next]

    def forward(self, kept: list[Any]) -> None:
        """Come as far as another one of the same seed had come; nothing was drawn from this one."""
        left, gauss = kept
        while left > 0:
            self.getrandbits(WORD * min(left, AT_ONCE))
            left -= AT_ONCE
        self.gauss_next = gauss
