"""The trace of one evaluated condition or clause: its target, its result, and the values it read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentnb.text import safe_repr, safe_str


@dataclass(frozen=True, slots=True)
class Asked:
    """One evaluated condition: its target, its result, whether that edge was taken, and what it read: (text, value)."""

    condition: str
    target: str
    value: Any
    taken: bool
    operands: tuple[tuple[str, Any], ...] = ()
    warning: str = ""

    def line(self) -> str:
        """Return it as one line of text, without secrets."""
        read = ", ".join(f"{safe_str(text)} = {safe_repr(value, key=text)}" for text, value in self.operands)
        mark = "->" if self.taken else "  "
        return (
            f"{mark} {self.target or 'the end'}: {safe_str(self.condition) or 'always'} is {safe_repr(self.value)}"
            + (f"  ({read})" if read else "")
            + (f"  odd: {safe_str(self.warning)}" if self.warning else "")
        )


__all__ = ["Asked"]
