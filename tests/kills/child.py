"""Processes that run the recipe on a store until they are killed, and say each step as soon as it is made.

    python -m tests.kills.child

For each line of its input (URL, folder, run, verb "begin" or "again", way "step" or "run", seed) it forks one process
and says its number. That process says "ready", a line for each step (run, number, node, digest) and "end" in the pipe
FOLDER/said, writes each call that a tool makes to FOLDER/calls, and where it is to FOLDER/marks.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from agentnb.engine.core import run as runs
from agentnb.engine.core import time_travel
from agentnb.session import Session
from agentnb.store import SqlLog, postgres, sqlite
from tests.kills import recipe
from tests.kills.progress_marks import Marks

CHANGES = ("create", "append", "update_run", "release")  # what a log does in a transaction of its own
ROWS = 12  # so many rows lie between two checkpoints of a run: 512 never come together here
PAGES = 50  # so many pages lie between two checkpoints of SQLite: 4000 seldom come together here
SLOWLY = 0.01  # seconds that a checkpoint and a fork take longer, to be met there now and then
FORKS = 0.7  # how often a round has one
_READY = postgres.__name__  # imported before the first fork, as all that a process needs


def watched(marks: Marks) -> None:
    """Have the marks say when a log changes its store, and when a checkpoint is made."""
    for name in CHANGES:
        setattr(SqlLog, name, _at(marks, "commit", getattr(SqlLog, name)))
    runs.CHECKPOINT_ROWS = time_travel.CHECKPOINT_ROWS = ROWS  # type: ignore[misc]  # smaller, so that there are some
    sqlite._PAGES = PAGES  # type: ignore[misc]  # the same
    runs.Run.checkpoint = _at(marks, "checkpoint", _slowly(runs.Run.checkpoint))  # type: ignore[method-assign]
    time_travel.fork_run = _slowly(time_travel.fork_run)


def _slowly(does: Any) -> Any:
    @functools.wraps(does)
    def done(*given: Any, **named: Any) -> Any:
        result = does(*given, **named)
        time.sleep(SLOWLY)
        return result

    return done


def _at(marks: Marks, place: str, does: Any) -> Any:
    @functools.wraps(does)
    def done(*given: Any, **named: Any) -> Any:
        with marks.at(place):
            return does(*given, **named)

    return done


class Walk:
    """One run from where it stands to its end, with a fork now and then."""

    def __init__(self, session: Session, marks: Marks, said: int, seed: int) -> None:
        self.session, self.marks, self.said, self.chance = session, marks, said, random.Random(seed)

    def go(self, way: str) -> None:
        session = self.session
        if way == "run":
            session.subscribe(lambda _: self.say(session))
        while session.status not in ("finished", "failed"):
            if way == "run":
                session.run(max_steps=self.chance.randint(5, 30))
            elif session.step() is not None:
                self.say(session)
            if session.current == "sum" and self.chance.random() < FORKS:
                self.fork()

    def fork(self) -> None:
        """Fork where it stands, with another `who`, and go a few steps there."""
        session = self.session
        writer_name = f"{session.board['who']}.{session.position}.{os.getpid()}"
        with self.marks.at("fork"):
            other = session.fork(name=writer_name, edit={"who": writer_name})
        for _ in range(3):
            other.step()
            self.say(other)

    def say(self, session: Session) -> None:
        step = session.trace.steps[session.position - 1]
        line = f"{session.run_id} {session.position} {step.node_id} {recipe.here(session)}\n"
        os.write(self.said, line.encode())


def run(url: str, folder: Path, run_id: str, verb: str, way: str, seed: int) -> None:
    pipe = os.open(folder / "said", os.O_WRONLY)
    marks = Marks(folder / "marks")
    watched(marks)
    os.write(pipe, b"ready\n")
    tools = recipe.Tools(folder, marks, seed)
    begin = recipe.begin if verb == "begin" else recipe.again
    session = begin(tools, url, run_id)
    Walk(session, marks, pipe, seed).go(way)
    session.close()
    os.write(pipe, b"end\n")


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever is killed is gone at once
    for line in sys.stdin:
        url, folder, *words = json.loads(line)
        number = os.fork()
        if number:
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            continue
        try:
            run(url, Path(folder), *words)
        except BaseException:  # noqa: BLE001  (told, and then it ends, whatever it was)
            traceback.print_exc()
        finally:
            os._exit(0)


if __name__ == "__main__":
    main()
