"""join: where branches meet. It runs once, when nothing that can still reach it is left in the frontier."""

from __future__ import annotations

from agentnb.engine.work import Kind
from agentnb.kinds.noop import bind

KIND = Kind("join", bind, step_type="SYSTEM_EVENT", shape="circle", waits=True)
