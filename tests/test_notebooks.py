"""The notebooks as files; that they run is checked by nbmake."""

import ast
import json
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
INSTALLED = {"agentnb", "IPython", "networkx", "numpy", "pandas", "pydantic"}  # by the set-up in the README
COMES_WITH = {"langchain_core": "langgraph"}


def code_cells(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return [
        "\n".join(line for line in source.splitlines() if line[:1] not in "%!")
        for source in sources
        if source[:2] != "%%"
    ]


def imported(tree):
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names or ([node.module] if isinstance(node, ast.ImportFrom) else []):
            top = name.partition(".")[0]
            yield node.lineno, COMES_WITH.get(top, top)


def checked(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "find_spec":
            yield node.lineno, ast.literal_eval(node.args[0])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_checks_for_an_optional_package_before_it_imports_it(notebook):
    tree = compile(
        "\n".join(code_cells(notebook)), notebook.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    first_check = {name: line for line, name in sorted(checked(tree), reverse=True)}
    unguarded = {
        name
        for line, name in imported(tree)
        if name not in INSTALLED | sys.stdlib_module_names and first_check.get(name, line) >= line
    }
    assert not unguarded
