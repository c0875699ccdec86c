"""Attributes that most objects of a class never use, created on first access: there are thousands of such objects."""

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
        except KeyError:  # of two threads, both receive one; a lock could stay held after an interrupt
            return holder.lazy_values.setdefault(self._name, self._make())

    def __set__(self, holder: Any, value: Any) -> None:
        holder.lazy_values[self._name] = value


class LazyAttributes:
    """Base of classes with `lazy` attributes: collections that few of their objects use, created on first access.

    The class annotates them; their values are in `lazy_values`, by name. Use `peek` to read one without creating it.
    There is no `__getattr__`: it would slow down every other attribute of the class.
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
