"""cli: the command `agentnb`. Thin: it reads words, calls `load` and `Session`, and prints what they say.

With `--json` each command prints one JSON document on stdout, whatever happens; what went wrong is its `problems`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from copy import deepcopy
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from agentnb.board.secrets import masked, short
from agentnb.errors import AgentNbError, Problem, RecipeError, did_you_mean
from agentnb.recipe.words import typed
from agentnb.sources import read_file

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe
    from agentnb.session import Session
    from agentnb.trace.trace import SimulationStep

PACKAGE = Path(__file__).parent
QUICKSTART = "01_quickstart.ipynb"
EXITS = {"failed": 1, "exhausted": 3, "waiting": 4}
SCRIPT_KEYS = ("llm", "answers", "agents")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 well, 1 a problem, 2 wrong words, 3 out of budget, 4 waiting."""
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    try:
        args = _parser().parse_args(words[:cut])
    except _WrongWords as error:
        if "--json" not in words[:cut]:
            error.parser.print_usage(sys.stderr)
        _refuse(error.problems, as_json="--json" in words[:cut])
        raise SystemExit(2) from None
    args.rest = words[cut + 1 :]
    try:
        code: int = args.act(args)
    except AgentNbError as error:
        return _refuse(error.problems, as_json=args.json)
    except OSError as error:
        problem = Problem(
            code="U902",
            what=f"{str(error.filename)!r} cannot be used here: {error.strerror}",
            where=f"agentnb {args.command}",
            why="the operating system refuses it",
            do="name another place, or mend this one",
        )
        return _refuse([problem], as_json=args.json)
    except KeyboardInterrupt:
        if args.json and args.command != "lab":  # who presses Ctrl-C knows; lab has printed its document
            where = f"agentnb {args.command}"
            _refuse([Problem("U907", "it was interrupted", where, "Ctrl-C was pressed", "call it again")], as_json=True)
        return 130
    return code


class _WrongWords(AgentNbError):
    """U906: the words of a command are not understood.

    `parser` knows how they are used.
    """

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        self.parser = parser
        super().__init__(
            Problem("U906", message, parser.prog, "the command does not know these words", f"see {parser.prog} --help")
        )


class _Parser(argparse.ArgumentParser):
    """argparse's own, but for its complaints: they are problems like any other."""

    def error(self, message: str) -> NoReturn:
        raise _WrongWords(self, message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("agentnb", description="Step through agent graphs.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"agentnb {version('agentnb')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, act: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        added.add_argument("--json", action="store_true", help="print JSON, for programs")
        added.set_defaults(act=act)
        return added

    lab = command("lab", lab_command, "open JupyterLab on the quickstart; what follows `--` goes to JupyterLab")
    lab.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="where the notebooks are, or are copied to")
    lab.add_argument("--no-browser", action="store_true", help="print the address only")

    check = command("check", check_command, "print every problem of recipes; nothing of them runs")
    check.add_argument("files", nargs="+", metavar="FILE")

    run = command("run", run_command, "run a recipe, one line a step")
    run.add_argument("file", metavar="FILE")
    run.add_argument(
        *("--input", "-i"),
        dest="inputs",
        action="append",
        default=[],
        type=_key_value,
        metavar="KEY=VALUE",
        help="an input; text where it is declared so, else JSON where it is JSON, else text",
    )
    run.add_argument("--script", metavar="FILE", help="YAML: what the LLM says, what people answer, what agents return")
    run.add_argument("--trace", type=Path, metavar="OUT", help="write the trace as JSON")
    run.add_argument("--max-steps", type=int, metavar="N", help="the budget of steps")

    draw = command("draw", draw_command, "draw a recipe")
    draw.add_argument("file", metavar="FILE")
    draw.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="a .svg, .png, .dot or .mmd file")
    return parser


def _key_value(word: str) -> tuple[str, str]:
    key, sign, text = word.partition("=")
    if not (key and sign):
        raise argparse.ArgumentTypeError(f"{word!r} is not of the form KEY=VALUE")
    return key, text


# ------------------------------------------------------------------------------------------------------------------ lab


def lab_command(args: argparse.Namespace) -> int:
    """Become JupyterLab, with the quickstart open."""
    if importlib.util.find_spec("jupyterlab") is None:
        problem = Problem(
            code="U901",
            what="'agentnb lab' needs JupyterLab, which is not installed",
            where=sys.prefix,
            why="Jupyter is an extra: agentnb runs without it",
            do='run: pip install "agentnb[lab]"',
        )
        raise AgentNbError(problem)
    folder = _notebooks(args.folder)
    command = [
        *(sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"),
        f"--LabApp.default_url=/lab/tree/{QUICKSTART}",  # the browser's first page, and the address that is printed
        *("--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
        *(["--no-browser"] if args.no_browser or not _has_screen() else []),
        *(["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []),
        *args.rest,
    ]
    # Settings of ours that a user's own overrule: no question about news, no look for updates.
    paths = [str(PACKAGE / "lab"), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    if args.json:
        _print_json({"folder": str(folder), "notebook": QUICKSTART, "command": command})
    else:
        print(f"agentnb: the quickstart is {folder / QUICKSTART}", flush=True)
    return _become(command, {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)})


def _notebooks(folder: Path | None) -> Path:
    """Return the folder to open: the clone's own, else one that gets a copy of each notebook that it lacks."""
    clone = PACKAGE.parent / "notebooks"
    source = clone if (clone / QUICKSTART).exists() else PACKAGE / "notebooks"
    if folder is None and source == clone:
        return clone
    target = (folder or Path("agentnb-notebooks")).resolve()
    target.mkdir(parents=True, exist_ok=True)
    for notebook in source.glob("*.ipynb"):
        if not (target / notebook.name).exists():
            shutil.copy(notebook, target)
    return target


def _has_screen() -> bool:
    """Say whether a browser could show itself; else JupyterLab would open one inside the terminal, or complain."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))


def _become(command: list[str], env: Mapping[str, str]) -> int:
    sys.stdout.flush()
    if sys.platform != "win32":
        os.execve(command[0], command, env)  # so that Ctrl-C and a kill reach JupyterLab itself
    return subprocess.call(command, env=dict(env))  # exec on Windows would give the prompt back at once


# ----------------------------------------------------------------------------------------------------- check, draw, run


def check_command(args: argparse.Namespace) -> int:
    """Print every problem of every file; 1 if any is an error."""
    from agentnb.load import load

    found: dict[str, list[Problem]] = {}
    for file in args.files:
        try:
            found[file] = load(file).check()
        except RecipeError as error:
            found[file] = list(error.problems)
    errors = sum(problem.severity == "error" for problems in found.values() for problem in problems)
    if args.json:
        _print_json({"ok": not errors, "files": {file: list(map(asdict, rows)) for file, rows in found.items()}})
    else:
        for file, problems in found.items():
            _print_all(problems)
            print(f"{file}: {_count(problems)}")
    return 1 if errors else 0


def _count(problems: Sequence[Problem]) -> str:
    parts = []
    for severity in ("error", "warning"):
        number = sum(problem.severity == severity for problem in problems)
        if number:
            parts.append(f"{number} {severity}{'s' if number > 1 else ''}")
    return ", ".join(parts) or "no problems"


def draw_command(args: argparse.Namespace) -> int:
    """Write a recipe's drawing in the form that the file's suffix names."""
    from agentnb.load import load

    recipe = load(args.file)
    recipe.draw().save(args.output)
    if args.json:
        _print_json({"recipe": recipe.name, "nodes": len(recipe.nodes), "output": str(args.output)})
    else:
        print(f"{args.output}: {len(recipe.nodes)} nodes of {recipe.name!r}")
    return 0


def run_command(args: argparse.Namespace) -> int:
    """Run a recipe to where it stops, a line a step, then the board."""
    from agentnb.load import load
    from agentnb.session import Session

    recipe = load(args.file)
    budget = None if args.max_steps is None else {"max_steps": args.max_steps}
    inputs = {key: typed(text, recipe.inputs.get(key)) for key, text in args.inputs}
    # What nodes print themselves is no part of the document.
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        session = Session(recipe, inputs, budget=budget, **_script(args.script))
        if not args.json:
            session.subscribe(lambda step: print(_line(step), flush=True))
        session.run()
    if args.trace:
        session.trace.to_json(args.trace)
    problems = [_unanswered(recipe, session)] if session.status == "waiting" else []
    if args.json:
        _print_json(_told(session, problems))
    else:
        _print_end(session)
        _print_all(problems, sys.stderr)
    return EXITS.get(session.status, 0)


def _script(file: str | None) -> dict[str, Any]:
    """Return what a script file gives a Session: who speaks for the LLM, for people and for agents."""
    if file is None:
        return {}
    source = read_file(Path(file))
    content = source.content or {}
    problems = list(source.problems)
    if not isinstance(content, dict):
        problems.append(
            Problem(
                code="U903",
                what=f"the script is a {type(content).__name__}, not a mapping",
                where=str(source.place()),
                why=f"a script has the keys {', '.join(SCRIPT_KEYS)}",
                do="write for example `answers: {NODE: [yes]}`",
            )
        )
        content = {}
    problems += (
        Problem(
            code="U904",
            what=f"a script has no key {key!r}",
            where=str(source.place((key,), key=True)),
            why=f"the keys of a script are: {', '.join(SCRIPT_KEYS)}",
            do=did_you_mean(key, SCRIPT_KEYS, f"remove {key!r}"),
        )
        for key in content
        if key not in SCRIPT_KEYS
    )
    if problems:
        raise RecipeError(*problems)
    agents = content.get("agents") or {}
    options = {"llm": content.get("llm"), "answers": content.get("answers"), "tools": dict(map(_fixed, agents.items()))}
    return {name: value for name, value in options.items() if value}


def _fixed(agent: tuple[str, Any]) -> tuple[str, Callable[..., Any]]:
    reference, output = agent
    return reference, lambda **_inputs: deepcopy(output)


# ------------------------------------------------------------------------------------------------------ what is printed


def _line(step: SimulationStep) -> str:
    kind = step.kind if step.phase == "run" else f"{step.kind} {step.phase}"
    told = step.error or ", ".join(f"{key} = {short(value, key)}" for key, value in step.outputs.items())
    return f"{step.step:>5}  {step.node_id:<20} {kind:<14} {step.seconds * 1000:>8.1f} ms  {told}".rstrip()


def _print_end(session: Session) -> None:
    print(f"\n{session.status} after {session.position} steps")
    width = max(map(len, session.board), default=0)
    for key, value in session.board.items():
        print(f"  {key:<{width}}  {short(value, key, width=100)}")


def _told(session: Session, problems: list[Problem]) -> dict[str, Any]:
    problems = problems or ([session.error] if session.error else [])
    return {
        "status": session.status,
        "steps": session.position,
        "current": session.current,
        "board": masked(dict(session.board)),
        "error": str(session.error) if session.error else None,
        "problems": list(map(asdict, problems)),
    }


def _unanswered(recipe: Recipe, session: Session) -> Problem:
    nodes = ", ".join(repr(pending.node) for pending in session.pending)
    return Problem(
        code="U905",
        what=f"{nodes} waits for a person",
        where=f"{recipe.name!r}, after step {session.position}",
        why="no answer is left in the script, and nobody can be asked here",
        do="write the answers into a YAML file, `answers: {NODE: [TEXT]}`, and pass it as --script FILE",
    )


def _refuse(problems: Sequence[Problem], *, as_json: bool) -> int:
    if as_json:
        _print_json({"problems": list(map(asdict, problems))})
    else:
        _print_all(problems, sys.stderr)
    return 1


def _print_all(problems: Sequence[Problem], file: TextIO | None = None) -> None:
    for problem in problems:
        print(problem, file=file)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str), flush=True)
