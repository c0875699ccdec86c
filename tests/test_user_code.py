"""The line of the user's code that an exception comes from, and how it is shown."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from IPython.core.interactiveshell import InteractiveShell
from pydantic import BaseModel

import agentnb as nb

HERE = "tests/test_user_code.py"


class Order(BaseModel):
    price: int


def run(function: Any, **inputs: Any) -> nb.Session:
    """Run a graph of one node, which calls a function."""
    graph = nx.DiGraph(name="g")
    graph.add_node("a", function=function)
    session = nb.Session(nb.load(graph), inputs)
    session.run()
    return session


def find_line(session: nb.Session) -> str:
    """Return the line that a failed run names."""
    assert session.error is not None
    return session.error.where.rpartition("nodes['a']")[2].removeprefix(", ")


def import_module(file: Path, source: str) -> Any:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fail() -> None:
    raise ValueError("no")


def fail_in_a_library() -> None:
    Order(price="twelve")


def fail_in_a_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fail).result()


async def fail_in_a_task() -> None:
    async def wait() -> None:
        await asyncio.sleep(0)
        fail()

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())


def fail_in_other_code() -> None:
    """Fail in code without a file, which code in a file calls."""
    eval("1 / 0")


def leave() -> None:
    sys.exit("usage")


def read_an_unknown_key(board: Any) -> Any:
    return board["nothing"]


@pytest.mark.parametrize(
    ("function", "code", "line"),
    [
        (fail, fail, 1),
        (fail_in_a_library, fail_in_a_library, 1),
        (fail_in_a_thread, fail, 1),
        (fail_in_a_task, fail, 1),
        (fail_in_other_code, fail_in_other_code, 2),
        (leave, leave, 1),
        (read_an_unknown_key, read_an_unknown_key, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_last_line_of_the_users_code_is_named(monkeypatch, function, code, line):
    monkeypatch.chdir(Path(__file__).parents[1])
    assert find_line(run(function)) == f"{HERE}:{code.__code__.co_firstlineno + line}"


def test_a_path_is_relative_to_the_current_folder_or_to_that_of_the_recipe(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    inside = import_module(tmp_path / "sub" / "mine.py", "def fail():\n    1 / 0\n")
    assert find_line(run(inside.fail)) == str(Path("sub", "mine.py:2"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find_line(run(inside.fail)) == str(tmp_path / "sub" / "mine.py:2")
    (tmp_path / "agent.yaml").write_text(
        "meta: {name: g}\nstate: {shape: {x: the input}}\n"
        'tools: [{id: t, kind: python, impl: "sub/mine.py#fail"}]\n'
        "graph: {inputs: [x], outputs: [x], nodes: [{id: a, type: tool, uses: t}], edges: []}\n",
        encoding="utf-8",
    )
    session = nb.Session(nb.load(tmp_path / "agent.yaml"), {"x": 1})
    session.run()
    assert session.error.where.endswith(f", {Path('sub', 'mine.py:2')}")


def test_code_without_a_file_is_named_as_python_names_it():
    assert find_line(run(eval("lambda: 1 / 0"))) == "<string>:1"


def test_a_source_that_is_gone_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = import_module(tmp_path / "mine.py", "def fail():\n    1 / 0\n")
    (tmp_path / "mine.py").unlink()
    session = run(module.fail)
    assert find_line(session) == "mine.py:2"
    assert "mine.py:2" in session.to_html()


def test_the_users_code_may_be_an_installed_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    installed = import_module(tmp_path / "site-packages" / "theirs.py", "def fail():\n    return int('x')\n")
    line = str(Path("site-packages", "theirs.py:2"))
    assert find_line(run(installed.fail)) == line
    mine = import_module(tmp_path / "mine.py", "def call(fail):\n    return fail()\n")
    assert find_line(run(lambda: mine.call(installed.fail))) == "mine.py:2"


def test_a_failure_of_agentnb_alone_names_no_line():
    graph = nx.DiGraph(name="g")
    graph.add_node("a", kind="llm", prompt="{{ nothing }}")
    session = nb.Session(nb.load(graph), llm=["x"])
    session.run()
    assert session.status == "failed"
    assert session.error.where.endswith("nodes['a'].prompt")


def test_a_cell_of_a_notebook_is_named_by_its_number():
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(colors="nocolor")
    try:
        shell.run_cell("x = 1", store_history=True)
        shell.run_cell("def fail():\n    1 / 0\n", store_history=True)
        assert find_line(run(shell.user_ns["fail"])) == "Cell In[2], line 2"
    finally:
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()


def test_a_secret_in_a_path_is_masked(tmp_path, monkeypatch):
    module = import_module(tmp_path / "sk-hush-hush-4711" / "mine.py", "def fail():\n    1 / 0\n")
    session = run(module.fail, api_key="sk-hush-hush-4711")
    for text in (str(session.error), str(session.trace.frames.steps.error[0]), str(session.trace.to_json())):
        assert "mine.py:2" in text
        assert "hush-hush" not in text
