"""Packs agentnb and what it needs into one zip for Pyodide, from this environment, without compiled modules.

rpds has no wheel outside of Pyodide's own index and is stubbed (see stubs/); numpy and pandas are left out.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Set as AbstractSet
from importlib import metadata
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent
STUBS = Path(__file__).parent / "stubs"
ABSENT = {"numpy", "pandas", "rpds-py"}
COMPILED = {"pydantic-core"}  # it has a wheel for Pyodide
# What IPython needs for its terminal and ipywidgets for its front end, which are not used here.
UNUSED = {"psutil", "greenlet", "pexpect", "ptyprocess", "jedi", "widgetsnbextension", "jupyterlab-widgets"}
PLATFORM = ["pyemscripten_2026_0_wasm32", "any"]


def needed(name: str, found: dict[str, metadata.Distribution], unused: AbstractSet[str] = UNUSED) -> None:
    """Add a distribution and what it requires on Emscripten to `found`."""
    key = name.lower().replace("_", "-").replace(".", "-")
    if key in found or key in ABSENT | COMPILED | unused:
        return
    found[key] = distribution = metadata.distribution(name)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    environment = {**default_environment(), "sys_platform": "emscripten", "platform_system": "Emscripten",
                   "platform_machine": "wasm32", "extra": ""}  # fmt: skip
    for text in project["dependencies"] if key == "agentnb-kit" else distribution.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            needed(requirement.name, found, unused)


def pack(target: Path, scratch: Path) -> None:
    """Write the zip; the wheel of pydantic-core comes from the package index."""
    results: dict[str, metadata.Distribution] = {}
    needed("agentnb-kit", results)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, distribution in results.items():
            for file in distribution.files or ():
                path = Path(str(distribution.locate_file(file)))
                if ".." in file.parts or "__pycache__" in file.parts or path.suffix in {".so", ".pth", ".pyc"}:
                    continue
                if name != "agentnb-kit" or "dist-info" in str(file):
                    archive.write(path, str(file))
        for folder, inside in ((ROOT / "agentnb", "agentnb"), (STUBS, "")):
            for path in folder.rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, str(Path(inside) / path.relative_to(folder)))
    wheel = wheel_of_pydantic_core(scratch)
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))


def wheel_of_pydantic_core(folder: Path) -> Path:
    """Download the wheel for Pyodide into a folder; return it."""
    version = metadata.version("pydantic-core")
    platforms = [word for platform in PLATFORM for word in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", *platforms,
               "--python-version", "3.14", "--implementation", "cp", "--abi", "cp314", "-d", str(folder),
               f"pydantic-core=={version}"]  # fmt: skip
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("pydantic_core-*.whl")
    return wheel


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
