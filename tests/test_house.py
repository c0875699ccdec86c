"""test_house: the rules of this house that no other tool holds; docs/errors.md is built here from the code."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import agentnb

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "agentnb"
FOLDERS = ("agentnb", "tests", "benchmarks", "notebooks", "docs", "binder", ".ci")
NOT_TEXT = {".png", ".pyc", ".db", ".gz"}
HEAVY = {
    *("IPython", "anywidget", "datalogic_py", "graphviz", "greenlet", "ipywidgets", "jinja2", "nest_asyncio"),
    *("networkx", "numpy", "pandas", "pydantic", "pygraphviz", "sqlalchemy", "yaml"),
}

# Modules that are tested by a suite over their whole table rather than by a file of the same name.
SUITES = {
    "__init__": "tests/test_house.py",
    "__main__": "tests/test_cli.py",
    "agentnb/dialects/activegraph/acting.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/delivering.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/drawing.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/errors.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/events.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/ledger.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/loader.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/matching.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/recipes.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/watching.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/dialects/activegraph/where.py": "tests/dialects/activegraph/test_judge.py",
    "agentnb/engine/batches.py": "tests/session/test_trouble.py",
    "agentnb/engine/journal.py": "tests/property/test_kept.py",
    "agentnb/engine/log.py": "tests/store/test_contract.py",
    "agentnb/engine/resuming.py": "tests/property/test_resumed.py",
    "agentnb/kinds/llm_behavior.py": "tests/kinds/test_behavior.py",
    "agentnb/kinds/relation_behavior.py": "tests/kinds/test_behavior.py",
}


def files(*suffixes: str) -> list[Path]:
    """Return the project's text files: those of its folders and those that stand beside them."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += (path for path in (ROOT / folder).rglob("*") if path.is_file())
    kept = [path for path in found if path.suffix not in NOT_TEXT and "__pycache__" not in path.parts]
    return sorted(path for path in kept if not suffixes or path.suffix in suffixes)


def modules() -> list[Path]:
    return [path for path in files(".py") if path.is_relative_to(PACKAGE)]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------------------------------------------------- size, shape


def test_files_are_short():
    lengths = {short(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files(".py", ".js", ".css")}
    assert not {path: length for path, length in lengths.items() if length >= 400}, "split these by what they are about"


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines without its decorators and its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and ast.get_docstring(function)
    docstring = first.end_lineno - first.lineno + 1 if is_docstring else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_functions_are_short():
    long = {
        f"{short(path)}:{node.lineno} {node.name}": lines_of(node)
        for path in files(".py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > 40
    }
    assert not long


def test_the_count_leaves_the_docstring_out():
    function = ast.parse('@mark\ndef f():\n    """One.\n\n    Two.\n    """\n    a = 1\n    return a\n').body[0]
    assert lines_of(function) == 3


@pytest.mark.parametrize("path", modules(), ids=short)
def test_a_module_says_what_it_is_for(path):
    name = path.parent.name if path.stem == "__init__" else path.stem
    assert (ast.get_docstring(tree(path)) or "").startswith(f"{name}: ")


@pytest.mark.parametrize("path", modules(), ids=short)
def test_a_module_has_its_tests(path):
    inside = path.relative_to(PACKAGE)
    own = ROOT / "tests" / inside.with_name(f"test_{inside.name}")
    suite = next((SUITES[key] for key in (short(path), short(path.parent), path.stem) if key in SUITES), None)
    assert own.exists() or (suite and (ROOT / suite).exists()), f"write {short(own)}"


# ----------------------------------------------------------------------------------------------------- the public names


def test_all_is_every_public_name():
    named = {name: getattr(agentnb, name) for name in {*dir(agentnb), *agentnb.__all__}}
    ours = {
        name
        for name, value in named.items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and (getattr(value, "__module__", None) or type(value).__module__).startswith("agentnb")
    }
    assert ours <= set(agentnb.__all__), "public but not in __all__"
    assert set(agentnb.__all__) <= set(dir(agentnb)), "in __all__ but not offered by dir()"
    assert len(agentnb.__all__) == len(set(agentnb.__all__))


@pytest.mark.parametrize("name", agentnb.__all__)
def test_a_public_name_says_what_it_means(name):
    assert inspect.getdoc(getattr(agentnb, name))


def test_importing_agentnb_is_light():
    program = "import sys, agentnb; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {name.split(".")[0] for name in out.stdout.split()} & HEAVY == set()


# ---------------------------------------------------------------------------------------------------------- error codes

CODE = re.compile(r"[RBXLU]\d{3}")
RULE_LINE = re.compile(r"^\s*([RBXLU]\d{3}): (.+)$", re.MULTILINE)
LETTERS = {"R": "Recipe", "B": "Blackboard", "X": "Run", "L": "Log", "U": "Screen and command line"}
HEAD = """\
# Error codes

Each Problem of agentnb has a code and four answers: what, where, why, and what to do. This table is built from the code
by `pytest tests/test_house.py --update-errors`; do not edit it.
"""


def text_of(node: ast.expr) -> str:
    """Return a text as its reader sees it, with `…` for what is put in; nothing where it is made elsewhere."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.BinOp(left=left, right=right):
            return text_of(left) + text_of(right)
        case ast.IfExp(body=body, orelse=orelse):
            return f"{text_of(body)} / {text_of(orelse)}"
    return ""


def whats(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (code, what) of each call that is given a code and then says what is wrong."""
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
        values = [*call.args, *(word.value for word in call.keywords)]
        for at, value in enumerate(values[:-1]):
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
                yield value.value, text_of(values[at + 1])


def codes() -> dict[str, tuple[list[str], list[str]]]:
    """Return code -> (what it says, the modules that use it): its rule from a docstring, else its Problems' words."""
    rules: dict[str, str] = {}
    said: defaultdict[str, list[str]] = defaultdict(list)
    used: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                rules.update(RULE_LINE.findall(node.value))
                if CODE.fullmatch(node.value):
                    used[node.value].append(short(path).removeprefix("agentnb/"))
        for code, what in whats(tree(path)):
            said[code].append(what)
    return {code: ([rules[code]] if code in rules else unique(said[code]), unique(used[code])) for code in sorted(used)}


def unique(words: list[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, words)))


def errors_page() -> str:
    parts = [HEAD]
    for letter, title in LETTERS.items():
        rows = [
            f"| {code} | {'<br>'.join(said).replace('|', chr(92) + '|')} | {', '.join(f'`{name}`' for name in where)} |"
            for code, (said, where) in codes().items()
            if code[0] == letter
        ]
        if rows:
            head = [f"## {letter}: {title}", "", "| code | what it says | from |", "|---|---|---|"]
            parts.append("\n".join([*head, *rows]))
    return "\n".join(f"{part}\n" for part in parts)


def test_the_page_of_errors_is_what_the_code_says(request):
    page = ROOT / "docs" / "errors.md"
    if request.config.getoption("--update-errors"):
        page.write_text(errors_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == errors_page(), "run: pytest tests/test_house.py --update-errors"


def test_every_code_says_something():
    assert [code for code, (said, _) in codes().items() if not said] == []


def test_a_code_that_several_modules_use_has_one_rule():
    # Else two of them may have taken the same code for two things.
    texts = (node.value for path in modules() for node in ast.walk(tree(path)) if isinstance(node, ast.Constant))
    rules = {code for text in texts if isinstance(text, str) for code, _ in RULE_LINE.findall(text)}
    assert {code: used for code, (_, used) in codes().items() if len(used) > 1 and code not in rules} == {}


def test_the_page_of_errors_reads_problems_as_people_do():
    module = ast.parse('Problem("R104", f"edge {a!r} leads " + "nowhere", where)\nProblem(code="X1", what="no")')
    assert list(whats(module)) == [("R104", "edge … leads nowhere")]


# ------------------------------------------------------------------------------------------------------ nothing of here

# Folders of one machine and names of one network; a path of the system that every reader has is none of them.
OF_ONE_MACHINE = re.compile(
    r"(?<![\w.}>/])/(?:home|root|Users|opt|srv|mnt|work|workspace)/\w"
    r"|[A-Z]:\\\\?Users"
    r"|\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}\b"
    r"|//[\w.-]+\.(?:internal|corp|lan|local)\b"
)


def test_no_file_names_a_machine():
    mine = Path(__file__)
    found = {
        f"{short(path)}:{number}": line.strip()[:100]
        for path in files()
        if path != mine
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OF_ONE_MACHINE.search(line)
    }
    assert not found


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("see /home/ann/notes", True),
        ("http://10.1.2.3/simple", True),
        ("postgresql://db.example.internal/runs", True),
        ('open("/opt/thing/x")', True),
        ("#!/usr/bin/env bash", False),
        ("bind to 127.0.0.1", False),
        ("version 10.2", False),
    ],
)
def test_what_names_a_machine(line, named):
    assert bool(OF_ONE_MACHINE.search(line)) is named
