"""Mutation testing: change the code in one place, run the tests that cover the place, and see whether one fails.

Cosmic Ray makes the mutants; `sys.monitoring` says which tests run a line, and only those are run: in turn those that
take different ways through the function around it, of each way first those of the module's own file, then those of its
area, then the fastest of each other file. A line that runs on import, or in a cached function, belongs to the tests
that run a line which names what it defines, or the class around it, and to those of the module's own file. All tests
are collected once, in a process that has imported everything, and a fork of it runs them with the changed functions; a
change that is not inside of a function, and one that survives, is tried in a new process. A test that fails counts if
it fails again by itself, and passes without the change. What survives is tried by tests of properties with twenty times
as many examples (`--full` has more), and given to mypy, which every change has to pass as well. A sample (seeded) keeps
a run within an hour: places are drawn, and one change at each, because a `+` has eleven changes and a `<` five, most of
them alike.

    pip install -e ".[lab,test,mutants]"
    python tests/mutants/run.py                                  # 400 mutants of the code named below
    python tests/mutants/run.py --sample 40 --only agentnb/store # a look at one folder
    python tests/mutants/run.py --report docs/mutants.md         # write the page

Left out are mutants that no test can find or that none has to: annotations and protocols, which nothing runs; the
wording of Problems; `is` for `==` and back, which agree on what this code compares; caches and their sizes, `slots` and
`frozen` of dataclasses, the signs in a list of parameters, `strict` of `zip`, and decorators for type checkers and for
those who implement an abstract class, which change no result; constants that set only how fast something is; an index
of 0 that becomes -1, which is the same in all lists of one member (it becomes 1 instead); `==` with a text that becomes
`<` or the like, as the order of names means nothing (it becomes `!=`); other ways to add flags of `re`; and changes
that are no Python. It needs a system that can fork, and Python 3.12.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import multiprocessing
import os
import pickle
import py_compile
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from itertools import accumulate, groupby, islice, takewhile, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import pytest
from warm import LIMIT, PATIENCE, TIMES, Recorded, Warm, in_fork, wait_for

FORKS = multiprocessing.get_context("fork")
ROOT = Path(__file__).resolve().parents[2]
# What decides results, durability and safety.
MUTATED = {
    "engine": ["agentnb/engine"],
    "board": ["agentnb/board"],
    "store": ["agentnb/store"],
    "expressions": ["agentnb/expressions"],
    "kinds": ["agentnb/kinds"],
    "dialects": ["agentnb/dialects"],
}
# Tests that may find a mutant of that code: all but those of a browser, a kernel, or the project's own texts.
COVERING = [
    *("analysis", "attacks", "board", "cli", "contract", "dialects", "draw", "engine", "export", "expressions"),
    *("formats", "kinds", "magics", "mcp", "property", "recipe", "recordings", "scenarios", "session", "sources"),
    *("store", "testing", "test_golden.py", "test_load.py", "test_samples.py", "trace", "world"),
]
# A sweep starts processes of its own, and a timer interrupts at any moment, also what runs the tests.
IGNORED = ("tests/engine/test_interrupt.py", "tests/attacks/test_interrupts.py", "tests/analysis/test_sweep.py")
# Programs that tests start have the code as it is. PostgreSQL's tests are skipped where its programs are missing.
SKIPPED = "not needs_chromium and not needs_dot and not starts_programs"
# What Cosmic Ray brings along warns where the project's own environment does not; notebooks are not run here.
# How a test fails does not matter.
QUIET = ("-W", "default", "-o", "faulthandler_timeout=0", "-p", "no:cacheprovider", "-p", "no:nbmake")
UNEXPLAINED = ("--tb=native", "--assert=plain")
# The tests that one mutant has to survive: thousands run a line of the step.
MOST, SECONDS = 1500, 40
SLOW = 2.0  # seconds of a test that is run after the others
TRIES = 5  # tests that fail and do not count, until no more are tried
FRESH = 20  # the tests that it has to survive in a new process, too
# The tests of properties that what survives is tried with: their seconds with the usual number of examples, and how
# many times as many they get.
PROPERTIES, EXAMPLES = 2.0, 20
NAMED = 30  # names looked for, from those of one line to what is defined with them
EACH = 4  # tests taken of a file at once: each file costs its imports
SAME = {"Is_Eq", "Eq_Is", "IsNot_NotEq", "NotEq_IsNot"}  # operators whose mutants mean the same here
# The parts of a syntax tree that operators change, and the operators of Python that are none to them.
CHANGED = {
    *("operator", "keyword", "number", "comparison", "factor", "not_test", "decorator", "except_clause", "test"),
    *("for_stmt", "if_stmt", "while_stmt", "assert_stmt"),
}
PUNCTUATION = set("()[]{},.:;=@") | {"->", ":=", "..."}
# What is told in messages: tests hold the code of a Problem and what it names, and not each word of it.
WORDED = {"Problem", "did_you_mean"}
LEFT = {"survived", "uncovered"}  # outcomes of mutants that no test finds
# Decorators that change how fast something is, or what a type checker says of it; and arguments that check ourselves.
UNTESTED = {"abstractmethod", "cache", "lru_cache", "final", "overload", "override", "runtime_checkable"}
UNTESTED |= {"dataclass.frozen", "dataclass.slots", "zip.strict"}
# Constants that set how often something is kept, how much is read at once, or from which size a faster way is taken.
TUNED = {"LOOK_BACK", "MAX_THREADS", "SLICE_NS", "SLOW_NS", "BLOCKS_NS", "CHECKPOINT_ROWS", "NEAR", "SHORT"}
TUNED |= {"AT_ONCE", "SMALL", "_CACHED_LOANS", "_EXPOSED", "_PAGES", "_CHUNK", "_FIRST", "_KEPT", "_IDLE", "MIN_WAIT"}
# What a change makes of a text, as a pattern, and what it was: the same in what is compared or counted here.
ALIKE = {r"\[ -1\]": {"[0]"}, r'[<>]=?(?= *")': {"==", "!="}, r"[\^+](?= re\.)": {"|"}}


HEAD = """\
# Mutation testing

Mutation testing measures how many small faults the tests detect in the code that determines results, durability and
safety. Each mutant is the code with one change; the tests that cover it run against it. A surviving mutant means a
missing test or a change without an effect. `python tests/mutants/run.py --report docs/mutants.md` writes this page.
"""


@dataclass(frozen=True)
class Place:
    """A place in a module, and the changes of one sort that Cosmic Ray makes there."""

    area: str
    module: str
    line: int
    last_line: int
    changes: tuple[tuple[str, int], ...]  # an operator, and which of its places in the module this is


@dataclass(frozen=True)
class Mutant:
    """A place, and a module's code with one change there."""

    place: Place
    code: str
    diff: str


@dataclass(frozen=True)
class Result:
    """What became of a mutant: killed, endless (killed, as tests did not end), mistyped, survived, or uncovered.

    A mistyped one is killed by the type checker. An uncovered one is on a line that no test runs.
    """

    mutant: Mutant
    outcome: str
    killer: str  # the test that found it
    seconds: float

    def describe(self) -> str:
        """Return a line for the terminal, and the diff of a survivor."""
        shown = f"\n{self.mutant.diff}" if self.outcome in LEFT else f" {self.killer}"
        return f"{self.outcome:9} {self.mutant.place.module}:{self.mutant.place.line} {self.seconds:.1f} s{shown}"


def untested_spans(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the places of a module that no test can tell from others: see above."""
    spans = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        untested: list[Any] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            untested.append(node)
        if isinstance(node, ast.ClassDef) and "Protocol" in map(called, node.bases):
            untested.append(node)
        if isinstance(node, ast.Call):
            untested += [one for one in node.keywords if f"{called(node)}.{one.arg}" in UNTESTED]
            untested += [*node.args, *node.keywords] if called(node) in WORDED else []
        if isinstance(node, ast.Assign | ast.AnnAssign) and names_in(node) & TUNED:
            untested.append(node.value)
        untested += [one for one in getattr(node, "decorator_list", []) if called(one) in UNTESTED]
        spans += [((e.lineno, max(e.col_offset - 1, 0)), (e.end_lineno, e.end_col_offset)) for e in untested if e]
    return spans


def names_in(assignment: ast.Assign | ast.AnnAssign) -> set[str]:
    """Return the names that an assignment sets."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def called(expression: ast.expr) -> str:
    """Return the name of what a decorator or a call calls, without its module and its arguments."""
    return ast.unparse(expression).partition("(")[0].rpartition(".")[2]


def places_of(area: str, module: str) -> Iterator[Place]:
    """Yield the places of a module that can be changed."""
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    spans = untested_spans(ROOT / module)
    nodes = [
        node
        for node in ast_nodes(get_ast_from_path(ROOT / module))
        if node.type in CHANGED
        and getattr(node, "value", None) not in PUNCTUATION
        and (node.parent is None or node.parent.type != "parameters")
    ]
    changes: dict[tuple[str, Any, Any], list[tuple[str, int]]] = defaultdict(list)
    for name in cosmic_ray.plugins.operator_names():
        operator_class = cosmic_ray.plugins.get_operator(name)
        family, _, change = name.partition("Operator_")
        if operator_class.arguments() or change in SAME:
            continue
        operator = operator_class()
        positions = (position for node in nodes for position in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(positions):
            if not any(first <= start < last for first, last in spans):
                changes[family, start, end].append((name, occurrence))
    for (_, start, end), changed in changes.items():
        yield Place(area, module, start[0], end[0], tuple(changed))


def all_places(only: list[str]) -> list[Place]:
    """Return every place that can be changed."""
    return [
        place
        for area, folders in MUTATED.items()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not only or any(path.relative_to(ROOT).as_posix().startswith(prefix) for prefix in only)
        for place in places_of(area, path.relative_to(ROOT).as_posix())
    ]


def draw(places: list[Place], number: int, seed: int) -> list[Mutant]:
    """Return so many mutants, one at each of the places that the seed draws."""
    chance = random.Random(seed)
    drawn = chance.sample(places, len(places))
    mutants = (mutant_at(place, chance) for place in drawn)
    return list(islice(filter(None, mutants), number))


def mutant_at(place: Place, chance: random.Random) -> Mutant | None:
    """Return one of the changes at a place, or None if none of them is Python."""
    import cosmic_ray.plugins
    from cosmic_ray.mutating import mutate_code

    code = (ROOT / place.module).read_text(encoding="utf-8")
    for name, occurrence in chance.sample(place.changes, len(place.changes)):
        try:
            mutated = mutate_code(code, cosmic_ray.plugins.get_operator(name)(), occurrence)
        except AttributeError:  # Cosmic Ray cannot replace an exception that is named with its module
            continue
        if mutated is None or mutated == code or re.search(r"\wCosmicRay|TestingException\w", mutated):
            continue
        if not is_alike(code, mutated) and is_python(mutated):
            return Mutant(place, mutated, difference(code, mutated))
    return None


def is_alike(code: str, mutated: str) -> bool:
    """Return whether a change is one of those that mean the same here; see `ALIKE`."""
    return any(
        mutated[: match_.start()] + was + mutated[match_.end() :] == code
        for pattern, before in ALIKE.items()
        for match_ in re.finditer(pattern, mutated)
        for was in before
    )


def is_python(code: str) -> bool:
    """Return whether a text is a module."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def lines_run_by(names: list[str]) -> list[Recorded]:
    """Return which lines tests run; see `Warm.lines_run_by`."""
    return in_fork(partial(Judge.current.warm.lines_run_by, names), 600)[1]


class Tests:
    """Which tests run a line."""

    def __init__(self, recorded: Iterable[Recorded], known: Collection[str]) -> None:
        self.seconds: dict[str, float] = {}
        self._lines: dict[str, dict[str, int]] = defaultdict(dict)  # module -> test -> bits
        for test, seconds, lines, has_failed in recorded:
            if test in known and not has_failed:
                self.seconds[test] = seconds
                for module, bits in lines.items():
                    self._lines[module][test] = bits

    def covering(self, place: Place) -> list[str]:
        """Return the tests for a place, those that take different ways through its function in turn."""
        path = ROOT / place.module
        covering = self._running(place.module, {*lines_around(path, place.line), *lines_around(path, place.last_line)})
        # A module is imported, and a cached function called, in the first of the tests that need it.
        lines, names = on_import(path, place.line)
        covering |= self._running(place.module, lines)
        named = self._naming(names | cached_around(path, place.line))
        if names:  # a model may be used, and validate all that it has, without a line of its own
            named |= {test for test in self.seconds if test.split("::")[0] == tests_of(place.module)}
        named -= covering
        around = sum(1 << number for number in function_around(path, place.line))
        coverage: dict[int, set[str]] = defaultdict(set)  # by the lines of the function around it that they run
        for test in covering:
            coverage[self._lines[place.module][test] & around].add(test)
        tests = in_turn([self._in_order(coverage[lines], place.module) for lines in sorted(coverage)])
        tests += self._in_order(named, place.module)
        tests.sort(key=lambda test: self.seconds[test] > SLOW)
        used = accumulate(self.seconds[test] for test in tests)
        return [test for test, seconds in zip(tests, used, strict=True) if seconds < SECONDS][:MOST]

    def _in_order(self, tests: set[str], module: str) -> list[str]:
        """Return tests of a module: its own file, those of its area, then a few of each other file, the fastest."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            by_file[test.split("::")[0]].append(test)
        own_tests = by_file.pop(tests_of(module), [])
        near = sorted(by_file.values(), key=lambda tests: -closeness(tests[0], module))
        nearest = [tests for tests in near if closeness(tests[0], module) == closeness(near[0][0], module)]
        return own_tests + [
            test
            for files in (nearest, near[len(nearest) :])
            for test in [test for tests in files for test in tests[:EACH]] + in_turn([tests[EACH:] for tests in files])
        ]

    def describe(self) -> str:
        """Return how many tests there are, and in which folders."""
        names = self._names()
        folders = sorted({"/".join(name.partition("::")[0].split("/")[:2]) for name in names})
        return f"{len(names):,} tests of {', '.join(folders)}"

    def _names(self) -> set[str]:
        return set().union(*self._lines.values())

    def _running(self, module: str, numbers: Iterable[int]) -> set[str]:
        mask = sum(1 << number for number in numbers)
        return {test for test, bits in self._lines.get(module, {}).items() if bits & mask}

    def _naming(self, names: set[str]) -> set[str]:
        """Return the tests that run a line which has one of the names, or what such a line defines on import."""
        tests, known = set[str](), set[str]()
        while names - known and len(known) < NAMED:
            known |= names
            pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
            names = set()
            for module in self._lines:
                code = (ROOT / module).read_text(encoding="utf-8") if (ROOT / module).exists() else ""
                for number in (number for number, line in enumerate(code.splitlines(), 1) if pattern.search(line)):
                    tests |= self._running(module, [number])
                    names |= on_import(ROOT / module, number)[1]
            names -= known
        return tests


def closeness(test: str, module: str) -> int:
    """Return how many folders a test and a module have in common."""
    pairs = zip(Path(test.partition("::")[0]).parts[1:], Path(module).parts[1:], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def in_turn(lists: list[list[str]]) -> list[str]:
    """Return the first of each list, then the second of each, and so on."""
    return [test for row in zip_longest(*lists) for test in row if test is not None]


def tests_of(module: str) -> str:
    """Return the test file that has a module's name, in the folder of its own or above; "" if there is none."""
    path = Path("tests", *Path(module).parts[1:])
    files = (folder / f"test_{path.stem}.py" for folder in path.parents)
    return next((file.as_posix() for file in files if (ROOT / file).exists()), "")


@cache
def parse(path: Path) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def on_import(path: Path, line: int) -> tuple[range, set[str]]:
    """Return the lines of the function that a line of a module is the head of, and the names that it defines.

    Both are empty for a line inside of a function, which does not run on import.
    """
    body, names = range(0), set[str]()
    block = parse(path).body
    while statement := next((one for one in block if first_line(one) <= line <= (one.end_lineno or 0)), None):
        block = []
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if line >= statement.body[0].lineno:
                    return range(0), set()
                body, names = range(statement.body[0].lineno, (statement.end_lineno or 0) + 1), {name}
            case ast.ClassDef(name=name):
                names, block = {name}, statement.body
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names |= {part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)}
            case _:
                block = [part for part in ast.walk(statement) if isinstance(part, ast.stmt) and part is not statement]
                # A loop that sets attributes, for example, names the class that it changes.
                names |= {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)} & defined_in(path)
    return body, names


def defined_in(path: Path) -> set[str]:
    """Return the names of a module's functions and classes, and the names that it assigns."""
    names = set[str]()
    for statement in parse(path).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            names |= names_in(statement)
    return names


def function_around(path: Path, line: int) -> range:
    """Return the lines of the outermost function, outside or in a class, that a line is in."""
    block = parse(path).body
    while statement := next((one for one in block if first_line(one) <= line <= (one.end_lineno or 0)), None):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            return range(statement.lineno, (statement.end_lineno or 0) + 1)
        block = [part for part in ast.walk(statement) if isinstance(part, ast.stmt) and part is not statement]
    return range(0)


def lines_around(path: Path, line: int) -> range:
    """Return the lines of the statement that a line is in, without the statements inside it.

    Where an expression has several lines, its value may be known, or change, before this one is reached.
    """
    block, numbers = parse(path).body, range(line, line + 1)
    while statement := next((one for one in block if first_line(one) <= line <= (one.end_lineno or 0)), None):
        block = [part for part in ast.walk(statement) if isinstance(part, ast.stmt) and part is not statement]
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            lines = range(statement.lineno, min(map(first_line, block), default=(statement.end_lineno or 0) + 1))
            numbers = lines if line in lines else range(line, line + 1)
    return numbers


def cached_around(path: Path, line: int) -> set[str]:
    """Return the names of the cached functions that a line is in: it runs in the first of the tests that call them."""
    return {
        node.name
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or 0)
        and any(called(one) in {"cache", "lru_cache"} for one in node.decorator_list)
    }


def first_line(statement: ast.stmt) -> int:
    """Return a statement's first line, that of its decorators included."""
    return min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])


class Judge:
    """Says what the tests say of mutants."""

    current: ClassVar[Judge]  # of this process, and of its forks

    def __init__(self, warm: Warm, scratch: Path) -> None:
        self.warm, self.tests, self._scratch = warm, Tests([], ()), scratch

    @cached_property
    def copy(self) -> Path:
        """A copy of the project for this process."""
        return copied(self._scratch / f"copy{os.getpid()}")

    def judge(self, mutant: Mutant) -> tuple[str, str]:
        """Return the outcome of a mutant, and the test that kills it.

        A test that fails must fail again by itself, and pass without the mutant; or it says nothing of it.
        """
        tests = self.tests.covering(mutant.place)
        if not tests:
            return "uncovered", ""
        try_tests = partial(self.warm.try_tests, seconds=self.tests.seconds, module=mutant.place.module)
        left, outcome = tests, ""
        for _ in range(TRIES):
            outcome, number = try_tests(left, code=mutant.code)
            if outcome in {"unpatched", "passed"}:
                break
            test, left = left[number], left[number + 1 :]
            if try_tests([test], code=None)[0] == "passed" and try_tests([test], code=mutant.code)[0] == outcome:
                return ("killed" if outcome == "failed" else outcome), test
        # What is computed on import or kept in a cache has not changed: a new process with all of the mutant says more.
        lists = [tests[:FRESH], tests][: 2 if outcome == "unpatched" else 1]
        for few, profile in [*((few, "mutants") for few in lists), (self._properties(tests), "thorough")]:
            outcome = self._try_in_new_process(few, profile, mutant)
            if outcome != "survived" and self._try_in_new_process(few, profile, None) == "survived":
                return outcome, "properties with more examples" if profile == "thorough" else "in a new process"
        return "survived", ""

    def _properties(self, tests: list[str]) -> list[str]:
        """Return the tests that try a property with drawn examples, as many as fit the time for them."""
        functions = {test: getattr(self.warm.items[test], "obj", None) for test in tests}
        found = [test for test in tests if getattr(functions[test], "is_hypothesis_test", False)]
        used = accumulate(self.tests.seconds[test] for test in found)
        return [test for test, seconds in zip(found, used, strict=True) if seconds < PROPERTIES]

    def _try_in_new_process(self, tests: list[str], profile: str, mutant: Mutant | None) -> str:
        """Run tests in a copy of the project with a mutant, or without one, by a new process; return the outcome."""
        if not tests:
            return "survived"
        listed = self.copy / "tests-to-run.txt"
        listed.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", *QUIET, *UNEXPLAINED, f"@{listed}"]
        times = TIMES * (EXAMPLES if profile == "thorough" else 1)
        limit = int(3 * LIMIT + times * sum(self.tests.seconds[test] for test in tests))
        if mutant:
            (self.copy / mutant.place.module).write_text(mutant.code, encoding="utf-8")
        try:
            process = subprocess.Popen(
                ["bash", "-c", f'ulimit -t {limit}; exec "$@"', "-", *command],
                cwd=self.copy,
                env={**os.environ, "PYTHONPATH": str(self.copy), "HYPOTHESIS_PROFILE": profile},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            process.returncode = wait_for(process.pid, PATIENCE)
        finally:
            if mutant:
                shutil.copyfile(ROOT / mutant.place.module, self.copy / mutant.place.module)
        if process.returncode < 0:
            return "endless"
        return "killed" if process.returncode else "survived"


def judge(mutant: Mutant) -> Result:
    """Return what the tests say of a mutant."""
    started = time.perf_counter()
    outcome, killer = Judge.current.judge(mutant)
    return Result(mutant, outcome, killer, time.perf_counter() - started)


def check_types(result: Result) -> Result:
    """Return the result of a mutant that survived the tests after a check of its types, in a copy of the project."""
    if result.outcome not in LEFT:
        return result
    module = Path(result.mutant.place.module)
    original = module.read_text(encoding="utf-8")
    module.write_text(result.mutant.code, encoding="utf-8")
    is_typed = passes_types()
    module.write_text(original, encoding="utf-8")
    checked = result if is_typed else replace(result, outcome="mistyped", killer="mypy")
    print(checked.describe(), flush=True)
    return checked


def passes_types() -> bool:
    """Return whether mypy accepts the project in this folder."""
    return subprocess.run([sys.executable, "-m", "mypy"], capture_output=True, check=False).returncode == 0


def difference(code: str, mutated: str) -> str:
    """Return the changed lines."""
    old, new = code.splitlines(), mutated.splitlines()
    changed = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
    return "\n".join(f"- {one.strip()}\n+ {other.strip()}" for one, other in changed[:3])


def copied(folder: Path) -> Path:
    """Return a copy of the project's tracked files."""
    folder.mkdir(parents=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in filter(None, names):
        target = folder / os.fsdecode(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / os.fsdecode(name), target)
    # Checked by what the code is: a module changed twice in a second has no stale byte code.
    compileall.compile_dir(folder / "agentnb", quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return folder


def report(results: list[Result], total: int, seed: int, tests: str) -> str:
    """Return the page: the score of each area, and what survived."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    when = f"Measured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {python}, with {tests}."
    lines = [
        HEAD,
        when,
        "",
        "| area | mutants tried | killed | survived | not covered | score |",
        "|---|---|---|---|---|---|",
    ]
    for area in [*MUTATED, "all"]:
        counts = Counter(result.outcome for result in results if area in {"all", result.mutant.place.area})
        if number := sum(counts.values()):
            killed = number - counts["survived"] - counts["uncovered"]
            parts = (killed, counts["survived"], counts["uncovered"])
            lines.append(f"| {area} | {number} | {' | '.join(map(str, parts))} | {killed / number:.0%} |")
    endless, mistyped = (
        ", ".join(f"`{one.mutant.place.module}:{one.mutant.place.line}`" for one in results if one.outcome == outcome)
        for outcome in ("endless", "mistyped")
    )
    lines += [
        "",
        f"A sample: one change at each of {len(results)} of {total} places, seed {seed}.",
        *([f"Killed because their tests did not end: {endless}."] if endless else []),
        *([f"Killed by the type checker: {mistyped}."] if mistyped else []),
        "",
        "## Survivors",
        "",
    ]
    for result in sorted(results, key=lambda result: (result.mutant.place.module, result.mutant.place.line)):
        if result.outcome in LEFT:
            lines += [f"- `{result.mutant.place.module}:{result.mutant.place.line}` ({result.outcome})"]
            lines += ["  ```diff", *(f"  {line}" for line in result.mutant.diff.splitlines()), "  ```"]
    return "\n".join(lines) + "\n"


def run(sample: list[Mutant], options: argparse.Namespace, scratch: Path) -> list[Result]:
    """Judge mutants, for so many minutes."""
    os.environ |= {"HYPOTHESIS_PROFILE": "mutants", "INTERRUPTS": "200"}  # an interrupt at each moment, not at some
    os.chdir(copied(scratch / "copy"))
    sys.path.insert(0, str(Path.cwd()))
    lines = (options.lines or scratch / "lines").absolute()
    end = time.monotonic() + options.minutes * 60
    results: list[Result] = []

    def work(warm: Warm) -> None:
        Judge.current = Judge(warm, scratch)
        if not lines.exists():
            with ProcessPoolExecutor(options.jobs, FORKS) as pool:
                files = [list(names) for _, names in groupby(warm.items, key=lambda name: name.split("::")[0])]
                recorded: list[Recorded] = []
                for number, records in enumerate(pool.map(lines_run_by, files), 1):
                    recorded += records
                    print(f"recorded {number} of {len(files)} files: {len(recorded)} tests", end="\r", flush=True)
                print()
                for name in [test for test, _, _, has_failed in recorded if has_failed]:
                    print(f"not used, as it fails without a mutant: {name}")
                lines.write_bytes(pickle.dumps(recorded))
        Judge.current.tests = Tests(pickle.loads(lines.read_bytes()), warm.items)
        results.extend(judge_all(sample, options.jobs, end))

    command = ["-q", "-n0", "-s", "-m", SKIPPED, *QUIET, *UNEXPLAINED, *(f"--ignore={path}" for path in IGNORED)]
    command += [f"tests/{name}" for name in options.tests or COVERING]
    if pytest.main(command, plugins=[Warm(Path.cwd(), work)]):
        sys.exit("the tests could not be collected")
    if not passes_types():
        sys.exit("mypy does not accept the code as it is")
    return [check_types(result) for result in results]


def judge_all(mutants: list[Mutant], jobs: int, end: float) -> Iterator[Result]:
    """Yield what the tests say of mutants, one after the other, and print it; begin none after some time."""
    waiting = iter(mutants)
    running: set[Future[Result]] = set()
    with ProcessPoolExecutor(jobs, FORKS) as pool:
        while True:
            if time.monotonic() < end:
                running |= {pool.submit(judge, mutant) for mutant in islice(waiting, jobs - len(running))}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for result in (one.result() for one in done):
                print(result.describe(), flush=True)
                yield result


def main() -> None:
    """Run a sample of mutants and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", action="append", default=[], help="a folder or module; may be repeated")
    parser.add_argument("--tests", action="append", default=[], help="a folder of tests to use, instead of all; repeat")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop starting mutants after so long")
    parser.add_argument("--lines", type=Path, help="a file that holds, or will hold, which lines each test runs")
    parser.add_argument("--report", type=Path, help="write the page here too")
    parser.add_argument("--check", type=float, help="fail below this score, 0 to 1")
    options = parser.parse_args()

    places = all_places(options.only)
    sample = draw(places, options.sample, options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)  # see `in_fork`
        results = run(sample, options, Path(scratch).resolve())
    page = report(results, len(places), options.seed, Judge.current.tests.describe())
    print(page)
    if options.report:
        options.report.write_text(page, encoding="utf-8")
    score = sum(result.outcome not in LEFT for result in results) / max(len(results), 1)
    if options.check is not None and score < options.check:
        sys.exit(f"{score:.1%} of the mutants were killed; the floor is {options.check:.0%}")


if __name__ == "__main__":
    main()
