"""devtools: tells each system which node it is, as a resource: an example of a provider hook."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Self

from agentnb.session.schedules import AllGraphSchedules, GraphEvent, HooksAPI, Schedule

_LOG = logging.getLogger("agentnb.polaris")


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """Which node a system runs as; it takes it as `Res[SystemInfo]`."""

    node_id: str
    system_name: str


class DevToolsPlugin:
    """Puts a SystemInfo in before each system. `build(hooks)` registers it; with no hooks it makes a registry."""

    def __init__(self) -> None:
        self.traces = False

    def with_event_tracing(self) -> Self:
        """Log every event too, at debug level, as `agentnb.polaris`."""
        self.traces = True
        return self

    def build(self, hooks: HooksAPI | None = None) -> HooksAPI:
        """Register its hooks, and return the registry."""
        hooks = HooksAPI() if hooks is None else hooks
        hooks.register_provider(Schedule.OnSystemStart, "devtools", _told)
        if self.traces:
            hooks.register(AllGraphSchedules, "devtools_tracing", _logged)
        return hooks


def _told(event: GraphEvent) -> SystemInfo:
    return SystemInfo(str(event.node_id), str(event.node_name))


def _logged(event: GraphEvent) -> None:
    _LOG.debug("%s %s %s", event.schedule, event.run_id, event.node_id or "")
