"""board: the blackboard. Its values never change; scopes hold them; this is the only floor that writes a key."""

from agentnb.board.values import ABSENT

__all__ = ["ABSENT"]
