"""Load a coreason recipe, as a file's content or a RecipeDefinition, as a Recipe. Translation only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentnb.dialects.coreason.parts.edges import check_duplicates, collect_ids, iter_edges, iter_idle_fallbacks, settle
from agentnb.dialects.coreason.parts.nodes import make_node
from agentnb.dialects.coreason.parts.parallel_sections import Sections, make_sections
from agentnb.dialects.coreason.parts.run_settings import (
    get_origin,
    iter_requirements,
    iter_scenarios,
    make_limits,
    parse_inputs,
    parse_properties,
)
from agentnb.errors import Problem
from agentnb.recipe.checks import iter_dangling_edges, make_entry_problem
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region, freeze_mapping
from agentnb.sources import Source, make_plain_source
from agentnb.text import safe_str

if TYPE_CHECKING:
    from agentnb.dialects.coreason.parts.schema_errors import RecipeInput
    from agentnb.dialects.coreason.schema import RecipeDefinition


def recognize(content: object) -> bool:
    """Return True if this looks like a coreason recipe: by its keys, or by its class."""
    if isinstance(content, Mapping):
        is_coreason = safe_str(content.get("apiVersion", "")).startswith("coreason.ai/")
        return is_coreason or "topology" in content or {"interface", "metadata"} <= content.keys()
    return any(cls.__name__ == "RecipeDefinition" for cls in type(content).__mro__) and hasattr(content, "model_dump")


def load(source: Source) -> tuple[Recipe | None, list[Problem]]:
    """Return the recipe, if one can be made, and the problems beyond those that the checks will find."""
    from agentnb.dialects.coreason.parts.schema_errors import RecipeInput, check_words

    parsed = None if isinstance(source.content, Mapping) else source.content
    if parsed is not None:
        source = _dump(parsed)
    problems = [*source.problems, *check_words(source)]
    if not isinstance(source.content, dict):
        return None, problems
    written = RecipeInput(source, source.content)
    definition, faults = _parse_definition(parsed, written)
    problems += faults
    edges, known = list(iter_edges(written)), collect_ids(written)
    problems += check_duplicates(written)
    if definition is None:
        # The checks will not see this recipe, so its graph is checked here.
        draft = written.get_value(("topology", "status")) == "draft"
        entry = written.get_value(("topology", "entry_point"))
        problems += iter_dangling_edges([*edges, *iter_idle_fallbacks(written)], known, "", draft=draft)
        if written.steps is None and isinstance(entry, str) and entry not in known:
            place = written.locate(("topology", "entry_point"))
            problems.append(make_entry_problem(entry, known, str(place), draft=draft))
        return None, problems
    return _make_recipe(definition, written, edges), problems


def _dump(definition: Any) -> Source:
    """Return a RecipeDefinition as a source; one of another package as JSON, because its enums are not ours."""
    from agentnb.dialects.coreason.schema import RecipeDefinition, dump_model

    content = (
        definition.model_dump(by_alias=True) if isinstance(definition, RecipeDefinition) else dump_model(definition)
    )
    name = getattr(getattr(definition, "metadata", None), "name", "")
    return make_plain_source(content, f"<RecipeDefinition {name!r}>")


def _parse_definition(definition: Any, written: RecipeInput) -> tuple[RecipeDefinition | None, list[Problem]]:
    from pydantic import ValidationError

    from agentnb.dialects.coreason.parts.schema_errors import iter_schema_problems
    from agentnb.dialects.coreason.schema import GRAPH_CHECKED_ELSEWHERE, RecipeDefinition

    if isinstance(definition, RecipeDefinition):
        return definition, []
    try:
        return RecipeDefinition.model_validate(written.content, context={GRAPH_CHECKED_ELSEWHERE: True}), []
    except ValidationError as error:
        return None, list(iter_schema_problems(error, written))


def _make_recipe(definition: RecipeDefinition, written: RecipeInput, edges: list[Edge]) -> Recipe:
    from agentnb.dialects.coreason.parts.warnings import iter_notes

    interface, name, entries = definition.interface, definition.metadata.name, (definition.topology.entry_point,)
    draft = definition.topology.status == "draft" and definition.status != "published"
    graph = _make_graph(definition, written, edges, draft=draft)
    inputs, required, input_schema = parse_inputs(interface.inputs)
    state = definition.state
    return Recipe(
        name=name,
        dialect="coreason",
        nodes=freeze_mapping(graph.nodes),
        edges=graph.edges,
        entry=entries,
        inputs=freeze_mapping(inputs),
        outputs=tuple(parse_properties(interface.outputs)),
        regions=freeze_mapping({ROOT: Region(ROOT, entries, name), **graph.regions}),
        timeouts="error",
        init=freeze_mapping(
            _collect_defaults(parse_properties(state.properties) if state else {}) | _collect_defaults(inputs)
        ),
        limits=freeze_mapping(make_limits(definition)),
        requires=tuple(iter_requirements(definition, written)),
        scenarios=tuple(iter_scenarios(definition, written)),
        meta=freeze_mapping({
            "definition": definition,
            "about": get_origin(definition),
            "draft": draft,
            "entry_place": written.locate(("topology", "entry_point")),
            "required": required,
            "input_schema": input_schema,
        }),
        notes=(*iter_notes(definition, written), *graph.notes),
    )  # fmt: skip


def _make_graph(definition: RecipeDefinition, written: RecipeInput, edges: list[Edge], *, draft: bool) -> Sections:
    """Return the nodes and edges as run, with the forks that run in parallel, and the warnings about them."""
    topology, policy, model = definition.topology, definition.policy, definition.default_model_policy
    parallel = policy is not None and policy.execution_mode == "parallel"
    nodes: dict[str, Node] = {}
    for number, node in enumerate(topology.nodes):
        nodes.setdefault(node.id, make_node(node, written.locate(("topology", "nodes", number, "id")), policy, model))
    settled = settle(edges, nodes, written, draft=draft, parallel=parallel)
    entry, entry_place, notes = topology.entry_point, written.locate(("topology", "entry_point")), [*settled.notes]
    if draft and entry not in nodes:
        notes.append(make_entry_problem(entry, nodes, str(entry_place), draft=True))
    nodes |= {name: Node(name, "missing", place=place) for name, place in settled.missing.items()}
    if draft and entry:
        nodes.setdefault(entry, Node(entry, "missing", place=entry_place))
    graph = make_sections(nodes, settled.edges, entry) if parallel else Sections(nodes, settled.edges)
    return graph._replace(notes=(*notes, *graph.notes))


def _collect_defaults(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: schema["default"]
        for key, schema in properties.items()
        if isinstance(schema, Mapping) and "default" in schema
    }
