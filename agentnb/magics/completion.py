"""Completion of lines that begin with `%agent`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from agentnb.errors import AgentNbError
from agentnb.magics.verbs import VERBS
from agentnb.magics.workspace import Workspace
from agentnb.recipe.model import Recipe
from agentnb.samples import samples
from agentnb.session import Session


def _list_inputs(workspace: Workspace, args: list[str]) -> list[str]:
    """Return the inputs of the named recipe, or of the last one, without those already on the line."""
    names = [word for word in args[2:3] if "=" not in word and word != "as"]
    used = {word.partition("=")[0] for word in args}
    return [f"{key}=" for key in workspace.recipe("".join(names)).inputs if key not in used]


SORTS: Final[dict[str, Callable[[Workspace, list[str]], Iterable[str]]]] = {
    "verbs": lambda *_: VERBS,
    "samples": lambda *_: [row.name for row in samples()],
    "recipes": lambda bench, words: [] if len(words) > 2 else bench.of(Recipe),
    "inputs": _list_inputs,
    "sessions": lambda bench, _: bench.of(Session),
    "nodes": lambda bench, _: bench.session.recipe.nodes,
    "keys": lambda bench, _: bench.session.board,
    "broken": lambda bench, _: {row.node: 0 for row in bench.session.breakpoints if row.node is not None},
    "watched": lambda bench, _: bench.session.watches,
    "pending": lambda bench, _: [pending.id for pending in bench.session.pending],
    "speeds": lambda *_: ("full", "10", "3", "1"),
}


def complete(workspace: Workspace, line: str) -> list[str]:
    """Return the completions for the last word of a line, which may be empty."""
    args = line.split()
    typed = "" if line.endswith(" ") else args.pop() if len(args) > 1 else ""
    if len(args) <= 1:
        return [verb for verb in VERBS if verb.startswith(typed)]
    candidates: list[str] = []
    for sort in VERBS[args[1]].completes if args[1] in VERBS else ():
        try:
            candidates += SORTS[sort](workspace, args)
        except AgentNbError:
            continue  # there is no session yet, or the recipe does not exist
    return [name for name in candidates if name.startswith(typed)]
