"""The static picture of a cockpit in a notebook's file, updated as the session moves.

A widget is not displayed outside a live page: in nbconvert's output, on GitHub, or in a file opened without its kernel.
Therefore a picture is displayed as a separate output and replaced as the session moves, so the file contains the last
state. Where a notebook runs without a page (nbconvert, papermill), the picture replaces the widget; in a page of
Jupyter it is behind the widget, whose style hides it. It cannot be part of the widget's output, because a page would
rebuild that output at each change.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4
from weakref import WeakMethod

TWIN: Final = "agentnb-twin"  # the class of the picture behind a widget, which cockpit.css hides
MOST: Final = 20  # pictures of one cockpit that follow it, the latest ones
_SERVED: Final = "JPY_SESSION_NAME"  # set by Jupyter's server for the kernels of its pages
_PAGES: Final = (_SERVED, "VSCODE_PID")
_PAUSE: Final = 1.0  # seconds between two pictures outside of cells
Bundle = dict[str, str]


def is_headless() -> bool:
    """Return True if a program sent this cell to the kernel, as nbconvert does, and no page can show a widget.

    A page sends the id of the cell with its code.
    """
    parent = _get_parent()
    if parent is None or any(name in os.environ for name in _PAGES):
        return False
    return bool(parent.get("header")) and not parent.get("metadata")


def runs_in_jupyter() -> bool:
    """Return True in a page of JupyterLab or Notebook: they update displays, and load the cockpit's style."""
    return _get_parent() is not None and _SERVED in os.environ and "VSCODE_PID" not in os.environ


def get_cell_id() -> str:
    """Return the id of the cell that is running; a new one if the page has not sent it."""
    return str((_get_parent() or {}).get("metadata", {}).get("cellId") or uuid4().hex)


def _get_parent() -> dict[str, Any] | None:
    """Return the request that the kernel is serving; None outside of a kernel, in Colab and in WebAssembly."""
    kernel = getattr(_get_shell(), "kernel", None)
    if kernel is None or "google.colab" in sys.modules or sys.platform == "emscripten":
        return None  # a kernel in WebAssembly runs in the page itself
    return kernel.get_parent("shell") or {}


def _get_shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def publish(data: dict[str, Any], metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """Display an output in the current cell."""
    from IPython import display

    publish_data: Any = display.publish_display_data  # IPython's has no types
    publish_data(data, metadata, **kwargs)


class StaticDisplay:
    """A displayed picture. `content()` returns what to show and a number that changes with it."""

    def __init__(self, content: Callable[[], tuple[Bundle, int]]) -> None:
        self._content = WeakMethod(content)
        self._id, self._shown = uuid4().hex, -1
        self._timer: asyncio.TimerHandle | None = None
        self._publish(update=False)
        _get_shell().events.register("post_run_cell", self._follow)

    def follow_soon(self) -> None:
        """Replace the picture within a second, once for many changes; inside a cell also at its end."""
        if self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._follow)
            except RuntimeError:  # no loop is running: the cell's end is near
                return

    def close(self) -> None:
        """Stop following."""
        if self._timer is not None:
            self._timer.cancel()
        events = _get_shell().events
        if self._follow in events.callbacks["post_run_cell"]:
            events.unregister("post_run_cell", self._follow)

    def _publish(self, *, update: bool) -> None:
        content = self._content()
        if content is None:  # the cockpit is gone
            self.close()
            return
        data, number = content()
        if number != self._shown:
            self._shown = number
            publish(data, transient={"display_id": self._id}, update=update)

    def _follow(self, *_: object) -> None:
        self._timer = None
        self._publish(update=True)


__all__ = ["MOST", "TWIN", "StaticDisplay", "get_cell_id", "is_headless", "publish", "runs_in_jupyter"]
