from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.starts_programs

PROGRAM = """
import agentnb as nb
{imports}
recipe = nb.load(nb.samples("triage").text)
assert recipe.name == "triage"
assert [row.name for row in nb.dialects()][:2] == ["coreason", "agentruntime"]
assert "triage" in [row.name for row in nb.samples()]
import agentnb.dialects.coreason as coreason
assert nb.dialects.coreason is coreason
assert nb.load.__doc__ and nb.dialects.__doc__ and callable(nb.samples)
from agentnb import load, samples, dialects
from agentnb import run_scenarios
assert callable(run_scenarios) and run_scenarios is nb.run_scenarios
assert load is nb.load and samples is nb.samples and dialects is nb.dialects
"""
ORDERS = ["", "import agentnb.magics", "import agentnb.scenarios", "nb.dialects(); import agentnb.load"]


@pytest.mark.parametrize("imports", ORDERS)
def test_names_do_not_depend_on_the_import_order(imports):
    # Functions and modules go by the same names: importing a module shall not put it in the function's place.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(imports=imports)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error():
    import agentnb

    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        agentnb.lod  # noqa: B018  (asking is what is tried)
    assert set(agentnb.__all__) <= set(dir(agentnb))
    assert agentnb.__version__


def test_a_cockpit_opens_without_numpy_and_pandas():
    code = (
        "import sys; sys.modules |= {'numpy': None, 'pandas': None}; import agentnb as nb; "
        "session = nb.Session(nb.samples('triage'), {'ticket': 'x'}, answers=['approve']); session.step(); "
        "assert '<svg' in nb.Debugger(session).get_state()['svg']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_parts_of_the_other_project_called_agentnb_are_named(tmp_path):
    shutil.copytree(ROOT / "agentnb", tmp_path / "agentnb", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-c", "import agentnb; print(agentnb.__version__)"]
    alone = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "another project" not in alone.stderr
    (tmp_path / "agentnb" / "kernel").mkdir()
    (tmp_path / "agentnb" / "kernel" / "provisioner.py").touch()
    both = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "another project that is also called agentnb" in both.stderr
    assert "pip uninstall agentnb" in both.stderr
    assert both.stdout == alone.stdout
