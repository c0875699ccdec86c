"""Check the names of keys in user input: a breakpoint on `bugdet` would otherwise never stop.

Functions may write any key, so an unknown name is a mistake only if it looks like a known one, or if every node
declares what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Self

from agentnb.errors import Problem, did_you_mean, find_misspelling
from agentnb.text import safe_repr

_MOST_LISTED = 12


def check_keys(
    paths: Iterable[Sequence[str | int]], known: Collection[str], where: str, *, complete: bool = False
) -> Iterator[Problem]:
    """Yield a problem for each path that begins with an unknown key.

    X145: nothing writes a key of this name.

    Args:
        known: the keys that are or were on the board, or are declared.
        complete: True if no other key can ever be written; False to report probable misspellings only.
    """
    unknown = (str(path[0]) for path in paths if path and not _is_known([*map(str, path)], known))
    for name in filter(str.isidentifier, dict.fromkeys(unknown)):  # in other text it is unclear where the key ends
        similar = find_misspelling(name, known)
        if similar is not None or complete:
            keys = ", ".join([*known][:_MOST_LISTED]) + (", ..." if len(known) > _MOST_LISTED else "")
            declare = f"did you mean {similar!r}? If a node does write {name!r}, list it in the node's `writes`"
            yield Problem("X145", f"there is no key {name!r} on the board, and nothing writes one", where,
                          f"the known keys are: {keys or 'none'}",
                          declare if similar else did_you_mean(name, known, "use one of them"))  # fmt: skip


def _is_known(path: list[str], known: Collection[str]) -> bool:
    """Return True if a known key is the beginning of a path; keys may contain dots."""
    return any(".".join(path[:end]) in known for end in range(1, len(path) + 1))


class UnknownKey(str):
    """The key of a KeyError whose text suggests a known key.

    The suggestion is computed only when the text is needed.
    """

    __slots__ = ("_known",)
    _known: Collection[str] | Callable[[], Collection[str]]

    def __new__(cls, key: object, known: Collection[str] | Callable[[], Collection[str]]) -> Self:
        """Create the key; `known` are the keys to suggest from, or a function that returns them."""
        instance = super().__new__(cls, key)
        instance._known = known
        return instance

    def __repr__(self) -> str:
        """Return the key and a suggestion: the text that `str` of a KeyError shows."""
        known = self._known() if callable(self._known) else self._known
        order = did_you_mean(self, known, f"there are: {', '.join([*known][:_MOST_LISTED]) or 'none'}")
        return f"{safe_repr(str(self), 200)}; {order}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the plain key."""
        return str, (str(self),)
