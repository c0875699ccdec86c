"""The public names of a dialect, imported at their first use: recognizing a recipe needs none of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def make_lazy_getattr(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: `homes` maps each of its names to the module that defines it.

    A name may also be that of the module itself, or that of an attribute of a class: "module:class".
    """

    def import_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, _, owner = homes[name].partition(":")
        module = import_module(home)
        if home.endswith(f".{name}"):
            value: Any = module
        else:
            value = getattr(getattr(module, owner) if owner else module, name)
        setattr(sys.modules[package], name, value)
        return value

    return import_name
