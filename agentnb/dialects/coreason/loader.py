"""loader: a coreason recipe, as a file's content or a RecipeDefinition, becomes a Recipe. Translation only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentnb.dialects.coreason.ways import edges_of, ids, settled, twice
from agentnb.errors import Place, Problem
from agentnb.recipe.checks import dangling, missing_entry
from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.sources import Source, plain_source

if TYPE_CHECKING:
    from agentnb.dialects.coreason.mistakes import Written
    from agentnb.dialects.coreason.schema import AgentNode, RecipeDefinition, RecipeNode

MAX_STEPS = 50
# Parts of a node that its kind may ask for, beside the fields of its type.
_KEPT = ("recovery", "reasoning", "interaction", "collaboration", "visualization", "model_policy", "cognitive_profile")
# What every node may have, and what therefore says nothing about its type.
_COMMON = {"id", "type", "metadata", "presentation", *_KEPT}


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
        source = _dumped(given)
    problems = [*source.problems, *word_problems(source)]
    if not isinstance(source.content, dict):
        return None, problems
    written = Written(source, source.content)
    definition, found = _definition(given, written)
    problems += found
    edges, known = list(edges_of(written)), ids(written)
    problems += twice(written)
    if definition is None:
        # The checks will not see this recipe, so its graph is looked at here.
        draft = written.at(("topology", "status")) == "draft"
        entry = written.at(("topology", "entry_point"))
        problems += dangling(edges, known, "", draft=draft)
        if written.steps is None and isinstance(entry, str) and entry not in known:
            place = written.place(("topology", "entry_point"))
            problems.append(missing_entry(entry, known, str(place), draft=draft))
        return None, problems
    return _recipe(definition, written, edges), problems


def _dumped(given: Any) -> Source:
    """Return a RecipeDefinition as a source; one of another package's as JSON, for its enums are not ours."""
    from agentnb.dialects.coreason.schema import RecipeDefinition

    mode = "python" if isinstance(given, RecipeDefinition) else "json"
    content = given.model_dump(mode=mode, by_alias=True)
    name = getattr(getattr(given, "metadata", None), "name", "")
    return plain_source(content, f"<RecipeDefinition {name!r}>")


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


def _recipe(definition: RecipeDefinition, written: Written, edges: list[Edge]) -> Recipe:
    from agentnb.dialects.coreason.notes import notes

    topology, interface, name = definition.topology, definition.interface, definition.metadata.name
    draft = topology.status == "draft" and definition.status != "published"
    nodes: dict[str, Node] = {}
    for number, node in enumerate(topology.nodes):
        nodes.setdefault(node.id, _node(node, written.place(("topology", "nodes", number, "id"))))
    ways = settled(edges, nodes, written, draft=draft)
    entry, entry_place = topology.entry_point, written.place(("topology", "entry_point"))
    told = [*notes(definition, written), *ways.notes]
    if draft and entry not in nodes:
        told.append(missing_entry(entry, nodes, str(entry_place), draft=True))
    nodes |= {name: Node(name, "missing", place=place) for name, place in ways.missing.items()}
    if draft and entry:
        nodes.setdefault(entry, Node(entry, "missing", place=entry_place))
    entries = (entry,)
    inputs, state = _properties(interface.inputs), definition.state
    return Recipe(
        name=name,
        dialect="coreason",
        nodes=_frozen(nodes),
        edges=ways.edges,
        entry=entries,
        inputs=_frozen(inputs),
        outputs=tuple(_properties(interface.outputs)),
        regions=_frozen({ROOT: Region(ROOT, entries, name)}),
        init=_frozen(_defaults(_properties(state.properties) if state else {}) | _defaults(inputs)),
        limits=_frozen({"max_steps": MAX_STEPS}),
        meta=_frozen({
            "definition": definition,
            "draft": draft,
            "entry_place": entry_place,
            "required": _required(interface.inputs),
        }),
        notes=tuple(told),
    )  # fmt: skip


def _node(node: RecipeNode, place: Place) -> Node:
    """Return a node as its kind needs it; what there is beyond that is kept in `params` under the file's own words."""
    params = {key: _plain(value) for key in _KEPT if (value := getattr(node, key, None)) is not None}
    inputs: dict[str, tuple[str, ...]] | None = None
    writes: tuple[str, ...] = ()
    match node.type:
        case "agent":
            inputs = {argument: (key,) for argument, key in node.inputs_map.items()}
            params |= _agent(node)
            simulated = params["simulated"] or ({"output": None},)
            writes = tuple(dict.fromkeys(key for answer in simulated for key in answer))
        case "human":
            writes = ("response",)
            params |= {"prompt": node.prompt, "output": "response", "timeout": node.timeout_seconds}
            params["role"] = node.required_role
        case "router":
            params |= {"input_key": (node.input_key,), "routes": _frozen(node.routes), "default": node.default_route}
        case "evaluator":
            writes = (node.feedback_variable,)
            params |= node.model_dump(exclude=_COMMON)
        case "generative":
            params |= node.model_dump(exclude=_COMMON)
    return Node(
        id=node.id,
        kind=node.type,
        label=(node.presentation and node.presentation.label) or "",
        inputs=None if inputs is None else _frozen(inputs),
        reads=_reads(node),
        writes=writes,
        params=_frozen({key: value for key, value in params.items() if value is not None}),
        place=place,
    )


def _agent(node: AgentNode) -> dict[str, Any]:
    """Return who answers: a name to bind, what it is told first, and where an answer that is no mapping goes."""
    named = isinstance(node.agent_ref, str)
    params: dict[str, Any] = {"ref": node.agent_ref if named else node.id, "output": "output"}
    params["prompt"] = node.system_prompt_override
    params["wanted"] = None if named else _plain(node.agent_ref)
    params["simulated"] = _simulated(node.metadata.get("simulated"))
    return params


def _simulated(given: Any) -> tuple[Mapping[str, Any], ...] | None:
    """Return what a node's metadata say that its simulated agent answers: one mapping, or several in turn."""
    answers = given if isinstance(given, list) else [given]
    return tuple(answers) if answers and all(isinstance(answer, Mapping) for answer in answers) else None


def _reads(node: RecipeNode) -> tuple[str, ...]:
    match node.type:
        case "agent":
            return tuple(dict.fromkeys(node.inputs_map.values()))
        case "router":
            return (node.input_key,)
        case "evaluator":
            return (node.target_variable,)
    return ()


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


def _properties(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> schema of an interface: a map of properties as it is, or the properties of a JSON Schema."""
    inner = described.get("properties")
    if isinstance(inner, Mapping) and described.get("type", "object") == "object":
        return dict(inner)
    return dict(described)


def _required(described: Mapping[str, Any]) -> tuple[str, ...]:
    names = described.get("required")
    known = _properties(described)
    return tuple(name for name in names if name in known) if known != described and isinstance(names, list) else ()


def _defaults(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: schema["default"]
        for key, schema in properties.items()
        if isinstance(schema, Mapping) and "default" in schema
    }


def _frozen(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(mapping))
