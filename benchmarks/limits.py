"""limits: what a benchmark says at its end: which limits are broken, and with which exit code it leaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def verdict(broken: Sequence[str], *, check: bool) -> int:
    """Name the broken limits on stderr; return 1 where there are some and that was to be checked, else 0."""
    if broken:
        print(f"{len(broken)} limit(s) broken: {'; '.join(broken)}", file=sys.stderr)
    return 1 if broken and check else 0
