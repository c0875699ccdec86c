"""The arguments of the command `agentnb`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from agentnb.cli.check_and_draw import check_command, draw_command
from agentnb.cli.diff import run_diff
from agentnb.cli.export import FORMATS, export_command
from agentnb.cli.lab import run_lab
from agentnb.cli.mcp import run_mcp
from agentnb.cli.replay import replay_command
from agentnb.cli.run import run_command
from agentnb.cli.stored_runs import answer_command, fork_command, resume_command
from agentnb.cli.stores import TABLES, run_runs, trace_command
from agentnb.cli.versions import print_versions
from agentnb.distribution import get_version
from agentnb.errors import AgentNbError, Problem

RECIPE = "a recipe: a file, the name of a sample, or module:object, which is imported"
EXIT_CODES = """\
exit codes:
  0    success
  1    a problem: in a recipe, a file or a store; the run failed, the agent ended without success, a scenario failed,
       two runs differ (diff), a golden does not match (replay), the output cannot be written
  2    the command line is not understood
  3    the run has used up its budget
  4    the run waits for a person
  130  interrupted by Ctrl-C
"""


class ArgumentsError(AgentNbError):
    """U906: the arguments of a command are invalid.

    `parser` prints the usage.
    """

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        self.parser = parser
        super().__init__(
            Problem(
                "U906", message, parser.prog, "the command does not take these arguments", f"see {parser.prog} --help"
            )
        )


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are Problems."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentsError(self, message)


class _Versions(argparse.Action):
    """Print the versions, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and exit."""
        print_versions()
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    form = argparse.RawDescriptionHelpFormatter  # preserves the lines of the exit codes
    parser = _Parser(
        "agentnb", description="Step through agent graphs.", allow_abbrev=False, epilog=EXIT_CODES, formatter_class=form
    )
    parser.add_argument("--version", action="version", version=f"agentnb {get_version()}")
    parser.add_argument(
        "--versions", action=_Versions, nargs=0, help="print the versions and the platform, for a bug report"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name, help=about, description=about, allow_abbrev=False, epilog=EXIT_CODES, formatter_class=form
        )
        added.add_argument("--json", action="store_true", help="print JSON, for programs")
        added.set_defaults(act=run)
        return added

    lab = command(
        "lab", run_lab, "open JupyterLab on copies of the notebooks; arguments after `--` are passed to JupyterLab"
    )
    lab.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="the folder that the notebooks are copied to")
    lab.add_argument("--reset", action="store_true", help="copy them again: your changes to them are lost")
    lab.add_argument("--no-browser", action="store_true", help="print only the address")

    check = command("check", check_command, "print every problem of recipes, without running them")
    check.add_argument("files", nargs="+", metavar="FILE", help=RECIPE)
    _add_tools_option(check)

    run = command("run", run_command, "run a recipe and print one line per step; or run its scenarios, one line each")
    _add_run_options(run)

    draw = command("draw", draw_command, "draw a recipe")
    draw.add_argument("file", metavar="FILE", help=RECIPE)
    _add_tools_option(draw)
    draw.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="a .svg, .png, .dot or .mmd file")

    _add_stored_run_commands(command("runs", run_runs, "list the runs in a store, the newest first"))

    trace = command("trace", trace_command, "print what happened in a run")
    trace.add_argument("source", metavar="FILE_OR_URL", help="a trace as JSON, or a store")
    trace.add_argument("--run", metavar="RUN_ID", help="which run of the store (default: the one written last)")
    trace.add_argument("--table", choices=TABLES, default="steps", help="which table (default: steps)")
    trace.add_argument("-o", "--output", type=Path, metavar="OUT", help="write the trace as JSON too")

    diff = command("diff", run_diff, "print where two runs diverge, why, and everything that differs")
    diff.add_argument("a", metavar="A", help="a trace as JSON, or a store")
    diff.add_argument("b", metavar="B", help="the same, of the other run")
    diff.add_argument("--run-a", metavar="RUN_ID", help="which run of store A (default: the one written last)")
    diff.add_argument("--run-b", metavar="RUN_ID", help="which run of store B (default: the one written last)")
    diff.add_argument("-o", "--output", type=Path, metavar="OUT", help="draw both routes: .svg, .png, .dot or .mmd")

    export = command(
        "export", export_command, "write a run as an HTML page, a trace, a golden, tables, an event log or a diagram"
    )
    export.add_argument("source", metavar="FILE_OR_URL", help="a trace as JSON, a store, or another recording")
    export.add_argument("--run", metavar="RUN_ID", help="which run of the store (default: the one written last)")
    export.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help=f"a {', '.join(FORMATS)} file (default: SOURCE.html)"
    )
    export.add_argument("--redact", action="append", default=[], metavar="PATH",
                        help="a path to leave out of a golden: calls.NAME.result.id; may be repeated")  # fmt: skip
    _add_recorded_run_commands(command)

    mcp = command("mcp", run_mcp, "serve runs to a coding assistant, which debugs them (MCP on stdin and stdout)")
    mcp.add_argument(
        "stores",
        nargs="*",
        metavar="STORE",
        help="stores, recordings, or folders of them (default: this folder)",
    )
    mcp.add_argument(
        "--changes",
        action="store_true",
        help="allow it to run nodes, edit, answer and fork; the default is read-only",
    )
    mcp.add_argument("--recipe", metavar="RECIPE", help=f"{RECIPE}; stored runs are continued with it")
    mcp.add_argument("--script", metavar="FILE", help="YAML: the answers of the model and of people")
    mcp.add_argument(
        "--name", metavar="NAME", help="the name under which its changes are recorded (default: the client's own name)"
    )
    _add_tools_option(mcp)
    _add_world_options(mcp)
    return parser


def _add_stored_run_commands(runs: argparse.ArgumentParser) -> None:
    runs.add_argument("store", metavar="URL", help="a path, sqlite:///..., or postgresql://...")
    runs.add_argument("--recipe", metavar="NAME", help="only runs of the recipe with this name")
    runs.add_argument("--fingerprint", metavar="TEXT", help="only runs of this version of a recipe")
    runs.add_argument("--status", metavar="WORD", help="only runs with this status: finished, failed, waiting ...")
    runs.add_argument(
        "--since", metavar="TIME", help="only runs created at or after this time, as 2026-01-31T18:30; UTC"
    )
    runs.add_argument("--until", metavar="TIME", help="only runs created at or before this time; a date is a whole day")
    runs.add_argument("--contains", metavar="TEXT", help="only runs whose id or name contains this text")
    runs.add_argument("--limit", type=int, metavar="N", help="the maximum number of runs (default: all)")
    runs.add_argument("--after", metavar="RUN_ID", help="only runs listed after this one: the next page")


def _add_recorded_run_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands that continue and replay recorded runs."""
    resume = command("resume", resume_command, "continue a run of a store until it stops")
    answer = command(
        "answer", answer_command, "answer the question that a run of a store waits for, and continue the run"
    )
    fork = command("fork", fork_command, "fork a run of a store at a step, and run the fork")
    for one in (resume, answer, fork):
        one.add_argument("store", metavar="URL", help="a path, sqlite:///..., or postgresql://...")
        one.add_argument("file", metavar="RECIPE", help=RECIPE)
    answer.add_argument("value", metavar="VALUE", help="the answer; parsed as JSON if possible, otherwise text")
    answer.add_argument("--node", metavar="NODE", help="the waiting node to answer, or the path of a masked value")
    fork.add_argument("--at", type=int, metavar="STEP", help="the last shared step (default: the current one)")
    fork.add_argument("--edit", dest="edits", action="append", default=[], type=_parse_key_value, metavar="PATH=VALUE",
                      help="a value on the blackboard of the fork; may be repeated")  # fmt: skip
    for one in (resume, answer):
        one.add_argument("--take-over", action="store_true",
                         help="also continue a run that another host or container has claimed")  # fmt: skip
    for one in (resume, answer, fork):
        one.add_argument("--run", metavar="RUN_ID", help="which run of the store (default: the one written last)")
        one.add_argument("--script", metavar="FILE", help="YAML: the answers of the model and of people")
        one.add_argument("--trace", type=Path, metavar="OUT", help="write the trace as JSON")
        _add_tools_option(one)
        _add_world_options(one)

    replay = command("replay", replay_command, "replay goldens with a recipe, but no model; exit 1 if one differs")
    replay.add_argument("file", metavar="RECIPE", help=RECIPE)
    replay.add_argument("goldens", nargs="+", metavar="GOLDEN", help="a .jsonl file, or a folder of them")
    replay.add_argument("--holds", action="append", default=[], choices=("route", "values", "reads", "calls"),
                        help="what must match; may be repeated (default: route, values, calls)")  # fmt: skip
    _add_tools_option(replay)


def _add_world_options(run: argparse.ArgumentParser, model: argparse._ActionsContainer | None = None) -> None:
    (model or run).add_argument(
        "--llm", metavar="MODEL", help="provider:model, or a client or function as module:object"
    )
    run.add_argument("--tools", action="append", default=[], type=_parse_key_value, metavar="NAME=MODULE:OBJECT",
                     help="the function of a tool or an agent; may be repeated")  # fmt: skip


def _add_run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", metavar="FILE", help=RECIPE)
    _add_tools_option(run)
    model = run.add_mutually_exclusive_group()
    _add_world_options(run, model)
    model.add_argument("--live", action="store_true", help="use a real model: openai, anthropic or gemini, "
                       "whichever has its key in the environment")  # fmt: skip
    run.add_argument(
        *("--input", "-i"),
        dest="inputs",
        action="append",
        default=[],
        type=_parse_key_value,
        metavar="KEY=VALUE",
        help="an input; text if it is declared as text, otherwise parsed as JSON if possible",
    )
    run.add_argument("--emit", dest="events", action="append", default=[], type=_parse_key_value, metavar="TYPE=JSON",
                     help="an event for nodes that react to its type, and its payload; may be repeated")  # fmt: skip
    run.add_argument(
        "--script", metavar="FILE", help="YAML file with the answers of the model, of people and of agents"
    )
    run.add_argument("--trace", type=Path, metavar="OUT", help="write the trace as JSON")
    run.add_argument("--store", metavar="URL", help="store the run: a path, sqlite:///..., or postgresql://...")
    run.add_argument("--max-steps", type=int, metavar="N", help="the maximum number of steps")
    run.add_argument("--scenarios", action="store_true", help="run the recipe's own scenarios as its tests")
    run.add_argument(
        "--scenario",
        dest="only",
        action="append",
        default=[],
        metavar="ID",
        help="run only this scenario; may be repeated",
    )
    run.add_argument(
        "--chaos",
        action="append",
        default=[],
        type=_parse_key_value,
        metavar="KEY=VALUE",
        help="make calls slow or fail: latency_ms=200, error_rate=0.1, token_throttle=true; may be repeated",
    )
    run.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of the random numbers")


def _add_tools_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="MODULE_OR_FOLDER",
        help="a module prefix or a folder that tools may be imported from, besides the recipe's own folder; may be "
        "repeated",
    )


def _parse_key_value(word: str) -> tuple[str, str]:
    key, sign, text = word.partition("=")
    if not (key and sign):
        raise argparse.ArgumentTypeError(f"{word!r} is not of the form KEY=VALUE")
    return key, text
