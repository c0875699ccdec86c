"""The packs of a runtime: loading and disabling them, and look-ups by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
from agentnb.dialects.activegraph.parts.events import freeze_json
from agentnb.dialects.activegraph.parts.tools import get_tool_registry
from agentnb.errors import Problem, did_you_mean
from agentnb.session.checks import check_not_running
from agentnb.session.state import get_state

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
        from agentnb.dialects.activegraph.parts.packs import Schemas

        self._disabled: set[str] = set()
        self.config.checks.append(Schemas(self.config.packs, self._get_type))
        for each in packs:
            pack, settings = each if isinstance(each, tuple) else (each, None)
            self._add_pack(pack, settings)

    def _share_packs(self, other: Any) -> None:
        """Load the packs of another runtime, whose log already records them."""
        for loaded in other.config.packs.values():
            self._add_pack(loaded.pack, loaded.settings)

    @property
    def _pack_behaviors(self) -> list[Any]:
        return [behavior for loaded in self.config.packs.values() for behavior in loaded.behaviors]

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
        loaded = self.config.packs.get(pack.name)
        if loaded is not None and loaded.pack == pack:
            return False
        if loaded is not None:
            raise PackVersionConflictError(
                Problem("R324", f"pack {pack.name!r} is loaded in another version: {loaded.pack.version!r}",
                        f"pack {pack.name!r}", "a runtime can load only one version of a pack",
                        "load it into another runtime")
            )  # fmt: skip
        with self._change_packs("load_pack()"):
            surface = freeze_json(pack.surface(self._add_pack(pack, settings)))
            self._ensure()
            self._get_actor().record("pack.loaded", surface, actor="runtime", frame=self.config.frame_id)
        self._disabled.discard(pack.name)
        return True

    def _add_pack(self, pack: Pack, settings_data: Any) -> Any:
        """Add a pack, which no event records, and return its settings."""
        from agentnb.dialects.activegraph.parts.packs import bind_pack

        loaded = bind_pack(pack, settings_data)
        self._check_names(pack)
        self.config.packs[pack.name] = loaded
        return loaded.settings

    @contextmanager
    def _change_packs(self, verb: str) -> Iterator[None]:
        """Change which packs are loaded, between two steps: if the block fails, the packs are those of before.

        Raises:
            ExecutionError: X112, the session is running.
        """
        check_not_running(get_state(self.graph.session), verb)
        packs = self.config.packs
        before = dict(packs)
        try:
            yield
        except BaseException:
            packs.clear()
            packs.update(before)
            raise

    def disable_pack(self, name: str) -> bool:
        """Disable a loaded pack: its behaviors, tools, types, policies and settings no longer apply.

        Return False if it was disabled already.

        Objects that the pack has created remain, and so do its pending approvals. The log records `pack.disabled`.
        `load_pack` loads it again.

        Raises:
            PackNotFoundError: R232, this runtime has never loaded the pack.
        """
        from agentnb.dialects.activegraph.parts.packs import make_unknown_pack_error

        loaded = self.config.packs.get(name)
        if loaded is None:
            if name in self._disabled:
                return False
            raise make_unknown_pack_error(name, "loaded", [*self.config.packs])
        with self._change_packs("disable_pack()"):
            del self.config.packs[name]
            self._ensure()
            surface = loaded.pack.removed_surface()
            self._get_actor().record("pack.disabled", surface, actor="runtime", frame=self.config.frame_id)
        self._disabled.add(name)
        return True

    def _check_names(self, pack: Pack) -> None:
        """Raise an error if a name that a pack defines is already used.

        R325: a pack defines a type that another pack has defined.
        """
        taken = {(what, each.name): other for other, loaded in self.config.packs.items()
                 for what in ("object_types", "relation_types") for each in getattr(loaded.pack, what)}  # fmt: skip
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
        return [loaded.pack for loaded in self.config.packs.values()]

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
        packed = (tool for loaded in self.config.packs.values() for tool in loaded.tools)
        return [*(get_tool_registry() if self.tools is None else self.tools), *packed]


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
