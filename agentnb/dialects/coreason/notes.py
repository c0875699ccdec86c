"""notes: what a coreason recipe asks for that a run will not do, and what keeps it from being published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentnb.errors import Problem
from agentnb.recipe.words import listed

if TYPE_CHECKING:
    from agentnb.dialects.coreason.mistakes import Written
    from agentnb.dialects.coreason.schema import RecipeDefinition, RecipeNode

_SHOWN_ONLY = ("guardrails", "identity", "compliance")
_ON_NODES = ("collaboration", "recovery", "reasoning")


def notes(definition: RecipeDefinition, written: Written) -> Iterator[Problem]:
    """Yield every note on a recipe that is well-formed."""
    yield from _not_enforced(definition, written)
    yield from _unready(definition, written)
    yield from _scenarios(definition, written)
    yield from _kept_nowhere(definition, written)


def _not_enforced(definition: RecipeDefinition, written: Written) -> Iterator[Problem]:
    """R127: a part of the recipe is read and shown, and nothing enforces it."""
    for word in _SHOWN_ONLY:
        if getattr(definition, word) is not None:
            yield _shown_only(word, str(written.place((word,), key=True)), "")
    for word in _ON_NODES:
        asking = [(n, node) for n, node in enumerate(definition.topology.nodes) if _asks(node, word)]
        if asking:
            place = written.place(("topology", "nodes", asking[0][0], word), key=True)
            yield _shown_only(word, str(place), f" at {listed(node.id for _, node in asking)}")


def _asks(node: RecipeNode, word: str) -> bool:
    """Return whether a node asks for something that is not done. A way to a fallback is: it is an edge."""
    if word == "reasoning":
        return node.reasoning is not None and node.reasoning.strategy != "none"
    if word == "recovery":
        recovery = node.recovery
        return recovery is not None and (
            bool(recovery.max_retries) or recovery.behavior in {"continue_with_default", "ignore"}
        )
    return getattr(node, word) is not None


def _shown_only(word: str, where: str, at: str) -> Problem:
    return Problem("R127", f"{word!r}{at} is not enforced", where, "it is read and shown, and a run does not ask it",
                   "see to it yourself where it matters", "warning")  # fmt: skip


def _unready(definition: RecipeDefinition, written: Written) -> Iterator[Problem]:
    """R128: a recipe is published with an agent that nobody is."""
    if definition.status == "published":
        for number, fault in definition.unready():
            place = written.place(("topology", "nodes", number))
            yield Problem("R128", fault, str(place), "a published recipe names every agent",
                          "give it an agent_ref, or set the recipe's status to draft")  # fmt: skip


def _scenarios(definition: RecipeDefinition, written: Written) -> Iterator[Problem]:
    """R129: a scenario asks for code of its own to be run."""
    for number, scenario in enumerate(definition.tests):
        if scenario.validation_logic == "code_eval":
            place = written.place(("tests", number, "validation_logic"))
            yield Problem("R129", f"scenario {scenario.id!r} asks for 'code_eval', which is refused", str(place),
                          "no code that stands in a recipe is ever run",
                          "compare by exact_match, fuzzy or llm_judge")  # fmt: skip


def _kept_nowhere(definition: RecipeDefinition, written: Written) -> Iterator[Problem]:
    """R130: a recipe's state is to outlive the run."""
    state = definition.state
    if state is not None and state.persistence != "ephemeral":
        place = written.place(("state", "persistence"))
        yield Problem("R130", f"the state is to be kept in {state.persistence!r}", str(place),
                      "a run is kept only where its session is given a store",
                      "pass store=... to the Session, a file or a database URL", "warning")  # fmt: skip
