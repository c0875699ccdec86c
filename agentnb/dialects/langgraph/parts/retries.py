"""Retry policies of LangGraph: whether a node or a task is retried, and after what delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentnb.dialects.langgraph.parts import package as lg
from agentnb.event_loops import run_in_own_loop
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.engine.core.work import Work


def compute_delay(policies: Sequence[Any], failed: int, error: Exception, work: Work) -> float | None:
    """Return the seconds until the next attempt, after `failed` attempts; None if there is no next attempt.

    The first policy that accepts the exception decides.
    """
    policy = next((each for each in policies if lg.should_retry(each, error)), None)
    if policy is None or failed >= policy.max_attempts:
        return None
    wait: float = min(policy.max_interval, policy.initial_interval * policy.backoff_factor ** (failed - 1))
    return wait + work.random.random() if policy.jitter else wait


def record_retry(work: Work, failed: int, error: Exception) -> None:
    """Emit an event for a failed attempt that is followed by another."""
    work.emit("retry", {"attempt": failed, "error": f"{type(error).__name__}: {safe_str(error, 2_000)}"})


async def sleep(work: Work, seconds: float) -> None:
    """Wait on the clock of the run; a replay does not wait."""
    if work.run.recorded is None:
        await work.loop()
        await work.run.clock.sleep(seconds)


def block(work: Work, seconds: float) -> None:
    """Wait as `sleep` does, for a function that cannot await."""
    if work.run.recorded is None:
        run_in_own_loop(lambda: _measure_sleep(work, seconds))


async def _measure_sleep(work: Work, seconds: float) -> int:
    await work.run.clock.sleep(seconds)
    return 0


def to_policies(policies: Any) -> tuple[Any, ...]:
    """Return a node's retry policies, given as None, one policy or several, as a tuple."""
    return () if policies is None else (policies,) if hasattr(policies, "max_attempts") else tuple(policies)
