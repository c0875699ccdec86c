"""Scopes: the keys that a frame sees. A scope contains its own writes and may read through to its parent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Literal

from agentnb.board.key_checks import UnknownKey
from agentnb.board.paths import Path, get_at
from agentnb.board.values import ABSENT, thaw
from agentnb.errors import BoardError, Problem
from agentnb.expressions.paths import resolve_path

Policy = Literal["shared", "child", "isolated"]
ROOT_SCOPE: Final = "root"


class Scope:
    """The keys that one frame writes.

    `parent` is the scope that reads fall through to (a `child` scope has one, `root` and `isolated` scopes have none);
    a key deleted in a child scope is stored there as DELETED, so that the parent's value is not visible. `open` counts
    the open child scopes; while there are any, this scope cannot be written. `shared` is True while `data` may also
    belong to the scope of a fork: call `own_data` before changing it.
    """

    __slots__ = ("codes", "data", "id", "name", "open", "parent", "shared")

    def __init__(self, number: int, name: str, parent: Scope | None = None) -> None:
        self.id, self.name, self.parent = number, name, parent
        self.data: dict[str, Any] = {}
        self.codes: dict[str, int] = {}
        self.open = 0
        self.shared = False

    def make_view(self, name: str | None = None) -> Scope:
        """Return a scope on top of this one for values that are only shown: it has no number, and no history."""
        return Scope(-1, name or self.name, self)

    def own_data(self) -> dict[str, Any]:
        """Return this scope's data for changes; data shared with a fork is copied first."""
        if self.shared:
            self.data = dict(self.data)
            self.shared = False
        return self.data

    def share_data(self, other: Scope) -> None:
        """Take over the data of another scope; the first of the two scopes to change it makes a copy."""
        self.data = other.data
        self.shared = other.shared = True

    def get(self, key: str) -> Any:
        """Return the frozen value of a key as seen from this scope; ABSENT if there is none."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.data.get(key, _UNSEEN)
            if value is not _UNSEEN:
                return ABSENT if value is DELETED else value
            scope = scope.parent
        return ABSENT

    def get_at(self, path: Path) -> Any:
        """Return the frozen value at a path as seen from this scope; ABSENT if there is none."""
        value = self.get(path[0])  # type: ignore[arg-type]  # a first key is text
        return value if len(path) == 1 or value is ABSENT else get_at(value, path[1:])

    def visible_items(self) -> dict[str, Any]:
        """Return every key visible from this scope with its frozen value, outermost scope first."""
        if self.parent is None:
            return dict(self.data)
        keys = self.parent.visible_items()
        for key, value in self.data.items():
            if value is DELETED:
                keys.pop(key, None)
            else:
                keys[key] = value
        return keys


class Sentinel:
    """The type of two sentinels that are never values: not in this scope, and deleted in this child scope."""

    __slots__ = ()


_UNSEEN: Final = Sentinel()
DELETED: Final = Sentinel()


class Board(Mapping[str, Any]):
    """A read-only view of a scope: `board["a.b"]` reads a path; values are copies for the reader."""

    __slots__ = ("_find", "_masking")

    def __init__(self, scope: Any, masking: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._find = scope if callable(scope) else lambda: scope
        self._masking = masking  # returns the context in which it is shown

    def __getitem__(self, key: str) -> Any:
        scope: Scope = self._find()
        if type(key) is not str:
            key = _to_plain_key(key, scope)
        value = scope.get(key)
        if value is ABSENT:
            value = scope.get_at(resolve_path(key, scope.visible_items()))
        if value is ABSENT:
            raise KeyError(UnknownKey(key, scope.visible_items))
        return thaw(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._find().visible_items())

    def __len__(self) -> int:
        return len(self._find().visible_items())

    def __contains__(self, key: object) -> bool:
        scope: Scope = self._find()
        if type(key) is not str:
            if not issubclass(type(key), str):
                return False
            key = str.__str__(key)
        if scope.get(key) is not ABSENT:
            return True
        return scope.get_at(resolve_path(key, scope.visible_items())) is not ABSENT

    def __repr__(self) -> str:
        from agentnb.errors import pluralize
        from agentnb.text import safe_repr, safe_str

        with self._masking():
            rows = "".join(
                f"\n  {safe_str(key)}: {safe_repr(value, key=key)}"
                for key, value in self._find().visible_items().items()
            )
        return f"<Board: {pluralize(len(self), 'key')}>{rows}"


def _to_plain_key(key: object, scope: Scope) -> str:
    """Return a key of a subclass of str as a plain str; nothing else is a key."""
    from agentnb.text import safe_repr

    if not issubclass(type(key), str):
        raise KeyError(UnknownKey(safe_repr(key), scope.visible_items))
    return str.__str__(key)


def put(scope: Scope, key: str, top: Any) -> None:
    """Set a key to a frozen value, or delete the key if the value is ABSENT."""
    data = scope.own_data()
    if top is not ABSENT:
        data[key] = top
    elif scope.parent is None:
        data.pop(key, None)
    else:
        data[key] = DELETED


def make_closed_scope_error(scope: Scope, path: Path) -> BoardError:
    """Return the error for a write to a scope that has open child scopes: B106."""
    return BoardError(
        Problem(
            "B106",
            f"{'.'.join(map(str, path))!r} cannot be written now",
            f"scope {scope.name!r}",
            f"{scope.open} child scope(s) are open and read through this scope",
            "write it after the branch or subgraph has ended, or inside it",
        )
    )
