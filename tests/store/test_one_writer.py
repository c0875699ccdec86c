"""A run has one writer at a time, whatever keeps it; many runs may be written at once."""

from __future__ import annotations

import gc
import os
import socket
import threading

import pytest

from agentnb.errors import StoreError
from tests.store.stores import HOLDS, Elsewhere, claimed_elsewhere, refused, row, some


def test_a_run_is_free_when_its_writer_releases_it(store):
    store.log.create(row(), some(1, 1))
    assert store.log.run("one").writer is not None
    store.log.release("one")
    assert store.log.run("one").writer is None
    store.log.append("one", some(2, 2))
    assert store.log.run("one").writer is not None
    store.log.release("one")
    store.log.update_run("one", steps=2)
    assert store.log.run("one").writer is not None
    store.log.close()
    assert store.log.run("one").writer is None


def test_a_closed_log_reopens_itself(store):
    store.log.create(row(), some(1, 1))
    store.log.close()
    store.log.close()
    store.log.append("one", some(2, 2))
    assert list(store.log.entries("one")) == some(1, 2)


def test_a_second_log_of_this_process_is_rejected(lasting):
    lasting.log.create(row(), some(1, 1))
    other = lasting.another()
    before = lasting.log.run("one")
    for action in (lambda: other.append("one", some(2, 2)), lambda: other.update_run("one", status="failed")):
        assert f"process {os.getpid()}" in refused("L411", action)
    assert other.run("one") == before
    assert list(other.entries("one")) == some(1, 1)
    other.create(row("two"))
    lasting.log.release("one")
    other.append("one", some(2, 2))
    refused("L411", lasting.log.append, "one", some(3, 3))
    other.close()
    lasting.log.append("one", some(3, 3))


def test_a_run_is_claimed_before_anything_is_written(lasting):
    lasting.log.create(row(), some(1, 1))
    before = lasting.log.run("one")
    lasting.log.release("one")
    lasting.log.claim("one")
    assert lasting.log.run("one")._replace(writer=None) == before._replace(writer=None)
    assert f"process {os.getpid()}" in lasting.log.run("one").writer
    other = lasting.another()
    for take_over in (False, True):  # it is seen from here that the writer is alive
        refused("L411", other.claim, "one", take_over=take_over)
    lasting.log.append("one", some(2, 2))
    refused("L413", lasting.log.claim, "two")


def test_a_run_that_another_writer_has_continued_is_not_claimed(store):
    store.log.create(row(), some(1, 2))
    store.log.release("one")
    for last in (1, 3):
        assert "its last entry is number 2" in refused("L411", store.log.claim, "one", last)
        assert store.log.run("one").writer is None
    store.log.claim("one", 2)
    assert store.log.run("one").writer is not None


def test_a_run_of_another_host_is_taken_over_on_request_only(lasting):
    lasting.log.create(row(), some(1, 1))
    lasting.log.release("one")
    with claimed_elsewhere(lasting.where, "one") as theirs:
        for action in (lambda: lasting.log.claim("one"), lambda: lasting.log.append("one", some(2, 2))):
            message = refused("L411", action)
            assert "another-host" in message
            assert f"process {os.getpid()}" in message
            assert "take_over=True" in message
        assert "another-host" in lasting.log.run("one").writer
        assert list(lasting.log.entries("one")) == some(1, 1)
        theirs.append("one", some(2, 2))
        lasting.log.claim("one", take_over=True)
        lasting.log.append("one", some(3, 3))
        refused("L411", theirs.append, "one", some(3, 3))
        refused("L411", theirs.update_run, "one", steps=9)
    assert list(lasting.log.entries("one")) == some(1, 3)
    assert f"process {os.getpid()}" in lasting.log.run("one").writer


def test_a_writer_that_released_its_run_and_returns_too_late_is_rejected(lasting):
    lasting.log.create(row(), some(1, 1))
    lasting.log.release("one")
    other = lasting.another()
    other.append("one", some(2, 4))
    other.release("one")
    assert "its last entry is number 4" in refused("L411", lasting.log.append, "one", some(2, 2))
    assert lasting.log.run("one").writer is None
    assert list(other.entries("one")) == some(1, 4)
    other.append("one", some(5, 5))


def test_a_collected_log_holds_no_claim(lasting):
    lasting.log.create(row(), some(1, 1))
    lasting.logs.clear()
    gc.collect()
    lasting.log.append("one", some(2, 2))


@pytest.mark.starts_programs
def test_a_writer_in_another_process_is_named(lasting):
    with Elsewhere(lasting.where, HOLDS) as they:
        assert they.hears() == "holds"
        message = refused("L411", lasting.log.append, "theirs", some(4, 4))
        assert f"process {they.process.pid}" in message
        assert socket.gethostname() in message
        assert "since 20" in message
        assert str(they.process.pid) in lasting.log.run("theirs").writer
        assert lasting.log.last("theirs") == 3
        they.told()
        assert they.hears() == "released"
        lasting.log.append("theirs", some(4, 4))
        they.told()
        they.ends()
    assert list(lasting.log.entries("theirs")) == some(1, 4)


@pytest.mark.starts_programs
def test_the_claim_of_a_killed_writer_blocks_nobody(lasting):
    with Elsewhere(lasting.where, HOLDS) as they:
        assert they.hears() == "holds"
        they.dies()
        lasting.log.append("theirs", some(4, 4))
        assert str(os.getpid()) in lasting.log.run("theirs").writer


@pytest.mark.starts_programs
def test_a_killed_writer_is_not_listed_as_writer(lasting):
    lasting.log.create(row())
    with Elsewhere(lasting.where, HOLDS) as they:
        assert they.hears() == "holds"
        they.dies()
    until = threading.Event()
    for _ in range(500):  # a server notices it a moment later
        if lasting.log.run("theirs").writer is None:
            break
        until.wait(0.01)
    assert [row.writer is None for row in lasting.log.runs()] == [True, False]


@pytest.mark.starts_programs
def test_a_program_that_ends_releases_its_runs(lasting):
    with Elsewhere(lasting.where, "log.create(row('theirs'), some(1, 2))") as they:
        they.ends()
    assert lasting.log.run("theirs").writer is None
    lasting.log.append("theirs", some(3, 3))


# ------------------------------------------------------------------------------------------------------ several at once

MANY = """
mine = [f"{sys.argv[2]}{number}" for number in range(4)]
say("ready")
wait()
for run_id in mine:
    log.create(row(run_id), some(1, 1))
for seq in range(2, 60):
    for run_id in mine:
        log.append(run_id, some(seq, seq), steps=seq)
log.close()
"""


@pytest.mark.starts_programs
def test_two_processes_write_many_runs_of_one_store(lasting):
    # Neither has been there before: they begin the store at the same time too.
    with Elsewhere(lasting.where, MANY, "a") as one, Elsewhere(lasting.where, MANY, "b") as two:
        for they in (one, two):
            assert they.hears() == "ready"
        for they in (one, two):
            they.told()
        for they in (one, two):
            they.ends()
    actual = lasting.log.runs()
    assert sorted(run.run_id for run in actual) == [f"{name}{number}" for name in "ab" for number in range(4)]
    assert {(run.steps, run.writer) for run in actual} == {(59, None)}
    assert all(list(lasting.log.entries(run.run_id)) == some(1, 59) for run in actual)


def test_one_of_two_writers_that_create_the_same_run_is_rejected(lasting):
    logs, begin, ends = [lasting.another(), lasting.another()], threading.Barrier(2), []

    def begins(log):
        begin.wait()
        try:
            log.create(row(), some(1, 1))
            ends.append("kept")
        except StoreError as error:
            ends.append(error.problems[0].code)

    threads = [threading.Thread(target=begins, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["L412", "kept"]


def test_one_of_two_writers_that_claim_the_same_run_is_rejected(lasting):
    lasting.log.create(row(), some(1, 1))
    lasting.log.release("one")
    logs, begin, ends = [lasting.another(), lasting.another()], threading.Barrier(2), []

    def wants(log):
        begin.wait()
        try:
            log.append("one", some(2, 2))
            ends.append("kept")
        except StoreError as error:
            ends.append(error.problems[0].code)

    threads = [threading.Thread(target=wants, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["L411", "kept"]
    assert list(lasting.log.entries("one")) == some(1, 2)


def test_threads_share_one_log(store):
    begin, failed = threading.Barrier(4), []

    def writes(name):
        begin.wait()
        try:
            store.log.create(row(name), some(1, 1))
            for seq in range(2, 40):
                store.log.append(name, some(seq, seq))
                assert store.log.last(name) == seq
        except BaseException as error:
            failed.append(error)
            raise

    assert store.log.url
    threads = [threading.Thread(target=writes, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert all(list(store.log.entries(name)) == some(1, 39) for name in "abcd")
