"""writing: how a frozen value comes under a key of a scope, and what is said where none may."""

from __future__ import annotations

from typing import Any

from agentnb.board.places import Path
from agentnb.board.scopes import DELETED, Scope
from agentnb.board.values import ABSENT
from agentnb.errors import BoardError, Problem


def put(scope: Scope, key: str, top: Any) -> None:
    """Put a frozen value under a key, or take the key away where it is ABSENT."""
    if top is not ABSENT:
        scope.data[key] = top
    elif scope.parent is None:
        scope.data.pop(key, None)
    else:
        scope.data[key] = DELETED


def closed(scope: Scope, path: Path) -> BoardError:
    """Return the error that says why nothing can be written here now."""
    return BoardError(
        Problem(
            "B106",
            f"{'.'.join(map(str, path))!r} cannot be written now",
            f"scope {scope.name!r}",
            f"{scope.open} child scope(s) of it are open and read through it",
            "write it when the branch or subgraph has ended, or inside it",
        )
    )
