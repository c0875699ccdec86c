"""`agentnb --versions`: the versions that a bug report needs."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

from agentnb.distribution import NAME, get_version
from agentnb.engine.persistence.deltas import VERSION as RUNS
from agentnb.recordings.golden_files import GOLDEN_VERSION
from agentnb.session.breakpoints import VERSION as BREAKPOINTS
from agentnb.store.connection import VERSION as TABLES

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra == ['"]([\w-]+)['"]""")
_OF_DEVELOPERS = frozenset({"bench", "docs", "mutants", "test"})


def list_versions() -> dict[str, dict[str, str]]:
    """Return versions by group: agentnb and its platform, dependencies, extras, programs, file formats."""
    dependencies: dict[str, str] = {}
    extras: dict[str, str] = {}
    for name, extra in _iter_requirements():
        if extra is None:
            dependencies[name] = _get_version(name)
        elif name != NAME and extra not in _OF_DEVELOPERS:
            extras[f"{name} ({extra})"] = _get_version(name)
    return {
        "agentnb": {"agentnb": get_version(), "python": platform.python_version(),
                    "implementation": platform.python_implementation(), "platform": platform.platform()},
        "dependencies": dependencies,
        "extras": extras,
        "programs": {"dot": _find_dot_version()},
        "formats": {"tables of a store": str(TABLES), "runs and traces": str(RUNS), "goldens": str(GOLDEN_VERSION),
                    "breakpoints": str(BREAKPOINTS)},
    }  # fmt: skip


def print_versions() -> None:
    """Print them, one a line."""
    for group, rows in list_versions().items():
        print(f"{group}:")
        for name, version in sorted(rows.items()) if group != "agentnb" else rows.items():
            print(f"  {name}: {version}")


def _iter_requirements() -> Iterator[tuple[str, str | None]]:
    """Yield the name of each required distribution, and the extra that requires it."""
    for text in metadata.requires(NAME) or ():
        name, extra = _NAME.match(text), _EXTRA.search(text)
        if name is not None:
            yield name[0], None if extra is None else extra[1]


def _get_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _find_dot_version() -> str:
    path = shutil.which("dot")
    if path is None or sys.platform == "emscripten":
        return "not found"
    try:
        done = subprocess.run([path, "-V"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603  (the `dot` of this computer)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {type(error).__name__}"
    return (done.stderr or done.stdout).strip().splitlines()[0] if done.stderr or done.stdout else "reports nothing"


__all__ = ["list_versions", "print_versions"]
