"""The command `agentnb`: it parses arguments, calls `load` and `Session`, and prints the results.

With `--json` each command prints exactly one JSON document on stdout, even on errors; these are its `problems`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout

from agentnb.cli.arguments import ArgumentsError, make_parser
from agentnb.cli.output import Pipe, refuse
from agentnb.errors import AgentNbError, Problem

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: `agentnb --help` lists them."""
    with redirect_stdout(Pipe(sys.stdout)):
        try:
            return _run_command(argv)
        finally:
            sys.stdout.flush()


def _run_command(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    try:
        args = make_parser().parse_args(words[:cut])
    except ArgumentsError as error:
        if "--json" not in words[:cut]:
            error.parser.print_usage(sys.stderr)
        refuse(error.problems, as_json="--json" in words[:cut])
        raise SystemExit(2) from None
    args.rest = words[cut + 1 :]
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
            what=f"{str(error.filename)!r} cannot be used: {error.strerror}",
            where=f"agentnb {args.command}",
            why="the operating system refused access",
            do="use another path, or fix its permissions",
        )
        return refuse([problem], as_json=args.json)
    except KeyboardInterrupt:
        if args.json and args.command != "lab":  # on Ctrl-C no document is needed; lab has already printed its own
            where = f"agentnb {args.command}"
            refuse([Problem("U907", "interrupted", where, "Ctrl-C was pressed", "call it again")], as_json=True)
        return 130
    return code


def _print_warning(message: Warning | str, *_where: object, **_more: object) -> None:
    """Print a warning for users, without the source line that it came from."""
    print(message, file=sys.stderr)
