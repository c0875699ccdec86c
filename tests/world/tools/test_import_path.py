from __future__ import annotations

import os
import sys

import pytest

import agentnb as nb
from agentnb.cli import main
from agentnb.load import load
from agentnb.recipe.model import ToolSpec
from agentnb.world.tools.import_path import PREFIX
from agentnb.world.tools.loading import check_tools
from tests.world.tools.tool_samples import tool, write, wrong

MCP_RECIPE = """
meta: {name: asks}
state: {shape: {question: what is asked, found: what is found}}
tools:
  - id: search
    kind: mcp
    impl: mcp://search
    config: {command: bash, args: [-c, id]}
graph:
  inputs: [question]
  outputs: [found]
  nodes:
    - {id: look, type: tool, uses: search, inputs: {q: "{{ question }}"}, map: {set: {found: "{{ result }}"}}}
  edges: []
"""
RUN = "def run(**words):\n    return words\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put packages on Python's path, and take them away again."""
    folder = tmp_path / "site"
    write(
        folder,
        "mytools_t/__init__.py",
        "from subprocess import Popen, run\nfrom os import system\nfrom .web import get",
    )
    write(
        folder,
        "mytools_t/web.py",
        "import os\ndef get():\n    return 'got'\nclass Made:\n    def __call__(self):\n        return 1",
    )
    write(folder, "mytools_t/parts.py",
          "from functools import partial\ndef get(a):\n    return a\nhalf = partial(get, 'half')")  # fmt: skip
    write(folder, "mytools_t_evil.py", "raise SystemExit('it has run')")
    write(folder, "mytools_t/broken.py", "import no_such_module_at_all")
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.startswith("mytools_t")]:
        del sys.modules[name]


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file_is_found_relative_to_the_recipe(tmp_path):
    write(tmp_path, "tools/search.py", RUN)
    assert tool("tools/search.py#run", folder=tmp_path)(a=1) == {"a": 1}
    assert tool("tools/../tools/search.py#run", folder=tmp_path)(a=1) == {"a": 1}
    assert tool(f"{tmp_path}/tools/search.py#run", folder=tmp_path)(a=1) == {"a": 1}


AGENT = """
meta: {name: a}
state: {shape: {text: a text}}
tools: [{id: search, kind: python, impl: "search.py#run"}]
graph:
  inputs: [text]
  outputs: [text]
  nodes: [{id: find, type: tool, uses: search, inputs: {a: "{{ text }}"}}]
  edges: []
"""


def test_loading_and_checking_a_recipe_runs_nothing_and_a_session_does(tmp_path):
    mark = tmp_path / "mark"
    write(tmp_path, "search.py", f"open({str(mark)!r}, 'w').close()\n{RUN}")
    recipe = nb.load(write(tmp_path, "agent.yaml", AGENT))
    recipe.check()
    assert recipe.graph.number_of_nodes() == 1
    assert not mark.exists()
    nb.Session(recipe, {"text": "cats"}, tools={"search": lambda **words: words})
    assert not mark.exists()  # what is given takes the place of the file
    nb.Session(recipe, {"text": "cats"})
    assert mark.exists()


@pytest.mark.parametrize(
    "written",
    ["../secret.py", "a/../../secret.py", "{outside}/secret.py", "link.py", "folder/secret.py", "../own2/x.py"],
)
def test_a_file_outside_is_rejected_and_not_run(tmp_path, written):
    recipe_folder, outside = tmp_path / "own", tmp_path
    mark = tmp_path / "mark"
    for place in (outside / "secret.py", tmp_path / "own2" / "x.py"):
        write(place.parent, place.name, f"open({str(mark)!r}, 'w').close()\n{RUN}")
    (recipe_folder / "a").mkdir(parents=True)
    (recipe_folder / "link.py").symlink_to(outside / "secret.py")
    (recipe_folder / "folder").symlink_to(outside)
    problem = wrong(written.format(outside=outside) + "#run", folder=recipe_folder)
    assert problem.code == "R156"
    assert "pass allow=[" in problem.do
    assert "--allow" in problem.do
    assert str(tmp_path) in problem.what  # where it really is
    assert not mark.exists()


def test_a_folder_or_a_file_may_be_allowed(tmp_path):
    write(tmp_path, "shared/search.py", RUN)
    recipe_folder = tmp_path / "own"
    recipe_folder.mkdir()
    assert tool("../shared/search.py#run", folder=recipe_folder, allow=[str(tmp_path / "shared")])(a=1) == {"a": 1}
    assert tool("../shared/search.py#run", folder=recipe_folder, allow=[str(tmp_path / "shared/search.py")])(a=1) == {
        "a": 1
    }
    assert wrong("../shared/search.py#run", folder=recipe_folder, allow=[str(tmp_path / "sha")]).code == "R156"


def test_a_recipe_without_a_file_has_only_allowed_folders(tmp_path):
    write(tmp_path, "search.py", RUN)
    assert "no folder" in wrong("search.py#run").what
    assert wrong(f"{tmp_path}/search.py#run").code == "R156"
    assert tool("search.py#run", allow=[str(tmp_path)])(a=1) == {"a": 1}


def test_a_missing_file_is_reported_with_suggestions(tmp_path):
    write(tmp_path, "tools/search.py", RUN)
    problem = wrong("tools/serch.py#run", folder=tmp_path)
    assert (problem.code, problem.do) == ("R157", "did you mean 'tools/search.py'?")
    assert wrong("nowhere/search.py#run", folder=tmp_path).code == "R157"


def test_a_folder_or_a_pipe_is_not_a_file(tmp_path):
    (tmp_path / "a.py").mkdir()
    os.mkfifo(tmp_path / "b.py")  # to read it would never end
    assert wrong("a.py#run", folder=tmp_path).code == "R157"
    assert wrong("b.py#run", folder=tmp_path).code == "R157"


@pytest.mark.parametrize(
    ("impl", "code"),
    [
        ("a\0.py#run", "R155"),
        ("/a\0.py#run", "R155"),
        ("x" * 5000 + ".py#run", "R157"),
        ("x/" * 5000 + "y.py#run", "R157"),
        ("search.py", "R155"),
        ("#run", "R155"),
        ("search.py#", "R155"),
        ("search.py#a.b", "R155"),
        ("search.py#__builtins__", "R155"),
        ("search.py#run\0", "R155"),
        ("", "R155"),
    ],
)
def test_an_invalid_impl_is_reported_briefly(tmp_path, impl, code):
    write(tmp_path, "search.py", RUN)
    problem = wrong(impl, folder=tmp_path)
    assert problem.code == code
    assert len(str(problem)) < 1500


def test_circular_links_are_not_a_file(tmp_path):
    (tmp_path / "a.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    assert wrong("a.py#run", folder=tmp_path).code in {"R155", "R156", "R157"}


def test_the_next_session_sees_changes_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    write(tmp_path, "near.py", "ANSWER = 1\n")
    write(tmp_path, "search.py", "from .near import ANSWER\ndef run():\n    return ANSWER, 'a'\n")
    first = tool("search.py#run", folder=tmp_path)
    write(tmp_path, "near.py", "ANSWER = 2\n")  # of the same length, in the same second
    write(tmp_path, "search.py", "from .near import ANSWER\ndef run():\n    return ANSWER, 'b'\n")
    assert tool("search.py#run", folder=tmp_path)() == (2, "b")
    assert first() == (1, "a")
    assert not (tmp_path / "__pycache__").exists()


def test_a_file_is_known_under_a_private_name_only(tmp_path):
    write(
        tmp_path,
        "json.py",
        "from dataclasses import dataclass\n@dataclass\nclass Made:\n    a: 'int'\ndef run(a):\n    return Made(a)\n",
    )
    result = tool("json.py#run", folder=tmp_path)(a=1)
    assert type(result).__module__.startswith(PREFIX)
    assert type(result) is sys.modules[type(result).__module__].Made  # so that it can be pickled
    assert "Made" not in vars(sys.modules["json"])


def test_a_file_name_need_not_be_a_python_name(tmp_path):
    write(tmp_path, "my-tool.py", "def run():\n    return 1")
    write(tmp_path, "my_tool.py", "def run():\n    return 2")
    assert tool("my-tool.py#run", folder=tmp_path)() == 1
    assert tool("my_tool.py#run", folder=tmp_path)() == 2


def test_a_module_that_fails_is_reported_with_its_line(tmp_path):
    known = set(sys.modules)
    file = write(tmp_path, "search.py", "def inner():\n    raise ValueError('no index')\n\ninner()\n")
    problem = wrong("search.py#run", folder=tmp_path)
    assert (problem.code, problem.where, problem.why) == ("R159", f"{file}:2", "ValueError: no index")
    write(tmp_path, "search.py", "def run():\n    return (\n")
    assert wrong("search.py#run", folder=tmp_path).where == f"{file}:2"
    write(tmp_path, "search.py", "import sys\nsys.exit(3)\n")
    assert wrong("search.py#run", folder=tmp_path).why == "SystemExit: 3"
    assert not [name for name in set(sys.modules) - known if name.endswith(".search")]


def test_an_import_of_a_sibling_module_is_reported_with_the_remedy(tmp_path):
    write(tmp_path, "near_by.py", "A = 1")
    write(tmp_path, "search.py", "import near_by\n")
    assert wrong("search.py#run", folder=tmp_path).do == "write `from .near_by import ...` for a file beside it"
    write(tmp_path, "search.py", "import no_such_module_at_all\n")
    assert wrong("search.py#run", folder=tmp_path).do == "install 'no_such_module_at_all'"


def test_a_missing_attribute_has_a_suggestion(tmp_path):
    write(tmp_path, "search.py", RUN)
    problem = wrong("search.py#ran", folder=tmp_path)
    assert (problem.code, problem.do) == ("R160", "did you mean 'run'?")


# -- packages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", ["mytools_t.web#get", "mytools_t/web#get", "mytools_t#get"])
def test_an_allowed_package_is_imported(package, impl):
    assert tool(impl, allow=["mytools_t"])() == "got"


@pytest.mark.usefixtures("package")
def test_a_partial_of_a_package_is_one_of_its_functions():
    assert tool("mytools_t.parts#half", allow=["mytools_t"])() == "half"


@pytest.mark.parametrize(
    "impl",
    ["os#system", "subprocess#Popen", "builtins#eval", "posix#system", "importlib#import_module", "mytools_t_evil#run",
     "mytools_t/../os#system", "agentnb#load"],
)  # fmt: skip
def test_a_package_that_is_not_allowed_is_not_imported(package, tmp_path, impl):
    assert wrong(impl, folder=tmp_path, allow=["mytools_t"]).code in {"R155", "R158"}
    assert "mytools_t_evil" not in sys.modules


def test_the_error_says_how_to_allow_a_package(package):
    order = "pass allow=['mytools_t.web'] where the recipe is loaded, or --allow mytools_t.web on the command line"
    assert wrong("mytools_t.web#get").do.endswith(order)


# -- checked, not imported ---------------------------------------------------------------------------------------------

MODULE = """
import os as system
from json import dumps
async def fetch(): ...
class Made: ...
ready, [other, *rest] = 1, [2, 3]
typed: int = 1
if ready:
    try:
        import fast
    except ImportError as missing:
        fast = None
for number in range(2):
    with open("x") as file:
        pass
def outer():
    global late
    inner = 1
raise SystemExit("it has run")
"""


def checked(impl, folder=None, allow=(), kind="python"):
    spec = ToolSpec("t", kind, impl)
    return [problem.code for problem in check_tools({"t": spec}, folder=folder, allow=allow)]


@pytest.mark.parametrize(
    ("attr", "found"),
    [
        *((name, []) for name in ("fetch", "Made", "system", "dumps", "ready", "other", "rest", "typed", "fast")),
        *((name, []) for name in ("missing", "number", "file", "late", "outer")),
        *((name, ["R160"]) for name in ("os", "inner", "json", "fetc", "x")),
    ],
)
def test_a_check_knows_what_a_module_defines_without_running_it(tmp_path, attr, found):
    write(tmp_path, "tools.py", MODULE)
    assert checked(f"tools.py#{attr}", tmp_path) == found


@pytest.mark.parametrize("made", ["globals()['run'] = print", "from os.path import *", "def __getattr__(name): ..."])
def test_dynamic_attributes_of_a_module_are_not_reported(tmp_path, made):
    write(tmp_path, "tools.py", made)
    assert checked("tools.py#run", tmp_path) == []


@pytest.mark.parametrize(
    ("impl", "code"),
    [
        ("tools.py", "R155"),
        ("tools.py#", "R155"),
        ("a b#c", "R155"),
        ("../outside.py#run", "R156"),
        ("gone.py#run", "R157"),
        ("os#system", "R158"),
        ("broken.py#run", "R159"),
    ],
)
def test_a_check_reports_what_a_session_would_reject(tmp_path, impl, code):
    write(tmp_path, "broken.py", "def run(:\n")
    assert checked(impl, tmp_path) == [code]
    assert wrong(impl, folder=tmp_path).code == code


def test_a_check_imports_no_package(package, tmp_path):
    assert checked("mytools_t.web#get", tmp_path, ["mytools_t"]) == []
    assert not any(name.startswith("mytools_t") for name in sys.modules)


def test_a_recipe_without_a_folder_gets_no_advice_about_its_files():
    assert checked("tools.py#run") == []
    assert checked("os#system") == ["R158"]


@pytest.mark.parametrize("kind", ["http", "subgraph"])
def test_a_built_in_tool_has_no_module(tmp_path, kind):
    assert checked("tools/http_call.py#call", tmp_path, kind=kind) == []


@pytest.mark.parametrize(
    ("attr", "home"), [("Popen", "subprocess"), ("run", "subprocess"), ("system", os.system.__module__)]
)
def test_imports_of_an_allowed_module_are_not_allowed(package, attr, home):
    problem = wrong(f"mytools_t#{attr}", allow=["mytools_t"])
    assert problem.code == "R158"
    assert f"allow=['{home}.{attr}']" in problem.do
    assert wrong("mytools_t.web#os", allow=["mytools_t"]).code == "R161"  # a module, and no tool
    assert callable(tool(f"mytools_t#{attr}", allow=["mytools_t", home]))


def test_imports_in_an_allowed_folder_are_not_allowed_and_those_in_the_recipe_folder_are(tmp_path):
    write(tmp_path, "shared/search.py", "from math import sqrt")
    recipe_folder = tmp_path / "own"
    recipe_folder.mkdir()
    assert wrong("../shared/search.py#sqrt", folder=recipe_folder, allow=[str(tmp_path / "shared")]).code == "R158"
    assert tool("search.py#sqrt", folder=tmp_path / "shared").__name__ == "t"


def test_a_package_that_cannot_be_imported_is_reported(package):
    problem = wrong("mytools_t.broken#run", allow=["mytools_t"])
    assert (problem.code, problem.do) == ("R159", "install 'no_such_module_at_all'")
    problem = wrong("mytools_t.nowhere#run", allow=["mytools_t"])
    assert (problem.code, problem.do) == ("R159", "see that it is installed, and that it is written so")


def test_a_class_of_an_allowed_package_is_constructed(package):
    assert tool("mytools_t.web#Made", allow=["mytools_t"], mode="class")() == 1


@pytest.mark.parametrize(
    ("config", "allow", "found"),
    [
        ({"command": "bash", "args": ["-c", "id"]}, (), ["R165"]),
        ({"command": "npx"}, ("npx",), []),
        ({"command": "python", "args": ["server.py"]}, (), []),
        ({"command": "python", "args": ["server.py"], "env": {"LD_PRELOAD": "x"}}, (), ["R210"]),
        ({"command": "npx", "cwd": "..", "env": {"PYTHONPATH": "x"}}, (), ["R165", "R209", "R210"]),
        ({"command": "{{ env.TOOL_SERVER }}", "env": {"BROWSER": "x"}}, (), ["R210"]),
        ({"url": "https://host/mcp"}, (), []),
        ({"command": "npx", "url": "https://host/mcp"}, ("npx",), ["R164"]),
    ],
)
def test_the_server_of_an_mcp_tool_is_checked_and_not_started(tmp_path, config, allow, found):
    folder = tmp_path / "own"
    write(folder, "server.py", "raise SystemExit('it has run')")
    tools = {"t": ToolSpec("t", "mcp", "mcp://server/t", config=config)}
    assert [problem.code for problem in check_tools(tools, folder=folder, allow=allow)] == found


def test_agentnb_check_rejects_a_server_that_may_not_be_started(tmp_path, capsys):
    file = tmp_path / "agent.yaml"
    file.write_text(MCP_RECIPE)
    assert {problem.code for problem in load(file).check()} == {"R165"}
    assert main(["check", str(file)]) == 1
    assert "R165" in capsys.readouterr().out
    assert main(["check", str(file), "--allow", "bash"]) == 0
