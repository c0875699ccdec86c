"""The command `agentnb` as a whole; what each of its words does is tested in `tests/cli`."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from agentnb import cli


@pytest.mark.starts_programs
def test_the_command_and_the_module_are_the_same():
    out = subprocess.run([sys.executable, "-m", "agentnb", "--version"], capture_output=True, text=True, check=True)
    assert out.stdout == f"agentnb {version('agentnb-kit')}\n"


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("lab", "check", "run", "draw"))


@pytest.mark.parametrize("name", ["lab", "check", "run", "draw"])
def test_every_command_has_json(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    assert "--json" in capsys.readouterr().out
