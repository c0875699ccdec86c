"""The parts of the reference that are made from the code: options of commands, and verbs of %agent."""

from __future__ import annotations

import argparse
import os
import re

from agentnb.cli.arguments import make_parser
from agentnb.magics.verbs import VERBS


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command."""
    (found,) = (action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    return dict(found.choices)


def options(name: str) -> str:
    """Return the help of a command, without the exit codes, which are the same for all."""
    os.environ["COLUMNS"] = "100"
    return "```text\n" + commands()[name].format_help().partition("exit codes:")[0].strip() + "\n```"


def verbs() -> str:
    """Return the verbs of %agent as a table."""
    rows = [verb.description.splitlines()[0].partition(": ") for verb in VERBS.values()]
    return "\n".join(["| verb | does |", "|---|---|", *(f"| `{form}` | {about} |" for form, _, about in rows)])


def filled(markdown: str) -> str:
    """Return a page with what the comments `options: COMMAND` and `verbs` stand for."""
    markdown = re.sub(r"<!-- options: (\w+) -->", lambda found: options(found[1]), markdown)
    return markdown.replace("<!-- verbs -->", verbs())
