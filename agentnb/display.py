"""Registry of displays, checks and analyses of objects of lower layers, made by higher ones.

A recipe does not draw itself, an error does not create a DataFrame, and a session does not slice its own history: each
requests its view by name, and the package root registers the module that makes it. A view is imported when it is first
used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_VIEWS: dict[str, str | Callable[..., Any]] = {}


def register(view: str, maker: str | Callable[..., Any]) -> None:
    """Make `maker` the function behind a view: a callable, or "module:name" to be imported at the first use."""
    _VIEWS[view] = maker


def get_view(name: str) -> Callable[..., Any]:
    """Return the function that makes a view.

    Raises:
        KeyError: no view of this name is registered.
    """
    maker = _VIEWS[name]
    if isinstance(maker, str):
        module, _, attribute = maker.partition(":")
        maker = _VIEWS[name] = getattr(import_module(module), attribute)
    return maker
