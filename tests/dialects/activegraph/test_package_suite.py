"""The package's own tests, run against this dialect; `package/expected.txt` says which of them pass.

The tests are not part of this repository: ACTIVEGRAPH_SDIST_TESTS names the folder `tests` of the package's unpacked
source distribution. `.ci/run --full` downloads it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dialects.activegraph.package import aliases

HERE = Path(__file__).parent / "package"
REPOSITORY = Path(__file__).parents[3]
WHERE = "ACTIVEGRAPH_SDIST_TESTS"
AT_MOST = 1800  # seconds, for a suite that hangs


def expected() -> Iterator[tuple[str, str, str]]:
    """Yield each row: the outcome, the test or the file, and the reason."""
    for line in (HERE / "expected.txt").read_text(encoding="utf-8").splitlines():
        row, _, reason = line.partition("  # ")
        if not row.startswith("#"):
            outcome, name = row.split(maxsplit=1)
            yield outcome, name, reason


def test_each_row_is_one_test_with_an_outcome_and_a_failing_one_has_a_reason():
    rows = list(expected())
    names = [name for _, name, _ in rows]
    assert len(names) == len(set(names))
    assert {outcome for outcome, _, _ in rows} == {"pass", "differs", "out"}
    assert [name for outcome, name, reason in rows if (outcome == "pass") is bool(reason)] == []
    assert sum(outcome == "pass" for outcome, _, _ in rows) >= 340


def test_a_reason_that_names_a_decision_names_an_existing_one():
    numbers = {reason.rpartition("decision ")[2] for _, _, reason in expected() if "decision " in reason}
    known = {path.name[:4] for path in (REPOSITORY / "docs" / "decisions").iterdir()}
    assert numbers <= known


def test_the_aliases_of_the_package_exist():
    assert all(value is not None for value in aliases.renamed().values())


@pytest.mark.skipif(WHERE not in os.environ, reason=f"{WHERE} names no folder: the package's tests are not here")
def test_the_tests_of_the_package_have_the_recorded_outcomes(tmp_path):
    shutil.copytree(os.environ[WHERE], tmp_path / "tests")
    (tmp_path / "tests" / "__init__.py").touch()
    shutil.copy(HERE / "aliases.py", tmp_path / "conftest.py")
    shutil.copy(HERE / "helpers.py", tmp_path / "tests" / "_llm_helpers.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  postgres\n  slow\n", encoding="utf-8")
    rows = list(expected())
    files = sorted({name.partition("::")[0] for _, name, _ in rows if "::" in name})
    # Theirs is the first `tests` on the path: `-m pytest` puts the folder before PYTHONPATH.
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "CI": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", "ignore",
               "--continue-on-collection-errors", *(f"tests/{file}" for file in files)]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
                          timeout=AT_MOST)  # fmt: skip
    assert (tmp_path / "outcomes.json").exists(), done.stdout[-3000:] + done.stderr[-3000:]
    outcomes = json.loads((tmp_path / "outcomes.json").read_text(encoding="utf-8"))
    lost = [name for outcome, name, _ in rows if outcome == "pass" and outcomes.get(name) != "pass"]
    assert lost == [], done.stdout[-20_000:]
