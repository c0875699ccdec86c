"""test_page: what the page about logs shows can be run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from agentnb.dialects.activegraph.foreign.reading import read_runs
from tests.dialects.activegraph.foreign import programs

PAGE = Path(__file__).parents[4] / "docs" / "logs_of_activegraph.md"


def test_the_code_about_logs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["session"].board["task#1.data.status"] == "done"
    assert names["session"].back().board["task#1.data.status"] == "open"
    assert {run.run_id for run in read_runs("copy.db")} == {"first", "second"}
    programs.close(names["runtime"], names["again"])
