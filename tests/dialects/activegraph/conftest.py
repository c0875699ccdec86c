"""The package's own stores, of which it leaves some open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from activegraph.store.sqlite import SQLiteEventStore


@pytest.fixture(scope="session", autouse=True)
def opened_by_the_package() -> Iterator[list[sqlite3.Connection]]:
    """Collect the connections that stores of the package open."""
    connections: list[sqlite3.Connection] = []
    connect = SQLiteEventStore.__init__

    def collect(self, *args, **options):
        connect(self, *args, **options)
        connections.append(self._conn)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLiteEventStore, "__init__", collect)
        yield connections


@pytest.fixture(autouse=True)
def _close_what_the_package_left_open(opened_by_the_package):
    """Close them after each test: since Python 3.13 a connection that is collected while open is a ResourceWarning."""
    yield
    while opened_by_the_package:
        opened_by_the_package.pop().close()
