"""Attributes that most objects of a class never use, made when they are first used: thousands of objects are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Final

_MAKING: Final = RLock()


class LazyAttributes:
    """Base of classes whose `lazy` attributes, collections that few of their objects use, are made on first access.

    They are slots without a value until then, and the class annotates them. A reader that is content with "none" asks
    `look`, which makes nothing. `made` are the names of those made so far.
    """

    __slots__ = ("made",)
    lazy: ClassVar[Mapping[str, Callable[[], Any]]] = {}
    made: tuple[str, ...]

    def look(self, name: str) -> Any:
        """Return a lazy attribute if it has been made, else an empty tuple."""
        return getattr(self, name) if name in self.made else ()

    if not TYPE_CHECKING:  # the class annotates its lazy attributes: any other name is a mistake

        def __getattr__(self, name: str) -> Any:
            if name == "made":
                return ()
            make = type(self).lazy.get(name)
            if make is None:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name, obj=self)
            with _MAKING:  # threads may ask at once
                try:
                    return object.__getattribute__(self, name)
                except AttributeError:
                    made = make()
                    setattr(self, name, made)
                    self.made += (name,)  # after the value is there: `look` takes no lock
                    return made


__all__ = ["LazyAttributes"]
