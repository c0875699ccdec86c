"""The settings of a coreason recipe that apply to the whole run. Translation only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.coreason.parts.field_schemas import is_required, make_field_schema
from agentnb.recipe.model import Requirement, Scenario

if TYPE_CHECKING:
    from agentnb.dialects.coreason.parts.schema_errors import RecipeInput
    from agentnb.dialects.coreason.schema import RecipeDefinition

MAX_STEPS: Final = 50
# The origin of a recipe: in one mapping, or in separate fields, as in files of 0.21.
_ORIGIN: Final = ("generated_by", "generation_rationale", "original_user_intent", "confidence_score", "tested_models")


def make_limits(definition: RecipeDefinition) -> dict[str, Any]:
    """Return the recipe's own budget: steps, and its policy's limits in US dollars and tokens; below 0 means none."""
    policy = definition.policy
    caps = {} if policy is None else {"max_cost_usd": policy.budget_cap_usd, "max_tokens": policy.token_budget}
    return {"max_steps": MAX_STEPS, **{name: cap for name, cap in caps.items() if cap is not None and cap >= 0}}


def iter_requirements(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Requirement]:
    """Yield the conditions on the board that must be true before the first step."""
    for number, rule in enumerate(definition.requirements):
        yield Requirement(rule.evaluate, rule.message, rule.required, written.locate(("requirements", number)))


def iter_scenarios(definition: RecipeDefinition, written: RecipeInput) -> Iterator[Scenario]:
    """Yield the recipe's own tests."""
    for number, test in enumerate(definition.tests):
        place = written.locate(("tests", number))
        yield Scenario(test.id, test.inputs, test.expected_output, test.validation_logic, test.description, place)


def get_origin(definition: RecipeDefinition) -> dict[str, Any]:
    """Return the origin of a recipe, for its traces: empty if it does not state one."""
    from agentnb.dialects.coreason.schema import dump_model

    included = {*_ORIGIN, "provenance"}
    metadata = dump_model(
        definition.metadata, ("metadata",), exclude_none=True, exclude_defaults=True, include=included
    )
    origin: dict[str, Any] = {key: metadata[key] for key in _ORIGIN if key in metadata}
    provenance = metadata.get("provenance")
    if isinstance(provenance, dict):
        origin |= provenance
    elif provenance is not None:
        origin["provenance"] = provenance
    return {"provenance": origin} if origin else {}


def parse_inputs(described: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...], dict[str, Any] | None]:
    """Return an interface's inputs: the schema of each, the required names, and the schema of all, if there is one.

    A type's name is short for its schema, and `required: true` within an input makes it required.
    """
    properties = parse_properties(described)
    inputs = {name: make_field_schema(schema) for name, schema in properties.items()}
    marked = [name for name, schema in properties.items() if is_required(schema)]
    if properties == described:
        return inputs, tuple(marked), None
    named = described.get("required")
    listed = [name for name in named if isinstance(name, str) and name in properties] if isinstance(named, list) else []
    return inputs, tuple(dict.fromkeys([*listed, *marked])), {**described, "properties": inputs}


def parse_properties(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> schema of an interface: a map of properties unchanged, or the properties of a JSON Schema."""
    inner = described.get("properties")
    if isinstance(inner, Mapping) and described.get("type", "object") == "object":
        return dict(inner)
    return dict(described)
