"""Reads one value and chooses the next node by its text, otherwise the default."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.expressions.paths import format_path
from agentnb.kinds.context import find_oddity, make_strict
from agentnb.recipe.descriptions import OTHERWISE
from agentnb.recipe.model import Node, RouteTarget


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
        chosen = match_route(routes, value)
        target = default if chosen is None else routes[chosen]
        return Outcome(
            route=(RouteTarget(target, OTHERWISE if chosen is None else chosen),) if target else (),
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
        chosen = [RouteTarget(cases[number][1], cases[number][0].text) for number in matched]
        if not matched and default is not None:
            chosen = [RouteTarget(default, OTHERWISE)]
        route = [to for to in chosen if to.node]
        targets = [to.node for to in route]
        conditions = ", ".join(cases[number][0].text for number in matched)
        why = f"{conditions} holds" if len(matched) == 1 else f"{conditions} hold" if matched else "no case holds"
        goes = f"go to {', '.join(targets)}" if targets else "go along the edges"
        return Outcome(
            route=route if chosen else None,
            value=values,
            thought=" - ".join(filter(None, [f"{why}: {goes}", find_oddity(*(condition for condition, _ in cases))])),
            observation={"decision": targets, "cases": values},
        )

    return perform


def _describe_end(meets: str) -> str:
    return f"{meets}, where the branches meet" if meets else "the end"


def match_route(routes: Collection[str], value: Any) -> str | None:
    """Return the key of the route for a value: its text; True and False match in either case.

    None if there is none; no key matches None.
    """
    texts = () if value is None else (str(value), str(value).lower()) if isinstance(value, bool) else (str(value),)
    return next((text for text in texts if text in routes), None)


KIND = Kind("router", bind, step_type="REASONING")
