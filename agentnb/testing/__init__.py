"""Golden tests: recorded runs that tests replay without calling a model or a tool.

The pytest plugin (`plugin`) has the fixture `replay_golden`; `replay_goldens` makes one frame of many goldens and
recipes.
"""

from agentnb.testing.goldens import (
    LEVELS,
    GoldenReport,
    record_golden,
    replay_golden,
    replay_goldens,
)

__all__ = ["LEVELS", "GoldenReport", "record_golden", "replay_golden", "replay_goldens"]
