"""The public names of a dialect, imported at their first use: recognizing a recipe needs none of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def make_lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package, for its names and for their completion.

    `homes` maps each name to the module that defines it.

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

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return import_name, list_names
