"""llm_behavior: a function that events set off, and that is given what a model has answered."""

from __future__ import annotations

from agentnb.engine.work import Kind
from agentnb.kinds.behavior import bind

KIND = Kind("llm_behavior", bind, step_type="REASONING", shape="note", keeps=True)
