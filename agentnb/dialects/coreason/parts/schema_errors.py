"""A coreason recipe as written, for the Problems of agentnb.dialects.pydantic_errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentnb.dialects import pydantic_errors
from agentnb.dialects.coreason.schema import BESIDE_STEPS, NODE_TYPES, RecipeDefinition, expand
from agentnb.dialects.pydantic_errors import check_words, iter_schema_problems
from agentnb.sources import Path, Source

__all__ = ["RecipeInput", "check_words", "iter_schema_problems"]


class RecipeInput(pydantic_errors.ValidatedInput):
    """A recipe's content with its topology expanded; places are those of the source."""

    def __init__(self, source: Source, content: Mapping[str, Any]) -> None:
        topology = content.get("topology")
        full = {**content, "topology": expand(topology)} if "topology" in content else dict(content)
        super().__init__(source, full, RecipeDefinition)
        self.steps: Path | None = None
        if self.content.get("topology") is not topology:
            self.steps = ("topology",) if isinstance(topology, list) else ("topology", "steps")

    def to_source_path(self, path: Path) -> Path:
        """Return the path in the source of a part of the topology."""
        if self.steps is None or path[:1] != ("topology",) or len(path) == 1:
            return path
        match path[1:]:
            case ("nodes", *rest):
                return (*self.steps, *rest)
            case ("edges", int() as number, *_):
                return (*self.steps, number)
            case (str() as key,) if key.endswith(BESIDE_STEPS):
                return ("topology", key.removesuffix(BESIDE_STEPS))
        return ("topology",)

    def explain_missing(self, path: Path, needed: list[str], value: Any) -> str:
        """Return why a key is required, or what was probably meant if it is missing."""
        if path[-1] == "type" and "type" not in needed:
            return f"the 'type' of a node is one of: {', '.join(NODE_TYPES)}"
        why = super().explain_missing(path, needed, value)
        if path[-1] == "topology" and "workflow" in value:
            why += "; a file with 'workflow' describes one agent (ManifestV2), not a recipe"
        return why

    def explain_unknown(self, path: Path) -> tuple[str, str, str] | None:
        """Return (key, why, do) for a key beside the steps of a short topology."""
        key = str(path[-1])
        if not key.endswith(BESIDE_STEPS):
            return None
        order = "remove it, or write the topology with nodes, edges and entry_point"
        return key.removesuffix(BESIDE_STEPS), "'steps' cannot be combined with other keys", order

    def list_mappings(self, key: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the mappings in a list of the topology, with their indexes; other items are left out."""
        value = self.get_value(("topology", key))
        return [(n, item) for n, item in enumerate(value) if isinstance(item, dict)] if isinstance(value, list) else []
