"""allowed: from where tools may come: the recipe's own folder, folders and packages that the user allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

NO_PATH = (ValueError, OSError, RuntimeError)  # a null character, a name too long, links that lead in a circle, no home


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where tools may come from; every path in it is resolved, so that a link cannot lead out unseen.

    `own` is the recipe's folder (None: it has no file), `folders` are the allowed ones, `packages` dotted prefixes,
    `words` what the user wrote.
    """

    own: Path | None
    folders: tuple[Path, ...]
    packages: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path | None, allow: Sequence[str]) -> Allowed:
        """Return what a recipe's folder and its `allow` let in; an entry may name a package and a folder alike."""
        words = tuple(dict.fromkeys(text for text in map(str, allow) if text.strip()))
        own = None if folder is None else resolved(Path(folder))
        folders = tuple(path for path in map(_existing, words) if path is not None)
        return cls(own, folders, tuple(word for word in words if is_dotted(word)), words)

    def holds_file(self, path: Path) -> bool:
        """Say whether a resolved path lies in the recipe's own folder or in an allowed one, or is allowed itself."""
        return self.is_own(path) or any(path.is_relative_to(folder) for folder in self.folders)

    def is_own(self, path: Path) -> bool:
        """Say whether a resolved path lies in the recipe's own folder."""
        return self.own is not None and path.is_relative_to(self.own)

    def holds_package(self, module: str) -> bool:
        """Say whether a dotted name is an allowed one, or lies below one.

        Example:
            >>> own = Allowed.of(None, ["mytools"])
            >>> own.holds_package("mytools.web"), own.holds_package("mytools_evil")
            (True, False)
        """
        return any(module == prefix or module.startswith(f"{prefix}.") for prefix in self.packages)

    def bases(self) -> Iterable[Path]:
        """Return the folders that a relative path starts from: the recipe's own, else each allowed one."""
        return self.folders if self.own is None else (self.own,)


def is_dotted(text: str) -> bool:
    """Say whether a text is a module's dotted name."""
    return all(part.isidentifier() for part in text.split("."))


def resolved(path: Path) -> Path | None:
    """Return a path without links and dots; None for what cannot be a path."""
    try:
        return path.expanduser().resolve()
    except NO_PATH:
        return None


def _existing(word: str) -> Path | None:
    path = resolved(Path(word))
    try:
        return path if path is not None and path.exists() else None
    except NO_PATH:
        return None
