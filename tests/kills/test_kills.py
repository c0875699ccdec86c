"""A process that keeps its run is killed at any moment: what it has said is kept, and no answered call is made again.

KILLS says how often, on each store; `.ci/run` takes a sample, and `.ci/run --full` many. KILLS_SEED says which.
"""

from __future__ import annotations

import os
import random
from itertools import count

import pytest

from tests.kills.series import Series

KILLS = int(os.environ.get("KILLS", "2"))
SEED = int(os.environ.get("KILLS_SEED", random.randrange(1 << 30)))
AT_ONCE = 25  # kills of one test
SOME, MANY = 10, 100  # from so many on a commit and a call must be met; from so many on their shares mean something
AT_MOST = 100  # kills of a sample, until those are met

STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)]
PARTS = [min(AT_ONCE, KILLS - first_number) for first_number in range(0, KILLS, AT_ONCE)]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@pytest.fixture(scope="module", params=STORES)
def series(request, tmp_path_factory):
    """Kills on one kind of store."""
    folder, numbers = tmp_path_factory.mktemp("kills"), count(1)
    if request.param == "postgres":
        store = request.getfixturevalue("postgres_server").store
    else:
        store = lambda: str(folder / f"{next(numbers)}.db")  # noqa: E731  (as the server's is)
    return Series(store, folder, SEED)


@pytest.mark.parametrize("part", range(len(PARTS)))
@pytest.mark.starts_programs
def test_no_reported_step_is_lost_and_no_answered_call_is_repeated(series, part):
    end = series.kills + PARTS[part]
    series.go(lambda here: here.kills < end)


def test_the_kills_cover_every_place(series, capsys):
    places = series.places
    if KILLS >= SOME:
        series.go(lambda here: here.kills < AT_MOST and not (places["commit"] and places["call"]))
        assert places["commit"]
        assert places["call"]
    if KILLS >= MANY:
        assert places["commit"] >= series.kills / 4
        assert all(places[place] for place in ("call", "checkpoint", "fork"))
    with capsys.disabled():
        print(f"\n{series.told()}")  # noqa: T201  (where they met is worth to be read)
