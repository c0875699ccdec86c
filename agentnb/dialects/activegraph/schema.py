"""The recipe of some behaviors: each is a listening node, and events lead from one to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from agentnb.dialects.activegraph.errors import RegistrationError
from agentnb.dialects.activegraph.parts.approvals import Approvals
from agentnb.dialects.activegraph.parts.behavior_budgets import BudgetedMatcher
from agentnb.dialects.activegraph.parts.delivery import make_performer
from agentnb.dialects.activegraph.parts.emitted_types import find_emitted_events
from agentnb.dialects.activegraph.parts.matching import ANY, Matcher
from agentnb.errors import Place, Problem
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region


def make_recipe(behaviors: Sequence[Any], config: Any = None, name: str = "behaviors", since: int = -1) -> Recipe:
    """Return the recipe of some behaviors.

    Args:
        config: their shared configuration: a frame, a policy, a model.
        since: the number of the first event that they get; default: they do not listen.

    R329: two behaviors have the same name, so a run could not tell them apart.

    Raises:
        RegistrationError: R329, two of them have the same name.
    """
    names = [behavior.name for behavior in behaviors]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise RegistrationError(
            Problem("R329", f"two behaviors have the name {twice!r}", f"behavior {twice!r}",
                    "a step is identified by its behavior, so a run could not tell them apart",
                    "rename one of them, or call clear_registry() before registering them again")
        )  # fmt: skip
    matcher = (BudgetedMatcher if any(behavior.budget for behavior in behaviors) else Matcher)(behaviors, since)
    nodes = {behavior.name: _make_node(behavior, config) for behavior in behaviors}
    nothing: MappingProxyType[str, Any] = MappingProxyType({})
    return Recipe(
        name,
        "activegraph",
        MappingProxyType(nodes),
        tuple(_iter_event_edges(behaviors)),
        (),
        inputs=nothing,
        regions=MappingProxyType({ROOT: Region(ROOT, (), name)}),
        init=nothing,
        limits=nothing,
        reactive=matcher,
        approvals=Approvals(config),
        meta=MappingProxyType({"about": {"behaviors": list(nodes)}, "events": find_emitted_events(behaviors)}),
    )


def _make_node(behavior: Any, config: Any) -> Node:
    params: dict[str, Any] = {
        "deliver": make_performer(behavior, config),
        "function": getattr(behavior, "handler", None) or behavior.fn,
    }
    names = ("where", "view_spec", "pattern", "activate_after", "relation_type", "description", "model")
    params |= {word: value for word in names if (value := getattr(behavior, word, None))}
    kinds = {"relation": "relation_behavior", "llm": "llm_behavior"}
    label = f"{behavior.name}\non {', '.join(behavior.on) or 'any event'}"
    kind, frozen = kinds.get(behavior.kind, "behavior"), MappingProxyType(params)
    return Node(behavior.name, kind, label, params=frozen, on=tuple(behavior.on) or (ANY,), place=_find_place(behavior))


def _find_place(behavior: Any) -> Place:
    """Return where a behavior is written: its function's first line."""
    code = getattr(getattr(behavior, "handler", None) or behavior.fn, "__code__", None)
    path = f"behaviors[{behavior.name!r}]"
    return Place("<behaviors>", path=path) if code is None else Place(code.co_filename, code.co_firstlineno, 1, path)


def _iter_event_edges(behaviors: Sequence[Any]) -> Iterator[Edge]:
    """Yield the events that may lead from one behavior to another: from what it declares to create to its listeners."""
    for source in behaviors:
        for type_ in _list_emitted_types(source):
            for target in behaviors:
                if type_ in target.on and _accepts(target, source):
                    yield Edge(source.name, target.name, "event", condition=type_, place=_find_place(source))


def _list_emitted_types(source: Any) -> list[str]:
    created = ["object.created"] if source.creates else []
    failed = [f"behavior.{how}" for how in ("failed", "completed")]
    return [*created, *failed]


def _accepts(target: Any, source: Any) -> bool:
    types = (target.where or {}).get("object.type")
    return types is None or not isinstance(types, str) or not source.creates or types in source.creates


__all__ = ["make_recipe"]
