"""A store of each kind for the tests that every log must pass."""

from __future__ import annotations

import pytest

from tests.store.stores import Store

SQLITE = pytest.param("sqlite")
POSTGRES = pytest.param("postgres", marks=pytest.mark.needs_postgres)


def _store(kind, request):
    if kind == "postgres":
        return Store(kind, request.getfixturevalue("postgres_url"))
    return Store(kind, str(request.getfixturevalue("tmp_path") / "runs.db"))


@pytest.fixture(params=["memory", SQLITE, POSTGRES])
def store(request):
    """A store of each kind."""
    store = _store(request.param, request)
    yield store
    store.close()


@pytest.fixture(params=[SQLITE, POSTGRES])
def lasting(request):
    """A store of each kind that outlives its process."""
    store = _store(request.param, request)
    yield store
    store.close()
