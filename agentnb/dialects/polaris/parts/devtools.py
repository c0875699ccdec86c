"""An example of a provider hook: passes each system a resource that identifies its node."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Self

from agentnb.session.schedules import AllGraphSchedules, GraphEvent, HooksAPI, Schedule

_LOG = logging.getLogger("agentnb.polaris")


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """The node of a system, which the system receives as `Res[SystemInfo]`."""

    node_id: str
    system_name: str


class DevToolsPlugin:
    """Inserts a SystemInfo before each system. `build(hooks)` registers it; without hooks it creates a registry."""

    def __init__(self) -> None:
        self.traces = False

    def with_event_tracing(self) -> Self:
        """Also log every event, at debug level, as `agentnb.polaris`."""
        self.traces = True
        return self

    def build(self, hooks: HooksAPI | None = None) -> HooksAPI:
        """Register its hooks, and return the registry."""
        hooks = HooksAPI() if hooks is None else hooks
        hooks.register_provider(Schedule.OnSystemStart, "devtools", _make_system_info)
        if self.traces:
            hooks.register(AllGraphSchedules, "devtools_tracing", _log)
        return hooks


def _make_system_info(event: GraphEvent) -> SystemInfo:
    return SystemInfo(str(event.node_id), str(event.node_name))


def _log(event: GraphEvent) -> None:
    _LOG.debug("%s %s %s", event.schedule, event.run_id, event.node_id or "")
