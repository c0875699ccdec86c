from __future__ import annotations

import subprocess
import sys

import pytest

import agentnb as nb
from agentnb.magics.completion import SORTS
from agentnb.magics.verbs import VERBS
from tests.magics.magic_texts import complete, wrong


def test_help_names_every_verb(agent, capsys):
    agent("help")
    agent("")
    out = capsys.readouterr().out
    assert all(f"%agent {verb}" in out for verb in VERBS)
    assert all(line.startswith("%agent ") and ": " in line for line in out.splitlines())


@pytest.mark.parametrize(("line", "told"), [("stepp", "did you mean 'step'"), ("zzz", "see %agent help")])
def test_an_unknown_verb_is_reported(agent, line, told):
    assert told in wrong(agent, line).do


def test_a_missing_session_is_reported(shell):
    assert "no session yet" in wrong(shell.run_line_magic, "agent", "step").what


def test_an_error_is_shown_without_a_traceback(agent, shell, capsys):
    result = shell.run_cell("%agent goto 99")
    out = capsys.readouterr()
    assert isinstance(result.error_in_exec, nb.ExecutionError)
    assert "Traceback" not in out.out + out.err
    assert "X111" in out.out + out.err


def test_help_describes_one_verb(agent, capsys):
    agent("help new")
    out = capsys.readouterr().out
    assert out.startswith("%agent new [NAME] [as VARIABLE] key=value...: ")
    assert "declares the input as text" in out
    assert "did you mean 'step'" in wrong(agent, "help stepp").do


def test_every_verb_shows_its_usage():
    for name, verb in VERBS.items():
        assert verb.description.startswith(f"%agent {name}"), name
        assert set(verb.completes) <= set(SORTS)


LOADING = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
shell.run_line_magic("load_ext", "agentnb")
new = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(new & {"pandas", "numpy", "ipywidgets", "anywidget", "graphviz", "sqlalchemy", "nest_asyncio"}))
shell.history_manager.end_session()
"""


def test_loading_the_extension_only_registers_magics():
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_unloading_the_extension_keeps_only_variables(shell, agent):
    agent("step")
    session = shell.user_ns["session"]
    shell.run_line_magic("unload_ext", "agentnb")
    for find in (shell.find_line_magic, shell.find_cell_magic):
        assert (find("agent"), find("recipe")) == (None, None)
    assert "step" not in complete(shell, "%agent ste")
    assert shell.user_ns["session"] is session
    shell.run_line_magic("load_ext", "agentnb")
    assert shell.run_line_magic("agent", "step") == "paused after step 2, next add"
    assert complete(shell, "%agent ste") == ["step"]
    shell.run_line_magic("reload_ext", "agentnb")
    assert complete(shell, "%agent ste") == ["step"]
