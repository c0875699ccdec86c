"""The plan: a recipe compiled into tuples, with every node bound to its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

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
OutgoingEdge = tuple[Callable[[Mapping[str, Any]], Any] | None, int, Edge]


class PlanNode:
    """A node as the engine runs it, with its outgoing edges by kind; `Plan.performs` has its function.

    `always` is the node that its ordinary edges always lead to, or how their conditions decide. `cost` is the amount by
    which a step of it counts towards max_steps. `joins` are the joins that wait for it.
    """

    __slots__ = (
        "always", "cost", "errors", "id", "index", "joins", "kind", "node", "outgoing_edges", "routes", "timeouts",
    )  # fmt: skip

    def __init__(self, index: int, node: Node, kind: Kind) -> None:
        self.index, self.id, self.node, self.kind = index, node.id, node, kind
        self.always, self.cost = NO_EDGE, int(node.counted)
        self.outgoing_edges: tuple[OutgoingEdge, ...] = ()
        self.joins: tuple[int, ...] = ()
        self.routes: dict[int, Edge] = {}
        self.errors: tuple[int, ...] = ()
        self.timeouts: tuple[int, ...] = ()

    def as_removed(self) -> PlanNode:
        """Return this node as removed from the recipe: it only serves to name the steps that it made."""
        return PlanNode(self.index, replace(self.node, scope="", writes=(), bodies=(), on=()), self.kind)


class CompiledRecipe:
    """A recipe compiled into tuples: the part of a plan that is the same in every world.

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
        for edge in recipe.outgoing_edges:
            self._add(edge)
        for node in own:
            node.always = self._find_always(node.outgoing_edges)
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

    def is_outdated(self) -> bool:
        """Return True if the code of a function was replaced in place, as autoreload does: its signature may differ."""
        return [*map(_code_of, self._functions)] != self._codes

    def _number_nodes(self, known: list[PlanNode]) -> list[PlanNode]:
        """Assign each node of the recipe its place in `nodes`; return the nodes in the recipe's order."""
        numbers = {node.id: node.index for node in known}
        self.nodes += [node.as_removed() for node in known]
        for name, node in self.recipe.nodes.items():
            number = self.index[name] = numbers.get(name, len(self.nodes))
            self.nodes[number : number + 1] = [PlanNode(number, node, self.kinds[node.kind])]
        return [self.nodes[number] for number in self.index.values()]

    def _get_numbers(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.index[name] for name in names)

    def _add(self, edge: Edge) -> None:
        source, target = self.nodes[self.index[edge.source]], self.index[edge.target]
        match edge.kind:
            case "error":
                source.errors += (target,)
            case "timeout":
                source.timeouts += (target,)
            case "route":
                source.routes[target] = edge
            case "event":
                pass
            case _:
                source.outgoing_edges += ((self._compile_condition(edge.when), target, edge),)

    def _find_always(self, out: tuple[OutgoingEdge, ...]) -> int:
        if not out:
            return NO_EDGE
        if any(edge.kind == "parallel" for _, _, edge in out):
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
            for target in [edge[1] for edge in node.outgoing_edges] + list(node.routes):
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
