"""party: what the behaviours of one runtime are given besides their events: a frame, policies, a model, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentnb.dialects.activegraph.errors import PolicyViolation
from agentnb.dialects.activegraph.given import listed
from agentnb.errors import Problem


@dataclass(frozen=True)
class Frame:
    """What a run is about: its goal, and what holds for it. Its id is stamped on all that is done in it."""

    goal: str
    id: str | None = None
    constraints: list[str] = field(default_factory=list)
    success_criteria: list[str] = field(default_factory=list)
    permissions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Policy:
    """What a behaviour (None: each of them) may do. A list that is empty limits nothing.

    Who may create relations of a type may remove them, too. Types in `requires_approval` are created only where a
    person has approved it: `ctx.propose_object` asks for it.
    """

    behavior: str | None = None
    can_create: list[str] = field(default_factory=list)
    can_create_relation: list[str] = field(default_factory=list)
    can_propose: list[str] = field(default_factory=list)
    can_apply: list[str] = field(default_factory=list)
    can_call_tool: list[str] = field(default_factory=list)
    requires_approval: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check that its lists are lists: one text would allow whatever stands in it."""
        for right in (*_DOES, "requires_approval"):
            listed(getattr(self, right), f"Policy({right}=...)", "a list of names")

    def concerns(self, name: str) -> bool:
        """Say whether it holds for a behaviour."""
        return self.behavior is None or self.behavior in (name, name.rpartition(".")[2])


@dataclass
class Party:
    """What the behaviours of one runtime share."""

    frame: Frame | None = None
    policy: Policy | None = None
    policies: list[Policy] = field(default_factory=list)
    llm: Any = None
    asking: Any = None  # how models and tools are asked, see `asking.Asking`
    limits: Callable[[], Mapping[str, Any]] = dict
    settings: dict[str, Any] = field(default_factory=dict)  # pack -> its settings
    packs: Callable[[str], str] = lambda _behavior: ""  # behaviour -> the pack that it comes from
    checks: list[Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]] = field(default_factory=list)
    watch: Callable[[str, Mapping[str, Any]], None] = lambda _what, _said: None
    live: Callable[[Any], bool] = lambda _run: True  # whether a run is the one that is watched, and no replay of it

    @property
    def frame_id(self) -> str | None:
        """The id of the frame; None without one."""
        return None if self.frame is None else self.frame.id

    def rules(self, name: str) -> list[Policy]:
        """Return the policies that hold for a behaviour."""
        given = [] if self.policy is None else [self.policy]
        return [policy for policy in (*given, *self.policies) if policy.concerns(name)]

    def check(self, name: str, right: str, what: str, does: str = "") -> None:
        """Raise where a behaviour may not do this; `does` says what it does, where its right is that of something else.

        X508: a policy does not let a behaviour do what it does.

        Raises:
            PolicyViolation: X508, it names the policy's list.
        """
        for policy in self.rules(name):
            allowed: list[str] = getattr(policy, right)
            gated = right == "can_create" and what in policy.requires_approval
            if (allowed and what not in allowed) or gated:
                list_, names = ("requires_approval", policy.requires_approval) if gated else (right, allowed)
                raise PolicyViolation(
                    Problem("X508", f"{name!r} may not {does or _DOES[right]} {what!r}", f"behaviour {name!r}",
                            f"its policy says {list_}={names!r}",
                            "ask for it: ctx.propose_object(type, data, reason=...)" if gated else
                            f"add {what!r} to {right} of its policy")
                )  # fmt: skip


_DOES = {
    "can_create": "create",
    "can_create_relation": "create a relation of type",
    "can_propose": "propose a patch of",
    "can_apply": "patch",
    "can_call_tool": "call the tool",
}

__all__ = ["Frame", "Party", "Policy"]
