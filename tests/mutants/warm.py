"""Tests that run in forks of one process, which has imported everything and collected all tests.

A fork starts in milliseconds. In it, the code of a module's functions is replaced by that of a mutant, or the lines are
recorded that a test runs.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import pkgutil
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

# Seconds of processor time that one test has: so many, and so many times what it takes without a mutant. That ends an
# endless loop. A deadlock ends when the process has used less than a second of it for PATIENCE seconds: a busy machine,
# which makes tests slow, kills no mutant.
LIMIT, TIMES, PATIENCE = 20, 5, 60
Recorded = tuple[str, float, dict[str, int], bool]  # a test, its seconds, its lines by file as bits, whether it failed
Send = Callable[[Any], None]
FUNCTION = 0x1  # CO_OPTIMIZED: not the code of a module or of a class


class Warm:
    """A pytest plugin that, in place of running the tests, does some work with them in forks."""

    def __init__(self, root: Path, work: Callable[[Warm], None]) -> None:
        self.root = root
        self.work = work
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, list[FunctionType]] = defaultdict(list)  # by file

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Import what the tests need, and do the work."""
        self.items = {item.nodeid: item for item in session.items}
        self.preload([module.name for module in pkgutil.walk_packages([str(self.root / "agentnb")], "agentnb.")])
        by_file = {item.path: item for item in reversed(session.items)}
        status, modules = in_fork(partial(self._imported_by, [*by_file.values()]), 600)
        self.preload(modules[-1] if modules and status == 0 else [])
        gc.unfreeze()
        for function in gc.get_objects():
            if type(function) is FunctionType:
                self.functions[function.__code__.co_filename].append(function)
        gc.freeze()
        self.work(self)
        return True

    def preload(self, names: Sequence[str]) -> None:
        """Import modules, so that no fork has to."""
        with warnings.catch_warnings(action="ignore"):
            for name in names:
                with suppress(Exception, SystemExit):
                    importlib.import_module(name)

    def _imported_by(self, items: list[pytest.Item], send: Send) -> None:
        before = set(sys.modules)
        run_items(items, {}, lambda _: None, stop=False)
        send([name for name in sys.modules if name not in before and not name.startswith("tests.")])

    def lines_run_by(self, names: list[str], send: Send) -> None:
        """Run tests, and send for each its name, its seconds, its lines by file as bits, and whether it failed."""
        monitoring, tool, lines = sys.monitoring, 4, set[tuple[str, int]]()

        def on_line(code: CodeType, line: int) -> Any:
            lines.add((code.co_filename, line))
            return monitoring.DISABLE

        monitoring.use_tool_id(tool, "mutants")
        monitoring.register_callback(tool, monitoring.events.LINE, on_line)
        for file, functions in self.functions.items():
            if Path(file).is_relative_to(self.root / "agentnb"):
                for code in {part for function in functions for part in nested(function.__code__)}:
                    monitoring.set_local_events(tool, code, monitoring.events.LINE)
        items = [self.items[name] for name in names]
        for item, following in zip(items, [*items[1:], None], strict=True):
            lines.clear()
            monitoring.restart_events()
            failures, started = item.session.testsfailed, time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds, bits = time.process_time() - started, dict[str, int]()
            for file, line in list(lines):
                path = Path(file).relative_to(self.root).as_posix()
                bits[path] = bits.get(path, 0) | 1 << line
            send((item.nodeid, seconds, bits, item.session.testsfailed > failures))

    def patch(self, path: Path, code: str) -> bool:
        """Give the functions of a module the code of a mutant; return False if more than functions differ."""
        was, now = (compiled(text, path) for text in (path.read_text(encoding="utf-8"), code))
        changed = dict(changed_functions(was, now))
        if None in changed:
            return False
        patched_count = 0
        for function in self.functions.get(str(path), ()):
            if (new := changed.get(function.__code__)) is not None:
                try:
                    function.__code__ = new
                except ValueError:  # it has other variables of the function around it
                    return False
                patched_count += 1
        return patched_count > 0

    def try_tests(self, names: Sequence[str], seconds: dict[str, float], module: str, code: str | None) -> Any:
        """Run tests with a mutant of a module, or without one.

        Return "unpatched" if the mutant needs a new process, "passed", or "failed" or "endless" with the test's number.
        """
        status, sent = in_fork(partial(self._try, names, seconds, module, code), None)
        if not sent or sent[0] == "unpatched":
            return "unpatched", 0
        number = len(sent) - 2
        if status == 0:
            return "passed", number
        return ("endless" if status in (-signal.SIGXCPU, -signal.SIGKILL) else "failed"), max(number, 0)

    def _try(self, names: Sequence[str], seconds: dict[str, float], module: str, code: str | None, send: Send) -> None:
        if code is not None and not self.patch(self.root / module, code):
            send("unpatched")
            return
        send("patched")
        if run_items([self.items[name] for name in names], seconds, send):
            os._exit(1)


def run_items(items: Sequence[pytest.Item], seconds: dict[str, float], send: Send, *, stop: bool = True) -> bool:
    """Run tests, sending the name of each before it starts; return whether one failed. `stop` with the first."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        send(item.nodeid)
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        limit = int(used + LIMIT + TIMES * seconds.get(item.nodeid, 0.0)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed and stop:
            with suppress(BaseException):
                item.session._setupstate.teardown_exact(None)
            return True
    return bool(items and items[0].session.testsfailed)


def in_fork(work: Callable[[Callable[[Any], None]], None], patience: float | None) -> Any:
    """Do work in a fork; return its exit code, negative for a signal, and the list of what it has sent.

    It is killed when it stands still.
    """
    folder = Path(tempfile.mkdtemp(prefix="agentnb-mutants-"))
    folder.chmod(0o711)  # tests that are run by root give their files, and a server, to another user
    sent = folder / "sent"
    sent.touch()
    process = os.fork()
    if not process:
        code = 3
        try:
            os.setsid()
            with Path(os.devnull).open("r+b") as nowhere:
                for stream in range(3):
                    os.dup2(nowhere.fileno(), stream)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(folder)
            tempfile.tempdir = None
            gc.unfreeze()
            gc.freeze()
            with sent.open("ab", buffering=0) as file:
                work(lambda value: file.write(pickle.dumps(value)) and None)
            code = 0
        finally:
            os._exit(code)
    code = wait_for(process, patience or PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # what it has started
    received = list(unpickled(sent))
    subprocess.run(["rm", "-rf", str(folder)], check=False)
    return code, received


def wait_for(process: int, patience: float) -> int:
    """Wait for a process, killing it if it uses no processor time for so long; return its exit code."""
    used, since, pause = "", time.monotonic(), 0.005
    while True:
        pid, status = os.waitpid(process, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(pause * 1.3, 0.25)
        if time.monotonic() - since > patience:
            before, used, since = used, processor_time(process), time.monotonic()
            if used == before:
                with suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)


def processor_time(process: int) -> str:
    """Return the processor time that a process has used, in whole seconds, as `ps` writes it."""
    command = ["ps", "-o", "time=", "-p", str(process)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def unpickled(path: Path) -> Iterator[Any]:
    """Yield what a fork of this process has written to a file."""
    with path.open("rb") as file, suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(file)


def compiled(code: str, path: Path) -> CodeType:
    """Return a module's code."""
    with warnings.catch_warnings(action="ignore"):
        return compile(code, str(path), "exec", dont_inherit=True)


def nested(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and all that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def changed_functions(was: CodeType, now: CodeType) -> Iterator[tuple[CodeType | None, CodeType]]:
    """Yield the code of each function that differs, and what it was; None if a module or a class itself differs."""
    if was.co_flags & now.co_flags & FUNCTION:
        if was != now:
            yield was, now
        return
    own_constants = [
        [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)] for code in (was, now)
    ]
    parts = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (was, now)]
    if (was.co_code, was.co_names, own_constants[0], len(parts[0])) != (
        now.co_code,
        now.co_names,
        own_constants[1],
        len(parts[1]),
    ):
        yield None, now
        return
    for pair in zip(*parts, strict=True):
        yield from changed_functions(*pair)
