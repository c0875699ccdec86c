"""`agentnb lab` starts JupyterLab on copies of the notebooks, with the tour open."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from agentnb.cli.output import print_json
from agentnb.distribution import NAME
from agentnb.errors import AgentNbError, Problem

PACKAGE = Path(__file__).parent.parent
TOUR = "00_tour.ipynb"
_RERUN = "AGENTNB_LAB_RERUN"  # set for the second run, which must not start a third


def run_lab(args: argparse.Namespace) -> int:
    """Replace this process by JupyterLab, with the tour open."""
    if importlib.util.find_spec("jupyterlab") is None:
        if again := _build_command_with_jupyter(args):
            print("agentnb: adding JupyterLab to this temporary environment", file=sys.stderr, flush=True)
            return _become(again, {**os.environ, _RERUN: "1"})
        problem = Problem(
            code="U901",
            what="'agentnb lab' requires JupyterLab, which is not installed",
            where=sys.prefix,
            why="JupyterLab is an optional dependency",
            do='run: pip install "agentnb-kit[lab]"; or, without installing: uvx --from "agentnb-kit[lab]" agentnb lab',
        )
        raise AgentNbError(problem)
    folder = _prepare_notebooks(args.folder, reset=args.reset)
    command = [
        *(sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"),
        f"--LabApp.default_url=/lab/tree/{TOUR}",  # the browser's first page, and the printed address
        *("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
        *(["--no-browser"] if args.no_browser or not _has_screen() else []),
        *(["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []),
        *args.rest,
    ]
    # Default settings, which a user's own override: no prompt about news, no check for updates.
    paths = [str(PACKAGE / "lab"), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    if args.json:
        print_json({"folder": str(folder), "notebook": TOUR, "command": command})
    else:
        print(f"agentnb: the tour is {folder / TOUR}", flush=True)
    return _become(command, {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)})


def _build_command_with_jupyter(args: argparse.Namespace) -> list[str] | None:
    """Return the command that runs `agentnb lab` with its extra in a temporary environment, as this one is.

    `uvx --from agentnb-kit agentnb lab` and the same with pipx run in environments that lie in a cache and belong to
    no user, so another one can take their place. In all others, None is returned: what is installed there is the
    user's business.
    """
    prefix = Path(sys.prefix)
    is_temporary = any((folder / "CACHEDIR.TAG").is_file() for folder in prefix.parents)
    if not is_temporary or _RERUN in os.environ:
        return None
    distribution = importlib.metadata.distribution(NAME)
    origin = json.loads(distribution.read_text("direct_url.json") or "{}").get("url")  # None: from the package index
    package = f"{NAME}[lab] @ {origin}" if origin else f"{NAME}[lab]=={distribution.version}"
    command = [
        *("agentnb", "lab", *([str(args.folder)] if args.folder else [])),
        *(f"--{name.replace('_', '-')}" for name in ("reset", "no_browser", "json") if getattr(args, name)),
        *(["--", *args.rest] if args.rest else []),
    ]
    pipx = shutil.which("pipx")
    if pipx and (prefix / "pipx_metadata.json").is_file():
        return [pipx, "run", "--spec", package, *command]
    if uv := os.environ.get("UV"):  # uv tells the programs that it starts where it is
        return [uv, "tool", "run", "--from", package, *command]
    return None


def _prepare_notebooks(folder: Path | None, *, reset: bool) -> Path:
    """Return the folder to open, into which missing notebooks are copied; with `reset`, all are, as they were.

    The originals are never opened, so that running them does not change a clone.
    """
    clone = PACKAGE.parent / "notebooks"
    source = clone if (clone / TOUR).exists() else PACKAGE / "notebooks"
    target = (folder or Path("agentnb-notebooks")).resolve()
    target.mkdir(parents=True, exist_ok=True)
    for notebook in source.glob("*.ipynb"):
        if target != source.resolve() and (reset or not (target / notebook.name).exists()):
            shutil.copy(notebook, target)
    return target


def _has_screen() -> bool:
    """Return True if a browser can open a window; otherwise JupyterLab would open one in the terminal, or complain."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))


def _become(command: list[str], env: Mapping[str, str]) -> int:
    sys.stdout.flush()
    if sys.platform != "win32":
        os.execve(command[0], command, env)  # so that Ctrl-C and signals reach JupyterLab itself
    return subprocess.call(command, env=dict(env))  # exec on Windows would return to the prompt at once
