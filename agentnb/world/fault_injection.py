"""Fault injection: a world with latency and failures, reproducible from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from math import isfinite
from typing import Any, Final, Self

from agentnb.errors import ExecutionError, Problem, did_you_mean, with_article
from agentnb.text import safe_repr

Key = tuple[str, str, int, int]
PER_TOKENS: Final = 100  # this number of tokens of an answer takes the latency once more
CHARACTERS_A_TOKEN: Final = 4  # if a model does not report its usage
# A person, a pause and a cache are not services that could be down.
SPARED: Final = frozenset({"human", "approval", "sleep", "cache"})


class ChaosError(RuntimeError):
    """An injected failure: nothing was called, and nothing is broken."""


@dataclass(frozen=True, slots=True)
class Chaos:
    """The faults injected into the calls of a run: each is delayed, and some fail.

    Human input and pauses are not affected.

    Each decision depends on the seed and on the call's key alone (node id, kind of effect, number of the node's earlier
    calls, attempt). A run therefore fails at the same points again, while a retry of a call may succeed.

    Args:
        latency_ms: the delay of each call before it is sent, in milliseconds, without jitter.
        error_rate: the share of attempts that fail, 0 to 1.
        token_throttle: whether a model's answer takes the latency again for each 100 tokens.
        seed: decides which attempts fail.

    Raises:
        ExecutionError: X415, a key or a value is invalid; all problems at once

    Example:
        >>> chaos = Chaos(latency_ms=200, error_rate=0.5, seed=1)
        >>> chaos.delay(("fetch", "tool", 0, 1))
        0.2
        >>> [attempt for attempt in range(1, 6) if chaos.fails(("fetch", "tool", 0, attempt))]
        [1, 2, 3, 5]
    """

    latency_ms: float = 0
    error_rate: float = 0.0
    token_throttle: bool = False
    seed: int | str = 0

    def __post_init__(self) -> None:
        problems = [
            Problem("X415", f"{word} {safe_repr(getattr(self, word))} is invalid", f"chaos, {word}", rule, order)
            for word, (fits, rule, order) in _RULES.items()
            if not fits(getattr(self, word))
        ]
        if problems:
            raise ExecutionError(*problems)

    @classmethod
    def of(cls, chaos: Any, seed: int | str = 0) -> Self | None:
        """Return a Chaos from a Chaos, a mapping or an object with its fields, or None.

        `seed` applies if the value has none.

        Raises:
            ExecutionError: X415, a key or a value is invalid.
        """
        if chaos is None or isinstance(chaos, cls):
            return chaos
        names = [field.name for field in fields(cls)]
        values = _check_mapping(chaos, names)
        unknown = [
            Problem("X415", f"chaos has no setting {word!r}", "chaos", f"its keys are: {', '.join(names)}",
                    did_you_mean(word, names, f"remove {word!r}"))
            for word in values if word not in names
        ]  # fmt: skip
        if unknown:
            raise ExecutionError(*unknown)
        return cls(**{"seed": seed, **values})

    def derive(self, name: str) -> Self:
        """Return a Chaos with the same settings and other random decisions, which depend on `name`."""
        return replace(self, seed=f"{self.seed}/{name}")

    def delay(self, key: Key) -> float:
        """Return the delay of an attempt in seconds."""
        return 0.0 if key[1] in SPARED else self.latency_ms / 1000

    def fails(self, key: Key) -> bool:
        """Return True if an attempt fails."""
        return key[1] not in SPARED and _draw_share(self.seed, key) < self.error_rate

    def raise_failure(self, key: Key) -> None:
        """Raise an error if an attempt must fail.

        Raises:
            ChaosError: it must fail.
        """
        if self.fails(key):
            node, kind, _, attempt = key
            raise ChaosError(
                f"chaos struck attempt {attempt} of this {kind} call of node {node!r} "
                f"(made on purpose: error_rate {self.error_rate:g}, seed {self.seed})"
            )

    def throttle_delay(self, key: Key, tokens: float) -> float:
        """Return the additional seconds that a model's answer of this many tokens takes, in proportion to them."""
        if not self.token_throttle or key[1] in SPARED:
            return 0.0
        return self.latency_ms / 1000 * tokens / PER_TOKENS


def count_tokens(answer: Any) -> float:
    """Return the number of tokens of an answer: from its `usage`, else a quarter of its characters."""
    tokens = getattr(getattr(answer, "usage", None), "tokens_out", None)
    if tokens is not None:
        return float(tokens)
    content = getattr(answer, "content", answer)
    return len(content if isinstance(content, str) else repr(content)) / CHARACTERS_A_TOKEN


def _draw_share(seed: int | str, key: Key) -> float:
    """Return a number in [0, 1) that is the same in every process and on every machine."""
    digest = blake2b(repr((str(seed), *key)).encode("utf-8", "surrogatepass"), digest_size=7)
    return int.from_bytes(digest.digest()) / 2**56


def _check_mapping(chaos: Any, names: list[str]) -> Mapping[str, Any]:
    """Return the argument as a mapping.

    Raises:
        ExecutionError: X415, it is not a chaos configuration.
    """
    if isinstance(chaos, Mapping):
        return chaos
    values = {word: getattr(chaos, word) for word in names if hasattr(chaos, word)}
    if isinstance(chaos, type) or not values.keys() - {"seed"}:
        raise ExecutionError(
            Problem("X415", f"{with_article(type(chaos).__name__)} is not a chaos configuration", "chaos",
                    f"its keys are: {', '.join(names)}",
                    "pass a mapping, for example {'latency_ms': 200, 'error_rate': 0.1}")
        )  # fmt: skip
    return {word: value for word, value in values.items() if word != "seed" or value is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


_RULES: Final = {
    "latency_ms": (_is_number, "it is a number of milliseconds, 0 or more", "write for example latency_ms=200"),
    "error_rate": (
        lambda value: _is_number(value) and value <= 1,
        "it is a share of all attempts, from 0 to 1",
        "write for example error_rate=0.1 for one in ten",
    ),
    "token_throttle": (lambda value: isinstance(value, bool), "it is true or false", "write token_throttle=true"),
    "seed": (
        lambda value: isinstance(value, int | str) and not isinstance(value, bool),
        "it is an integer or a string",
        "write for example seed=1",
    ),
}
