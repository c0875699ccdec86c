"""around: what stands around the graph of a coreason recipe and holds for its whole run. Translation only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.coreason.shapes import field_schema, is_required
from agentnb.recipe.model import Requirement, Scenario

if TYPE_CHECKING:
    from agentnb.dialects.coreason.mistakes import Written
    from agentnb.dialects.coreason.schema import RecipeDefinition

MAX_STEPS: Final = 50
# What a recipe says of where it comes from: in one mapping, or in fields of their own, as files of 0.21 have it.
_ORIGIN: Final = ("generated_by", "generation_rationale", "original_user_intent", "confidence_score", "tested_models")


def limits(definition: RecipeDefinition) -> dict[str, Any]:
    """Return the recipe's own budget: steps, and what its policy allows in US dollars and tokens; below 0 is none."""
    policy = definition.policy
    caps = {} if policy is None else {"max_cost_usd": policy.budget_cap_usd, "max_tokens": policy.token_budget}
    return {"max_steps": MAX_STEPS, **{name: cap for name, cap in caps.items() if cap is not None and cap >= 0}}


def requirements(definition: RecipeDefinition, written: Written) -> Iterator[Requirement]:
    """Yield what must hold of the board before the first step."""
    for number, rule in enumerate(definition.requirements):
        yield Requirement(rule.evaluate, rule.message, rule.required, written.place(("requirements", number)))


def scenarios(definition: RecipeDefinition, written: Written) -> Iterator[Scenario]:
    """Yield the recipe's own tests."""
    for number, test in enumerate(definition.tests):
        place = written.place(("tests", number))
        yield Scenario(test.id, test.inputs, test.expected_output, test.validation_logic, test.description, place)


def origin(definition: RecipeDefinition) -> dict[str, Any]:
    """Return where a recipe comes from, for its traces: nothing where it does not say."""
    told = definition.metadata.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    found: dict[str, Any] = {key: told[key] for key in _ORIGIN if key in told}
    provenance = told.get("provenance")
    if isinstance(provenance, dict):
        found |= provenance
    elif provenance is not None:
        found["provenance"] = provenance
    return {"provenance": found} if found else {}


def inputs_of(described: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...], dict[str, Any] | None]:
    """Return an interface's inputs: the schema of each, the names that it requires, the schema of all where it has one.

    A type's name stands for the schema of that type, and `required: true` within an input says that it has to be given.
    """
    given = properties_of(described)
    inputs = {name: field_schema(schema) for name, schema in given.items()}
    marked = [name for name, schema in given.items() if is_required(schema)]
    if given == described:
        return inputs, tuple(marked), None
    named = described.get("required")
    listed = [name for name in named if name in given] if isinstance(named, list) else []
    return inputs, tuple(dict.fromkeys([*listed, *marked])), {**described, "properties": inputs}


def properties_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> schema of an interface: a map of properties as it is, or the properties of a JSON Schema."""
    inner = described.get("properties")
    if isinstance(inner, Mapping) and described.get("type", "object") == "object":
        return dict(inner)
    return dict(described)
