"""Warnings about a coreason recipe: what a run ignores or handles differently, and what prevents publication."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.coreason.parts.field_schemas import is_required, make_field_schema, make_output_schema
from agentnb.dialects.coreason.parts.nodes import LONGEST_WAIT
from agentnb.dialects.coreason.parts.run_settings import parse_properties
from agentnb.dialects.coreason.schema import AgentNode, EvaluatorNode, GenerativeNode, HumanNode
from agentnb.errors import Problem
from agentnb.expressions.json_schema import Schema, is_types_only
from agentnb.recipe.descriptions import list_names
from agentnb.text import safe_repr
from agentnb.world.sample_data import format_fault

if TYPE_CHECKING:
    from agentnb.dialects.coreason.parts.schema_errors import RecipeInput
    from agentnb.dialects.coreason.schema import RecipeDefinition, RecipeNode
    from agentnb.sources import Path

_LIST: Final = ", and list the required keys in `required: [...]`, beside `properties`"
_SHOWN_ONLY: Final = ("guardrails", "identity", "compliance")
_IN_POLICY: Final = ("rate_limit_rpm", "rate_limit_tpm", "sensitive_tools", "allowed_mcp_servers", "legal_disclaimer")
# Policy numbers for which zero makes no sense, and those for which it does.
_ABOVE_ZERO: Final = ("timeout_seconds",)
_WAITS: Final = ("timeout_seconds", "retry_delay_seconds")
_FROM_ZERO: Final = ("max_retries", "budget_cap_usd", "token_budget")
# The fields of a described agent that have no effect: its model gets only its role and its task.
_MIND: Final = ("reasoning", "reflex", "knowledge_contexts", "memory_read", "memory_write")


def iter_notes(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """Yield every warning about a well-formed recipe."""
    yield from _check_unenforced(definition, written)
    yield from _check_numbers(definition, written)
    yield from _check_input_schemas(definition, written)
    yield from _check_fallbacks(definition, written)
    yield from _check_published(definition, written)
    yield from _check_scenarios(definition, written)
    yield from _warn_unstored_state(definition, written)


def _check_unenforced(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R127: a part of the recipe is read and shown, but not enforced."""
    for word in _SHOWN_ONLY:
        if getattr(definition, word) is not None:
            yield _warn_shown_only((word,), written)
    for word in ("mcp_servers", "python_version"):
        if definition.environment is not None and _is_set(definition.environment, word):
            yield _warn_shown_only(("environment", word), written)
    for word in _IN_POLICY:
        if definition.policy is not None and _is_set(definition.policy, word):
            yield _warn_shown_only(("policy", word), written)
    for path, asks in _ON_NODES.items():
        asking = [(n, node) for n, node in enumerate(definition.topology.nodes) if asks(node)]
        if asking:
            number = asking[0][0]
            node_path: Path = ("topology", "nodes", number)
            yield _warn_shown_only((*node_path, *path), written, f" at {list_names(node.id for _, node in asking)}")


def _is_set(part: Any, word: str) -> bool:
    return word in part.model_fields_set and getattr(part, word) not in (None, [], "")


def _pauses(node: RecipeNode) -> bool:
    interaction = node.interaction
    return interaction is not None and interaction.transparency == "interactive" and bool(interaction.triggers)


def _has_mind(node: RecipeNode) -> bool:
    profile = node.cognitive_profile if isinstance(node, AgentNode) else None
    return profile is not None and any(getattr(profile, word) for word in _MIND)


def _has_golden_cases(node: RecipeNode) -> bool:
    profile = node.evaluation_profile if isinstance(node, EvaluatorNode) else ""
    return not isinstance(profile, str) and bool(profile.golden_dataset_uri)


# Unsupported fields of nodes: the path in the node -> whether a node uses it.
_ON_NODES: Final[Mapping[tuple[str, ...], Callable[[RecipeNode], bool]]] = {
    ("collaboration",): lambda node: node.collaboration is not None,
    ("reasoning",): lambda node: node.reasoning is not None and node.reasoning.strategy != "none",
    ("interaction",): _pauses,
    ("cognitive_profile",): _has_mind,
    ("evaluation_profile", "golden_dataset_uri"): _has_golden_cases,
    ("allowed_tools",): lambda node: isinstance(node, GenerativeNode) and bool(node.allowed_tools),
    ("solver", "strategy"): lambda node: isinstance(node, GenerativeNode) and node.solver.strategy == "tree_search",
}
# Texts for the cases in which a run does something other than ignore the field.
_BUT: Final = {
    "mcp_servers": "no server is queried for tools; a simulated agent's model has none",
    "python_version": "the recipe runs in the Python that runs the session",
    "interaction": "no node pauses for an inspection",
    "cognitive_profile": "a model receives the role and the task; memory, knowledge, reflex and reasoning are shown",
    "golden_dataset_uri": "nothing is fetched; a judge sees the value and the rubric",
    "allowed_tools": "the model answers without tools",
    "strategy": "it runs as 'standard'",
    "sensitive_tools": "no call waits for an approval",
}

_OWN_AGENT: Final = "bind an agent that calls them: Session(tools={AGENT_REF: function})"


def _warn_shown_only(path: Path, written: RecipeInput, at: str = "") -> Problem:
    word = str(path[-1])
    servers = word == "mcp_servers"
    do = _OWN_AGENT if servers else "if you need it, implement it outside the recipe"
    field = "'solver.strategy' tree_search" if word == "strategy" else repr(word)
    return Problem("R127", f"{field}{at} is not enforced", str(written.locate(path, key=True)),
                   _BUT.get(word, "it is loaded and displayed, but has no effect on a run"), do, "warning")  # fmt: skip


def _check_numbers(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R139: a number is negative or not finite, and is ignored."""
    if definition.policy is not None:
        for word in (*_FROM_ZERO, *_ABOVE_ZERO):
            yield from _check_minimum(definition.policy, word, ("policy",), written)
    for number, node in enumerate(definition.topology.nodes):
        path: Path = ("topology", "nodes", number)
        if isinstance(node, HumanNode):
            yield from _check_minimum(node, "timeout_seconds", path, written)
        if node.recovery is not None:
            for word in ("max_retries", "retry_delay_seconds"):
                yield from _check_minimum(node.recovery, word, (*path, "recovery"), written)


def _check_minimum(part: Any, word: str, path: Path, written: RecipeInput) -> Iterator[Problem]:
    value = getattr(part, word)
    if value is None:
        return
    least, maximum = "more than 0" if word in _ABOVE_ZERO else "0 or more", ""
    if word in _WAITS:
        maximum = f", and of {LONGEST_WAIT:,} at most (30 years)"
    if not value >= 0 or (word in _ABOVE_ZERO and value == 0) or (word in _WAITS and value > LONGEST_WAIT):
        yield Problem(
            "R139",
            f"{word!r} is {safe_repr(value)}, which is ignored",
            str(written.locate((*path, word))),
            f"expected a number, {least}{maximum}",
            "write such a number, or leave it out",
            "warning",
        )


def _check_input_schemas(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R134: an input is described by something that is not a JSON Schema."""
    inputs = definition.interface.inputs
    inner = parse_properties(inputs)
    around: Path = ("interface", "inputs") if inner == inputs else ("interface", "inputs", "properties")
    for name, schema in inner.items():
        fault = None if is_types_only(schema) else next(Schema(schema).own_faults(), None)
        if fault is not None:
            yield Problem("R134", f"input {name!r} has a description that is not a JSON Schema",
                          str(written.locate((*around, name))), f"{fault.message}; {_describe_treatment(schema)}",
                          f"write a JSON Schema, as {{type: string}}{_LIST if is_required(schema) else ''}",
                          "warning")  # fmt: skip
    yield from _check_output_schemas(definition, written)


def _describe_treatment(schema: Any) -> str:
    """Return how an input without a valid JSON Schema is treated."""
    meant = make_field_schema(schema)
    if meant is schema or not (is_types_only(meant) or Schema(meant).wrong is None):
        return "so the input is not checked against it"
    has = " that is required" if is_required(schema) else ""
    kind = f" of type {meant['type']}" if isinstance(meant.get("type"), str) else ""
    return f"it is taken as an input{has}{kind}"


def _check_output_schemas(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R140: the outputs of a node are not described by a JSON Schema, or by more than its properties."""
    for number, node in enumerate(definition.topology.nodes):
        if isinstance(node, GenerativeNode) and not is_types_only(meant := make_output_schema(node.output_schema)):
            schema = Schema(meant)
            fault = schema.wrong or next(schema.iter_lost_references(), None)
            if fault is not None:
                place = written.locate(("topology", "nodes", number, "output_schema"))
                yield Problem("R140", f"no answer can fit the 'output_schema' of {node.id!r}", str(place),
                              format_fault(fault), "fix the schema: the node's step would fail", "warning")  # fmt: skip


def _check_fallbacks(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R141: the recovery of a node is a fallback without a target.

    R142: fallbacks form a cycle.
    """
    leads: dict[str, str] = {}
    where_by_node: dict[str, str] = {}
    for number, node in enumerate(definition.topology.nodes):
        if node.recovery is None or node.recovery.behavior != "route_to_fallback":
            continue
        path: Path = ("topology", "nodes", number, "recovery")
        if node.recovery.fallback_node_id:
            leads[node.id] = node.recovery.fallback_node_id
            where_by_node[node.id] = str(written.locate((*path, "fallback_node_id")))
        else:
            yield Problem("R141", f"the recovery of {node.id!r} has no fallback node",
                          str(written.locate((*path, "behavior"))), "so the run fails when this node fails",
                          "name a node by 'fallback_node_id', or choose another behavior", "warning")  # fmt: skip
    done: set[str] = set()
    for start in leads:
        visited: dict[str, None] = {}
        node_id = start
        while node_id in leads and node_id not in visited and node_id not in done:
            visited[node_id] = None
            node_id = leads[node_id]
        if node_id in visited:
            circle = list(visited)[list(visited).index(node_id) :]
            yield Problem("R142", f"fallbacks form a cycle: {' -> '.join([*circle, node_id])}", where_by_node[node_id],
                          "if all of them fail, the run cycles until its step limit",
                          "remove one fallback, or fall back to a node outside the cycle", "warning")  # fmt: skip
        done.update(visited)


def _check_published(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R128: a recipe is published with an agent that is not defined."""
    if definition.status == "published":
        for number, fault in definition.unready():
            place = written.locate(("topology", "nodes", number))
            yield Problem("R128", fault, str(place), "a published recipe specifies every agent",
                          "add an agent_ref, or set the recipe's status to draft")  # fmt: skip


def _check_scenarios(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R129: a scenario requires code to be executed.

    R143: two scenarios have the same id.
    """
    first: dict[str, int] = {}
    for number, scenario in enumerate(definition.tests):
        if first.setdefault(scenario.id, number) != number:
            twice = written.locate(("tests", number, "id"))
            yield Problem("R143", f"scenario id {scenario.id!r} is used twice", str(twice),
                          f"tests[{first[scenario.id]}] has the same id; scenarios run only when ids are unique",
                          "use a unique id", "warning")  # fmt: skip
        if scenario.validation_logic == "code_eval":
            place = written.locate(("tests", number, "validation_logic"))
            yield Problem("R129", f"scenario {scenario.id!r} uses 'code_eval', which is rejected", str(place),
                          "code in a recipe is never executed; the other scenarios run",
                          "compare by exact_match, fuzzy or llm_judge", "warning")  # fmt: skip


def _warn_unstored_state(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Problem]:
    """R130: a recipe's state must outlive the run."""
    state = definition.state
    if state is not None and state.persistence != "ephemeral":
        place = written.locate(("state", "persistence"))
        yield Problem("R130", f"the state is declared to persist in {state.persistence!r}", str(place),
                      "a run is stored only if its session has a store",
                      "pass store=... to the Session, a file or a database URL", "warning")  # fmt: skip
