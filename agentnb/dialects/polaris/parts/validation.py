"""Validation of polaris graphs: all faults at once, one rule per function, without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from agentnb.dialects.polaris.parts.available_outputs import Flow
from agentnb.dialects.polaris.parts.graph import Graph
from agentnb.dialects.polaris.parts.levels import Levels
from agentnb.dialects.polaris.schema import DecisionNode, JoinNode, LoopNode, ParallelNode, SwitchNode, SystemNode
from agentnb.errors import Problem
from agentnb.kinds.typed_values import get_type_name
from agentnb.text import safe_repr

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
# The kinds of findings, by error code.
CODES: Final[Mapping[str, str]] = MappingProxyType({
    **dict.fromkeys(("NoEntryPoint", "InvalidEntryPoint", "InvalidEdgeSource", "InvalidEdgeTarget"), "R146"),
    **dict.fromkeys(("MissingPredicate", "MissingBranch", "InvalidBranchTarget"), "R147"),
    **dict.fromkeys(("MissingDiscriminator", "EmptySwitch", "InvalidCaseTarget", "InvalidDefaultTarget"), "R192"),
    "DuplicateCase": "R193",
    **dict.fromkeys(("EmptyParallel", "MissingJoin", "InvalidJoinTarget", "EmptyJoinSources", "InvalidJoinSource"),
                    "R194"),
    **dict.fromkeys(("NoTerminationCondition", "EmptyLoopBody", "InvalidLoopBody"), "R195"),
    **dict.fromkeys(("LoopPredicateOutputNotProduced", "LoopPredicateOutputNotThere", "OutputNotProduced"), "R196"),
    "ConflictingParallelOutputs": "R197",
    **dict.fromkeys(("Unreachable", "Cycle", "HandlerNeverTaken"), "R198"),
})  # fmt: skip

MOST_COMPARED: Final = 100  # keys of a switch that cannot be hashed


@dataclass(frozen=True)
class Finding(Problem):
    """A fault of a graph as a Problem: its `kind`, the `node` concerned, and further details."""

    kind: str = ""
    node: str | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, compare=False)


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """The findings about a graph; it is `ok` if there are no errors."""

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if there are no errors."""
        return not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        """Return every finding, errors first."""
        return "\n".join(map(str, (*self.errors, *self.warnings))) or "ok"

    def _repr_html_(self) -> str:
        from agentnb.errors import render_problems

        html: str = render_problems([*self.errors, *self.warnings])
        return html


def validate(graph: Graph) -> ValidationResult:
    """Return the findings about a graph.

    R146: the entry of a graph, or an end of an edge, is not a node of the graph.
    R147: a decision lacks its predicate or one of its branches.
    R192: a switch lacks its discriminator, or has neither a case nor a default.
    R193: a switch has two cases for one key.
    R194: a parallel node lacks branches, or the join where they meet.
    R195: a loop lacks a body or an end condition.
    R196: a system requires an output type that nothing before it produces.
    R197: two parallel branches produce the same type.
    R198: a node of a graph is never reached, or a chain of nodes comes back to itself.
    """
    checked = _CheckedGraph(graph)
    findings = [finding for rule in RULES for finding in rule(checked)]
    errors = tuple(each for each in findings if each.severity == "error")
    return ValidationResult(errors, tuple(each for each in findings if each.severity != "error"))


class _CheckedGraph:
    """A graph that is being checked."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.levels = graph, Levels(graph)
        self.nodes, self.flow = self.levels.nodes, Flow(graph, self.levels)

    def note(
        self,
        kind: str,
        node: str | None,
        what: str,
        why: str,
        do: str,
        *,
        severity: Literal["error", "warning"] = "error",
        **details: Any,
    ) -> Finding:
        """Return a finding about a node, or about the graph."""
        where = f"<graph {self.graph.name!r}>" + (f", nodes[{node!r}]" if node is not None else "")
        frozen = MappingProxyType(details)
        return Finding(CODES[kind], what, where, why, do, severity, kind, node, frozen)

    def join(self) -> str:
        """Return node ids as a readable list."""
        names = list(self.nodes)
        return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "") or "none"


Rule = Callable[[_CheckedGraph], Iterator[Finding]]


def check_entry(checked: _CheckedGraph) -> Iterator[Finding]:
    """The entry of a graph is one of its nodes."""
    entry = checked.graph.entry
    if entry is None:
        yield checked.note("NoEntryPoint", None, f"graph {checked.graph.name!r} has no entry",
                           "a run starts at the first node that was added", "add a system")  # fmt: skip
    elif entry not in checked.nodes:
        yield checked.note("InvalidEntryPoint", entry, f"the entry {entry!r} does not exist",
                           f"the nodes are: {checked.join()}", "use one of them")  # fmt: skip


def check_edges(checked: _CheckedGraph) -> Iterator[Finding]:
    """Every edge starts and ends at a node."""
    for edge in checked.graph.edges:
        for kind, end in (("InvalidEdgeSource", edge.source), ("InvalidEdgeTarget", edge.target)):
            if end not in checked.nodes:
                verb = "begins" if kind == "InvalidEdgeSource" else "ends"
                yield checked.note(kind, end, f"edge {edge.id!r} {verb} at {end!r}, which does not exist",
                                   f"the nodes are: {checked.join()}", "use one of them, or remove the edge",
                                   edge=edge.id)  # fmt: skip


def check_decisions(checked: _CheckedGraph) -> Iterator[Finding]:
    """A decision has a predicate and its branches; one branch may be left out, none may be empty."""
    for node in checked.nodes.values():
        if not isinstance(node, DecisionNode):
            continue
        if node.predicate is None:
            yield checked.note("MissingPredicate", node.id, f"decision {node.name!r} has no predicate",
                               "its predicate chooses the branch", "add one",
                               name=node.name)  # fmt: skip
        for label, branch in (("true", node.true_branch), ("false", node.false_branch)):
            if branch is None and label not in node.left_out:
                yield checked.note("MissingBranch", node.id, f"decision {node.name!r} has an empty branch {label!r}",
                                   "its builder added no nodes", "add a system there, or leave when_false out",
                                   name=node.name, branch=label)  # fmt: skip
            elif branch is not None and branch not in checked.nodes:
                yield _check_branch(checked, node.id, node.name, label, branch)


def _check_branch(checked: _CheckedGraph, id: str, name: str, label: str, target: str) -> Finding:
    return checked.note("InvalidBranchTarget", id,
    f"branch {label!r} of {name!r} starts at {target!r}, which does not exist",
                        f"the nodes are: {checked.join()}", "use one of them", branch=label, target=target)  # fmt: skip


def check_switches(checked: _CheckedGraph) -> Iterator[Finding]:
    """A switch has a discriminator and at least one target, with distinct keys."""
    for node in checked.nodes.values():
        if not isinstance(node, SwitchNode):
            continue
        if node.discriminator is None:
            yield checked.note("MissingDiscriminator", node.id, f"switch {node.name!r} has no discriminator",
                               "the key that it returns chooses the case", "add one", name=node.name)  # fmt: skip
        if not node.cases and node.default is None:
            yield checked.note("EmptySwitch", node.id, f"switch {node.name!r} has neither a case nor a default",
                               "no key leads anywhere", "add a case with at least one node",
                               name=node.name)  # fmt: skip
        for (key, target), repeated in zip(node.cases, _iter_repeats(node.cases), strict=True):
            if target not in checked.nodes:
                yield checked.note("InvalidCaseTarget", node.id,
                        f"case {safe_repr(key)} of {node.name!r} begins at {target!r}, "
                                   "which does not exist", f"the nodes are: {checked.join()}", "use one of them",
                                   case=key, target=target)  # fmt: skip
            if repeated:
                yield checked.note("DuplicateCase", node.id, f"switch {node.name!r} has case {safe_repr(key)} twice",
                                   "the first case that equals the key is used, so this one is never reached",
                                   "rename it, or remove it", severity="warning", name=node.name, case=key)  # fmt: skip
        if node.default is not None and node.default not in checked.nodes:
            yield checked.note("InvalidDefaultTarget", node.id, f"the default of {node.name!r} starts at "
                               f"{node.default!r}, which does not exist", f"the nodes are: {checked.join()}",
                               "use one of them", target=node.default)  # fmt: skip


def _iter_repeats(cases: Iterable[tuple[Any, str]]) -> Iterator[bool]:
    """Yield for each case of a switch whether an earlier case has an equal key, in linear time.

    Keys that cannot be hashed, or made of lists, sets and mappings that can be, are compared with the first 100 of
    them.
    """
    known: set[Any] = set()
    others: list[Any] = []
    for key, _ in cases:
        try:
            hashable = _to_hashable(key)
            repeated = hashable in known or _is_among(key, others)
            known.add(hashable)
        except (TypeError, RecursionError):
            repeated = _is_among(key, others)
            if len(others) < MOST_COMPARED:
                others.append(key)
        yield repeated


def _is_among(key: Any, others: list[Any]) -> bool:
    """Return True if a key equals one of others; for example, comparing an array gives no single truth value."""
    for other in others:
        with suppress(Exception):
            if bool(key == other):
                return True
    return False


def _to_hashable(key: Any) -> Any:
    """Return a hashable value that is equal for equal keys.

    Raises:
        TypeError: the key has no such value.
    """
    kind = type(key)
    if kind is list or kind is tuple:
        return kind, tuple(map(_to_hashable, key))
    if kind is dict:
        return kind, frozenset((name, _to_hashable(value)) for name, value in key.items())
    if kind is set:
        return frozenset(key)
    if kind is bytearray:
        return bytes(key)
    hash(key)
    return key


def check_parallels(checked: _CheckedGraph) -> Iterator[Finding]:
    """The branches of a parallel node exist, and its join is a join."""
    for node in checked.nodes.values():
        if isinstance(node, ParallelNode):
            if not node.branches:
                yield checked.note("EmptyParallel", node.id, f"parallel {node.name!r} has no branches",
                                   "a builder that adds no nodes makes no branch", "add a system to a branch",
                                   name=node.name)  # fmt: skip
            for target in node.branches:
                if target not in checked.nodes:
                    yield _check_branch(checked, node.id, node.name, "parallel", target)
            if node.join is None:
                yield checked.note("MissingJoin", node.id, f"parallel {node.name!r} has no join",
                                   "its branches meet at a join", "add a join", name=node.name)  # fmt: skip
            elif not isinstance(checked.nodes.get(node.join), JoinNode):
                yield checked.note("InvalidJoinTarget", node.id, f"the join of {node.name!r} is {node.join!r}, which "
                                   "does not exist", f"the nodes are: {checked.join()}", "name a join",
                                   target=node.join)  # fmt: skip
        elif isinstance(node, JoinNode):
            if not node.sources:
                yield checked.note("EmptyJoinSources", node.id, f"join {node.id!r} has no sources",
                                   "branches meet at a join", "add the first nodes of its branches")  # fmt: skip
            for source in node.sources:
                if source not in checked.nodes:
                    yield checked.note("InvalidJoinSource", node.id, f"join {node.id!r} waits for {source!r}, which is "
                                       "not there", f"the nodes are: {checked.join()}", "use one of them",
                                       source=source)  # fmt: skip


def check_loops(checked: _CheckedGraph) -> Iterator[Finding]:
    """A loop has a body and an end, and its predicate can be evaluated."""
    for node in checked.nodes.values():
        if not isinstance(node, LoopNode):
            continue
        if node.termination is None and node.max_iterations is None:
            yield checked.note("NoTerminationCondition", node.id, f"loop {node.name!r} has no end condition",
                               "it has neither a predicate nor a number of rounds", "add one",
                               name=node.name)  # fmt: skip
        if node.body_entry is None:
            yield checked.note("EmptyLoopBody", node.id, f"loop {node.name!r} is empty",
                               "its builder added no nodes", "add a system to its body", name=node.name)  # fmt: skip
        elif node.body_entry not in checked.nodes:
            yield checked.note("InvalidLoopBody", node.id, f"the body of {node.name!r} starts at {node.body_entry!r}, "
                               "which does not exist", f"the nodes are: {checked.join()}", "use one of them",
                               target=node.body_entry)  # fmt: skip
        elif node.termination is not None:
            yield from _check_predicate(checked, node)


def _check_predicate(checked: _CheckedGraph, node: LoopNode) -> Iterator[Finding]:
    """A loop's predicate reads outputs of its body that are also available before the first iteration."""
    kind, name = node.output_type, get_type_name(node.output_type)
    if not checked.flow.inside(node.body_entry).holds(kind):
        yield checked.note("LoopPredicateOutputNotProduced", node.id,
                           f"nothing in loop {node.name!r} produces {name!r}",
                           "its predicate reads it, and would return the same each time",
                           f"add a system to its body that returns a {name}",
                           expected_output=kind, name=node.name)  # fmt: skip
    available = checked.flow.available.get(node.id)
    if available is not None and not available.holds(kind):
        yield checked.note("LoopPredicateOutputNotThere", node.id, f"loop {node.name!r} reads {name!r} before there "
                           "is one", "its predicate is evaluated before round 1 too, and no node before it returns one",
                           f"add a system before it that returns a {name}, or call graph.given({name})",
                           expected_output=kind, name=node.name)  # fmt: skip


def check_outputs(checked: _CheckedGraph) -> Iterator[Finding]:
    """An output that a system, a decision or a switch requires can be available when it runs."""
    for id, kind, consumer in checked.flow.required_outputs():
        available = checked.flow.available.get(id)
        if available is not None and not available.holds(kind):
            name = get_type_name(kind)
            yield checked.note("OutputNotProduced", id,
                               f"{consumer} requires {name!r}, which no node before it produces",
                               "an output exists once a system that returns its type has run",
                               f"add a system before it that returns a {name}, or call graph.given({name})",
                               severity="warning", output_type=kind)  # fmt: skip


def check_conflicts(checked: _CheckedGraph) -> Iterator[Finding]:
    """Parallel branches produce different types."""
    for node in checked.nodes.values():
        if isinstance(node, ParallelNode):
            kinds = [checked.flow.inside(branch).kinds for branch in node.branches]
            for kind in dict.fromkeys(kind for branch in kinds for kind in branch):
                count = sum(kind in branch for branch in kinds)
                if count > 1:
                    yield checked.note("ConflictingParallelOutputs", node.id,
                                       f"{count} branches of {node.name!r} produce {get_type_name(kind)!r}",
                                       "outputs are merged in branch order: that of the last branch stays",
                                       "return a different type in each branch", severity="warning",
                                       name=node.name, output_type=kind)  # fmt: skip


def check_reached(checked: _CheckedGraph) -> Iterator[Finding]:
    """Every node is reachable, including through timeout handlers, and there are no cycles."""
    shut = {edge.target for edge in checked.graph.edges if edge.kind in ("error", "timeout")} - {
        handler.edge.target for handler in checked.levels.handlers
    }
    for id in checked.nodes:
        if id not in checked.levels.of and checked.graph.entry in checked.nodes:
            kind = "HandlerNeverTaken" if id in shut else "Unreachable"
            why = "another handler of the same node was added before it" if id in shut else "no edge leads to it"
            yield checked.note(kind, id, f"node {id!r} is never reached", why, "remove it, or add an edge to it",
                               severity="warning")  # fmt: skip
    for handler in checked.levels.handlers:
        edge, node = handler.edge, checked.nodes[handler.edge.source]
        if edge.kind == "timeout" and isinstance(node, SystemNode) and node.timeout is None:
            yield checked.note("HandlerNeverTaken", edge.target, f"timeout handler {edge.target!r} is never reached",
                               f"system {node.id!r} has no timeout", f"graph.set_timeout({node.id!r}, seconds)",
                               severity="warning")  # fmt: skip
    for id in checked.levels.repeated_steps:
        yield checked.note("Cycle", id, f"the nodes after {id!r} lead back to it", "a run would never end",
                           "use add_loop to repeat nodes", severity="warning")  # fmt: skip


RULES: Final[tuple[Rule, ...]] = (
    check_entry,
    check_edges,
    check_decisions,
    check_switches,
    check_parallels,
    check_loops,
    check_outputs,
    check_conflicts,
    check_reached,
)
