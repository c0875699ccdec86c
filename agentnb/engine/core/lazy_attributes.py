"""Attributes that most objects of a class never use, made when they are first used: thousands of objects are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, ClassVar, Final

_MAKING: Final = RLock()


class LazyAttributes:
    """Base of classes whose `lazy` attributes, collections that few of their objects use, are made on first access.

    They are slots without a value until then, and the class annotates them.
    """

    __slots__ = ()
    lazy: ClassVar[Mapping[str, Callable[[], Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        make = type(self).lazy.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name, obj=self)
        with _MAKING:  # threads may ask at once
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                made = make()
                setattr(self, name, made)
                return made


__all__ = ["LazyAttributes"]
