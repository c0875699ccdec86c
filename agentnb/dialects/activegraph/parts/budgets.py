"""The limits of a run in this dialect's terms; the engine enforces them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from agentnb.dialects.activegraph.errors import InvalidRuntimeConfiguration, RegistrationError
from agentnb.dialects.activegraph.parts.status import KNOWN_LIMITS, make_snapshot, to_payload
from agentnb.engine.control.budget import Budget as Counted
from agentnb.errors import ExecutionError, Problem, did_you_mean
from agentnb.text import safe_repr

# The limits that one behavior may have; the others apply to a run as a whole.
OWN_LIMITS: Final = ("max_behavior_calls", "max_llm_calls", "max_tool_calls", "max_patches", "max_cost_usd")


class Budget:
    """The limits of a run; the run ends when one is reached, and its log states which.

    Args:
        limits: by name: max_events (taken from the queue), max_behavior_calls, max_llm_calls, max_tool_calls,
            max_patches, max_depth, max_seconds, max_cost_usd; a limit that is missing is not enforced.

    Example:
        >>> budget = Budget({"max_cost_usd": "0.30"})
        >>> budget.cost_remaining(Decimal("0.3")), budget.cost_remaining(Decimal("0.31"))
        (True, False)
    """

    def __init__(self, limits: Mapping[str, Any] | None = None) -> None:
        self.limits = parse_limits(limits)
        self._used: Callable[[], Mapping[str, Any]] = dict

    def of(self, used: Callable[[], Mapping[str, Any]]) -> Budget:
        """Return this budget with `used` as its used amounts."""
        self._used = used
        return self

    @property
    def used(self) -> dict[str, float]:
        """The used amounts by the names of all limits; dollars for the cost."""
        return dict(make_snapshot(self._used(), self.limits).used)

    @property
    def cost_used(self) -> Decimal:
        """The dollars spent."""
        return Decimal(str(self._used().get("max_cost_usd", 0)))

    @property
    def cost_limit(self) -> Decimal | None:
        """The limit in dollars; None without one."""
        return self.limits.get("max_cost_usd")

    def cost_remaining(self, prospective_cost: Any) -> bool:
        """Return True if this much more may be spent."""
        remaining = self.cost_remaining_amount()
        return remaining is None or Decimal(str(prospective_cost)) <= remaining

    def cost_remaining_amount(self) -> Decimal | None:
        """Return how much may still be spent, in dollars; None if there is no limit."""
        return None if self.cost_limit is None else self.cost_limit - self.cost_used

    def has_cost_limit(self) -> bool:
        """Return True if there is a cost limit."""
        return "max_cost_usd" in self.limits

    def remaining(self) -> bool:
        """Return True if no limit is reached."""
        return self.exhausted_by() is None

    def exhausted_by(self) -> str | None:
        """Return the first limit that is reached; None if there is none."""
        used = self._used()
        return next((name for name in KNOWN_LIMITS if name in self.limits and used.get(name, 0) >= self.limits[name]),
                    None)  # fmt: skip

    def snapshot(self) -> dict[str, Any]:
        """Return the used and the allowed amounts."""
        return to_payload(make_snapshot(self._used(), self.limits))

    def __repr__(self) -> str:
        """Return one line with the limits."""
        return f"Budget({safe_repr(self.limits, 200)})"


def parse_limits(limits: Mapping[str, Any] | Budget | None) -> dict[str, Any]:
    """Return the limits, each in the type in which it is counted; unknown names raise.

    X511: a budget names an unknown limit.

    Raises:
        InvalidRuntimeConfiguration: X511, there is no such limit; X202, a cost is not a number.
    """
    values = limits.limits if isinstance(limits, Budget) else dict(limits or {})
    for name in values:
        if name not in KNOWN_LIMITS:
            raise InvalidRuntimeConfiguration(
                Problem("X511", f"there is no limit {name!r}", "budget", f"the limits are: {', '.join(KNOWN_LIMITS)}",
                        did_you_mean(str(name), KNOWN_LIMITS, "use one of them"))
            )  # fmt: skip
    parsed = {name: value for name, value in values.items() if value is not None}
    return {name: _parse_dollars(value) if name == "max_cost_usd" else value for name, value in parsed.items()}


def _parse_dollars(value: Any) -> Decimal:
    """X202: a limit is not a number of 0 or more."""
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise InvalidRuntimeConfiguration(
            Problem("X202", f"{safe_repr(value)} is not a limit", "budget, max_cost_usd",
                    "a limit is a number >= 0, or None", "pass a number")
        ) from None  # fmt: skip


def parse_own_limits(name: str, limits: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the limits of one behavior, each as the type that it is counted in.

    R331: a behavior's budget has a limit that only a run can have, an unknown limit, or an invalid value.

    Raises:
        RegistrationError: R331, it is not valid.
    """
    if limits is None:
        return None
    for limit in limits:
        if limit not in OWN_LIMITS:
            why = f"what one behavior may use: {', '.join(OWN_LIMITS)}"
            raise _make_limit_error(name, f"has no limit {str(limit)!r}", why,
                            did_you_mean(str(limit), OWN_LIMITS, "limit the run: Runtime(budget={...})"))  # fmt: skip
    try:
        known = Counted.of(parse_limits(limits), {})
    except ExecutionError as error:
        problem = error.problems[0]
        raise _make_limit_error(name, f"cannot be enforced: {problem.what}", problem.why, problem.do) from None
    return {limit: getattr(known, limit) for limit in OWN_LIMITS if getattr(known, limit) is not None}


def _make_limit_error(name: str, what: str, why: str, do: str) -> RegistrationError:
    return RegistrationError(Problem("R331", f"the budget of {name!r} {what}", f"behavior {name!r}, budget", why, do))


__all__ = ["OWN_LIMITS", "Budget", "parse_limits", "parse_own_limits"]
