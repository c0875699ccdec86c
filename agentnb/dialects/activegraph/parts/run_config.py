"""The shared configuration of a runtime's behaviors: a frame, policies, a model, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentnb.dialects.activegraph.errors import PolicyViolation
from agentnb.dialects.activegraph.parts.argument_checks import to_list
from agentnb.errors import Problem


@dataclass(frozen=True)
class Frame:
    """The subject of a run: its goal, and its constraints. Its id is recorded with every change."""

    goal: str
    id: str | None = None
    constraints: list[str] = field(default_factory=list)
    success_criteria: list[str] = field(default_factory=list)
    permissions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Policy:
    """The permissions of a behavior (None: of all behaviors). An empty list sets no limit.

    The permission to create relations of a type includes removing them. Objects of the types in `requires_approval` are
    created only after a person has approved; `ctx.propose_object` requests the approval.
    """

    behavior: str | None = None
    can_create: list[str] = field(default_factory=list)
    can_create_relation: list[str] = field(default_factory=list)
    can_propose: list[str] = field(default_factory=list)
    can_apply: list[str] = field(default_factory=list)
    can_call_tool: list[str] = field(default_factory=list)
    requires_approval: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check that its lists are not strings, because a string would allow all of its substrings."""
        for right in (*_DOES, "requires_approval"):
            to_list(getattr(self, right), f"Policy({right}=...)", "a list of names")

    def concerns(self, name: str) -> bool:
        """Return True if this policy applies to a behavior."""
        return self.behavior is None or self.behavior in (name, name.rpartition(".")[2])


@dataclass(frozen=True)
class LoadedPack:
    """A pack in a runtime: its settings, and its behaviors and tools under full names; `policies` require approval."""

    pack: Any
    settings: Any
    behaviors: list[Any]
    tools: list[Any]
    policies: list[Policy]


@dataclass
class RuntimeConfig:
    """The configuration that the behaviors of one runtime share."""

    frame: Frame | None = None
    policy: Policy | None = None
    packs: dict[str, LoadedPack] = field(default_factory=dict)  # by name, in the order in which they were loaded
    llm: Any = None
    asking: Any = None  # how models and tools are called, see `effects.EffectCaller`
    limits: Callable[[], Mapping[str, Any]] = dict
    checks: list[Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]] = field(default_factory=list)
    watch: Callable[[str, Mapping[str, Any]], None] = lambda _what, _said: None
    trace_reads: bool = False  # whether the reads of a delivery are recorded
    live: Callable[[Any], bool] = lambda _run: True  # whether a run is the main one, not its replay

    @property
    def frame_id(self) -> str | None:
        """The id of the frame; None if there is none."""
        return None if self.frame is None else self.frame.id

    def find_settings(self, behavior: str) -> Any:
        """Return the settings of a behavior's pack; None if it is not from a pack."""
        packs = (pack for pack in self.packs.values() if any(each.name == behavior for each in pack.behaviors))
        return next((pack.settings for pack in packs), None)

    def rules(self, name: str) -> list[Policy]:
        """Return the policies that apply to a behavior."""
        own = [] if self.policy is None else [self.policy]
        packed = (policy for pack in self.packs.values() for policy in pack.policies)
        return [policy for policy in (*own, *packed) if policy.concerns(name)]

    def gating_pack(self, object_type: str) -> str:
        """Return the first loaded pack that requires approval for objects of a type; "" if none does."""
        return next((name for name, pack in self.packs.items()
                     if any(object_type in policy.requires_approval for policy in pack.policies)), "")  # fmt: skip

    def check(self, name: str, right: str, what: str, does: str = "") -> None:
        """Raise an error if a behavior may not do this.

        `does` describes the action if it requires the permission for a different action.

        X508: a policy forbids a behavior's action.

        Raises:
            PolicyViolation: X508, with the policy's list.
        """
        for policy in self.rules(name):
            allowed: list[str] = getattr(policy, right)
            gated = right == "can_create" and what in policy.requires_approval
            if (allowed and what not in allowed) or gated:
                list_, names = ("requires_approval", policy.requires_approval) if gated else (right, allowed)
                raise PolicyViolation(
                    Problem("X508", f"{name!r} may not {does or _DOES[right]} {what!r}", f"behavior {name!r}",
                            f"its policy says {list_}={names!r}",
                            "request approval: ctx.propose_object(type, data, reason=...)" if gated else
                            f"add {what!r} to {right} of its policy")
                )  # fmt: skip


_DOES = {
    "can_create": "create",
    "can_create_relation": "create a relation of type",
    "can_propose": "propose a patch of",
    "can_apply": "patch",
    "can_call_tool": "call the tool",
}

__all__ = ["Frame", "LoadedPack", "Policy", "RuntimeConfig"]
