"""changes: what is sent of a screen: only what differs from the screen before. The page puts it in; see cockpit.js.

Parts that are the same are left out. Of the board only the rows that differ are named, and its keys where they are
others, or in another order, than before; of the picture, what `agentnb.draw.patch.changed` names.
"""

from __future__ import annotations

from typing import Any

from agentnb.draw.patch import changed

Screen = dict[str, Any]


def changes(before: Screen, after: Screen) -> Screen:
    """Return what makes `after` out of `before`; empty where nothing differs.

    Example:
        >>> changes({"said": "a", "board": [["n", "1", []]]}, {"said": "a", "board": [["n", "2", []]]})
        {'board': {'rows': [['n', '2', []]]}}
    """
    found = {part: value for part, value in after.items() if part not in before or before[part] != value}
    if "board" in found and "board" in before:
        found["board"] = _rows(before["board"], after["board"])
    if "picture" in found and "picture" in before:
        found["picture"] = changed(before["picture"], after["picture"])
    return found


def _rows(before: list[list[Any]], after: list[list[Any]]) -> dict[str, Any]:
    known = {row[0]: row for row in before}
    found: dict[str, Any] = {"rows": [row for row in after if known.get(row[0]) != row]}
    if [row[0] for row in before] != [row[0] for row in after]:
        found["keys"] = [row[0] for row in after]
    return found
