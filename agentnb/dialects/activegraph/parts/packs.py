"""Packs: behaviors, tools, types and settings that are loaded into a runtime together, under the pack's name.

The decorators here work like those of the package, but register nothing: a pack lists its contents.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ValidationError

from agentnb.dialects.activegraph.errors import (
    PackNotFoundError,
    PackPromptLoadError,
    PackSchemaViolation,
    PackSettingsMissingError,
    PackValidationError,
)
from agentnb.dialects.activegraph.parts import behaviors as registering
from agentnb.dialects.activegraph.parts import llm_delivery, tools
from agentnb.dialects.activegraph.parts.events import to_plain
from agentnb.dialects.activegraph.parts.run_config import LoadedPack, Policy
from agentnb.errors import Problem, did_you_mean, with_article
from agentnb.text import safe_repr

ENTRY_POINTS: Final = "agentnb.activegraph_packs"  # the group under which a distribution names its packs
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*\n(.*)", re.DOTALL)
_PARTS: Final = {"object_types": "object type", "relation_types": "relation type", "behaviors": "behavior",
                 "tools": "tool", "policies": "policy", "prompts": "prompt", "capabilities": "capability"}  # fmt: skip


class _Frozen:
    """Converts lists to tuples, because a pack is immutable."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        self.check()

    def check(self) -> None:
        """Check the fields."""


class EmptySettings(BaseModel):
    """The settings of a pack without settings."""


@dataclass(frozen=True)
class ObjectType(_Frozen):
    """An object type whose data is validated by `schema`, a pydantic model."""

    name: str
    schema: Any
    description: str = ""

    def check(self) -> None:
        """Check the name and the schema.

        Raises:
            PackValidationError: R230, the name or the schema is not valid.
        """
        _check_name(self.name, "an object type")
        _check_model(self.schema, f"object type {self.name!r}", "schema")


@dataclass(frozen=True)
class RelationType(_Frozen):
    """A type of relations between objects of these types, or of any types if none are listed."""

    name: str
    source_types: tuple[str, ...] = ()
    target_types: tuple[str, ...] = ()
    description: str = ""

    def check(self) -> None:
        """Check the name.

        Raises:
            PackValidationError: R230, the name is not valid.
        """
        _check_name(self.name, "a relation type")


@dataclass(frozen=True)
class PackPolicy(_Frozen):
    """Object types that the behaviors of a pack create only after a person has approved."""

    name: str
    requires_approval: tuple[str, ...] = ()
    auto_apply: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackPrompt:
    """A prompt text of a pack, with the digest of its content."""

    name: str
    version: str
    body: str
    content_hash: str = ""

    def __post_init__(self) -> None:
        """Compute the digest if it is not passed."""
        if not self.content_hash:
            object.__setattr__(self, "content_hash", self.compute_hash(self.body))

    @staticmethod
    def compute_hash(body: str) -> str:
        """Return the digest of a text: "sha256:" and 16 hexadecimal digits."""
        return f"sha256:{hashlib.sha256(body.encode()).hexdigest()[:16]}"

    @classmethod
    def from_body(cls, name: str, version: str, body: str) -> Self:
        """Create a prompt, with the digest of its text."""
        return cls(name, version, body)


@dataclass(frozen=True, eq=False)
class Pack(_Frozen):
    """A pack. Two packs with the same name and version are equal.

    Raises:
        PackValidationError: R230, the name, the version or the settings schema is not valid, two parts of one kind have
            the same name, or a behavior or tool is registered globally, so that it would also run without the pack.
    """

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

    def check(self) -> None:
        """Check the contents."""
        where = f"pack {self.name!r}"
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise _make_invalid_error(f"{safe_repr(self.name)} is not a valid name of a pack", where,
                           "use lower-case letters, digits and underscores, beginning with a letter")  # fmt: skip
        if not isinstance(self.version, str) or not self.version:
            raise _make_invalid_error(
                f"{safe_repr(self.version)} is not a version", where, 'use a string such as "0.1.0"'
            )
        _check_model(self.settings_schema, where, "settings_schema")
        for part, kind in _PARTS.items():
            members = getattr(self, part)
            if not isinstance(members, Collection):
                raise _make_invalid_error(f"{part}={safe_repr(members)} is not a list", where, f"list each {kind}")
            if part != "capabilities" and (nameless := [each for each in members if not hasattr(each, "name")]):
                raise _make_invalid_error(
                    f"{safe_repr(nameless[0])} in {part} is not {with_article(kind)}", where, f"list each {kind} itself"
                )
            names = [each.name for each in members if hasattr(each, "name")]
            twice = next((name for name, count in Counter(names).items() if count > 1), None)
            if twice is not None:
                raise _make_invalid_error(f"duplicate {kind} name {twice!r}", where, "reuse one of them")
        for kind, items, known in (
            ("behavior", self.behaviors, registering.get_registry()),
            ("tool", self.tools, tools.get_tool_registry()),
        ):
            for each in items:
                if any(each is one for one in known):
                    raise _make_invalid_error(
                        f"{kind} {each.name!r} is registered globally, not declared via a pack's decorator",
                        where,
                        f"decorate it with {__name__}.{kind}",
                    )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pack) and (self.name, self.version) == (other.name, other.version)

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def prompt_manifest(self) -> dict[str, dict[str, str]]:
        """Return its prompts: name -> version and digest."""
        return {each.name: {"version": each.version, "hash": each.content_hash} for each in self.prompts}

    def removed_surface(self) -> dict[str, Any]:
        """Return the payload that the log records when the pack is disabled."""
        names = {part: [f"{self.name}.{each.name}" for each in getattr(self, part)] for part in ("behaviors", "tools")}
        types = {part: [each.name for each in getattr(self, part)] for part in ("object_types", "relation_types")}
        return {"name": self.name, "version": self.version,
                **{part: sorted(members) for part, members in (names | types).items()}}  # fmt: skip

    def surface(self, settings: Any) -> dict[str, Any]:
        """Return the payload that the log records when the pack is loaded."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "object_types": [each.name for each in self.object_types],
            "relation_types": [each.name for each in self.relation_types],
            "behaviors": [f"{self.name}.{each.name}" for each in self.behaviors],
            "tools": [f"{self.name}.{each.name}" for each in self.tools],
            "policies": [f"{self.name}.{each.name}" for each in self.policies],
            "prompts": self.prompt_manifest(),
            "settings": to_plain(settings),
            "capabilities": list(self.capabilities),
        }


def _make_invalid_error(what: str, where: str, do: str) -> PackValidationError:
    """R230: a pack, or a part of it, is not valid as constructed."""
    return PackValidationError(Problem("R230", what, where, "a pack is checked when it is constructed", do))


def _check_name(name: Any, kind: str) -> None:
    if not isinstance(name, str) or not name:
        raise _make_invalid_error(f"{safe_repr(name)} is not a name", kind, "use a non-empty string")


def _check_model(schema: Any, where: str, argument: str) -> None:
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        raise _make_invalid_error(f"{argument}={safe_repr(schema)} is not a pydantic BaseModel subclass", where,
                       f"pass a class that inherits from pydantic.BaseModel as {argument}")  # fmt: skip


def build_settings(pack: Pack, settings: Any) -> Any:
    """Return the settings of a pack as an instance of its schema.

    R322: the settings of a pack do not fit its schema.

    Raises:
        PackSettingsMissingError: R322, required settings are missing, or a setting is not valid.
    """
    if isinstance(settings, pack.settings_schema):
        return settings
    try:
        return pack.settings_schema.model_validate(dict(settings or {}))
    except (ValidationError, TypeError, ValueError) as error:
        raise PackSettingsMissingError(
            Problem("R322", f"the settings of pack {pack.name!r} are not valid: {error}", f"pack {pack.name!r}",
                    f"they are a {pack.settings_schema.__name__}", "pass load_pack(pack, settings={...}) accordingly")
        ) from None  # fmt: skip


# -- prompts -----------------------------------------------------------------------------------------------------------


def load_prompts_from_dir(path: str | Path) -> tuple[PackPrompt, ...]:
    """Return the prompts in the Markdown files of a folder, sorted by file name.

    A file begins with TOML front matter between two lines of `---`: `version` is required, `name` defaults to the
    file's stem. The rest is the prompt. Hidden files and symbolic links are skipped.

    R231: a prompt file, or the folder of them, cannot be loaded.

    Raises:
        PackPromptLoadError: R231, the folder does not exist, or a file is not valid.
    """
    folder = Path(path)
    if not folder.is_dir():
        fault = "is not a directory" if folder.exists() else "does not exist"
        raise _make_unreadable_error(f"the folder {str(folder)!r} {fault}", folder)
    prompts: dict[str, PackPrompt] = {}
    for file in sorted(folder.glob("*.md")):
        if file.name.startswith(".") or file.is_symlink():
            continue
        prompt = _load_prompt(file)
        if prompt.name in prompts:
            raise _make_unreadable_error(f"two prompts have the name {prompt.name!r}", file)
        prompts[prompt.name] = prompt
    return tuple(prompts.values())


def _load_prompt(file: Path) -> PackPrompt:
    try:
        matched = _FRONT_MATTER.fullmatch(file.read_text(encoding="utf-8"))
        if matched is None:
            raise _make_unreadable_error("the file has no frontmatter", file)
        fields = tomllib.loads(matched[1])
    except (OSError, UnicodeDecodeError) as error:
        raise _make_unreadable_error(f"the file cannot be read: {error}", file) from None
    except tomllib.TOMLDecodeError as error:
        raise _make_unreadable_error(f"the frontmatter is not TOML: {error}", file) from None
    if "version" not in fields:
        raise _make_unreadable_error("the frontmatter has no version", file)
    return PackPrompt(str(fields.get("name") or file.stem), str(fields["version"]), matched[2])


def _make_unreadable_error(what: str, where: Path) -> PackPromptLoadError:
    return PackPromptLoadError(
        Problem("R231", what, str(where), "a prompt is a Markdown file that starts with TOML between lines of ---",
                'begin it with the lines: ---, version = "1.0.0", ---')
    )  # fmt: skip


# -- installed packs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DiscoveredPack:
    """An installed pack: its name, its version, the entry point that names it, and the pack itself."""

    name: str
    version: str
    entry_point: str
    pack: Pack


def discover() -> tuple[DiscoveredPack, ...]:
    """Return the packs that installed distributions declare under the entry point group `agentnb.activegraph_packs`.

    Their modules are imported. An entry point that is not a `Pack` of this dialect is skipped.
    """
    return tuple(_discover())


def _discover() -> Iterator[DiscoveredPack]:
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda each: each.name):
        pack = entry.load()
        if isinstance(pack, Pack):
            yield DiscoveredPack(pack.name, pack.version, entry.value, pack)


def load_by_name(name: str) -> Pack:
    """Return an installed pack by its name; see `discover`.

    R232: the named pack is not installed, or the runtime has not loaded it.

    Raises:
        PackNotFoundError: R232, no pack with this name is installed.
    """
    installed = {each.name: each.pack for each in discover()}
    if name not in installed:
        raise make_unknown_pack_error(name, "installed", list(installed))
    return installed[name]


def make_unknown_pack_error(name: str, state: str, known: list[str]) -> PackNotFoundError:
    """Return the error for the name of a pack that is not `state`, which is "installed" or "loaded"."""
    return PackNotFoundError(
        Problem("R232", f"no pack {name!r} is {state}", "packs", f"{state} packs: {', '.join(known) or 'none'}",
                did_you_mean(name, known, "check the name"))
    )  # fmt: skip


def bind_pack(pack: Pack, settings_data: Any) -> LoadedPack:
    """Return a pack with its settings, and with its behaviors and tools under their full names.

    Raises:
        PackSettingsMissingError: R322, required settings are missing, or a setting is not valid.
    """
    settings, behaviors, tools = build_settings(pack, settings_data), [], []
    for each in pack.behaviors:
        behavior = copy(each)
        behavior.name, behavior.bound = f"{pack.name}.{each.name}", bind_settings(each, settings)
        behaviors.append(behavior)
    for each in pack.tools:
        tool = copy(each)
        tool.name = f"{pack.name}.{each.name}"
        tools.append(tool)
    policies = [Policy(requires_approval=list(each.requires_approval)) for each in pack.policies
                if each.requires_approval]  # fmt: skip
    return LoadedPack(pack, settings, behaviors, tools, policies)


def bind_settings(behavior: Any, settings: Any) -> Callable[[], dict[str, Any]]:
    """Return the additional keyword arguments of a behavior: the settings, if a parameter has their type."""
    function = getattr(behavior, "handler", None) or behavior.fn
    name = type(settings).__name__
    names = [each.name for each in inspect.signature(function).parameters.values()
              if each.annotation in (type(settings), name)]  # fmt: skip
    return lambda: dict.fromkeys(names, settings)


class Schemas:
    """The schemas of the packs of one runtime; new objects and relations are validated against them."""

    def __init__(self, packs: Mapping[str, LoadedPack], find: Callable[[str], Any]) -> None:
        self.packs, self.find = packs, find

    def __call__(self, what: str, type_: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Validate data against the schema of its type, and return it with defaults filled in.

        R323: data does not fit the schema that a pack defines for its type.

        Raises:
            PackSchemaViolation: R323, the data does not fit.
        """
        declared, pack = self._find(f"{what}_types", type_)
        if what == "object" and declared is not None:
            try:
                return dict(to_plain(declared.schema.model_validate(dict(data))))
            except ValidationError as error:
                raise _make_violation(f"the data of a {type_!r} does not fit: {error}", pack) from None
        if what == "relation" and declared is not None:
            for end, allowed in (("source", declared.source_types), ("target", declared.target_types)):
                actual = self.find(data[end])
                if allowed and actual is not None and actual not in allowed:
                    text = (
                        f"the {end} of a {type_!r} is a {safe_repr(actual)}, and should be one of: {', '.join(allowed)}"
                    )
                    raise _make_violation(text, pack)
        return data

    def _find(self, part: str, type_: str) -> tuple[Any, str]:
        """Return the definition of a type and the name of its pack; None if no pack defines it."""
        declared = ((each, name) for name, loaded in self.packs.items() for each in getattr(loaded.pack, part))
        return next((row for row in declared if row[0].name == type_), (None, ""))


def _make_violation(what: str, pack: str) -> PackSchemaViolation:
    return PackSchemaViolation(
        Problem("R323", what, f"pack {pack!r}", "objects of a pack's type must match its schema",
                "pass data that matches the schema")
    )  # fmt: skip


def _make_unregistered(maker: Callable[..., Callable[[Any], Any]], registry: list[Any]) -> Callable[..., Any]:
    """Return a decorator factory like `maker` that does not add the result to the global registry."""

    @functools.wraps(maker)
    def make_decorator(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        decorate = maker(*args, **kwargs)

        def apply_maker(fn: Any) -> Any:
            registered = list(registry)
            try:
                decorated = decorate(fn)
            finally:
                registry[:] = registered
            fn.__pack_meta__ = {"kind": maker.__name__, "name": decorated.name}
            return decorated

        return apply_maker

    return make_decorator


behavior = _make_unregistered(registering.behavior, registering._REGISTRY)  # noqa: SLF001  (it belongs to this dialect)
relation_behavior = _make_unregistered(registering.relation_behavior, registering._REGISTRY)  # noqa: SLF001
llm_behavior = _make_unregistered(llm_delivery.llm_behavior, registering._REGISTRY)  # noqa: SLF001
tool = _make_unregistered(tools.tool, tools._REGISTRY)  # noqa: SLF001

__all__ = [
    "DiscoveredPack",
    "EmptySettings",
    "ObjectType",
    "Pack",
    "PackPolicy",
    "PackPrompt",
    "RelationType",
    "Schemas",
    "behavior",
    "bind_pack",
    "bind_settings",
    "build_settings",
    "discover",
    "llm_behavior",
    "load_by_name",
    "load_prompts_from_dir",
    "make_unknown_pack_error",
    "relation_behavior",
    "tool",
]  # fmt: skip
