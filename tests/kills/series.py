"""Runs that are killed, looked at, gone on with, killed again, and brought to their end; what must hold then.

python -m tests.kills.series NUMBER [URL] [SEED]     without a URL in an SQLite file
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import agentnb as nb
from agentnb.errors import StoreError
from agentnb.session import Session
from agentnb.store import open_log
from tests.kills import recipe
from tests.kills.progress_marks import PLACES, Marks, read

ROOT = Path(__file__).parent.parent.parent
AGAIN = 0.6  # how often a killed run is gone on with by a process that is killed as well
AIMED = 0.25  # how often a kill waits for the next commit: a store that commits in no time is hardly met in one else
RUNS = 4  # so many runs lie in one store
NOT_THERE = ("L410", "L413")  # no store, no such run
Calls = Counter[str]


class Nursery:
    """A process that has imported everything, and forks those that will be killed."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.kills.child"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def child(self, folder: Path, *words: Any) -> Child:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pipe = folder / "said"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        read_end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(read_end, True)
        url, *rest = words
        self._process.stdin.write(json.dumps([url, str(folder), *rest]) + "\n")
        self._process.stdin.flush()
        return Child(int(self._process.stdout.readline()), read_end)


class Child:
    """One of those processes, and the pipe in which it says what it has done."""

    def __init__(self, number: int, said: int) -> None:
        self.number, self._said = number, open(said, "rb")  # noqa: SIM115  (closed when it is gone)

    def wait(self) -> None:
        """Wait until it begins."""
        while self._said.readline() != b"ready\n":  # nothing yet: nobody writes in the pipe so far
            time.sleep(0.0005)

    def end(self) -> list[list[str]]:
        """Wait until it has ended; return what it has said."""
        with self._said:
            lines = self._said.read().decode().splitlines()
        while alive(self.number):
            time.sleep(0.0005)
        return [line.split() for line in lines]

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # it may have come to its end
            os.kill(self.number, signal.SIGKILL)


def alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


class Reference:
    """The run that nobody cuts: its nodes, the digest of its board after each step, its events."""

    def __init__(self) -> None:
        session = recipe.begin(recipe.Tools())
        self.digests = [recipe.here(session)]
        while session.step() is not None:
            self.digests.append(recipe.here(session))
        assert session.status == "finished"
        self.nodes = [step.node_id for step in session.trace.steps]
        self.events = recipe.events(session)
        self.session = session

    def fork(self, at: int, who: str) -> str:
        """Return the digest with which a fork ends that began after a step with another `who`."""
        fork = self.session.fork(at, edit={"who": who} if who else None)
        while fork.step() is not None:
            pass
        return recipe.here(fork)


class Killed:
    """One run that is killed: what was said of it, what was called, and which calls were answered."""

    def __init__(self, reference: Reference, store: str, run_id: str, folder: Path, way: str) -> None:
        self.reference, self.store, self.run_id, self.folder, self.way = reference, store, run_id, folder, way
        folder.mkdir()
        Marks.make(folder / "marks")
        self.said: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
        self.by_hand, self.lost = Calls(), Calls()
        self.answered: set[str] = set()
        self.position = 0
        self._known: dict[str, tuple[tuple[int, int], Any]] = {}

    @property
    def there(self) -> bool:
        """Whether the run has been begun in the store at all."""
        try:
            open_log(self.store).run(self.run_id)
        except StoreError as error:
            if error.problems[0].code in NOT_THERE:
                return False
            raise
        return True

    def hear(self, lines: list[list[str]]) -> None:
        """Take what a process has said; what it did twice was the same each time, where branches have one order."""
        for run_id, number, node, digest in lines:
            known = self.said[run_id].setdefault(int(number), (node, digest))
            assert known == (node, digest) or self.way == "run", (run_id, number, known, node, digest)
            self.said[run_id][int(number)] = node, digest

    # -- what must hold after a kill -----------------------------------------------------------------------------

    def check(self, out: set[str], *, killed: bool) -> None:
        """Look at all that is kept. `out` are the calls that were out when the process was killed."""
        if not self.there:
            assert not self.said, "a run that has made steps is not there"
            return
        family = self._family()
        assert self.said.keys() <= set(family), "a fork that has made steps is not there"
        rows, answered, pending = Calls(), set[str](), set[str]()
        for run_id in family:
            calls, waits = self._read(run_id)
            rows.update(call for call, _ in calls)
            answered |= {call for call, error in calls if error is None}
            pending |= waits
        waits = {call for call in out if call.split("/")[1] not in recipe.REPEATABLE}
        assert waits <= pending, f"{waits - pending} were out, and what waits is {pending}"
        assert not {call for call in pending if call.split("/")[1] in recipe.REPEATABLE}
        self._calls(rows, answered, killed=killed)

    def _read(self, run_id: str) -> tuple[list[tuple[str, str | None]], set[str]]:
        """Look at all that is kept of a run; return the calls that are known of it, and those that wait."""
        stored_amounts = (open_log(self.store).last(run_id), len(self.said.get(run_id, {})))
        if self._known.get(run_id, ((), None))[0] != stored_amounts:  # else it has been looked at
            session = nb.open(self.store, run_id)
            waits = {f"{call.arguments['who']}/{call.name}/{call.arguments['n']}" for call in session.pending}
            self._known[run_id] = stored_amounts, (known_calls(session), waits)
            self._whole(session)
        return self._known[run_id][1]

    def _family(self) -> list[str]:
        """Return the run and the forks of it that are kept."""
        ids = [self.run_id]
        for row in reversed(open_log(self.store).runs()):
            if row.parent in ids:
                ids.append(row.run_id)
        return ids

    def _whole(self, session: Session) -> None:
        """Check that nothing is missing of a run, and that one can go anywhere in it."""
        log, run_id = open_log(self.store), session.run_id
        assert [entry.seq for entry in log.entries(run_id)] == list(range(1, log.last(run_id) + 1))
        steps, is_original = session.trace.steps, run_id == self.run_id
        digests = [recipe.digest(session.trace.state_at(number)) for number in range(len(steps) + 1)]
        for number, reported in self.said.get(run_id, {}).items():
            assert (steps[number - 1].node_id, digests[number]) == reported, (run_id, number)
        if is_original:
            self.position = len(steps)
        if is_original and self.way == "step":
            assert [step.node_id for step in steps] == self.reference.nodes[: len(steps)]
            assert digests == self.reference.digests[: len(digests)]
        assert (session.goto(0).position, session.goto(len(steps)).position) == (0, len(steps))

    def _calls(self, rows: Calls, answered: set[str], *, killed: bool) -> None:
        """Check that no answered call was made once more: each line is that of a row, or of one that a kill has cut."""
        lines = Calls(line.split()[0] for line in recipe.read_lines(self.folder / "calls"))
        for call in {*lines, *rows}:
            lost = lines[call] - (rows[call] - self.by_hand[call])
            more = lost - self.lost[call]
            allowed = (0, 1) if killed and call not in self.answered else (0,)
            assert more in allowed, (
                f"{call}: {lines[call]} lines, {rows[call]} rows, {self.lost[call]} were lost before"
            )
            self.lost[call] = lost
        assert self.answered <= answered, "an answer is not there any more"
        answers = {*recipe.read_lines(self.folder / "answers")}
        assert answers <= answered, f"nodes were answered {answers - answered}, and no answer is there"
        self.answered = answered

    # -- and how it goes on --------------------------------------------------------------------------------------

    def finish(self, chance: random.Random) -> None:
        """Bring the run to its end in this process, and one fork of it."""
        marks = self.folder / "marks of the end"
        Marks.make(marks)
        tools = recipe.Tools(self.folder, Marks(marks), 1)
        if not self.there:
            recipe.begin(tools, self.store, self.run_id).close()
        self._to_the_end(tools, self.run_id, chance)
        forks = self._family()[1:]
        if forks:
            self._to_the_end(tools, chance.choice(forks), chance)
        tools.close()
        self.check(set(), killed=False)

    def _to_the_end(self, tools: recipe.Tools, run_id: str, chance: random.Random) -> None:
        session = recipe.again(tools, self.store, run_id)
        for pending_call in session.pending:
            if chance.random() < 0.5:  # else it is let go by the next step
                call = f"{pending_call.arguments['who']}/{pending_call.name}/{pending_call.arguments['n']}"
                self.by_hand[call] += 1
                session.change(pending_call.id, answer=recipe.answer_of(call))
        while session.status != "finished":
            assert session.status not in ("failed", "waiting", "exhausted"), (session.status, session.error)
            if self.way == "run":
                session.run()
            else:
                session.step()
        if run_id == self.run_id:
            assert recipe.here(session) == self.reference.digests[-1]
            assert plain(recipe.events(session), self.way) == plain(self.reference.events, self.way)
        elif self.way == "step":
            row = open_log(self.store).run(run_id)
            name = str(session.board["who"])
            assert row.forked is not None
            assert recipe.here(session) == self.reference.fork(row.forked, "" if name == "main" else name)
        session.close()


def known_calls(session: Session) -> list[tuple[str, str | None]]:
    """Return the attempts of calls that are kept, those of steps in flight included: what was called, how it failed."""
    run = session._parts.run
    own = run.chain[-1]
    rows = [call for history in (run.chain if session._parts.state.log.run(session.run_id).parent is None else [own])
            for call in history.calls]  # fmt: skip
    if run.recorded is not None:
        rows += [call for calls in run.recorded._attempts.values() for call in calls]
    return [(f"{call.arguments['who']}/{call.name}/{call.arguments['n']}", call.error) for call in rows]


def plain(events: list[tuple[Any, ...]], way: str) -> list[Any]:
    """Return events so that they can be compared: branches that run at the same time have no order of their own."""
    if way == "step":
        return events
    return sorted(json.dumps([type_, actor, payload]) for _, _, _, type_, actor, _, payload in events)


class Series:
    """Kills, one after the other, on stores that `store` makes; `places` counts where they met."""

    def __init__(self, store: Callable[[], str], folder: Path, seed: int) -> None:
        self._store, self._folder, self.seed = store, folder, seed
        self.chance, self.reference = random.Random(seed), Reference()
        self.kills = self.runs = 0
        self.places = Calls()
        self._seconds = 1.0
        self._url = ""

    def go(self, goes_on: Callable[[Series], bool]) -> None:
        with Nursery() as nursery:
            if not self.runs:
                self._measure(nursery)
            while goes_on(self):
                try:
                    self._one(nursery)
                except BaseException as error:
                    error.add_note(f"seed {self.seed}, run {self.runs}, kill {self.kills}")
                    raise

    def told(self) -> str:
        shares = ", ".join(f"{self.places[name]} in a {name}" for name in PLACES)
        return f"{self.kills} kills of {self.runs} runs (seed {self.seed}): {shares}, {self.places['else']} elsewhere"

    def _new(self) -> Killed:
        if self.runs % RUNS == 0:
            self._url = self._store()
        self.runs += 1
        mode = "run" if self.chance.random() < 0.25 else "step"
        return Killed(self.reference, self._url, f"run{self.runs}", self._folder / f"run{self.runs}", mode)

    def _measure(self, nursery: Nursery) -> None:
        """Let one run come to its end: how long does it take?"""
        run = self._new()
        run.way = "step"
        child = nursery.child(run.folder, run.store, run.run_id, "begin", run.way, 0)
        child.wait()
        began = time.monotonic()
        *lines, last = child.end()
        self._seconds = time.monotonic() - began
        assert last == ["end"], last
        run.hear(lines)
        run.check(set(), killed=False)
        shutil.rmtree(run.folder)

    def _one(self, nursery: Nursery) -> None:
        run, chance = self._new(), self.chance
        while True:
            left = 1 - run.position / len(self.reference.nodes)
            child = nursery.child(run.folder, run.store, run.run_id, "again" if run.there else "begin", run.way,
                                  chance.randrange(1 << 30))  # fmt: skip
            child.wait()
            time.sleep(chance.uniform(0, self._seconds * left))
            if chance.random() < AIMED:
                until = time.monotonic() + self._seconds * left
                while "commit" not in read(run.folder / "marks")[0] and time.monotonic() < until:
                    pass
            child.kill()
            lines = child.end()
            ended = lines[-1:] == [["end"]]
            run.hear(lines[:-1] if ended else lines)
            places, out = read(run.folder / "marks")
            Marks.make(run.folder / "marks")
            self._seconds *= 0.9 if ended else 1.02  # how fast it goes may change
            if not ended:
                self.kills += 1
                self.places.update(places or {"else"})
            run.check(out, killed=not ended)
            if ended or chance.random() > AGAIN:
                break
        run.finish(chance)
        shutil.rmtree(run.folder)


def main() -> None:
    number, *rest = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="agentnb-kills-"))
    seed = int(rest[1]) if len(rest) > 1 else random.randrange(1 << 30)
    numbers = iter(range(1 << 30))
    series = Series(lambda: rest[0] if rest and rest[0] else str(folder / f"{next(numbers)}.db"), folder, seed)
    try:
        series.go(lambda here: here.kills < int(number))
    finally:
        sys.stdout.write(series.told() + "\n")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
