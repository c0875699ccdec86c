"""LangGraph's Sends, Commands and writes as plain values, in which events and effects record them."""

from __future__ import annotations

from collections.abc import Callable
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
    """Return a Command with updates and targets as plain values; one target stays one, a tuple of them a tuple."""
    return {"update": command.update, "goto": _map_targets(_to_plain_target, command.goto), "graph": command.graph}


def from_plain_command(values: dict[str, Any]) -> Any:
    """Return the Command that these plain values, from `to_plain_command`, describe."""
    graph = values["graph"]
    if graph == lg.Command.PARENT:
        graph = lg.Command.PARENT  # LangGraph compares it by identity
    return lg.Command(update=values["update"], goto=_map_targets(_from_plain_target, values["goto"]), graph=graph)


def to_plain_write(key: str, value: Any) -> list[Any]:
    """Return one of LangGraph's writes (to a channel, or to the next tasks) as plain values."""
    return [key, to_plain_send(value) if key == lg.keys.TASKS else value]


def from_plain_write(key: str, value: Any) -> tuple[str, Any]:
    """Return the write that these plain values, from `to_plain_write`, describe."""
    return key, from_plain_send(value) if key == lg.keys.TASKS else value


def _map_targets(convert: Callable[[Any], Any], goto: Any) -> Any:
    return type(goto)(map(convert, goto)) if isinstance(goto, list | tuple) else convert(goto)


def _to_plain_target(target: Any) -> Any:
    return to_plain_send(target) if isinstance(target, lg.Send) else target


def _from_plain_target(target: Any) -> Any:
    return from_plain_send(target) if isinstance(target, dict) else target


__all__ = [
    "from_plain_command",
    "from_plain_send",
    "from_plain_write",
    "to_plain_command",
    "to_plain_send",
    "to_plain_write",
]
