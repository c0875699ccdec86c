"""A cockpit in a notebook that runs without a page (nbconvert, papermill): a picture that follows the session.

There, a widget would be an empty place: its page needs a front end. So the picture is displayed in its stead, and
replaced at the end of each cell that has moved the session: an exported page shows the last state.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4
from weakref import WeakMethod

_PAGES: Final = ("JPY_SESSION_NAME", "VSCODE_PID")  # set by Jupyter's server and by VS Code for the kernels of pages
Bundle = dict[str, str]


def runs_without_page() -> bool:
    """Return True if a program sent this cell to the kernel, as nbconvert does, and no page can show a widget.

    A page sends the id of the cell with its code.
    """
    shell = _get_shell()
    kernel = getattr(shell, "kernel", None)
    if kernel is None or sys.platform == "emscripten":  # a kernel in WebAssembly runs in the page itself
        return False
    if "google.colab" in sys.modules or any(name in os.environ for name in _PAGES):
        return False
    parent = kernel.get_parent("shell") or {}
    return bool(parent.get("header")) and not parent.get("metadata")


def _get_shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


class StaticDisplay:
    """A displayed picture. `content()` returns what to show and a number that changes with it."""

    def __init__(self, content: Callable[[], tuple[Bundle, int]]) -> None:
        self._content = WeakMethod(content)
        self._id, self._shown = uuid4().hex, -1
        self._publish(update=False)
        _get_shell().events.register("post_run_cell", self._follow)

    def _publish(self, *, update: bool) -> None:
        from IPython import display

        publish: Any = display.publish_display_data  # IPython's has no types

        content = self._content()
        if content is None:  # the cockpit is gone
            _get_shell().events.unregister("post_run_cell", self._follow)
            return
        data, number = content()
        if number != self._shown:
            self._shown = number
            publish(data, transient={"display_id": self._id}, update=update)

    def _follow(self, *_: object) -> None:
        self._publish(update=True)


__all__ = ["StaticDisplay", "runs_without_page"]
