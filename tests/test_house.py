"""The rules of this house that no other tool holds; docs/errors.md is built here from the code."""

from __future__ import annotations

import ast
import builtins
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
FOLDERS = (".github", "agentnb", "tests", "benchmarks", "notebooks", "docs", "binder", ".ci")
NOT_TEXT = {".png", ".webp", ".pyc", ".db", ".gz"}
HEAVY = {
    *("IPython", "anywidget", "datalogic_py", "graphviz", "greenlet", "ipywidgets", "jinja2", "nest_asyncio"),
    *("networkx", "numpy", "pandas", "pydantic", "pygraphviz", "sqlalchemy", "yaml"),
}


def files(*suffixes: str) -> list[Path]:
    """Return the project's text files: those of its folders and those that stand beside them."""
    paths = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]  # a file in a worktree
    for folder in FOLDERS:
        paths += (path for path in (ROOT / folder).rglob("*") if path.is_file())
    text_paths = [path for path in paths if path.suffix not in NOT_TEXT and "__pycache__" not in path.parts]
    return sorted(path for path in text_paths if not suffixes or path.suffix in suffixes)


def modules() -> list[Path]:
    return [path for path in files(".py") if path.is_relative_to(PACKAGE)]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ----------------------------------------------------------------------------------------------------- the public names


def test_all_lists_every_public_name():
    named = {name: getattr(agentnb, name) for name in {*dir(agentnb), *agentnb.__all__}}
    ours = {
        name
        for name, value in named.items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and (getattr(value, "__module__", None) or type(value).__module__).startswith("agentnb")
    }
    assert ours - {"open"} <= set(agentnb.__all__), "public but not in __all__"
    assert not set(agentnb.__all__) & set(dir(builtins)), "`from agentnb import *` would replace a built-in"
    assert set(agentnb.__all__) <= set(dir(agentnb)), "in __all__ but not offered by dir()"
    assert len(agentnb.__all__) == len(set(agentnb.__all__))


@pytest.mark.parametrize("name", agentnb.__all__)
def test_a_public_name_has_a_docstring(name):
    assert inspect.getdoc(getattr(agentnb, name))


def test_each_parameter_of_a_public_function_is_described():
    """Their docstrings name each parameter, unless there is one alone or they refer to another function."""
    functions = {name: getattr(agentnb, name) for name in agentnb.__all__ if inspect.isroutine(getattr(agentnb, name))}
    for cls in (agentnb.Session, agentnb.SimulationTrace):
        functions |= {f"{cls.__name__}.{name}": value for name, value in vars(cls).items() if inspect.isfunction(value)}
    missing = {}
    for name, function in functions.items():
        text, parameters = inspect.getdoc(function) or "", [*inspect.signature(function).parameters]
        refers = re.match(r"Like `|The same ", text) or re.search(r"see `", text.partition("\n")[0])
        if name.rpartition(".")[2].startswith("_") or len(parameters) < 3 or refers:
            continue
        if absent := [each for each in parameters if each != "self" and not re.search(rf"\b{each}\b", text)]:
            missing[name] = absent
    assert missing == {}


ENTRY = re.compile(r"    ([a-z_]\w*(?:, [a-z_]\w*)*): ")
ASKS = re.compile(r"_*(is|are|has)_")  # a question, which is answered by a truth value
YIELDS = re.compile(r"_?iter_")
COLLECTS = re.compile(r"_*(get|find|list|make)_")  # one value, or all of them; what yields is iter_
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def definitions() -> list[tuple[str, Definition]]:
    return [
        (f"{short(path)}:{node.lineno} {node.name}", node)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, Definition)
    ]


def parameters_of(node: Definition) -> set[str]:
    """Return the parameters of a function, or of a class: those of its constructor, and its fields."""
    if isinstance(node, ast.ClassDef):
        inner = [
            each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__")
        ]
        fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
        return {name for each in inner for name in parameters_of(each)} | {
            each.id for each in fields if isinstance(each, ast.Name)
        }
    args = node.args
    return {each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if each}


def described(node: Definition) -> Iterator[str]:
    """Yield the names in the section `Args` of a docstring."""
    first = node.body[0]
    raw = first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None
    text = inspect.cleandoc(raw) if isinstance(raw, str) and "Args:" in raw else ""
    _, _, section = f"\n{text}".partition("\nArgs:\n")
    for line in section.splitlines():
        if line and not line.startswith(" "):
            return
        if entry := ENTRY.match(line):
            yield from entry[1].split(", ")


def test_args_of_a_docstring_are_parameters():
    wrong = [
        f"{place}: {name}"
        for place, node in definitions()
        if not (isinstance(node, ast.ClassDef) and node.bases)  # its parameters may be those of a base class
        for name in described(node)
        if name not in parameters_of(node)
    ]
    assert wrong == []


def breaks_its_promise(name: str, returned: str) -> bool:
    """Return True if the verb of a function's name does not fit the type that it returns."""
    yields = re.search("Itera|Generator", returned)
    if ASKS.match(name):
        return not re.search(r"\bbool\b|TypeGuard|TypeIs", returned)
    return not yields if YIELDS.match(name) else bool(COLLECTS.match(name) and re.match("Iterator|Generator", returned))


def test_functions_return_what_their_verb_promises():
    wrong = [
        f"{place} -> {returned}"
        for place, node in definitions()
        if isinstance(node, ast.FunctionDef) and node.returns is not None
        if breaks_its_promise(node.name, returned := ast.unparse(node.returns))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "returned", "breaks"),
    [
        ("is_open", "bool", False), ("is_open", "str", True), ("_has_plan", "TypeGuard[Plan]", False),
        ("_iter_rows", "Iterator[Row]", False), ("iter_rows", "list[Row]", True),
        ("find_row", "Row | None", False), ("find_rows", "Iterator[Row]", True),
        ("make_readers", "list[Iterator[Row]]", False),
    ],
)  # fmt: skip
def test_verbs_are_checked_for_their_promise(name, returned, breaks):
    assert breaks_its_promise(name, returned) is breaks


def test_importing_agentnb_loads_no_heavy_library():
    program = "import sys, agentnb; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {name.split(".")[0] for name in out.stdout.split()} & HEAVY == set()


# ---------------------------------------------------------------------------------------------------------- error codes

CODE = re.compile(r"[RBXLAU]\d{3}")
RULE_LINE = re.compile(r"^\s*([RBXLAU]\d{3}): (.+)$", re.MULTILINE)
LETTERS = {
    "R": "Recipe", "B": "Blackboard", "X": "Run", "L": "Log", "A": "Analysis", "U": "Screen and command line",
}  # fmt: skip
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


@cache
def codes() -> dict[str, tuple[list[str], list[str]]]:
    """Return code -> (what it says, the modules that use it): its rule from a docstring, else its Problems' words."""
    rules: dict[str, str] = {}
    messages: defaultdict[str, list[str]] = defaultdict(list)
    used: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules():
        if not CODE.search(path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                rules.update(RULE_LINE.findall(node.value))
                if CODE.fullmatch(node.value):
                    used[node.value].append(short(path).removeprefix("agentnb/"))
        for code, message in whats(tree(path)):
            messages[code].append(message)
    return {
        code: ([rules[code]] if code in rules else unique(messages[code]), unique(used[code])) for code in sorted(used)
    }


def unique(words: list[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, words)))


def errors_page() -> str:
    parts = [HEAD]
    for letter, title in LETTERS.items():
        rows = [
            f"| {code} | {'<br>'.join(text).replace('|', chr(92) + '|')} | {', '.join(f'`{name}`' for name in used)} |"
            for code, (text, used) in codes().items()
            if code[0] == letter
        ]
        if rows:
            head = [f"## {letter}: {title}", "", "| code | what it says | from |", "|---|---|---|"]
            parts.append("\n".join([*head, *rows]))
    return "\n".join(f"{part}\n" for part in parts)


def test_the_page_of_errors_matches_the_code(request):
    page = ROOT / "docs" / "errors.md"
    if request.config.getoption("--update-errors"):
        page.write_text(errors_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == errors_page(), "run: pytest tests/test_house.py --update-errors"


def test_every_code_has_a_description():
    assert [code for code, (text, _) in codes().items() if not text] == []


def test_a_shared_code_has_one_rule():
    # Else two of them may have taken the same code for two things.
    texts = (node.value for path in modules() for node in ast.walk(tree(path)) if isinstance(node, ast.Constant))
    rules = {code for text in texts if isinstance(text, str) for code, _ in RULE_LINE.findall(text)}
    assert {code: used for code, (_, used) in codes().items() if len(used) > 1 and code not in rules} == {}


def test_the_page_of_errors_extracts_messages():
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


def test_marks_of_tests_in_other_processes_are_in_separate_files():
    """`.ci/run` finds the files of such tests by the text of the marks; those of attacks are a folder of their own."""
    applied = re.compile(r"mark\.(needs_chromium|starts_programs|attack)\b")
    for path in files(".py"):
        marks = set(applied.findall(path.read_text(encoding="utf-8")))
        is_found = path.name.startswith("test_") or path.parent.name == "attacks"
        assert is_found or not marks, short(path)
        assert "attack" not in marks or path.parent.name == "attacks", short(path)


def test_no_file_contains_a_machine_path():
    this_file = Path(__file__)
    places = {
        f"{short(path)}:{number}": line.strip()[:100]
        for path in files()
        if path != this_file
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if OF_ONE_MACHINE.search(line)
    }
    assert not places


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
def test_machine_paths_are_recognized(line, named):
    assert bool(OF_ONE_MACHINE.search(line)) is named


# On the package index, `agentnb` is another project; ours is `agentnb-kit`.
INSTALLS_ANOTHER_PROJECT = re.compile(
    r"\b(?:(?:pip3?|uv pip|uv tool|pipx) install|uv add)\b[^&;`\n]*?[\s\"']agentnb(?![\w-]|\.\w)"
    r"|\b(?:uvx|pipx run|uv tool run)\s+(?:-q\s+)?[\"']?agentnb(?![\w-])"
)


def test_nobody_is_told_to_install_the_other_project_called_agentnb():
    this_file = Path(__file__)
    places = {
        f"{short(path)}:{number}": line.strip()[:100]
        for path in files()
        if path != this_file
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if INSTALLS_ANOTHER_PROJECT.search(line)
    }
    assert not places


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("pip install agentnb", True),
        ('run: pip install "agentnb[mcp]"', True),
        ("%pip install -q agentnb", True),
        ("pip install -U agentnb.", True),
        ("uv add agentnb==0.2", True),
        ("uvx agentnb lab", True),
        ("pipx run agentnb lab", True),
        ('pip install "agentnb-kit[mcp]"', False),
        ('pip install -e ".[lab]" && agentnb lab', False),
        ("uvx --from agentnb-kit agentnb lab", False),
        ("pipx run --spec agentnb-kit agentnb lab", False),
        ("pip uninstall agentnb", False),
    ],
)
def test_installations_of_the_other_project_are_recognized(line, named):
    assert bool(INSTALLS_ANOTHER_PROJECT.search(line)) is named


# ------------------------------------------------------------------------------------------------------------- secrets


def test_text_is_masked_only_at_the_boundaries():
    decision = (ROOT / "docs" / "decisions" / "0028-text-and-masking.md").read_text(encoding="utf-8")
    boundaries = set(re.findall(r"^\| `(agentnb[\w.]*)` \|", decision, re.MULTILINE))
    masking = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in modules()
        if any(
            isinstance(node, ast.FunctionDef | ast.alias | ast.Attribute)
            and getattr(node, "name", getattr(node, "attr", "")) == "mask_text"
            for node in ast.walk(tree(path))
        )
    }
    assert masking == boundaries, "use safe_str or safe_repr; a new boundary is added to the decision"


# ---------------------------------------------------------------------------------------------- text of users' objects

# What shows a value in a text as the value's own methods say: they may raise, or never end.
SHOWN_BY = {"repr", "str", "ascii", "format"}
UNKNOWN = {"Any", "object"}


def annotated(function: ast.AST) -> dict[str, ast.expr]:
    """Return the annotations of a function's parameters and variables."""
    results: dict[str, ast.expr] = {}
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = function.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if each.annotation is not None:
                results[each.arg] = each.annotation
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                results[node.target.id] = node.annotation
    return results


def is_unknown(value: ast.expr, types: dict[str, ast.expr]) -> bool:
    """Return True for a value of an unknown class: one annotated so, or a part of one or of a mapping to them."""
    match value:
        case ast.Name(id=name):
            return name in types and {part.strip() for part in ast.unparse(types[name]).split("|")} & UNKNOWN != set()
        case (
            ast.Subscript(value=ast.Name(id=name))
            | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get" | "pop"))
        ):
            kind = ast.unparse(types[name]) if name in types else ""
            return kind.endswith(("Any]", "object]")) and not kind.startswith(("Callable", "type"))
        case ast.BoolOp(values=parts):
            return any(is_unknown(part, types) for part in parts)
    return False


def shown_unsafely(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, expression) of each value of an unknown class that a text of a message shows by its own methods."""

    def visit(node: ast.AST, types: dict[str, ast.expr]) -> Iterator[tuple[int, str]]:
        types = types | annotated(node)
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                match part:
                    case ast.FormattedValue(value=ast.Call(func=ast.Name(id=name), args=[shown, *_])) if (
                        name in SHOWN_BY
                    ):
                        pass
                    case ast.FormattedValue(value=shown):
                        pass
                    case _:
                        continue
                if is_unknown(shown, types):
                    yield node.lineno, ast.unparse(shown)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, types)

    yield from visit(module, {})


SHOWING = ("board", "dialects", "engine", "expressions", "kinds", "session", "world")
SEEDS = {"agentnb/world/sample_data.py"}  # a seed is hashed with its own text


def test_values_of_unknown_classes_are_shown_by_safe_repr():
    violations = [
        f"{short(path)}:{line}: {shown}"
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] in SHOWING and short(path) not in SEEDS
        for line, shown in shown_unsafely(tree(path))
    ]
    assert not violations, "show it by safe_repr or safe_str"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f(value: Any): return f'{value!r}'", True),
        ("def f(value: object | None): return f'{value} is wrong'", True),
        ("def f(value: Any): return f'{str(value)} is wrong'", True),
        ("def f(row: dict[str, Any]): return f'{row[1]!r}'", True),
        ("def f(row: Mapping[str, Any]): return f'{row.get(1) or 2}'", True),
        ("def f():\n row: Any = g()\n return f'{row}'", True),
        ("def f(value: Any): return f'{safe_repr(value)}'", False),
        ("def f(value: Any): return f'{len(value)}'", False),
        ("def f(name: str): return f'{name!r}'", False),
        ("def f(row: dict[str, int]): return f'{row[1]}'", False),
    ],
)
def test_calls_of_repr_are_recognized(code, found):
    assert bool([*shown_unsafely(ast.parse(code))]) is found
