"""The command `agentnb`: it parses arguments, calls `load` and `Session`, and prints the results.

With `--json` each command prints exactly one JSON document on stdout, even on errors; these are its `problems`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import TextIO, cast

from agentnb.cli.arguments import ArgumentsError, make_parser
from agentnb.cli.output import Output, print_all, refuse
from agentnb.errors import AgentNbError, Problem

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: `agentnb --help` lists them.

    U910: standard output cannot be written.

    Raises:
        SystemExit: the arguments are wrong, or ask for the help or a version.
    """
    output, messages = Output(sys.stdout), Output(sys.stderr)
    with redirect_stdout(cast("TextIO", output)), redirect_stderr(cast("TextIO", messages)):
        exits: SystemExit | None = None
        try:
            code = _run_command(argv)
        except SystemExit as end:
            exits, code = end, end.code if isinstance(end.code, int) else int(end.code is not None)
        output.flush()
        if output.failure is not None:
            print_all([_make_output_problem(output.failure)], sys.stderr)
            code = code or 1
        messages.flush()
    if exits is not None:
        raise SystemExit(code) from None
    return code


def _make_output_problem(error: OSError) -> Problem:
    """U910: standard output cannot be written."""
    return Problem("U910", f"the output cannot be written: {error.strerror or error}", "standard output",
                   "the command finished, but not all of its output was written",
                   "free some disk space, or redirect the output")  # fmt: skip


def _run_command(argv: Sequence[str] | None) -> int:
    argument_list = list(sys.argv[1:] if argv is None else argv)
    cut = argument_list.index("--") if "--" in argument_list else len(argument_list)
    try:
        args = make_parser().parse_args(argument_list[:cut])
    except ArgumentsError as error:
        if "--json" not in argument_list[:cut]:
            error.parser.print_usage(sys.stderr)
        refuse(error.problems, as_json="--json" in argument_list[:cut])
        raise SystemExit(2) from None
    args.rest = argument_list[cut + 1 :]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _print_warning
            code: int = args.act(args)
    except AgentNbError as error:
        return refuse(error.problems, as_json=args.json)
    except OSError as error:
        problem = Problem(
            code="U902",
            what=_describe_failure(error),
            where=f"agentnb {args.command}",
            why="the operating system denied access",
            do="use a path in an existing folder, fix its permissions, or free some disk space",
        )
        return refuse([problem], as_json=args.json)
    except KeyboardInterrupt:
        if args.json and args.command != "lab":  # on Ctrl-C no document is needed; lab has already printed its own
            where = f"agentnb {args.command}"
            refuse([Problem("U907", "interrupted", where, "Ctrl-C was pressed", "run the command again")], as_json=True)
        return 130
    return code


def _describe_failure(error: OSError) -> str:
    """U902: a file cannot be used."""
    reason = error.strerror or str(error) or type(error).__name__
    what = "a file" if error.filename is None else repr(str(error.filename))
    return f"{what} cannot be used: {reason}"


def _print_warning(message: Warning | str, *_where: object, **_more: object) -> None:
    """Print a warning for users, without the source line that it came from."""
    print(message, file=sys.stderr)
