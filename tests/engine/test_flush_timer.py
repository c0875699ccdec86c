"""When what is behind is saved: at its time and not before, by a thread that ends with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from agentnb.engine.persistence import flush_timer
from agentnb.engine.persistence.flush_timer import Batch, flush_later


class Behind:
    """Something that is behind: when it was asked about that, and when it was saved."""

    def __init__(self, rounds: int = 0) -> None:
        self.rounds = rounds
        self.asked: list[float] = []
        self.saved: list[float] = []

    def needs_thread(self) -> bool:
        self.asked.append(time.monotonic())
        return self.rounds > 0

    def catch_up(self) -> bool:
        self.saved.append(time.monotonic())
        return len(self.saved) < self.rounds


def wait_until(happens: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.001)


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


@pytest.fixture(autouse=True)
def timer(monkeypatch):
    """A timer that waits for nothing else."""
    monkeypatch.setattr(flush_timer, "_TIMER", flush_timer._Timer())


@pytest.mark.parametrize("waits", [(30, 60), (60, 30), (30, 30)])
def test_each_journal_is_flushed_when_due_and_not_before(waits):
    both, started_at = (Behind(), Behind()), time.monotonic()
    for behind, ms in zip(both, waits, strict=True):
        flush_later(behind, Batch(ms=ms), "run")
    wait_until(lambda: both[0].asked and both[1].asked)
    for behind, ms in zip(both, waits, strict=True):
        (asked_at,) = behind.asked
        assert asked_at >= started_at + ms / 1000
        assert not behind.saved


def test_a_journal_that_is_due_first_is_not_delayed_by_another():
    late, soon = Behind(), Behind()
    flush_later(late, Batch(ms=600_000), "late")
    time.sleep(0.01)  # the common thread waits
    flush_later(soon, Batch(ms=1), "soon")
    wait_until(lambda: soon.asked)
    assert not late.asked


def test_a_journal_is_flushed_regularly_until_it_is_closed():
    behind = Behind(rounds=3)
    flush_later(behind, Batch(ms=20), "three")
    wait_until(lambda: len(behind.saved) == 3)
    wait_until(lambda: not threads("agentnb-keep-three"))
    assert len(behind.asked) == 1
    assert all(later - sooner >= 0.02 for sooner, later in zip(behind.saved, behind.saved[1:], strict=False))


def test_a_collected_journal_is_not_flushed_and_its_thread_ends():
    behind = Behind(rounds=1_000_000)
    saved = behind.saved
    flush_later(behind, Batch(ms=1), "gone")
    wait_until(lambda: saved)
    assert [thread.daemon for thread in threads("agentnb-keep-gone")] == [True]  # a program may end meanwhile
    del behind
    wait_until(lambda: not threads("agentnb-keep-gone"))


def test_a_journal_collected_before_it_is_due_is_not_flushed():
    behind = Behind()
    deadlines = behind.asked
    flush_later(behind, Batch(ms=10), "early")
    del behind
    other = Behind()
    flush_later(other, Batch(ms=20), "other")
    wait_until(lambda: other.asked)
    assert not deadlines


def test_an_idle_thread_ends_with_its_journal():
    behind = Behind(rounds=2)
    saved = behind.saved
    flush_timer._start_thread(behind, 600, "long")
    wait_until(lambda: saved)
    del behind
    wait_until(lambda: not threads("agentnb-keep-long"))


def test_the_common_thread_ends_when_idle_and_is_started_again(monkeypatch):
    monkeypatch.setattr(flush_timer, "_IDLE", 0.01)
    for _ in range(2):
        behind = Behind()
        flush_later(behind, Batch(ms=1), "run")
        wait_until(lambda behind=behind: behind.asked)
        wait_until(lambda: not flush_timer._TIMER._runs)
