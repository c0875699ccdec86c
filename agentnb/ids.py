"""Ids: counted names (IDGen) and ids derived from a seed. They are passed as arguments, never globals."""

from __future__ import annotations

import random
import secrets
import time
import uuid

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


class IDGen:
    """Generates `name_001`, `name_002`, ...: one counter per prefix, so that the same run has the same ids.

    Example:
        >>> ids = IDGen()
        >>> ids("event"), ids("event"), ids("call")
        ('event_001', 'event_002', 'call_001')
    """

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}

    def __call__(self, prefix: str) -> str:
        """Return the next id of this prefix, at least three digits wide."""
        number = self.counters.get(prefix, 0) + 1
        self.counters[prefix] = number
        return f"{prefix}_{number:03d}"


def make_step_id(run_id: str, step: int, branch: str | None = None) -> uuid.UUID:
    """Return the id of a step: the same for the same run id, branch and number, in every process (UUID version 5).

    Example:
        >>> make_step_id("run", 3) == make_step_id("run", 3)
        True
        >>> make_step_id("run", 3) == make_step_id("run", 3, "branch 1")
        False
    """
    within = "" if branch is None else f"/{branch}"
    return uuid.uuid5(uuid.NAMESPACE_URL, f"agentnb:{run_id}{within}/{step}")


def make_run_id(rng: random.Random | None = None) -> str:
    """Return a new run id that sorts by time; with `rng` it is drawn from that generator only."""
    if rng is not None:
        return "".join(rng.choice(_ALPHABET) for _ in range(20))
    number = int(time.time() * 1000) % 2**50 << 50 | secrets.randbits(50)
    return "".join([_PAIRS[number >> bits & 1023] for bits in range(90, -1, -10)])
