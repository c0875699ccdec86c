"""relation_behavior: a function that events set off, once for each relation that they concern."""

from __future__ import annotations

from agentnb.engine.work import Kind
from agentnb.kinds.behavior import bind

KIND = Kind("relation_behavior", bind, step_type="SYSTEM_EVENT", shape="cds", keeps=True)
