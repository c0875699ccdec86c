"""The packs of a runtime: loading and disabling them, and look-ups by name."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

from agentnb.board.values import ABSENT
from agentnb.dialects.activegraph.errors import (
    AmbiguousBehaviorError,
    AmbiguousToolError,
    BehaviorNotFoundError,
    PackConflictError,
    PackVersionConflictError,
    ToolNotFoundError,
)
from agentnb.dialects.activegraph.parts.argument_checks import make_type_error
from agentnb.dialects.activegraph.parts.run_config import Policy
from agentnb.dialects.activegraph.parts.tools import get_tool_registry
from agentnb.errors import Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.parts.graph import Graph
    from agentnb.dialects.activegraph.parts.packs import Pack
    from agentnb.dialects.activegraph.parts.run_config import RuntimeConfig


class PackMethods:
    """The pack methods of a Runtime."""

    graph: Graph
    config: RuntimeConfig
    tools: list[Any] | None
    behaviors: Any
    _get_actor: Any
    _ensure: Any

    def _begin_packs(self, packs: Iterable[Any]) -> None:
        self._packs: list[tuple[Pack, Any]] = []
        self._pack_behaviors: list[Any] = []
        self._pack_tools: list[Any] = []
        self._disabled: set[str] = set()
        self._schemas: Any = None
        self.config.packs = lambda name: name.partition(".")[0] if self._is_packed(name) else ""
        for each in packs:
            pack, settings = each if isinstance(each, tuple) else (each, None)
            self._take(pack, settings)

    def _is_packed(self, name: str) -> bool:
        return any(each.name == name for each in self._pack_behaviors)

    def _share_packs(self, other: Any) -> None:
        """Load the packs of another runtime, whose log already records them."""
        for pack, settings in other._packs:  # noqa: SLF001  (of its own class)
            self._take(pack, settings)

    def load_pack(self, pack: Pack, settings: Any = None) -> bool:
        """Load a pack: its behaviors and definitions are active from now on.

        Return False if the same version is already loaded.

        Raises:
            PackVersionConflictError: R324, another version of the pack is loaded.
            PackConflictError: R325, a name that the pack defines is taken; then nothing of the pack is loaded.
            PackValidationError: R322, the settings do not match its schema.
        """
        from agentnb.dialects.activegraph.parts.packs import Pack

        if not isinstance(pack, Pack):
            raise make_type_error(pack, "load_pack()", "a pack: Pack(name, version, behaviors=(...))")
        known = next((each for each, _ in self._packs if each.name == pack.name), None)
        if known == pack:
            return False
        if known is not None:
            raise PackVersionConflictError(
                Problem("R324", f"pack {pack.name!r} is loaded in another version: {known.version!r}",
                        f"pack {pack.name!r}", "a runtime can load only one version of a pack",
                        "load it into another runtime")
            )  # fmt: skip
        settings_object = self._take(pack, settings)
        self._disabled.discard(pack.name)
        self._ensure()
        self._get_actor().record(
            "pack.loaded", pack.surface(settings_object), actor="runtime", frame=self.config.frame_id
        )
        return True

    def _take(self, pack: Pack, settings_data: Any) -> Any:
        from agentnb.dialects.activegraph.parts.packs import Schemas, bind_settings, build_settings

        settings = build_settings(pack, settings_data)
        self._check_names(pack)
        for each in pack.behaviors:
            bound = copy(each)
            bound.name, bound.bound = f"{pack.name}.{each.name}", bind_settings(each, settings)
            self._pack_behaviors.append(bound)
        for each in pack.tools:
            tool = copy(each)
            tool.name = f"{pack.name}.{each.name}"
            self._pack_tools.append(tool)
        if self._schemas is None:
            self._schemas = Schemas(self._get_type)
            self.config.checks.append(self._schemas)
        self._schemas.add(pack)
        self.config.settings[pack.name] = settings
        gates = [Policy(requires_approval=list(each.requires_approval)) for each in pack.policies
                 if each.requires_approval]  # fmt: skip
        if gates:
            self.config.pack_policies[pack.name] = gates
        self._packs.append((pack, settings))
        return settings

    def disable_pack(self, name: str) -> bool:
        """Disable a loaded pack: its behaviors, tools, types, policies and settings no longer apply.

        Return False if it was disabled already.

        Objects that the pack has created remain, and so do its pending approvals. The log records `pack.disabled`.
        `load_pack` loads it again.

        Raises:
            PackNotFoundError: R232, this runtime has never loaded the pack.
        """
        from agentnb.dialects.activegraph.parts.packs import make_unknown_pack_error

        entry = next((each for each in self._packs if each[0].name == name), None)
        if entry is None:
            if name in self._disabled:
                return False
            raise make_unknown_pack_error(name, "loaded", [each.name for each in self.loaded_packs()])
        pack, prefix = entry[0], f"{name}."
        self._packs.remove(entry)
        self._disabled.add(name)
        self._pack_behaviors[:] = [each for each in self._pack_behaviors if not each.name.startswith(prefix)]
        self._pack_tools[:] = [each for each in self._pack_tools if not each.name.startswith(prefix)]
        self._schemas.remove(pack)
        self.config.settings.pop(name)
        self.config.pack_policies.pop(name, None)
        self._ensure()
        self._get_actor().record("pack.disabled", pack.removed_surface(), actor="runtime", frame=self.config.frame_id)
        return True

    def _check_names(self, pack: Pack) -> None:
        """Raise an error if a name that a pack defines is already used.

        R325: a pack defines a type that another pack has defined.
        """
        taken = {(what, each.name): other.name for other, _ in self._packs
                 for what in ("object_types", "relation_types") for each in getattr(other, what)}  # fmt: skip
        twice = [(each.name, taken[what, each.name]) for what in ("object_types", "relation_types")
                 for each in getattr(pack, what) if (what, each.name) in taken]  # fmt: skip
        if twice:
            name, owner = twice[0]
            raise PackConflictError(
                Problem("R325", f"{name!r} of pack {pack.name!r} is already defined", f"pack {pack.name!r}",
                        f"pack {owner!r} has one of that name", "use another name")
            )  # fmt: skip

    def _get_type(self, id_: str) -> str | None:
        record = self.graph.ledger.object(id_)
        return None if record is ABSENT else str(record["type"])

    def loaded_packs(self) -> list[Pack]:
        """Return the packs, in the order in which they were loaded."""
        return [pack for pack, _ in self._packs]

    # -- by name -------------------------------------------------------------------------------------------------

    def get_behavior(self, name: str) -> Any:
        """Return a behavior by its full name, or by the name without its pack's prefix.

        R326: no behavior, or no tool, has the requested name.
        R327: several behaviors or tools have the requested name.

        Raises:
            LookupError: R326, there is no behavior with this name.
            ValueError: R327, several packs have a behavior with this short name.
        """
        return _find_by_name(name, list(self.behaviors), "behavior", BehaviorNotFoundError, AmbiguousBehaviorError)

    def get_tool(self, name: str) -> Any:
        """Return a tool by its full name, or by the name without its pack's prefix.

        Raises:
            LookupError: R326, there is no tool with this name.
            ValueError: R327, several packs have a tool with this short name.
        """
        return _find_by_name(name, self._list_tools(), "tool", ToolNotFoundError, AmbiguousToolError)

    def _list_tools(self) -> list[Any]:
        return [*(get_tool_registry() if self.tools is None else self.tools), *self._pack_tools]


def _find_by_name(name: str, known: list[Any], what: str, missing: type[Exception], several: type[Exception]) -> Any:
    exact = [each for each in known if each.name == name]
    matches = exact[:1] or [each for each in known if each.name.rpartition(".")[2] == name]
    names = [each.name for each in known]
    if not matches:
        raise missing(Problem("R326", f"there is no {what} {name!r}", "Runtime",
                              f"there are: {', '.join(names) or 'none'}",
                              did_you_mean(name, names, "use one of them")))  # fmt: skip
    if len(matches) > 1:
        candidates = ", ".join(each.name for each in matches)
        raise several(Problem("R327", f"the {what} name {name!r} is ambiguous: {candidates}", "Runtime",
                              "several packs define that short name", "use the full name"))  # fmt: skip
    return matches[0]


__all__ = ["PackMethods"]
