"""The name under which agentnb is installed, its version, and a check for the other package that is called agentnb.

On the Python package index, `agentnb` is another project: a Python REPL for coding agents, with a package and a command
of the same name. Ours is the distribution `agentnb-kit`. In one environment, each overwrites files of the other.
"""

from __future__ import annotations

import os
import warnings
from typing import Final

NAME: Final = "agentnb-kit"
FOLDER: Final = __file__.removesuffix("distribution.py")  # not a Path: every `import agentnb` would import pathlib
NAMESAKE: Final = ("introspection.py", "selectors.py", "kernel/provisioner.py")  # files that only the other project has


def get_version() -> str:
    """Return the version of the installed distribution."""
    from importlib.metadata import version  # not needed by `import agentnb`

    return version(NAME)


def warn_of_namesake() -> None:
    """Warn if the folder of this package contains files of the other project."""
    if any(os.access(f"{FOLDER}{file}", os.F_OK) for file in NAMESAKE):
        warnings.warn(
            f"another project that is also called agentnb (a Python REPL for coding agents) has written files into "
            f"{FOLDER}; each of the two has overwritten files of the other. "
            f"Run: pip uninstall agentnb; then install {NAME} again",
            stacklevel=3,
        )


__all__ = ["NAME", "get_version", "warn_of_namesake"]
