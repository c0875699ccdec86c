"""The random number generator of a run. It counts its draws, so that another process can continue from there.

What a step has drawn (random numbers, ids, times of a ticking clock) is rolled back if the step is abandoned; when it
runs again, it draws the same values.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run

WORD: Final = 32  # bits of one draw of the generator
AT_ONCE: Final = 1 << 16
NOTHING: Final[dict[str, Any]] = {"random": None, "ids": {}, "clock": None}  # read-only


class SeededRandom(random.Random):
    """A seeded random number generator that can be advanced to a recorded state.

    Example:
        >>> one = SeededRandom(7)
        >>> drawn = [one.random(), one.randint(1, 6), one.gauss(0, 1)]
        >>> other = SeededRandom(7)
        >>> other.advance_to(one.get_state())
        >>> other.random() == one.random(), other.gauss(0, 1) == one.gauss(0, 1)
        (True, True)
    """

    def __init__(self, seed: int = 0) -> None:
        self.words_drawn = 0
        super().__init__(seed)

    def random(self) -> float:
        """Return the next number in [0, 1)."""
        self.words_drawn += 2
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """Return `k` random bits."""
        self.words_drawn += (k + WORD - 1) // WORD
        return super().getrandbits(k)

    def get_state(self) -> list[Any]:
        """Return the state as JSON: the number of words drawn, and the spare value of `gauss`."""
        return [self.words_drawn, self.gauss_next]

    def advance_to(self, state: list[Any]) -> None:
        """Advance to a state returned by `get_state` for the same seed; nothing may have been drawn yet."""
        draws, gauss = state
        while draws > 0:
            self.getrandbits(WORD * min(draws, AT_ONCE))
            draws -= AT_ONCE
        self.gauss_next = gauss


def get_draws(run: Run) -> dict[str, Any]:
    """Return what a run has drawn so far, as JSON: the states of its generator, ids and clock."""
    chance, counters, clock = run.rng, run.ids.counters, run.clock.get_state()
    if not chance and clock is None and not counters:
        return NOTHING  # the usual case, before each step of most runs
    return {"random": chance.get_state() if chance else None, "ids": dict(counters), "clock": clock}


def save_draws(run: Run) -> None:
    """Record the draws before a step that may be abandoned starts; skipped while other steps in flight draw, too."""
    if not run.pending_steps:
        run.random_state = (run.history, run.position, get_draws(run))


def roll_back_draws(run: Run) -> None:
    """Roll back what the abandoned step has drawn since it started."""
    history, position, saved = run.random_state
    if run.pending_steps or history is not run.history or position != run.position:
        return
    run.rng = None
    if saved["random"] is not None:
        run.random.advance_to(saved["random"])
    run.ids.counters = dict(saved["ids"])
    run.clock.go_back(saved["clock"])


__all__ = ["SeededRandom", "get_draws", "roll_back_draws", "save_draws"]
