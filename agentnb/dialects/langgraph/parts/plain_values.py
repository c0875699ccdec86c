"""LangGraph's Sends and Commands as plain values, in which events and effects record them."""

from __future__ import annotations

from typing import Any

from agentnb.dialects.langgraph.parts import package as lg
from agentnb.dialects.langgraph.parts.time_limit import to_plain_limits


def to_plain_send(packet: Any) -> dict[str, Any]:
    """Return a Send as plain values."""
    return {"node": packet.node, "arg": packet.arg, "timeout": to_plain_limits(packet.timeout)}


def from_plain_send(values: dict[str, Any]) -> Any:
    """Return the Send that these plain values, from `to_plain_send`, describe."""
    limits = values["timeout"]
    timeout = limits and lg.TimeoutPolicy(
        run_timeout=limits["run"], idle_timeout=limits["idle"], refresh_on=limits["refresh_on"]
    )
    return lg.Send(values["node"], values["arg"], timeout=timeout)


def to_plain_command(command: Any) -> dict[str, Any]:
    """Return a Command with updates and targets as plain values."""
    goto = command.goto if isinstance(command.goto, list | tuple) else [command.goto]
    targets = [to_plain_send(to) if isinstance(to, lg.Send) else to for to in goto]
    return {"update": command.update, "goto": targets, "graph": command.graph}


def from_plain_command(values: dict[str, Any]) -> Any:
    """Return the Command that these plain values, from `to_plain_command`, describe."""
    targets = [from_plain_send(to) if isinstance(to, dict) else to for to in values["goto"]]
    return lg.Command(update=values["update"], goto=targets, graph=values["graph"])


__all__ = ["from_plain_command", "from_plain_send", "to_plain_command", "to_plain_send"]
