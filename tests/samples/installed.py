"""The samples whose packages are installed; those of LangGraph and Burr need an extra."""

from __future__ import annotations

from importlib.util import find_spec

from agentnb.samples import samples

EXTRA = {"langgraph", "burr"}
NAMES = [sample.name for sample in samples() if sample.dialect not in EXTRA or find_spec(sample.dialect)]
