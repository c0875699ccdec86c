"""chance: a run's own source of chance. It counts what was drawn, so that another process can go on from there.

What a step has drawn (of chance, of ids, of a clock that ticks) is taken back where it is given up: run again, it draws
the same.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentnb.engine.run import Run

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


def drawn(run: Run) -> dict[str, Any]:
    """Return what a run has drawn so far, as JSON: how far its chance, its ids and its clock have come."""
    chance = run.__dict__.get("random")
    found = {"random": None if chance is None else chance.kept(), "ids": dict(run.ids.counters)}
    return {**found, "clock": run.clock.kept()}


def take_note(run: Run) -> None:
    """Note what is drawn before a step begins that may be given up; beside others nobody can tell who draws what."""
    if not run.flights:
        run.stood = (run.history, run.position, drawn(run))


def take_back(run: Run) -> None:
    """Take back what the step that is given up has drawn since it began."""
    history, position, kept = run.stood
    if run.flights or history is not run.history or position != run.position:
        return
    run.__dict__.pop("random", None)
    if kept["random"] is not None:
        run.random.forward(kept["random"])
    run.ids.counters = dict(kept["ids"])
    run.clock.go_back(kept["clock"])


__all__ = ["Chance", "drawn", "take_back", "take_note"]
