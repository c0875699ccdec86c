"""packs: behaviours, tools, types and settings that belong together, loaded into a runtime under the pack's name.

The decorators here make what those of the package make, and register nothing: a pack lists what it holds.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from agentnb.dialects.activegraph import behaviors as registering
from agentnb.dialects.activegraph import thinking, tools
from agentnb.dialects.activegraph.errors import PackSchemaViolation, PackValidationError
from agentnb.errors import Problem


class EmptySettings(BaseModel):
    """The settings of a pack that has none."""


@dataclass(frozen=True)
class ObjectType:
    """A type of objects, whose data is as `schema`, a pydantic model, says."""

    name: str
    schema: Any
    description: str = ""


@dataclass(frozen=True)
class RelationType:
    """A type of relations, between objects of these types; of any, where none are named."""

    name: str
    source_types: tuple[str, ...] = ()
    target_types: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class PackPolicy:
    """Types of objects that a pack's behaviours create only where a person has approved it."""

    name: str
    requires_approval: tuple[str, ...] = ()
    auto_apply: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackPrompt:
    """A text of a pack, with the digest of what it says."""

    name: str
    version: str
    body: str
    content_hash: str = ""

    def __post_init__(self) -> None:
        """Work out the digest, where none is given."""
        if not self.content_hash:
            object.__setattr__(self, "content_hash", hashlib.sha256(self.body.encode()).hexdigest())


@dataclass(frozen=True, eq=False)
class Pack:
    """What belongs together. Two packs of one name and version are the same."""

    name: str
    version: str
    description: str = ""
    object_types: tuple[ObjectType, ...] = ()
    relation_types: tuple[RelationType, ...] = ()
    behaviors: tuple[Any, ...] = ()
    tools: tuple[Any, ...] = ()
    policies: tuple[PackPolicy, ...] = ()
    prompts: tuple[PackPrompt, ...] = ()
    settings_schema: Any = EmptySettings
    capabilities: tuple[Any, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pack) and (self.name, self.version) == (other.name, other.version)

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def prompt_manifest(self) -> dict[str, dict[str, str]]:
        """Return its texts by name, each as version and digest."""
        return {each.name: {"version": each.version, "hash": each.content_hash} for each in self.prompts}

    def surface(self, settings: Any) -> dict[str, Any]:
        """Return what the log tells of it when it is loaded."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "object_types": [each.name for each in self.object_types],
            "relation_types": [each.name for each in self.relation_types],
            "behaviors": [f"{self.name}.{each.name}" for each in self.behaviors],
            "tools": [f"{self.name}.{each.name}" for each in self.tools],
            "policies": [each.name for each in self.policies],
            "prompts": self.prompt_manifest(),
            "settings": settings.model_dump(mode="json"),
            "capabilities": list(self.capabilities),
        }


def settings_of(pack: Pack, given: Any) -> Any:
    """Return the settings of a pack: as they are, else read from a mapping.

    R322: the settings of a pack are not as its schema says.

    Raises:
        PackValidationError: R322, they are not as its schema says.
    """
    if isinstance(given, pack.settings_schema):
        return given
    try:
        return pack.settings_schema.model_validate(dict(given or {}))
    except ValidationError as error:
        raise PackValidationError(
            Problem("R322", f"the settings of pack {pack.name!r} do not fit: {error}", f"pack {pack.name!r}",
                    f"they are a {pack.settings_schema.__name__}", "pass load_pack(pack, settings={...}) as it says")
        ) from None  # fmt: skip


def bound_to(behavior: Any, settings: Any) -> Callable[[], dict[str, Any]]:
    """Return what a behaviour is called with besides: the settings, where one of its arguments is annotated so."""
    function = getattr(behavior, "handler", None) or behavior.fn
    name = type(settings).__name__
    wanted = [each.name for each in inspect.signature(function).parameters.values()
              if each.annotation in (type(settings), name)]  # fmt: skip
    return lambda: dict.fromkeys(wanted, settings)


class Schemas:
    """The types of the packs of one runtime: what is created is as they say."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        self.objects: dict[str, tuple[ObjectType, str]] = {}
        self.relations: dict[str, tuple[RelationType, str]] = {}
        self.find = find

    def add(self, pack: Pack) -> None:
        """Take the types of a pack."""
        self.objects |= {each.name: (each, pack.name) for each in pack.object_types}
        self.relations |= {each.name: (each, pack.name) for each in pack.relation_types}

    def __call__(self, what: str, type_: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return data as its schema completes it.

        R323: what is created is not as the pack of its type says.

        Raises:
            PackSchemaViolation: R323, it does not fit.
        """
        if what == "object" and type_ in self.objects:
            declared, pack = self.objects[type_]
            try:
                return dict(declared.schema.model_validate(dict(data)).model_dump(mode="json"))
            except ValidationError as error:
                raise _violation(f"the data of a {type_!r} does not fit: {error}", pack) from None
        if what == "relation" and type_ in self.relations:
            relation, pack = self.relations[type_]
            for end, allowed in (("source", relation.source_types), ("target", relation.target_types)):
                found = self.find(data[end])
                if allowed and found is not None and found not in allowed:
                    told = f"the {end} of a {type_!r} is a {found!r}, and should be one of: {', '.join(allowed)}"
                    raise _violation(told, pack)
        return data


def _violation(what: str, pack: str) -> PackSchemaViolation:
    return PackSchemaViolation(
        Problem("R323", what, f"pack {pack!r}", "what is of a pack's type is as the pack says",
                "give what the schema asks for")
    )  # fmt: skip


def _unregistered(maker: Callable[..., Callable[[Any], Any]], registry: list[Any]) -> Callable[..., Any]:
    @functools.wraps(maker)
    def made(*given: Any, **words: Any) -> Callable[[Any], Any]:
        decorate = maker(*given, **words)

        def decorated(fn: Any) -> Any:
            found = decorate(fn)
            del registry[-1]
            return found

        return decorated

    return made


behavior = _unregistered(registering.behavior, registering._REGISTRY)  # noqa: SLF001  (it belongs to this dialect)
relation_behavior = _unregistered(registering.relation_behavior, registering._REGISTRY)  # noqa: SLF001
llm_behavior = _unregistered(thinking.llm_behavior, registering._REGISTRY)  # noqa: SLF001
tool = _unregistered(tools.tool, tools._REGISTRY)  # noqa: SLF001

__all__ = ["EmptySettings", "ObjectType", "Pack", "PackPolicy", "PackPrompt", "RelationType", "Schemas", "behavior",
           "bound_to", "llm_behavior", "relation_behavior", "settings_of", "tool"]  # fmt: skip
