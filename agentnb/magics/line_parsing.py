"""Parsing of the arguments of `%agent`, and the errors for invalid ones."""

from __future__ import annotations

import shlex

from agentnb.errors import AgentNbError, ExecutionError, Problem


def make_argument_error(what: str, where: str, why: str, do: str) -> AgentNbError:
    """U401: the arguments of a magic are invalid, or what they name does not exist."""
    return ExecutionError(Problem("U401", what, where, why, do))


def split(line: str) -> list[str]:
    """Split a line as a shell does; an unmatched quote is part of its word."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def check_variable(name: str, where: str) -> str:
    """Return a name if it is a valid variable name.

    Raises:
        ExecutionError: U401, it is not.
    """
    if not name.isidentifier():
        raise make_argument_error(f"{name!r} cannot be a variable", where, "the result is stored in a variable",
                    "use a name of letters, digits and _")  # fmt: skip
    return name


def split_name(args: list[str], default: str, verb: str) -> tuple[str, str]:
    """Return the text before `as`, and the variable after it.

    Raises:
        ExecutionError: U401, the text is empty, or the variable name is invalid.
    """
    target = default
    if "as" in args[1:]:
        at = args.index("as", 1)
        target, args = " ".join(args[at + 1 :]), args[:at]
    return require_text(args, verb, "a name"), check_variable(target, f"%agent {verb}")


def require_text(args: list[str], verb: str, what: str) -> str:
    """Return the words as one text.

    Raises:
        ExecutionError: U401, there are no words.
    """
    if not args:
        raise make_argument_error(
            f"{verb} needs {what}", f"%agent {verb}", "the text could not be parsed", f"see %agent help {verb}"
        )
    return " ".join(args)


def parse_number(args: list[str], default: int | None, verb: str) -> int:
    """Return the number in the words; `default` if there are no words.

    Raises:
        ExecutionError: U401, it is not a number from 0 on.
    """
    text = args[0] if args else ""
    if not text and default is not None:
        return default
    if not text.isdecimal():
        raise make_argument_error(f"{text!r} is not a step number", f"%agent {verb} {text}",
        f"{verb} requires a number",
                    f"write for example %agent {verb} 3")  # fmt: skip
    return int(text)
