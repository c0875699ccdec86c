"""The user's code in a traceback: the line of it that an exception comes from, and how a line is shown."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path, PurePath
from traceback import walk_tb
from types import FrameType
from typing import Any, Final

_OURS: Final = f"{Path(__file__).parent.as_posix()}/"
_SAMPLES: Final = f"{_OURS}samples/"  # the functions of samples stand for those of a user
_STANDARD: Final = tuple(f"{Path(sysconfig.get_path(name)).as_posix()}/" for name in ("stdlib", "platstdlib"))
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")
_NO_CODE: Final = ("<frozen", "<template")  # Python's own modules, and templates, whose errors name their line
_FRAMEWORKS: Final = frozenset({"agentnb", "burr", "langchain", "langchain_core", "langgraph"})

Location = tuple[str, int]


def find_line(error: BaseException, function: Any = None, folder: Path | None = None) -> str:
    """Return the line of the user's code that an exception comes from, as `file:line`; empty if there is none.

    It is the last one outside of agentnb, the standard library and installed packages. Without such a line, the code of
    the package of `function`, the user's function that was called, is the user's.
    """
    location = find_location(error) or find_location(error, _find_package(function))
    return "" if location is None else format_place(_shorten(location[0], folder), location[1])


def find_location(error: BaseException | None, package: str = "") -> Location | None:
    """Return file and line of the last line of the user's code that led to an exception; None if there is none.

    If other code raised it because of another exception, as its cause or in an exception group, it is the line that
    this one comes from. `package` is an installed package that belongs to the user's code.
    """
    return None if error is None else _find_location(error, package, set())


def format_place(file: str, line: int) -> str:
    """Return `file:line`; for a cell of a notebook its number instead of the kernel's file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return f"{file}:{line}" if name is None else f"{' '.join(name)}, line {line}"


def _find_location(error: BaseException, package: str, seen: set[int]) -> Location | None:
    seen.add(id(error))
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__) if line is not None]
    own = [(frame, line) for frame, line in frames if _is_users(frame, package)]
    if own and own[-1] is frames[-1] and not isinstance(error, BaseExceptionGroup):
        return _choose(own)
    inner = (_find_location(each, package, seen) for each in _iter_reasons(error) if id(each) not in seen)
    return next((location for location in inner if location is not None), None) or _choose(own)


def _iter_reasons(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions because of which an exception was raised."""
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions
    if error.__cause__ is not None:
        yield error.__cause__


def _choose(frames: list[tuple[FrameType, int]]) -> Location | None:
    """Return the location of the last frame: of those with a file, if there are any."""
    locations = [(frame.f_code.co_filename, line) for frame, line in frames]
    in_files = [each for each in locations if not each[0].startswith("<") or each[0].startswith("<ipython-input")]
    return next(reversed(in_files or locations), None)


def _is_users(frame: FrameType, package: str) -> bool:
    file = frame.f_code.co_filename.replace("\\", "/")
    if file.startswith(_OURS):
        return file.startswith(_SAMPLES)
    if file.startswith((*_STANDARD, *_NO_CODE)) or any(folder in file for folder in _INSTALLED):
        return package != "" and _get_package(frame.f_globals.get("__name__")) == package
    return True


def _find_package(function: Any) -> str:
    """Return the package of a function; empty for functions of the frameworks."""
    while isinstance(function, functools.partial):
        function = function.func
    package = _get_package(getattr(function, "__module__", None))
    return "" if package in _FRAMEWORKS else package


def _get_package(module: Any) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def _shorten(file: str, folder: Path | None) -> str:
    """Return the path of a file relative to the current folder, or else to `folder`, if it lies below."""
    path = PurePath(file)
    for start in (_get_current_folder(), folder):
        if start is not None and start != start.parent and path.is_relative_to(start):  # below a root lies everything
            return str(path.relative_to(start))
    return file


def _get_current_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it has been deleted
        return None
