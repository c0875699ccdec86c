"""Attributes that most objects of a class never use, made when they are first used: thousands of objects are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar


class _Lazy:
    """One lazy attribute of a class."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self._name, self._make = name, make

    def __get__(self, holder: Any, _owner: type | None = None) -> Any:
        try:
            return holder.made[self._name]
        except KeyError:  # of two threads, both receive one; a lock could stay held after an interrupt
            return holder.made.setdefault(self._name, self._make())

    def __set__(self, holder: Any, value: Any) -> None:
        holder.made[self._name] = value


class LazyAttributes:
    """Base of classes whose `lazy` attributes, collections that few of their objects use, are made on first access.

    The class annotates them, and they lie in `made`, by name. A reader that is content with "none" asks `look`, which
    makes nothing. There is no `__getattr__`: it would slow down every other attribute of the class.
    """

    __slots__ = ("made",)
    lazy: ClassVar[Mapping[str, Callable[[], Any]]] = {}
    made: dict[str, Any]

    def __init_subclass__(cls) -> None:
        for name, make in cls.lazy.items():
            setattr(cls, name, _Lazy(name, make))

    def look(self, name: str) -> Any:
        """Return a lazy attribute if it has been made, else an empty tuple."""
        return self.made.get(name, ())


__all__ = ["LazyAttributes"]
