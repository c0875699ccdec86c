"""loader: a coreason recipe, as a file's content or a RecipeDefinition, becomes a Recipe. Translation only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentnb.errors import Place, Problem
from agentnb.recipe.checks import dangling, missing_entry
from agentnb.recipe.flow import ORDINARY, ignored_edge, shut_out
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.recipe.words import CHOOSERS, END
from agentnb.sources import Source, plain_source

if TYPE_CHECKING:
    from agentnb.dialects.coreason.mistakes import Written
    from agentnb.dialects.coreason.schema import RecipeDefinition, RecipeNode

MAX_STEPS = 50
# Parts of a node that its kind may ask for, beside the fields of its type.
_KEPT = ("recovery", "reasoning", "interaction", "collaboration", "visualization", "model_policy", "cognitive_profile")
_SHOWN_ONLY = ("guardrails", "identity", "compliance")


def recognise(content: object) -> bool:
    """Return whether this looks like a coreason recipe: by its words, or by its class."""
    if isinstance(content, Mapping):
        mine = str(content.get("apiVersion", "")).startswith("coreason.ai/")
        return mine or "topology" in content or {"interface", "metadata"} <= content.keys()
    return any(cls.__name__ == "RecipeDefinition" for cls in type(content).__mro__) and hasattr(content, "model_dump")


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, where one can be made, and what is wrong with it beyond what the checks will find."""
    from agentnb.dialects.coreason.mistakes import Written, word_problems

    given = None if isinstance(source.content, Mapping) else source.content
    if given is not None:
        file = f"<RecipeDefinition {given.metadata.name!r}>"
        source = plain_source(given.model_dump(by_alias=True), file)
    problems = [*source.problems, *word_problems(source)]
    if not isinstance(source.content, dict):
        return None, problems
    written = Written(source, source.content)
    definition, found = _definition(given, written)
    problems += found
    edges, ids = list(_edges(written)), _ids(written)
    problems += _twice(written)
    if definition is None:
        # The checks will not see this recipe, so its graph is looked at here.
        draft = written.at(("topology", "status")) == "draft"
        entry = written.at(("topology", "entry_point"))
        problems += dangling(edges, ids, "", draft=draft)
        if isinstance(entry, str) and entry not in ids:
            problems.append(missing_entry(entry, ids, str(written.place(("topology", "entry_point")))))
        return None, problems
    recipe, notes = _recipe(definition, written, edges)
    return replace(recipe, notes=tuple(notes)), problems


def _definition(given: Any, written: Written) -> tuple[RecipeDefinition | None, list[Problem]]:
    from pydantic import ValidationError

    from agentnb.dialects.coreason.mistakes import schema_problems
    from agentnb.dialects.coreason.schema import GRAPH_CHECKED_ELSEWHERE, RecipeDefinition

    if isinstance(given, RecipeDefinition):
        return given, []
    try:
        return RecipeDefinition.model_validate(written.content, context={GRAPH_CHECKED_ELSEWHERE: True}), []
    except ValidationError as error:
        return None, list(schema_problems(error, written))


def _ids(written: Written) -> dict[str, Place]:
    """Return the ids of the nodes, in order, with the place of the first that bears it."""
    ids: dict[str, Place] = {}
    for number, node in written.items("nodes"):
        if isinstance(name := node.get("id"), str):
            ids.setdefault(name, written.place(("topology", "nodes", number, "id")))
    return ids


def _twice(written: Written) -> Iterator[Problem]:
    """R106: two nodes have the same id."""
    first = _ids(written)
    for number, node in written.items("nodes"):
        name, place = node.get("id"), written.place(("topology", "nodes", number, "id"))
        if isinstance(name, str) and first[name] != place:
            yield Problem("R106", f"node id {name!r} is there twice", str(place),
                          f"an id names one node, and {first[name]} has it already",
                          "rename one of the two, and the edges that mean it")  # fmt: skip


def _edges(written: Written) -> Iterator[Edge]:
    """Yield the ways as they are written, well-formed or not elsewhere: edges, routes, and fallbacks as error edges."""
    for number, edge in written.items("edges"):
        source, target, label = edge.get("source"), edge.get("target"), edge.get("condition")
        if isinstance(source, str) and isinstance(target, str):
            place = written.place(("topology", "edges", number))
            yield Edge(source, target, condition=label if isinstance(label, str) else "", place=place)
    for number, node in written.items("nodes"):
        if isinstance(name := node.get("id"), str):
            for path, condition, target in _ways(node):
                place = written.place(("topology", "nodes", number, *path))
                kind = "error" if path[0] == "recovery" else "route"
                if isinstance(target, str) and target != END:
                    yield Edge(name, target, kind, condition=condition, place=place)  # type: ignore[arg-type]


def _ways(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Yield (path in the node, condition, target) of each way out that a node names itself."""
    match node.get("type"):
        case "router":
            routes = node.get("routes")
            for value, target in routes.items() if isinstance(routes, Mapping) else ():
                yield ("routes", value), value, target
            yield ("default_route",), "otherwise", node.get("default_route")
        case "evaluator":
            yield ("pass_route",), "pass", node.get("pass_route")
            yield ("fail_route",), "fail", node.get("fail_route")
    if isinstance(recovery := node.get("recovery"), Mapping):
        yield ("recovery", "fallback_node_id"), "", recovery.get("fallback_node_id")


def _recipe(definition: RecipeDefinition, written: Written, edges: list[Edge]) -> tuple[Recipe, list[Problem]]:
    topology, interface = definition.topology, definition.interface
    draft = topology.status == "draft" and definition.status != "published"
    nodes: dict[str, Node] = {}
    for number, node in enumerate(topology.nodes):
        nodes.setdefault(node.id, _node(node, written.place(("topology", "nodes", number, "id"))))
    notes = list(_notes(definition, written))
    edges, ignored = _without_ignored(edges, nodes, definition)
    notes += ignored
    entry, entry_place = topology.entry_point, written.place(("topology", "entry_point"))
    missing: tuple[tuple[str, str], ...] = ()
    if draft:
        notes += dangling((edge for edge in edges if edge.kind != "error"), nodes, "", draft=True)
        if entry not in nodes:
            notes.append(missing_entry(entry, nodes, str(entry_place), draft=True))
        edges, missing, shut = _without_missing(edges, nodes)
        notes += shut
        for source in dict(missing):
            nodes[source] = replace(nodes[source], params=_frozen({**nodes[source].params, "missing": dict(missing)[source]}))
    entries = (entry,) if entry in nodes or not draft else ()
    inputs = _properties(interface.inputs)
    recipe = Recipe(
        name=definition.metadata.name,
        dialect="coreason",
        nodes=_frozen(nodes),
        edges=tuple(edges),
        entry=entries,
        inputs=_frozen(inputs),
        outputs=tuple(_properties(interface.outputs)),
        regions=_frozen({ROOT: Region(ROOT, entries, definition.metadata.name)}),
        init=_frozen({key: schema["default"] for key, schema in inputs.items() if _has_default(schema)}),
        limits=_frozen({"max_steps": MAX_STEPS}),
        meta=_frozen({
            "definition": definition,
            "draft": draft,
            "entry_place": entry_place,
            "missing": missing,
            "required": tuple(_required(interface.inputs)),
        }),
    )  # fmt: skip
    return recipe, notes
