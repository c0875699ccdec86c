"""Makes a JupyterLite site work without a network: python lite.py SITE PYODIDE.

SITE was built by `.ci/lite`, PYODIDE is the folder of the npm package. Pyodide is served from the site, and the wheels
that a visitor's browser would fetch from its index are made from this environment, as `packing.py` does: without
compiled modules, `rpds` as a stub, and numpy and pandas as packages without content. Cells of the tour that need these
two print that they are missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

from tests.pyodide.packing import ABSENT, STUBS, needed, wheel_of_pydantic_core

KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
OF_THE_KERNEL = ("ipython", "comm", "jedi", "ipywidgets", "jupyterlab_widgets", "pexpect", "ptyprocess")


def localize(site: Path, pyodide: Path) -> None:
    """Let a site use Pyodide and wheels of its own."""
    shutil.copytree(pyodide, site / "pyodide", dirs_exist_ok=True)
    _lock(site / "pyodide")
    index = site / "pypi"
    for name, distribution in _distributions().items():
        _pack_wheel(index, name, distribution.version, distribution)
    for name in ABSENT:
        _pack_wheel(index, name, metadata.version(name), None)
    wheel_of_pydantic_core(index)
    _write_index(index)
    tour = site / "files" / "00_tour.ipynb"
    notebook = json.loads(tour.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        lines = "".join(cell["source"]).splitlines()
        if cell["cell_type"] == "code" and any("frames" in line for line in lines):
            body = [f"    {line}\n" for line in lines]
            cell["source"] = ["try:\n", *body, "except (ImportError, NameError) as error:\n", "    print(error)"]
    tour.write_text(json.dumps(notebook), encoding="utf-8")
    for file in (site / "jupyter-lite.json", *site.glob("*/jupyter-lite.json")):
        settings = json.loads(file.read_text(encoding="utf-8"))
        config = settings.setdefault("jupyter-config-data", {}).setdefault("litePluginSettings", {})
        kernel = config.setdefault(KERNEL, {})
        kernel |= {"pyodideUrl": "./pyodide/pyodide.mjs", "disablePyPIFallback": True}
        kernel.setdefault("pipliteUrls", ["./pypi/all.json"])
        if file.parent == site:
            file.write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _distributions() -> dict[str, metadata.Distribution]:
    results: dict[str, metadata.Distribution] = {}
    for name in ("agentnb-kit", *OF_THE_KERNEL):
        needed(name, results, unused=frozenset())
    del results["agentnb-kit"]  # the site has its wheel
    return results


def _pack_wheel(index: Path, name: str, version: str, distribution: metadata.Distribution | None) -> None:
    """Write a wheel of an installed distribution, without compiled modules; without a distribution, a stub."""
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(index / f"{stem}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        if distribution is None:
            archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            for file in (STUBS / name.removesuffix("-py")).rglob("*.py"):
                archive.write(file, str(file.relative_to(STUBS)))
        else:
            for file in distribution.files or ():
                path, inside = Path(str(distribution.locate_file(file))), str(file)
                if ".." in file.parts or "__pycache__" in file.parts or path.suffix in {".so", ".pth", ".pyc"}:
                    continue
                if ".dist-info/" not in inside:
                    archive.write(path, inside)
                elif path.name in {"METADATA", "entry_points.txt"}:
                    archive.write(path, f"{stem}.dist-info/{path.name}")
        names = [*archive.namelist(), f"{stem}.dist-info/RECORD"]
        archive.writestr(names[-1], "".join(f"{name},,\n" for name in names))


def _write_index(index: Path) -> None:
    listed: dict[str, dict[str, dict[str, list[dict[str, object]]]]] = {}
    for wheel in sorted(index.glob("*.whl")):
        name, version, *_ = wheel.name.split("-")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        row = {"filename": wheel.name, "url": f"./{wheel.name}", "digests": {"sha256": digest}, "yanked": False,
               "packagetype": "bdist_wheel", "python_version": "py3", "requires_python": None}  # fmt: skip
        listed.setdefault(name.replace("_", "-").lower(), {"releases": {}})["releases"][version] = [row]
    (index / "all.json").write_text(json.dumps(listed), encoding="utf-8")


def _lock(folder: Path) -> None:
    """Keep micropip alone in Pyodide's list of packages, with its wheel from the package index."""
    file = folder / "pyodide-lock.json"
    lock = json.loads(file.read_text(encoding="utf-8"))
    entry = lock["packages"]["micropip"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
               "--python-version", "3.14", "-d", str(folder), f"micropip=={entry['version']}"]  # fmt: skip
    subprocess.run(command, check=True)
    entry["sha256"] = hashlib.sha256((folder / entry["file_name"]).read_bytes()).hexdigest()
    lock["packages"] = {"micropip": entry}
    file.write_text(json.dumps(lock), encoding="utf-8")


if __name__ == "__main__":
    localize(Path(sys.argv[1]), Path(sys.argv[2]))
