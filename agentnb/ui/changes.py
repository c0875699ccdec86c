"""changes: what is sent of a screen: only what differs from the screen before. The page puts it in; see cockpit.js.

Parts that are the same are left out. Of the board the keys are named that are `gone`, and the rows that differ: those
that are new or have moved stand at its end. All its `keys` are named only where many have moved. Of the picture, what
`agentnb.draw.patch.changed` names.
"""

from __future__ import annotations

from typing import Any, Final

from agentnb.draw.patch import changed

Screen = dict[str, Any]
_MOVED: Final = 20  # rows that have moved and are sent once more, rather than all keys


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
    stays = _staying(list(known), after)
    if sum(row[0] in known for row in after[stays:]) > _MOVED:
        return {"rows": [row for row in after if known.get(row[0]) != row], "keys": [row[0] for row in after]}
    kept = {row[0] for row in after[:stays]}
    gone = [key for key in known if key not in kept]
    found = {"rows": [row for row in after[:stays] if known[row[0]] != row] + after[stays:]}
    return {**found, "gone": gone} if gone else found


def _staying(keys: list[str], rows: list[list[Any]]) -> int:
    """Return how many rows of the beginning have these keys, in their order; some keys may be left out."""
    places, last = {key: place for place, key in enumerate(keys)}, -1
    for number, row in enumerate(rows):
        place = places.get(row[0], -1)
        if place <= last:
            return number
        last = place
    return len(rows)
