"""The blackboard: immutable values in scopes. Only this package writes keys."""

from agentnb.board.values import ABSENT

__all__ = ["ABSENT"]
