"""asked: one condition or clause that was asked: where it leads, what it came to, and what it read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentnb.board.secrets import hidden, short


@dataclass(frozen=True, slots=True)
class Asked:
    """One condition: where it leads, what it came to, whether that way was taken, and what it read: (text, value)."""

    condition: str
    target: str
    value: Any
    taken: bool
    operands: tuple[tuple[str, Any], ...] = ()
    warning: str = ""

    def line(self) -> str:
        """Return it as one line of text, without secrets."""
        read = ", ".join(f"{hidden(text)} = {short(value, text)}" for text, value in self.operands)
        mark = "->" if self.taken else "  "
        return (
            f"{mark} {self.target or 'the end'}: {hidden(self.condition) or 'always'} is {short(self.value)}"
            + (f"  ({read})" if read else "")
            + (f"  odd: {hidden(self.warning)}" if self.warning else "")
        )


__all__ = ["Asked"]
