"""Reads one value and chooses the next node by its text, otherwise the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.expressions.paths import format_path
from agentnb.kinds.context import find_oddity, make_strict
from agentnb.recipe.model import Node


def bind(node: Node, world: Any) -> Perform:
    """Return the function that chooses among `params["routes"]` by the value at `params["input_key"]`.

    With `params["cases"]` (pairs of a condition and a target) all targets whose condition holds are next, in their
    order and as often as they are listed; if there are none, the `default`, and without a default the node's edges. An
    empty target leads nowhere.

    In a parallel branch an empty target ends the branch; `params["meets"]` names the node that comes after it.
    """
    if "cases" in node.params:
        return _select_by_cases(node, world)
    path, routes, default = node.params["input_key"], node.params["routes"], node.params.get("default")
    path = (path,) if isinstance(path, str) else tuple(path)
    key, meets = format_path(path), node.params.get("meets", "")

    def perform(work: Work) -> Outcome:
        work.reads[path[0]] = None
        value = work.arg(path)
        value = None if value is ABSENT else value
        target = choose(routes, value, default)
        return Outcome(
            route=(target,) if target else (),
            value=value,
            thought=f"Router decision based on {key}={value}: Go to {target or _describe_end(meets)}",
            observation={"decision": target or meets or target, "value": value},
            inputs={key: value},
        )

    return perform


def _select_by_cases(node: Node, world: Any) -> Perform:
    cases = [(make_strict(condition, world.strict), target) for condition, target in node.params["cases"]]
    default = node.params.get("default")

    def perform(work: Work) -> Outcome:
        values = [condition(work.board) for condition, _ in cases]
        matched = [number for number, value in enumerate(values) if value]
        chosen = [cases[number][1] for number in matched] or ([default] if default is not None else None)
        targets = [target for target in chosen or () if target]
        conditions = ", ".join(cases[number][0].text for number in matched)
        why = f"{conditions} holds" if len(matched) == 1 else f"{conditions} hold" if matched else "no case holds"
        goes = f"go to {', '.join(targets)}" if targets else "go along the edges"
        return Outcome(
            route=None if chosen is None else targets,
            value=values,
            thought=" - ".join(filter(None, [f"{why}: {goes}", find_oddity(*(condition for condition, _ in cases))])),
            observation={"decision": targets, "cases": values},
        )

    return perform


def _describe_end(meets: str) -> str:
    return f"{meets}, where the branches meet" if meets else "the end"


def choose(routes: Mapping[str, str], value: Any, default: str | None) -> str | None:
    """Return the target for a value: its text is the route's key; True and False match in either case.

    None matches no key. Without a match it is the default; an empty target ends the run.
    """
    if value is None:
        return default
    if str(value) in routes:
        return routes[str(value)]
    if isinstance(value, bool):
        return routes.get(str(value).lower(), default)
    return default


KIND = Kind("router", bind, step_type="REASONING")
