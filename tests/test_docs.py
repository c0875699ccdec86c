"""test_docs: what the README shows can be run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readmes_code_runs():
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 1
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert names["session"].status == "finished"
    newton = names["nb"].Session(names["nb"].load(names["graph"]), {"x": 1.0, "n": 2})
    newton.run()
    assert newton.status == "finished"
    assert abs(newton.board["x"] ** 2 - 2) < 1e-9


def test_the_readme_names_no_file_that_is_not_there():
    links = re.findall(r"(?:\]\(|srcset=\"|src=\")([^)\"#]+)", README.read_text(encoding="utf-8"))
    missing = [link for link in links if not link.startswith("http") and not (README.parent / link).exists()]
    assert not missing


def test_each_rule_names_tests_that_are_there():
    folder = README.parent
    short = {
        name: f"tests/dialects/coreason/test_{name}.py" for name in ("api", "loader", "ways", "schema", "mistakes")
    }
    folders = {"agent": "dialects/agentruntime", "kinds": "kinds", "tools": "world/tools", "llm": "world/llm"}
    for word, inside in folders.items():
        files = sorted((folder / "tests" / inside).glob("test_*.py"))
        short |= {f"{word}/{file.stem.removeprefix('test_')}": f"tests/{inside}/{file.name}" for file in files}
    named = re.findall(r"([\w/.]+)::(test_\w+)", (folder / "docs" / "requirements.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    texts = {file: (folder / short.get(file, file)).read_text(encoding="utf-8") for file, _ in named}
    missing = [f"{file}::{test}" for file, test in named if not re.search(rf"def {test}\(", texts[file])]
    assert not missing
