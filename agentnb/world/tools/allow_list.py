"""The allowed sources of tools: the recipe's own folder, and the folders and packages that the user allows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentnb.world.llm.env import list_allowed_variables

# a null character, a name that is too long, a symlink loop, no home folder
NO_PATH = (ValueError, OSError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The allowed sources of tools; paths are resolved, so that links cannot lead outside unnoticed.

    `recipe_folder` is None if the recipe has no file, `folders` are the allowed folders, `packages` dotted prefixes,
    `variables` names of environment variables, `words` the user's entries.
    """

    recipe_folder: Path | None
    folders: tuple[Path, ...]
    packages: tuple[str, ...]
    words: tuple[str, ...]
    variables: frozenset[str]

    @classmethod
    def of(cls, folder: Path | None, allow: Sequence[str]) -> Allowed:
        """Return what a recipe's folder and its `allow` permit; an entry may name both a package and a folder."""
        names = tuple(dict.fromkeys(text for text in map(str, allow) if text.strip()))
        own = None if folder is None else resolve_path(Path(folder))
        folders = tuple(path for path in map(_find_existing, names) if path is not None)
        return cls(own, folders, tuple(word for word in names if is_dotted(word)), names, list_allowed_variables(names))

    def holds_file(self, path: Path) -> bool:
        """Return True if a resolved path is in the recipe's own folder or in an allowed one, or is allowed itself."""
        return self.is_own(path) or any(path.is_relative_to(folder) for folder in self.folders)

    def is_own(self, path: Path) -> bool:
        """Return True if a resolved path is in the recipe's own folder."""
        return self.recipe_folder is not None and path.is_relative_to(self.recipe_folder)

    def holds_package(self, module: str) -> bool:
        """Return True if a dotted name is an allowed package, or a submodule of one.

        Example:
            >>> own = Allowed.of(None, ["mytools"])
            >>> own.holds_package("mytools.web"), own.holds_package("mytools_evil")
            (True, False)
        """
        return any(module == prefix or module.startswith(f"{prefix}.") for prefix in self.packages)

    def bases(self) -> Iterable[Path]:
        """Return the base folders of relative paths: the recipe's own, otherwise each allowed one."""
        return self.folders if self.recipe_folder is None else (self.recipe_folder,)


def to_allow_entries(allow: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return the user's `allow` as strings.

    Folders are resolved now, so that later changes of the current folder have no effect.
    """
    return tuple(map(_parse_entry, (allow,) if isinstance(allow, str | os.PathLike) else allow))


def _parse_entry(entry: str | os.PathLike[str]) -> str:
    text = os.fspath(entry)
    folder = isinstance(entry, os.PathLike) or os.sep in text or text.startswith((".", "~"))
    return str(Path(text).expanduser().resolve()) if folder else text


def is_dotted(text: str) -> bool:
    """Return True if a string is the dotted name of a module."""
    return all(part.isidentifier() for part in text.split("."))


def resolve_path(path: Path) -> Path | None:
    """Return a path with links and dots resolved; None for an invalid path."""
    try:
        return path.expanduser().resolve()
    except NO_PATH:
        return None


def is_regular_or_new(path: Path) -> bool:
    """Return True for a file and for a path at which there is nothing; False for a folder, a pipe or a device."""
    try:
        return path.is_file() or not path.exists()
    except NO_PATH:
        return False


def _find_existing(word: str) -> Path | None:
    path = resolve_path(Path(word))
    try:
        return path if path is not None and path.exists() else None
    except NO_PATH:
        return None
