"""Resources: objects that nodes share by type. They are not on the board: neither recorded nor rolled back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import ABSENT

if TYPE_CHECKING:
    from agentnb.board.scopes import Scope

MOST_SCOPES: Final = 1_000


class Resources(Mapping[type, Any]):
    """Objects by type: those of a session (as a Mapping), overridden by those that branches have inserted.

    An object inserted in a child scope is visible only there and in nested scopes. If there are more than a thousand
    such scopes, the objects of the oldest are dropped.
    """

    def __init__(self, resources: Mapping[type, Any] | None = None) -> None:
        self.shared: dict[type, Any] = dict(resources or {})
        self.by_scope: dict[int, dict[type, Any]] = {}

    def __getitem__(self, kind: type) -> Any:
        return self.shared[kind]

    def __iter__(self) -> Iterator[type]:
        return iter(self.shared)

    def __len__(self) -> int:
        return len(self.shared)

    def insert(self, value: Any, kind: type | None = None, scope: Scope | None = None) -> None:
        """Insert an object under its type, or under an explicit one; the object inserted last is used."""
        kind = type(value) if kind is None else kind
        if scope is None or scope.id == 0:
            self.shared[kind] = value
            return
        if scope.id not in self.by_scope and len(self.by_scope) >= MOST_SCOPES:
            del self.by_scope[next(iter(self.by_scope))]
        self.by_scope.setdefault(scope.id, {})[kind] = value

    def find(self, kind: type, scope: Scope | None = None) -> Any:
        """Return the object of a type, or else of a derived type, as visible from a scope; ABSENT if there is none."""
        layers = []
        while scope is not None:
            layers += [self.by_scope[scope.id]] if scope.id in self.by_scope else []
            scope = scope.parent
        layers.append(self.shared)
        for layer in layers:
            if kind in layer:
                return layer[kind]
        for layer in layers:
            for known in reversed(layer):
                with suppress(TypeError):  # not everything that names a type supports issubclass
                    if issubclass(known, kind):
                        return layer[known]
        return ABSENT

    def names(self) -> list[str]:
        """Return the names of the types that a session has."""
        return [getattr(kind, "__qualname__", str(kind)) for kind in self.shared]
