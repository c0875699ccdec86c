"""A folder of recipes for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_files import RECIPE, SCRIPT


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with a recipe, a broken one, one that never ends, and a script; it is the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("refunds.yaml").write_text(RECIPE)
    Path("broken.yaml").write_text(RECIPE.replace("target: sort", "target: srot"))
    Path("endless.yaml").write_text(RECIPE + "    - {source: close, target: read}\n")
    Path("script.yaml").write_text(SCRIPT)
    return tmp_path
