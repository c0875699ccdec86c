"""What a MemoryLog alone does; test_contract holds the rest."""

from __future__ import annotations

import pytest

from agentnb.store import MemoryLog
from tests.store.stores import refused, row, some


def test_two_logs_are_two_stores():
    one, other = MemoryLog(), MemoryLog()
    one.create(row(), some(1, 1))
    refused("L413", other.run, "one")
    assert other.runs() == []


def test_what_was_given_can_be_changed_without_changing_what_is_stored():
    log, entries = MemoryLog(), some(1, 2)
    log.create(row(), entries)
    entries.clear()
    assert list(log.entries("one")) == some(1, 2)


def test_it_says_where_it_is():
    log = MemoryLog()
    log.create(row())
    assert (log.url, repr(log)) == ("memory", "MemoryLog(1 runs)")


def test_what_comes_while_somebody_reads_is_not_read():
    log = MemoryLog()
    log.create(row(), some(1, 2))
    reading = log.entries("one")
    log.append("one", some(3, 3))
    assert list(reading) == some(1, 2)


@pytest.mark.parametrize("known", [0, 3, 300])
def test_a_wrong_id_is_reported_with_the_runs_that_are_there(known):
    log = MemoryLog()
    for number in range(known):
        log.create(row(f"run-{number}"))
    message = refused("L413", log.run, "xyz")
    assert str(known) in message if known > 5 else all(repr(f"run-{number}") in message for number in range(known))
    assert repr(f"run-{known - 1}") in message or not known
