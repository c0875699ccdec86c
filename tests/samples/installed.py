"""The samples whose packages are installed: those of LangGraph need an extra."""

from __future__ import annotations

from importlib.util import find_spec

from agentnb.samples import samples

NAMES = [sample.name for sample in samples() if sample.dialect != "langgraph" or find_spec("langgraph")]
