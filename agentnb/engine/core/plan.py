"""The plan: a recipe compiled into tuples, with every node bound to its function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from agentnb.engine.core.history import UNKNOWN_EDGE
from agentnb.engine.core.reducers import wrap_reducers
from agentnb.engine.core.supersteps import Joins, isolate
from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean
from agentnb.recipe.control_flow import measure_nesting
from agentnb.recipe.model import Edge, Node, Recipe

if TYPE_CHECKING:
    from agentnb.engine.core.work import Kind, Perform, Work

_NONE: Final = frozenset[int]()
# Values of `PlanNode.always`: no outgoing edge; all edges whose condition holds; the first edge whose condition holds.
NO_EDGE, EVERY, FIRST = -1, -3, -4
_code_of: Final = attrgetter("__code__")
EdgeDescription = tuple[str, str, str, str]  # source, target, kind and condition
# A condition, its target, the edge and its number.
OutgoingEdge = tuple[Callable[[Mapping[str, Any]], Any] | None, int, Edge, int]


class PlanNode:
    """A node as the engine runs it, with its outgoing edges by kind; `Plan.performs` has its function.

    `always` is the node that its ordinary edges always lead to, or how their conditions decide; `always_edge` is the
    number of the edge to it. `routes` maps the target and the condition of its route edges to their numbers;
    `errors` and `timeouts` are pairs of a target and the number of its edge. `cost` is the amount by which a step of it
    counts towards max_steps. `joins` are the joins that wait for it.
    """

    __slots__ = (
        "always",
        "always_edge",
        "cost",
        "errors",
        "id",
        "index",
        "joins",
        "kind",
        "node",
        "outgoing_edges",
        "routes",
        "timeouts",
    )

    def __init__(self, index: int, node: Node, kind: Kind) -> None:
        self.index, self.id, self.node, self.kind = index, node.id, node, kind
        self.always, self.always_edge, self.cost = NO_EDGE, UNKNOWN_EDGE, int(node.counted)
        self.outgoing_edges: tuple[OutgoingEdge, ...] = ()
        self.joins: tuple[int, ...] = ()
        self.routes: dict[tuple[int, str], int] = {}
        self.errors: tuple[tuple[int, int], ...] = ()
        self.timeouts: tuple[tuple[int, int], ...] = ()

    def as_removed(self) -> PlanNode:
        """Return this node as removed from the recipe: it only serves to name the steps that it made."""
        return PlanNode(self.index, replace(self.node, scope="", writes=(), bodies=(), on=()), self.kind)


class CompiledRecipe:
    """A recipe compiled into tuples: the part of a plan that is the same in every world.

    `nodes` and `edges` are those of the recipe by number, and those of a plan like this one that the recipe lacks;
    `edge_numbers` are the numbers of `recipe.outgoing_edges`, with which `recipe.edges` begins.
    `listeners` maps event types to the nodes that listen to them; `reacts` is True if events trigger nodes; `joins` are
    the nodes that wait for their branches. `performs` has the functions of the nodes except the `unbound` ones, which
    depend on the world. For recipes that run in supersteps, `ranks` are the positions of the nodes in the order of
    their ids, and `waiting` are the joins; `transient` has the keys that last for one superstep and `untracked` those
    that are lost when the run waits for a person, by region; `stops` has the sides of the nodes where every session
    stops.
    """

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind], *, strict: bool, like: Plan | None = None) -> None:
        self.recipe, self.kinds, self._strict = recipe, kinds, strict
        self.first, self.supersteps = recipe.routing == "first", recipe.routing == "supersteps"
        unknown = [_make_unknown_kind_problem(node, kinds) for node in recipe.nodes.values() if node.kind not in kinds]
        if unknown:
            raise RecipeError(*unknown)
        self.nodes: list[PlanNode] = []
        self.index: dict[str, int] = {}
        own = self._number_nodes(like.nodes if like is not None else [])
        self.edges: list[Edge] = [] if like is None else [*like.edges]
        self.edge_numbers = self._number_edges(recipe.outgoing_edges)
        for edge, number in zip(recipe.outgoing_edges, self.edge_numbers, strict=True):
            self._add(edge, number)
        for node in own:
            node.always = self._find_always(node.outgoing_edges)
            node.always_edge = node.outgoing_edges[0][3] if node.always >= 0 else UNKNOWN_EDGE
            if recipe.timeouts == "error":
                node.timeouts = node.timeouts or node.errors
        self.entries = {region.id: self._get_numbers(region.entry) for region in recipe.regions.values()}
        self.entries["root"] = self._get_numbers(recipe.entry)
        self.joins = frozenset(node.index for node in own if node.kind.is_join)
        self.nodes_before_join = {number: self._find_nodes_before(number) for number in self.joins}
        for join, before in self.nodes_before_join.items():
            for number in before:
                self.nodes[number].joins += (join,)
        self.listeners: dict[str, list[PlanNode]] = {}
        for node in own:
            for event_type in node.node.on:
                self.listeners.setdefault(event_type, []).append(node)
        self.reacts = bool(self.listeners) or recipe.reactive is not None
        self.advances_by_one = not (self.reacts or self.supersteps)  # a step in the root frame, while no join waits
        self.deferred_nodes = frozenset(node.index for node in own if node.node.params.get("defer"))
        self.nesting = measure_nesting(recipe)
        if self.supersteps:
            self.ranks = {node.index: rank for rank, node in enumerate(sorted(self.nodes, key=lambda node: node.id))}
            self.waiting = Joins(self.nodes)
            self.transient = {region.id: region.transient for region in recipe.regions.values() if region.transient}
            self.untracked = {region.id: region.untracked for region in recipe.regions.values() if region.untracked}
            self.stops: dict[int, set[str]] = {}
            for name, side in recipe.meta.get("stops", ()):
                self.stops.setdefault(self.index[name], set()).add(side)
        # The function of a node that is no longer in the recipe is never called.
        self.performs: list[Perform] = [_raise_not_bound] * len(self.nodes) if like is None else [
            *like.performs, *[_raise_not_bound] * (len(self.nodes) - len(like.nodes))
        ]  # fmt: skip
        self.unbound = tuple(node for node in own if not self._bind_without_world(node))
        functions = [node.params.get("function") for node in recipe.nodes.values()]
        self._functions = [function for function in functions if type(function) is FunctionType]
        self._codes = [*map(_code_of, self._functions)]
        self._module_functions = [function for function in self._functions if _find_current(function) is function]
        self._specs = {name: _get_spec(name) for name in {function.__module__ for function in self._module_functions}}

    def is_outdated(self) -> bool:
        """Return True if the code of a function was replaced in place, as autoreload does: its signature may differ."""
        return [*map(_code_of, self._functions)] != self._codes

    def apply_reloads(self) -> None:
        """Give the nodes' functions the code of their modules, if these were reloaded: in place, as autoreload does."""
        for name, spec in self._specs.items():
            current = _get_spec(name)
            if current is spec:
                continue
            self._specs[name] = current
            for function in self._module_functions:
                new = _find_current(function) if function.__module__ == name else None
                if type(new) is FunctionType and not (function.__closure__ or new.__closure__):
                    function.__code__, function.__defaults__ = new.__code__, new.__defaults__
                    function.__kwdefaults__ = new.__kwdefaults__

    def _number_nodes(self, known: list[PlanNode]) -> list[PlanNode]:
        """Assign each node of the recipe its place in `nodes`; return the nodes in the recipe's order."""
        numbers = {node.id: node.index for node in known}
        self.nodes += [node.as_removed() for node in known]
        for name, node in self.recipe.nodes.items():
            number = self.index[name] = numbers.get(name, len(self.nodes))
            self.nodes[number : number + 1] = [PlanNode(number, node, self.kinds[node.kind])]
        return [self.nodes[number] for number in self.index.values()]

    def _number_edges(self, edges: tuple[Edge, ...]) -> list[int]:
        """Assign each edge of the recipe its place in `edges`: that of an equal edge of the plan that is continued."""
        numbers = match_edges(map(describe_edge, edges), map(describe_edge, self.edges))
        for place, edge in enumerate(edges):
            if numbers[place] == UNKNOWN_EDGE:
                numbers[place] = len(self.edges)
                self.edges.append(edge)
            else:
                self.edges[numbers[place]] = edge
        return numbers

    def _get_numbers(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.index[name] for name in names)

    def _add(self, edge: Edge, number: int) -> None:
        source, target = self.nodes[self.index[edge.source]], self.index[edge.target]
        match edge.kind:
            case "error":
                source.errors += ((target, number),)
            case "timeout":
                source.timeouts += ((target, number),)
            case "route":
                source.routes.setdefault((target, edge.condition), number)
            case "event":
                pass
            case _:
                source.outgoing_edges += ((self._compile_condition(edge.when), target, edge, number),)

    def _find_always(self, out: tuple[OutgoingEdge, ...]) -> int:
        if not out:
            return NO_EDGE
        if any(edge.kind == "parallel" for _, _, edge, _ in out):
            return EVERY
        if out[0][0] is None and (len(out) == 1 or self.first):
            return out[0][1]
        return FIRST if self.first else EVERY

    def _compile_condition(self, when: Any) -> Any:
        """Return the function that evaluates a condition, as strict about missing keys as the world is."""
        if hasattr(when, "with_strictness"):
            when = when.with_strictness(self._strict)
        return getattr(when, "call", when)

    def _find_nodes_before(self, join: int) -> frozenset[int]:
        """Return the nodes from which a join can be reached; the join waits for them."""
        reached, border = set(), [join]
        sources: dict[int, list[int]] = {}
        for node in self.nodes:
            for target in [edge[1] for edge in node.outgoing_edges] + [target for target, _ in node.routes]:
                sources.setdefault(target, []).append(node.index)
        while border:
            for source in sources.get(border.pop(), ()):
                if source not in reached:
                    reached.add(source)
                    border.append(source)
        return frozenset(reached - {join})

    def _bind_without_world(self, node: PlanNode) -> bool:
        """Bind a node to its function if that function is the same in every world; return True if it is bound."""
        if node.kind.ignores_world is None or not node.kind.ignores_world(node.node):
            return False
        try:
            self.performs[node.index] = self._bind_node(node, None)
        except RecipeError:  # reported with the problems of the nodes that depend on the world
            return False
        return True

    def _bind_node(self, node: PlanNode, world: Any) -> Perform:
        perform = node.kind.bind(node.node, world)
        if (reducers := node.node.params.get("reducers")) and not node.kind.returns_reduced:
            perform = wrap_reducers(perform, reducers, node.id)
        return isolate(node, perform) if self.supersteps else perform


def describe_edge(edge: Edge) -> EdgeDescription:
    """Return what identifies an edge of a recipe, except among equal ones."""
    return edge.source, edge.target, edge.kind, edge.condition


def match_edges(edges: Iterable[EdgeDescription], known: Iterable[EdgeDescription]) -> list[int]:
    """Return the place of each edge among the known ones, UNKNOWN_EDGE for others; equal edges match in their order."""
    places: dict[EdgeDescription, list[int]] = {}
    for place, edge in enumerate(known):
        places.setdefault(edge, []).append(place)
    remaining = {edge: iter(equal) for edge, equal in places.items()}
    return [next(remaining[edge], UNKNOWN_EDGE) if edge in remaining else UNKNOWN_EDGE for edge in edges]


class Plan(CompiledRecipe):
    """A recipe ready to run in one world.

    A plan `like` another assigns each node the number that it has there, so that a run can continue with the new plan.
    Nodes missing from the recipe keep their place in `nodes`, and no edge leads to them. `slow` are the nodes whose
    last run took long: a live run performs them in a thread. `quick` are the nodes whose first run was fast.
    """

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind], world: Any, like: Plan | None = None) -> None:
        self.__dict__ = {**vars(_compile(recipe, kinds, strict=getattr(world, "strict", True), like=like))}
        self.world = world
        self.slow = self.quick = _NONE
        if self.unbound:
            self.performs = [*self.performs]
            self._bind()

    def _bind(self) -> None:
        """Bind the nodes that depend on the world to their functions; report all problems at once."""
        problems: list[Problem] = []
        for node in self.unbound:
            try:
                self.performs[node.index] = self._bind_node(node, self.world)
            except RecipeError as error:
                problems += error.problems
        if problems:
            raise RecipeError(*problems)

    def number(self, node: str) -> int:
        """Return the number of a node.

        X101: no node has that name.

        Raises:
            ExecutionError: X101, the recipe has no such node.
        """
        number = self.index.get(node)
        if number is None:
            raise ExecutionError(
                Problem(
                    "X101",
                    f"there is no node {node!r}",
                    f"recipe {self.recipe.name!r}",
                    f"the recipe's nodes are: {', '.join(self.index)}",
                    did_you_mean(node, self.index, "use one of them"),
                )
            )
        return number


def _compile(recipe: Recipe, kinds: Mapping[str, Kind], *, strict: bool, like: Plan | None) -> CompiledRecipe:
    """Return the compiled recipe; without `like`, it is cached until the recipe or its functions change."""
    if like is not None:
        return CompiledRecipe(recipe, kinds, strict=strict, like=like)
    # the cache keeps `kinds` alive, so no other table can have their id
    known, key = recipe.derived, ("plan", id(kinds), strict)
    compiled: CompiledRecipe | None = known.get(key)
    if compiled is None or compiled.is_outdated():
        compiled = known[key] = CompiledRecipe(recipe, kinds, strict=strict)
    return compiled


def _find_current(function: FunctionType) -> Any:
    """Return what a function's module has under its name now."""
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None)


def _get_spec(module: str) -> Any:
    """Return the spec of a module; it has another one whenever it was reloaded."""
    return getattr(sys.modules.get(module), "__spec__", None)


def _raise_not_bound(_work: Work) -> Any:
    raise AssertionError("no node is bound here")


def _make_unknown_kind_problem(node: Node, kinds: Mapping[str, Kind]) -> Problem:
    public = [name for name, kind in kinds.items() if kind.is_public]
    return Problem(
        "R204",
        f"no implementation runs nodes of kind {node.kind!r}",
        str(node.place or f"node {node.id!r}"),
        f"the kinds that can run are: {', '.join(public)}",
        did_you_mean(node.kind, public, "use another kind, or only draw and check this recipe"),
    )
