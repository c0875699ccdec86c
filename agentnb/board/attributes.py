"""The attributes of dataclasses and pydantic objects: fields, and extra, private and undeclared attributes.

Cached properties are left out, because they are computed again.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from agentnb.board import external_types
from agentnb.text import call

_EXTRA: Final = "__pydantic_extra__"
_PRIVATE: Final = "__pydantic_private__"
_MISSING: Final = object()


class Attributes(NamedTuple):
    """The attributes of an object: its declared fields, its private attributes, and all others."""

    declared: dict[str, Any]
    private: dict[str, Any]
    extra: dict[str, Any]


def read_attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes of a dataclass or a pydantic object, by name; None for any other value.

    An attribute that cannot be read is `text.UNREADABLE`.
    """
    cls: Any = type(value)
    is_model = external_types.is_model(cls)
    if not is_model and (issubclass(cls, type) or not is_dataclass(cls)):
        return None
    declared, held = _list_declared(cls), _get_held(value, "__dict__")
    if is_model:
        items = {**held, **_get_held(value, _EXTRA), **_get_held(value, _PRIVATE)}
    else:  # a field may be a property, or in a slot
        items = {name: call(getattr, value, name, _MISSING) for name in declared}
        items = {name: item for name, item in items.items() if item is not _MISSING}
    if not held.keys() <= declared:
        for name in [name for name in held if name not in declared]:
            if _is_cached(cls, name):
                items.pop(name, None)
            else:
                items[name] = held[name]
    return items


def split_attributes(cls: Any, items: Mapping[str, Any]) -> Attributes:
    """Return the attributes of an object of a class by their kind."""
    declared, private = _list_declared(cls), getattr(cls, "__private_attributes__", ())
    split = Attributes({}, {}, {})
    for name, item in items.items():
        (split.declared if name in declared else split.private if name in private else split.extra)[name] = item
    return split


def set_attributes(instance: Any, items: Mapping[str, Any]) -> None:
    """Set attributes of a dataclass or a pydantic object, without running its code for those that are not declared."""
    cls: Any = type(instance)
    declared = _list_declared(cls)
    for name, item in items.items():
        if name in declared:
            object.__setattr__(instance, name, item)
    if items.keys() <= declared:
        return
    split = split_attributes(cls, items)
    if split.private:
        object.__setattr__(instance, _PRIVATE, {**_get_held(instance, _PRIVATE), **split.private})
    if split.extra and external_types.is_model(cls) and cls.model_config.get("extra") == "allow":
        object.__setattr__(instance, _EXTRA, {**_get_held(instance, _EXTRA), **split.extra})
    elif split.extra:
        instance.__dict__.update(split.extra)


def drop_cached(instance: Any, attributes: Mapping[str, Any]) -> None:
    """Remove what an object has besides these attributes: the values of cached properties."""
    held = _get_held(instance, "__dict__")
    if not held.keys() <= attributes.keys():
        for name in held.keys() - attributes.keys():
            del held[name]


def _list_declared(cls: Any) -> KeysView[str]:
    """Return the names of the fields of a class, in their order."""
    names: KeysView[str] = (
        cls.model_fields if external_types.is_model(cls) else dict.fromkeys(field.name for field in fields(cls))
    ).keys()
    return names


def _is_cached(cls: type, name: str) -> bool:
    return any(isinstance(vars(base).get(name), cached_property) for base in cls.__mro__)


def _get_held(value: Any, home: str) -> dict[str, Any]:
    held = call(object.__getattribute__, value, home)
    return held if type(held) is dict else {}


__all__ = ["Attributes", "drop_cached", "read_attributes", "set_attributes", "split_attributes"]
