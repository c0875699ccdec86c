from __future__ import annotations

import platform
import re

import pytest

from agentnb.cli import main


def test_versions_prints_what_a_bug_report_needs(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--versions"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert f"python: {platform.python_version()}" in output
    assert re.search(r"^  pandas: \d", output, re.MULTILINE)
    assert re.search(r"^  mcp \(mcp\): ", output, re.MULTILINE)
    assert re.search(r"^  dot: ", output, re.MULTILINE)
    assert re.search(r"^  tables of a store: \d+$", output, re.MULTILINE)


def test_versions_reports_missing_packages(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit):
        main(["--versions"])
    assert "dot: not found" in capsys.readouterr().out
