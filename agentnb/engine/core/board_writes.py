"""Board writes: how a scope stores a frozen value under a key, and the error for a scope that is closed to writes."""

from __future__ import annotations

from typing import Any

from agentnb.board.paths import Path
from agentnb.board.scopes import DELETED, Scope
from agentnb.board.values import ABSENT
from agentnb.errors import BoardError, Problem


def put(scope: Scope, key: str, top: Any) -> None:
    """Set a key to a frozen value, or delete the key if the value is ABSENT."""
    data = scope.own_data()
    if top is not ABSENT:
        data[key] = top
    elif scope.parent is None:
        data.pop(key, None)
    else:
        data[key] = DELETED


def closed(scope: Scope, path: Path) -> BoardError:
    """Return the error for a write to a scope that has open child scopes: B106."""
    return BoardError(
        Problem(
            "B106",
            f"{'.'.join(map(str, path))!r} cannot be written now",
            f"scope {scope.name!r}",
            f"{scope.open} child scope(s) of it are open and read through it",
            "write it after the branch or subgraph has ended, or inside it",
        )
    )
