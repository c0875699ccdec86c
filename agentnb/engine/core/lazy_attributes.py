"""Lazy attributes, created on first access: most of a class's thousands of objects never use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar


class _Lazy:
    """One lazy attribute of a class."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self._name, self._make = name, make

    def __get__(self, holder: Any, _owner: type | None = None) -> Any:
        try:
            return holder.lazy_values[self._name]
        except KeyError:  # if two threads race, both receive the same one; a lock could stay held after an interrupt
            return holder.lazy_values.setdefault(self._name, self._make())

    def __set__(self, holder: Any, value: Any) -> None:
        holder.lazy_values[self._name] = value


class LazyAttributes:
    """Base of classes with `lazy` attributes: collections used by few of their objects and created on first access.

    The class annotates them; their values are stored in `lazy_values`, by name. Use `peek` to read one without creating
    it. There is no `__getattr__`, because it would slow down all other attributes of the class.
    """

    __slots__ = ("lazy_values",)
    lazy: ClassVar[Mapping[str, Callable[[], Any]]] = {}
    lazy_values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        for name, make in cls.lazy.items():
            setattr(cls, name, _Lazy(name, make))

    def peek(self, name: str) -> Any:
        """Return a lazy attribute if it has been created, else an empty tuple."""
        return self.lazy_values.get(name, ())


__all__ = ["LazyAttributes"]
