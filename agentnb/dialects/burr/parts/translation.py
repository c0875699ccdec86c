"""The translation of an application: its actions, transitions and state as a Recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from agentnb.dialects.burr.errors import make_halt_problem, make_hooks_problem
from agentnb.dialects.burr.parts import package as burr
from agentnb.dialects.burr.parts.action_call import ActionCall, Origin
from agentnb.errors import Place, Problem
from agentnb.expressions.conditions import to_condition
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region

RESUMED: Final = "__resumed__"


def translate(
    application: Any, halt_before: Sequence[str] = (), halt_after: Sequence[str] = ()
) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe of an application, or None, and its problems."""
    problems: list[Problem] = []
    graph, state = application.graph, application.state
    place = Place("<Application>")
    hooks = [type(each).__name__ for each in application._adapter_set.adapters  # noqa: SLF001
             if not isinstance(each, burr.TracerFactoryContextHook)]  # fmt: skip
    if hooks:
        problems.append(make_hooks_problem(hooks, place))
    stops = [(name, side) for side, halts in (("before", halt_before), ("after", halt_after))
             for name in _iter_halts(graph, halts, place, problems)]  # fmt: skip
    if any(problem.severity == "error" for problem in problems):
        return None, problems
    prior = state.get(burr.PRIOR_STEP)
    number = application.sequence_id
    origin = Origin(application, state.typing_system, 0 if number is None else number + 1, prior, prior is not None)
    nodes = {action.name: _make_node(action, origin, place) for action in graph.actions}
    edges = [_make_edge(edge.from_.name, edge.to.name, edge.condition, origin, place) for edge in graph.transitions]
    entry = graph.entrypoint.name
    if prior is not None:  # the next action is chosen as after the action that ran last
        entry = RESUMED
        at = place._replace(path=f"state[{burr.PRIOR_STEP!r}]")
        nodes = {RESUMED: Node(RESUMED, "noop", f"after {prior}", counted=False, place=at), **nodes}
        edges += [_make_edge(RESUMED, edge.to.name, edge.condition, origin, place) for edge in graph.transitions
                  if edge.from_.name == prior]  # fmt: skip
    inputs: dict[str, Any] = {name: {} for action in graph.actions for names in action.optional_and_required_inputs
              for name in sorted(names) if not name.startswith("__")}  # fmt: skip
    first = {key: value for key, value in state.get_all().items() if not key.startswith("__")}
    return Recipe(
        name="application",
        dialect="burr",
        nodes=MappingProxyType(nodes),
        edges=tuple(edges),
        entry=(entry,),
        inputs=MappingProxyType(inputs),
        regions=MappingProxyType({ROOT: Region(ROOT, (entry,))}),
        begin=lambda _inputs: dict(first),
        init=MappingProxyType({}),
        limits=MappingProxyType({}),
        meta=MappingProxyType({"required": (), "stops": tuple(stops)}),
    ), problems


def _iter_halts(graph: Any, halts: Sequence[str], place: Place, problems: list[Problem]) -> Iterator[str]:
    """Yield the actions that halts name, directly or by a tag."""
    tagged = {f"@tag:{tag}": action for action in graph.actions for tag in action.tags}
    names = [action.name for action in graph.actions]
    for halt in halts:
        if halt in names:
            yield halt
        elif halt in tagged:
            yield from (action.name for action in graph.actions if halt[len("@tag:") :] in action.tags)
        else:
            problems.append(make_halt_problem(halt, [*names, *tagged], place))


def _make_node(action: Any, origin: Origin, place: Place) -> Node:
    return Node(
        id=action.name,
        kind="runnable",
        reads=tuple(action.reads),
        writes=tuple(action.writes),
        params=MappingProxyType({"perform": ActionCall(action, origin), "function": getattr(action, "fn", action)}),
        place=place._replace(path=f"actions[{action.name!r}]"),
    )


def _make_edge(source: str, target: str, condition: Any, origin: Origin, place: Place) -> Edge:
    at = place._replace(path=f"transitions[{source!r}, {target!r}]")
    if condition.name == "default":
        return Edge(source, target, place=at)
    when = to_condition(Transition(condition, origin), at)
    return Edge(source, target, "conditional", when, when.text, at)


class Transition:
    """A condition of Burr as a function of the board."""

    def __init__(self, condition: Any, origin: Origin) -> None:
        self.condition, self.origin = condition, origin
        self.text = condition.name or "condition"
        self.reads = tuple((key,) for key in dict.fromkeys(condition.reads))

    def __call__(self, board: Mapping[str, Any]) -> bool:
        """Return True if the transition is followed."""
        values: Any = board  # a State reads its values in the same way
        state: Any = burr.State(values, self.origin.typing_system)
        return bool(self.condition.run(state)[burr.Condition.KEY])


__all__ = ["translate"]
