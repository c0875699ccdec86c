"""What a MemoryLog alone does; test_contract holds the rest."""

from __future__ import annotations

import pytest

from agentnb.store import MemoryLog
from tests.store.stores import refused, row, some


def test_two_logs_are_separate_stores():
    one, other = MemoryLog(), MemoryLog()
    one.create(row(), some(1, 1))
    refused("L413", other.run, "one")
    assert other.runs() == []


def test_changing_an_argument_does_not_change_the_store():
    log, entries = MemoryLog(), some(1, 2)
    log.create(row(), entries)
    entries.clear()
    assert list(log.entries("one")) == some(1, 2)


def test_the_repr_of_a_log_names_its_place():
    log = MemoryLog()
    log.create(row())
    assert (log.url, repr(log)) == ("memory", "MemoryLog(1 runs)")


def test_entries_added_during_a_read_are_not_read():
    log = MemoryLog()
    log.create(row(), some(1, 2))
    reading = log.entries("one")
    log.append("one", some(3, 3))
    assert list(reading) == some(1, 2)


@pytest.mark.parametrize("known", [0, 3, 300])
def test_an_unknown_id_is_reported_with_the_existing_runs(known):
    log = MemoryLog()
    for number in range(known):
        log.create(row(f"run-{number}"))
    message = refused("L413", log.run, "xyz")
    assert str(known) in message if known > 5 else all(repr(f"run-{number}") in message for number in range(known))
    assert repr(f"run-{known - 1}") in message or not known
