"""The code of README and docs runs, their links lead somewhere, and the reference names what is public."""

from __future__ import annotations

import ast
import asyncio
import importlib
import importlib.util
import inspect
import linecache
import logging
import os
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import agentnb as nb
from agentnb.cli import main
from agentnb.cli.arguments import make_parser
from agentnb.dialects.activegraph import clear_registry, clear_tool_registry
from agentnb.dialects.activegraph.parts.package_logs.reading import read_runs
from agentnb.samples import samples
from tests.dialects.activegraph.package_logs import programs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BESIDE = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES = [*BESIDE, *sorted(DOCS.rglob("*.md"))]
READMES = sorted((ROOT / "agentnb").rglob("README.md"))


def short(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------------------------------------------------- code blocks

# A block that cannot run has a comment above it, which says why: <!-- not run: REASON -->
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+?) -->\s*\n)?^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
SHOWN = {"diff", "text", "yaml", "json", "mermaid", "js"}  # languages that are read, not run
# Commands of a shell block that are not ours.
FOREIGN = ("pip ", "uv ", "git ", "mkdocs ", "pytest", "ruff ", "mypy", ".ci/run", "python ", "agentnb lab")


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Return (line, code) of the blocks of a page that run."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, each.start("code")), textwrap.dedent(each["code"]))
        for each in BLOCK.finditer(text)
        if each["language"] == language and not each["reason"]
    ]


def run_python(page: Path) -> dict:
    """Run the Python blocks of a page one after the other, as the cells of a notebook; return their names."""
    names: dict = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for line, code in blocks(page, "python"):
            if code.startswith("%"):  # a cell with magics
                assert InteractiveShell.instance().run_cell(code).success
                continue
            cell = f"<{short(page)}, line {line}>"  # libraries look for the source of a function, as in a notebook
            source = "\n" * line + code
            linecache.cache[cell] = len(source), None, source.splitlines(keepends=True), cell
            compiled = compile(source, cell, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            if compiled.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(compiled, names))
            else:
                exec(compiled, names)
    return names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run a page in; what the page registers or configures is undone afterwards."""
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("agentnb")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield tmp_path
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate
    InteractiveShell.clear_instance()
    clear_registry()
    clear_tool_registry()


def readme(names):
    session = names["session"]
    assert (session.status, session.replay().ok) == ("finished", True)
    assert list(names["nb"].runs("runs.db")["status"]) == ["waiting", "finished"]
    session.close()


def store_runs(names):
    first = names["report"].first_divergence
    assert (first.step, first.path, first.recorded, first.replayed) == (2, "grade", "good", "poor")
    assert names["fork"].board["grade"] == "poor"
    names["session"].close()


def langgraph(names):
    assert names["session"].board["best"] == "a joke about rain"
    assert list(names["show"].trace.frames.calls.kind) == ["llm"]


def burr(names):
    assert names["session"].status == "finished"
    assert [message["content"] for message in names["session"].board["messages"]][-1] == "AND NOW?"


def symphony(names):
    assert names["session"].status == names["desk_run"].status == "finished"
    assert names["call"].name == "find_order"


def polaris(names):
    assert names["session"].status == "finished"
    assert names["fork"].board[names["key"]].text == "tea: 5 leaves, warm"


def cockpit(names):
    assert names["session"].why(2).targets == ("check_order",)
    assert [row.node for row in names["session"].breakpoints] == ["write", "review"]


def analyze_runs(names):
    assert names["comparison"].first_divergence.path == "fee"


def share_runs(names):
    assert names["recording"].position == 2


def activegraph(names):
    assert names["loaded"].graph.get_object("loan#3").data["state"] == "lent"
    assert [each.data for each in names["fork"].pending_approvals()] == [{"for": "loan#2"}]
    names["loaded"].session.close()


def activegraph_logs(names):
    assert names["session"].board["task#1.data.status"] == "done"
    assert names["session"].back().board["task#1.data.status"] == "open"
    assert {run.run_id for run in read_runs("copy.db")} == {"first", "second"}
    programs.close(names["runtime"], names["again"])


# What must be true after a page, besides that it runs and its own assertions hold.
AFTER = {
    "README.md": readme,
    "docs/how-to/analyze_runs.md": analyze_runs,
    "docs/how-to/share_runs.md": share_runs,
    "docs/how-to/store_runs.md": store_runs,
    "docs/recipes/activegraph.md": activegraph,
    "docs/recipes/activegraph_logs.md": activegraph_logs,
    "docs/recipes/burr.md": burr,
    "docs/recipes/langgraph.md": langgraph,
    "docs/recipes/polaris.md": polaris,
    "docs/recipes/symphony.md": symphony,
    "docs/reference/cockpit.md": cockpit,
}
WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_SHELL = [page for page in PAGES if blocks(page, "sh")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=short)
def test_the_python_of_a_page_runs(page, folder):
    names = run_python(page)
    AFTER.get(short(page), bool)(names)


def commands(page: Path) -> list[str]:
    """Return the command lines of a page's shell blocks, without comments; `\\` continues a line."""
    lines = "\n".join(code for _, code in blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("page", WITH_SHELL, ids=short)
def test_the_commands_of_a_page_run(page, folder, monkeypatch):
    """Run `agentnb` commands in order, in a folder with the files that the pages speak of."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    recipe = (ROOT / "agentnb" / "samples" / "triage.yaml").read_text(encoding="utf-8")
    Path("recipe.yaml").write_text(recipe, encoding="utf-8")
    Path("answers.yaml").write_text("answers: [approve, approve, approve]\n", encoding="utf-8")
    for line in commands(page):
        if line.startswith(FOREIGN):
            continue
        program, *words = shlex.split(line)
        assert program == "agentnb", f"unknown command: {line}"
        assert main(words) in {0, 4}, line


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_each_block_names_its_language(page):
    fences = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    opened = {fence for fence in fences[::2] if fence not in SHOWN}
    assert opened <= {"python", "sh"}


# ---------------------------------------------------------------------------------------------------------------- links

# The build of the site writes these; its strict mode checks the links to them.
GENERATED = {DOCS / "gallery" / f"{name}.md" for name in ("index", *(sample.name for sample in samples()))}
LINK = re.compile(r"(?:\]\(|srcset=\"|src=\")([^)\"\s]+)")


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]+`", "``", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings as GitHub and Python-Markdown write them, and its own ids."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ +(.+?)(?: *\{.*\})?$", without_code_fences(text), re.MULTILINE)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
    return slugs | set(re.findall(r"(?:id=\"|\{ *#)([\w.-]+)", text))


def without_code_fences(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=short)
def test_the_links_of_a_page_resolve(page):
    wrong = []
    for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = Path(os.path.normpath(page.parent / target)) if target else page
        if file in GENERATED:
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(link)
    assert not wrong


# ------------------------------------------------------------------------------------------------------------ the rules


def test_each_rule_names_existing_tests():
    coreason = ("api", "loader", "edges", "schema", "schema_errors")
    known = {name: f"tests/dialects/coreason/test_{name}.py" for name in coreason}
    folders = {"agent": "dialects/agentruntime", "kinds": "kinds", "tools": "world/tools", "llm": "world/llm"}
    folders |= {"session": "session", "store": "store", "symphony": "dialects/symphony", "polaris": "dialects/polaris"}
    folders |= {"activegraph": "dialects/activegraph", "package_logs": "dialects/activegraph/package_logs"}
    folders |= {"burr": "dialects/burr", "langgraph": "dialects/langgraph", "engine": "engine", "board": "board"}
    for word, inside in folders.items():
        files = sorted((ROOT / "tests" / inside).glob("test_*.py"))
        known |= {f"{word}/{file.stem.removeprefix('test_')}": f"tests/{inside}/{file.name}" for file in files}
    named = re.findall(r"([\w/.]+)::(test_\w+)", (DOCS / "requirements.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    texts = {file: (ROOT / known.get(file, file)).read_text(encoding="utf-8") for file, _ in named}
    missing = [f"{file}::{test}" for file, test in named if not re.search(rf"def {test}\(", texts[file])]
    assert not missing


# -------------------------------------------------------------------------------------------------------- the reference

REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md")))
# What is described in prose alone: an example would change the event loop of the tests.
WITHOUT_EXAMPLE = {"enable_nesting"}
# Public for other modules, not for users.
INTERNAL = {nb.SimulationTrace: {"of", "reading"}}


def example_names() -> set[str]:
    """Return the attributes that the examples of all pages use: `step` of `session.step()`, `load` of `nb.load`."""
    names = set()
    for page in WITH_PYTHON:
        for _, code in blocks(page, "python"):
            lines = [line for line in code.splitlines() if not line.lstrip().startswith("%")]
            tree = ast.parse("\n".join(lines))
            names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names


def members(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")} - INTERNAL.get(cls, set())


def test_every_public_name_is_in_the_reference_with_an_example():
    described = set(re.findall(r"^::: agentnb\.(?:[\w.]+\.)?(\w+)$", REFERENCE, re.MULTILINE))
    assert {*nb.__all__, "open"} - described == {"__version__"}
    assert {*nb.__all__, "open"} - example_names() == WITHOUT_EXAMPLE


@pytest.mark.parametrize("cls", [nb.Session, nb.SimulationTrace, nb.SimulationStep])
def test_every_public_member_is_in_the_reference_with_an_example(cls):
    described = set(re.findall(rf"^::: agentnb\.{cls.__name__}\.(\w+)$", REFERENCE, re.MULTILINE))
    for each in re.findall(rf"^::: agentnb\.{cls.__name__}\n(?: .*\n)*? +members: \[(.*)\]$", REFERENCE, re.MULTILINE):
        described |= set(each.split(", "))
    if cls is nb.SimulationStep:  # described by a table
        described |= set(re.findall(r"`(\w+)`", REFERENCE))
    assert members(cls) - described == set()
    assert members(cls) - example_names() == set()


# What newcomers type into a search box.
FEATURES = """
    approval breakpoint budget cache checkpoint cost coverage diff fault_injection human_in_the_loop logpoint mock
    persistence replay resume retry secrets snapshot streaming subgraph sweep telemetry time_travel timeout undo usage
    watch
"""


def test_every_feature_is_listed_by_its_usual_name():
    page = (DOCS / "reference" / "features.md").read_text(encoding="utf-8").casefold()
    assert [name for name in FEATURES.split() if name.replace("_", " ") not in page] == []


@pytest.mark.parametrize("dialect", ["activegraph", "agentruntime", "coreason", "polaris", "symphony"])
def test_every_name_of_a_dialect_is_in_the_reference_and_every_entry_point_in_its_example(dialect):
    page = DOCS / "reference" / "dialects" / f"{dialect}.md"
    directive = re.compile(rf"^::: agentnb\.dialects\.{dialect}\.(\w+)$", re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    assert sorted(directive.findall(text)) == sorted(importlib.import_module(f"agentnb.dialects.{dialect}").__all__)
    (example,) = (ast.parse(code) for _, code in blocks(page, "python"))
    used = {node.id for node in ast.walk(example) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(example) if isinstance(node, ast.Attribute)}
    only_results = {"BehaviorFailure", "Patch"}
    assert set(directive.findall(text.partition("## Other names")[0])) - used - only_results == set()


def test_every_command_is_in_the_reference_with_an_example():
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    (choices,) = (each.choices for each in make_parser()._actions if each.choices)
    for command in choices:
        assert f"\n## {command}\n" in page
        assert f"\nagentnb {command}" in page
        assert f"<!-- options: {command} -->" in page


# ------------------------------------------------------------------------------------------------------------- the site


def load_tool(name):
    """Return a module of docs/tools, which the build of the site uses."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def privacy():
    """The module that the build of the site checks its pages with."""
    return load_tool("privacy")


def test_the_reference_gets_its_options_and_verbs_from_the_code():
    page = load_tool("reference").filled("<!-- options: run -->\n<!-- verbs -->")
    assert "--emit TYPE=JSON" in page
    assert "| `%agent step" in page


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example/css">', True),
        ('<img src="a.png" srcset="http://pictures.example/a.png 2x">', True),
        ('<iframe src="https://example.org"></iframe>', True),
        ("<style>@import 'https://fonts.example/css';</style>", True),
        ('<p style="background: url(https://example.org/a.png)">', True),
        ('<pre class="mermaid">flowchart</pre>', True),
        ('<a href="https://example.org">to follow</a>', False),
        ('<script src="assets/x.js"></script><img src="../a.svg">', False),
    ],
)
def test_requests_to_other_servers_are_detected(privacy, html, loads):
    assert bool(privacy.loads_from_elsewhere(html)) is loads


@pytest.mark.parametrize("quiz", [(), (1,)])
def test_a_page_of_the_gallery_loads_nothing(privacy, quiz):
    session = nb.Session(nb.samples("pipeline"))
    session.run()
    assert privacy.loads_from_elsewhere(session.to_html(quiz=quiz)) == []


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w-]+(?:/[\w-]+)*\.md", text.partition("\nnav:\n")[2]))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not page.startswith("decisions/0")} - listed == set()
