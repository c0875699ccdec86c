"""What a batch may lose and what it may not, and what an interrupt leaves of what is kept."""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import time

import pytest

import agentnb as nb
from agentnb.engine.core import step, work
from agentnb.engine.effects import dispatch
from agentnb.engine.persistence import deltas, journal
from agentnb.session import callbacks, execution, rollback
from agentnb.session.reopen import reopen_run
from agentnb.store import MemoryLog, memory
from tests.kills import recipe as told_in_parts
from tests.session.failing_stores import ROUNDS, Tools, is_kept, looping
from tests.session.test_failing_stores import WAYS, Parts, place, to_the_end
from tests.store.stores import Elsewhere

__all__ = ["place"]  # the fixture


# ----------------------------------------------------------------------------------------------------------- in batches


BATCHES = """
import json
import agentnb as nb
from tests.session.failing_stores import Tools, looping
tools = Tools()
tools.during["tell 4"] = lambda: (say(session.position), wait())
session = nb.Session(looping(tools), {"n": 0}, store=sys.argv[1], run_id="run", durability=json.loads(sys.argv[2]))
session.run()
say(session.position)
wait()
"""


def count_after_a_kill(place, durability, expected=0):
    """Kill a program whose run waits in its 12th step, once `expected` steps are stored; return how many are stored."""
    with Elsewhere(place, BATCHES, durability) as they:
        assert they.hears() == "11"
        log, end = nb.store.open_log(place), time.monotonic() + 30
        while log.run("run").steps < expected and time.monotonic() < end:
            time.sleep(0.001)
        they.dies()
        return len(nb.open(place, "run").trace)


@pytest.mark.parametrize(("steps", "kept"), [(3, 9), (1000, 0)])
@pytest.mark.starts_programs
def test_at_most_one_batch_of_steps_is_lost(place, steps, kept):
    count = count_after_a_kill(place, f'{{"steps": {steps}, "ms": 600000}}')
    assert count == kept
    assert 11 - count <= steps


def test_a_batch_is_saved_when_it_is_full_and_not_before():
    tools, log = Tools(), MemoryLog()
    stored = []
    session = nb.Session(looping(tools), {"n": 0}, store=log, run_id="run", durability={"steps": 4, "ms": 600_000})
    for n in range(1, 5):
        tools.during[f"tell {n}"] = lambda: stored.append((session.position, log.run("run").steps))
    session.run()
    assert stored == [(position, position // 4 * 4) for position, _ in stored]
    assert [position for position, _ in stored] == [2, 5, 8, 11]


@pytest.mark.starts_programs
def test_a_batch_is_saved_within_its_time_limit(place):
    assert count_after_a_kill(place, '{"steps": 1000, "ms": 20}', expected=11) == 11


def test_a_due_batch_is_saved_during_a_step():
    tools, log, results = Tools(), MemoryLog(), []

    def wait():
        end = time.monotonic() + 30
        while log.run("run").steps < 11 and time.monotonic() < end:
            time.sleep(0.001)
        results.append(copied(log))

    tools.during["tell 4"] = wait
    session = nb.Session(looping(tools), {"n": 0}, store=log, run_id="run", durability={"steps": 1000, "ms": 1})
    session.run()
    reopened = reopen_run(results[0], results[0].run("run"), session._parts.run.plan)
    assert reopened.position == 11


def test_a_batch_is_saved_when_the_run_ends_or_is_closed(place):
    longest = {"steps": 1000, "ms": 600_000}

    def session(run_id):
        return nb.Session(looping(Tools()), {"n": 0}, store=place, run_id=run_id, durability=longest)

    ends, stops, closed = map(session, ("ends", "stops", "closed"))
    ends.run()
    stops.run(max_steps=4)
    closed.run(max_steps=5)
    closed.close()
    is_kept(ends)
    is_kept(stops)
    assert len(nb.open(place, "closed").trace) == 5


def test_unsaved_steps_of_a_batch_are_included_in_a_save(place):
    tools, results = Tools(), []
    session = nb.Session(looping(tools), {"n": 0}, store=place, run_id="run", durability={"steps": 99, "ms": 600_000})
    tools.during["tell 2"] = lambda: results.extend(
        [
            session._parts.state.log.last("run"),
            session.save(),
            len(
                reopen_run(session._parts.state.log, session._parts.state.log.run("run"), session._parts.run.plan).trace
            ),
        ]
    )
    session.run()
    assert (results[0], results[2]) == (1, 5)


@pytest.mark.starts_programs
def test_a_batch_is_saved_at_the_normal_exit_of_a_program(place):
    with Elsewhere(place, BATCHES, '{"steps": 1000, "ms": 600000}') as they:
        assert they.hears() == "11"
        they.told()
        assert they.hears() == str(3 * ROUNDS)
        they.told()
        they.ends()
    assert (nb.open(place, "run").status, nb.runs(place)["writer"].isna().all()) == ("finished", True)


ENDING = """
import threading
import agentnb as nb
from tests.session.failing_stores import Tools, looping
tools, begun = Tools(), threading.Event()
tools.during["tell 2"] = lambda: (begun.set(), threading.Event().wait())
session = nb.Session(looping(tools), {"n": 0}, store=sys.argv[1], run_id="run", durability={"steps": 99, "ms": 600000})
threading.Thread(target=session.run, daemon=True).start()
begun.wait()
say(session.position)
"""


@pytest.mark.starts_programs
def test_a_batch_is_saved_at_an_exit_in_the_middle_of_a_run(place):
    with Elsewhere(place, ENDING) as they:
        assert they.hears() == "5"
        they.ends()
    assert nb.open(place, "run").position == 5


# ---------------------------------------------------------------------------------------------------------- and besides


def test_a_run_that_went_back_and_forward_again_is_stored_where_it_continued():
    log, copies = MemoryLog(), []
    tools = Tools()
    session = nb.Session(looping(tools), {"n": 0}, store=log, run_id="run")
    session.step(5)
    session.goto(2)
    tools.during["ask 1"] = lambda: copies.append(copied(log))
    session.run()
    (copied_log,) = copies  # as a kill in the middle of this run would have left it
    reopened = reopen_run(copied_log, copied_log.run("run"), session._parts.run.plan)
    assert (reopened.position, len(reopened._parts.run.abandoned_branches)) == (3, 1)


def copied(log):
    log_copy = MemoryLog()
    log_copy.create(log.run("run"), list(log.entries("run")))
    return log_copy


KEEPING = tuple(module.__file__ for module in (journal, deltas, memory))
STEPPING = tuple(module.__file__ for module in (step, callbacks, execution, rollback, dispatch, work))


@functools.cache
def checked_by_python(code):
    """Return the offsets in a code object at which Python looks for signals: after calls and jumps back."""
    code_points = list(dis.get_instructions(code))
    return {
        after.offset
        for before, after in itertools.pairwise(code_points)
        if before.opname.startswith(("CALL", "JUMP_BACKWARD"))
    }


class Interrupting:
    """Raises a KeyboardInterrupt once: at the point of that number where a signal can be noticed, in some files."""

    def __init__(self, at, files):
        self.left, self.files = at, files

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.endswith(self.files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call" or (event == "opcode" and frame.f_lasti in checked_by_python(frame.f_code)):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def interrupted(work, at, files):
    """Do something, interrupted at that point; return whether it came so far."""

    def apart():
        """Keep what a cut `except` block handled in this generator, or every later error has it as its context."""
        yield work()

    before, tracer = sys.gettrace(), Interrupting(at, files)
    sys.settrace(tracer)
    try:
        next(apart())
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    assert sys.exc_info() == (None, None, None)
    return tracer.left <= 0


# An interrupt between the creation of a coroutine and its start leaves it unawaited.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")
@WAYS
@pytest.mark.parametrize("files", [KEEPING, (*KEEPING, *STEPPING)], ids=["log", "all"])
def test_an_interrupt_loses_and_duplicates_no_stored_step(files, durability, monkeypatch):
    monkeypatch.setattr(told_in_parts, "PARTS", 2)
    every = 61 if files is KEEPING else 127
    for at in itertools.count(1, every):
        session = told_in_parts.begin(Parts(), MemoryLog(), durability=durability, rounds=1)
        session.step(2)
        if not interrupted(lambda: session.step(2), at, files):  # noqa: B023  (called at once)
            break
        to_the_end(session)
        is_kept(session)
    assert at > 250  # there are as many of them
