"""A stand-in for rpds, for tests in Pyodide alone: what the package `referencing` uses of it."""

from __future__ import annotations


class HashTrieMap(dict):
    """A mapping whose changes return a new one."""

    @classmethod
    def convert(cls, value):
        """Return a mapping of this class."""
        return value if isinstance(value, cls) else cls(value)

    def insert(self, key, value):
        """Return a copy with one more item."""
        return type(self)({**self, key: value})

    def update(self, *values, **words):
        """Return a copy with more items."""
        new = dict(self)
        dict.update(new, *values, **words)
        return type(self)(new)

    def remove(self, key):
        """Return a copy without a key."""
        return type(self)({name: value for name, value in self.items() if name != key})

    def __hash__(self):
        return hash(frozenset(self))


class HashTrieSet(frozenset):
    """A set whose changes return a new one."""

    def insert(self, value):
        """Return a copy with one more value."""
        return type(self)(self | {value})


class List(tuple):
    """A list whose changes return a new one; the newest item is the first."""

    __slots__ = ()

    def __new__(cls, values=()):
        return super().__new__(cls, values)

    def push_front(self, value):
        """Return a copy with one more item."""
        return type(self)((value, *self))

    @property
    def rest(self):
        """All but the first item."""
        return type(self)(self[1:])

    @property
    def first(self):
        """The first item."""
        return self[0]
