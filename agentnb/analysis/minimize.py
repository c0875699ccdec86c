"""Minimize the inputs of a failing run by delta debugging.

The algorithm is ddmin (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 2002),
applied level by level, as required for structured inputs (Misherghi and Su, "HDD", ICSE 2006).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from agentnb.analysis.judging import Judge
from agentnb.arguments import plain_arguments
from agentnb.errors import AgentNbError, ExecutionError, Problem
from agentnb.recipe.model import Recipe
from agentnb.session import Session

Item = TypeVar("Item")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@plain_arguments
def minimize(
    recipe: Recipe, inputs: Mapping[str, Any], fails: Callable[[Session], Any], **session_options: Any
) -> dict[str, Any]:
    """Return the smallest inputs found with which a run still fails. `inputs` is not changed.

    Keys, list items and words of strings are removed, at every depth, until no single one of them can be removed.
    Inputs that cannot be run (a required one is missing), or for which `fails` raises, count as not failing. Each
    attempt is a run of the recipe, with its tools and models: pass fakes for those that must not be called so often.

    Args:
        recipe: the recipe to run.
        fails: called with each finished run; returns whether it shows the failure.
        session_options: as for a Session: llm, tools, budget ...

    Raises:
        ExecutionError: A112, the run with the original inputs does not fail; A118, `fails` raised for it.

    Example:
        >>> import agentnb as nb
        >>> import networkx as nx
        >>> graph = nx.DiGraph(name="sum", entry="add")
        >>> graph.add_node("add", function=lambda board: {"sum": sum(board["numbers"])})
        >>> nb.minimize(nb.load(graph), {"numbers": [4, 8, 15, 16, 23], "note": "x"}, lambda run: run.board["sum"] > 20)
        {'numbers': [15, 16]}
    """

    def still_fails(candidate: dict[str, Any]) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                session = Session(recipe, candidate, **session_options)
            except AgentNbError:
                return False
            session.run()
            return judge.is_right(session)

    smallest, judge = dict(inputs), Judge(fails, "nb.minimize()", "fails")
    shows = still_fails(smallest)
    judge.check()
    if not shows:
        raise ExecutionError(
            Problem("A112", "the run with these inputs does not fail", "nb.minimize()",
                    "fails(session) is false for it, so that nothing can be made smaller",
                    "pass inputs of a run for which fails(session) is true")
        )  # fmt: skip
    previous = None
    while previous != smallest:
        previous = smallest
        smallest = _shrink(smallest, still_fails)
    return smallest


def _shrink(value: Any, fails: Callable[[Any], bool]) -> Any:
    """Return a value without its removable parts: first its own parts, then the parts of each remaining one."""
    if isinstance(value, Mapping):
        pairs = ddmin(list(value.items()), lambda some: fails(dict(some)))
        remaining = dict(pairs)
        for key in list(remaining):
            remaining[key] = _shrink(remaining[key], lambda part, key=key: fails({**remaining, key: part}))  # type: ignore[misc]
        return remaining
    if isinstance(value, list):
        items = ddmin(value, fails)
        for at in range(len(items)):
            items[at] = _shrink(items[at], lambda part, at=at: fails([*items[:at], part, *items[at + 1 :]]))  # type: ignore[misc]
        return items
    if isinstance(value, str) and len(value) > 1:
        return "".join(ddmin(_WORDS.findall(value), lambda subset: fails("".join(subset))))
    return value


def ddmin(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Return a 1-minimal subset of items that still fails: no single item can be removed.

    Example:
        >>> ddmin(range(100), lambda kept: {7, 42} <= set(kept))
        [7, 42]
    """
    remaining, parts = list(items), 2
    if remaining and fails([]):
        return []
    while len(remaining) >= 2:
        size = max(1, len(remaining) // parts)
        chunks = [remaining[at : at + size] for at in range(0, len(remaining), size)]
        rests = [[item for other in chunks if other is not chunk for item in other] for chunk in chunks]
        smaller = next((chunk for chunk in chunks if len(chunks) > 2 and fails(chunk)), None)
        if smaller is not None:
            remaining, parts = smaller, 2
            continue
        rest = next((rest for rest in rests if fails(rest)), None)
        if rest is not None:
            remaining, parts = rest, max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(len(remaining), parts * 2)
    return remaining


__all__ = ["ddmin", "minimize"]
