"""cli: the command `agentnb`. Thin: it reads words, calls `load` and `Session`, and prints what they say.

With `--json` each command prints one JSON document on stdout, whatever happens; what went wrong is its `problems`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agentnb.cli.printed import refuse
from agentnb.cli.words import WrongWords, parser_of_all
from agentnb.errors import AgentNbError, Problem

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 well, 1 a problem, 2 wrong words, 3 out of budget, 4 waiting."""
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    try:
        args = parser_of_all().parse_args(words[:cut])
    except WrongWords as error:
        if "--json" not in words[:cut]:
            error.parser.print_usage(sys.stderr)
        refuse(error.problems, as_json="--json" in words[:cut])
        raise SystemExit(2) from None
    args.rest = words[cut + 1 :]
    try:
        code: int = args.act(args)
    except AgentNbError as error:
        return refuse(error.problems, as_json=args.json)
    except OSError as error:
        problem = Problem(
            code="U902",
            what=f"{str(error.filename)!r} cannot be used here: {error.strerror}",
            where=f"agentnb {args.command}",
            why="the operating system refuses it",
            do="name another place, or mend this one",
        )
        return refuse([problem], as_json=args.json)
    except KeyboardInterrupt:
        if args.json and args.command != "lab":  # who presses Ctrl-C knows; lab has printed its document
            where = f"agentnb {args.command}"
            refuse([Problem("U907", "it was interrupted", where, "Ctrl-C was pressed", "call it again")], as_json=True)
        return 130
    return code
