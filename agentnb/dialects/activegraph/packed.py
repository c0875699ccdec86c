"""packed: the packs of a runtime: loading them, and finding what they hold by name."""

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
from agentnb.dialects.activegraph.given import is_a
from agentnb.dialects.activegraph.party import Policy
from agentnb.dialects.activegraph.tools import get_tool_registry
from agentnb.errors import Problem, did_you_mean

if TYPE_CHECKING:
    from agentnb.dialects.activegraph.graph import Graph
    from agentnb.dialects.activegraph.packs import Pack
    from agentnb.dialects.activegraph.party import Party


class Packed:
    """The part of a Runtime that holds packs."""

    graph: Graph
    party: Party
    tools: list[Any] | None
    behaviors: Any
    _hand: Any
    _ensure: Any

    def _begin_packs(self, packs: Iterable[Any] = ()) -> None:
        self._packs: list[tuple[Pack, Any]] = []
        self._pack_behaviors: list[Any] = []
        self._pack_tools: list[Any] = []
        self._schemas: Any = None
        self.party.packs = lambda name: name.partition(".")[0] if self._is_packed(name) else ""
        for each in packs:
            pack, settings = each if isinstance(each, tuple) else (each, None)
            self._take(pack, settings)

    def _is_packed(self, name: str) -> bool:
        return any(each.name == name for each in self._pack_behaviors)

    def _share_packs(self, other: Any) -> None:
        """Load what another runtime has loaded; its log tells of it already."""
        for pack, settings in other._packs:  # noqa: SLF001  (of its own class)
            self._take(pack, settings)

    def load_pack(self, pack: Pack, settings: Any = None) -> bool:
        """Load a pack: what it holds listens and is known from now on. False where the same is loaded already.

        Raises:
            PackVersionConflictError: R324, another version of it is loaded.
            PackConflictError: R325, a name that it brings is taken; then nothing of it is loaded.
            PackValidationError: R322, the settings are not as its schema says.
        """
        from agentnb.dialects.activegraph.packs import Pack

        is_a(0 if pack is None else pack, Pack, "load_pack()", "a pack: Pack(name, version, behaviors=(...))")
        known = next((each for each, _ in self._packs if each.name == pack.name), None)
        if known == pack:
            return False
        if known is not None:
            raise PackVersionConflictError(
                Problem("R324", f"pack {pack.name!r} is loaded in another version: {known.version!r}",
                        f"pack {pack.name!r}", "a runtime has one version of a pack",
                        "load it into another runtime")
            )  # fmt: skip
        made = self._take(pack, settings)
        self._ensure()
        self._hand().tell("pack.loaded", pack.surface(made), actor="runtime", frame=self.party.frame_id)
        return True

    def _take(self, pack: Pack, given: Any) -> Any:
        from agentnb.dialects.activegraph.packs import Schemas, bound_to, settings_of

        settings = settings_of(pack, given)
        self._check_names(pack)
        for each in pack.behaviors:
            made = copy(each)
            made.name, made.bound = f"{pack.name}.{each.name}", bound_to(each, settings)
            self._pack_behaviors.append(made)
        for each in pack.tools:
            tool = copy(each)
            tool.name = f"{pack.name}.{each.name}"
            self._pack_tools.append(tool)
        if self._schemas is None:
            self._schemas = Schemas(self._type_of)
            self.party.checks.append(self._schemas)
        self._schemas.add(pack)
        self.party.settings[pack.name] = settings
        self.party.policies += [Policy(requires_approval=list(each.requires_approval)) for each in pack.policies
                                if each.requires_approval]  # fmt: skip
        self._packs.append((pack, settings))
        return settings

    def _check_names(self, pack: Pack) -> None:
        """Raise where a name that a pack brings is taken.

        R325: a pack brings a type that another one has brought, or a name twice.
        """
        taken = {(what, each.name): other.name for other, _ in self._packs
                 for what in ("object_types", "relation_types") for each in getattr(other, what)}  # fmt: skip
        twice = [each.name for each in pack.behaviors if sum(one.name == each.name for one in pack.behaviors) > 1]
        for what in ("object_types", "relation_types"):
            twice += [each.name for each in getattr(pack, what) if (what, each.name) in taken]
        if twice:
            owner = taken.get(("object_types", twice[0])) or taken.get(("relation_types", twice[0])) or pack.name
            raise PackConflictError(
                Problem("R325", f"{twice[0]!r} of pack {pack.name!r} is a name that is taken", f"pack {pack.name!r}",
                        f"pack {owner!r} has one of that name", "give it another name")
            )  # fmt: skip

    def _type_of(self, id_: str) -> str | None:
        kept = self.graph.ledger.object(id_)
        return None if kept is ABSENT else str(kept["type"])

    def loaded_packs(self) -> list[Pack]:
        """Return the packs, in the order in which they were loaded."""
        return [pack for pack, _ in self._packs]

    # -- by name -------------------------------------------------------------------------------------------------

    def get_behavior(self, name: str) -> Any:
        """Return a behaviour by its name, or by the part behind its pack's.

        R326: a name is asked for that no behaviour, or no tool, has. R327: several have it.

        Raises:
            LookupError: R326, there is none of that name.
            ValueError: R327, several packs have one of that short name.
        """
        return _named(name, list(self.behaviors), "behaviour", BehaviorNotFoundError, AmbiguousBehaviorError)

    def get_tool(self, name: str) -> Any:
        """Return a tool by its name, or by the part behind its pack's.

        Raises:
            LookupError: R326, there is none of that name.
            ValueError: R327, several packs have one of that short name.
        """
        return _named(name, self._all_tools(), "tool", ToolNotFoundError, AmbiguousToolError)

    def _all_tools(self) -> list[Any]:
        return [*(get_tool_registry() if self.tools is None else self.tools), *self._pack_tools]


def _named(name: str, known: list[Any], what: str, missing: type[Exception], several: type[Exception]) -> Any:
    exact = [each for each in known if each.name == name]
    found = exact[:1] or [each for each in known if each.name.rpartition(".")[2] == name]
    names = [each.name for each in known]
    if not found:
        raise missing(Problem("R326", f"there is no {what} {name!r}", "Runtime",
                              f"there are: {', '.join(names) or 'none'}",
                              did_you_mean(name, names, "name one of them")))  # fmt: skip
    if len(found) > 1:
        told = ", ".join(each.name for each in found)
        raise several(Problem("R327", f"the {what} {name!r} may be {told}", "Runtime", "several have that short name",
                              "write the whole name"))  # fmt: skip
    return found[0]


__all__ = ["Packed"]
