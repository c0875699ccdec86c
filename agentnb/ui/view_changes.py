"""Differences between two states of the page: only these are sent. The page applies them; see cockpit.js.

Unchanged parts are left out. For the board, `removed` lists the removed keys, and the changed rows are sent: new or
moved ones follow at its end. All its `keys` are sent only if many have moved. For the picture,
`agentnb.draw.svg_patch.diff_patches` returns the changes.
"""

from __future__ import annotations

from typing import Any, Final

from agentnb.draw.svg_patch import diff_patches
from agentnb.secrets import mask_text, needs_masking

Screen = dict[str, Any]
_PLAIN: Final = frozenset({bool, int, float, type(None)})
_MOVED: Final = 20  # moved rows that are sent again rather than all keys


def find_changes(before: Screen, after: Screen) -> Screen:
    """Return the changes that turn `before` into `after`; empty if nothing differs.

    Example:
        >>> find_changes({"sentence": "a", "board": [["n", "1", []]]}, {"sentence": "a", "board": [["n", "2", []]]})
        {'board': {'rows': [['n', '2', []]]}}
    """
    changed = {part: value for part, value in after.items() if part not in before or before[part] != value}
    if "board" in changed and "board" in before:
        changed["board"] = _diff_rows(before["board"], after["board"])
    if "picture" in changed and "picture" in before:
        changed["picture"] = diff_patches(before["picture"], after["picture"])
    return changed


def mask_content(content: Any) -> Any:
    """Return a message for the page with the secrets in its texts masked; numbers and field names are unchanged.

    Example:
        >>> mask_content({"sentence": "https://ann:pw@host", "number": 1})
        {'sentence': 'https://ann:********@host', 'number': 1}
    """
    kind = type(content)
    if kind is str:
        return str(mask_text(content)) if needs_masking(content) else content
    if kind is dict:
        return {name: item if type(item) in _PLAIN else mask_content(item) for name, item in content.items()}
    if kind is list or kind is tuple:
        return [item if type(item) in _PLAIN else mask_content(item) for item in content]
    return content


def mask_screen(screen: Screen) -> Screen:
    """Return a state of the page as `mask_content` does, without a walk over what may have thousands of parts.

    The marks of nodes and edges are classes and counts; the rows of the board are masked already (see `board_view`).
    """
    picture = screen.get("picture")
    if type(picture) is not dict or "board" not in screen:
        return dict(mask_content(screen))
    marks = {part: picture[part] for part in ("nodes", "edges") if part in picture}
    rest = {part: item for part, item in picture.items() if part not in marks}
    masked: Screen = mask_content({**screen, "picture": rest, "board": ()})
    masked["picture"].update(marks)
    return {**masked, "board": screen["board"]}


def _diff_rows(before: list[list[Any]], after: list[list[Any]]) -> dict[str, Any]:
    known = {row[0]: row for row in before}
    stays = _count_unchanged(list(known), after)
    if sum(row[0] in known for row in after[stays:]) > _MOVED:
        return {"rows": [row for row in after if known.get(row[0]) != row], "keys": [row[0] for row in after]}
    common = {row[0] for row in after[:stays]}
    removed = [key for key in known if key not in common]
    difference = {"rows": [row for row in after[:stays] if known[row[0]] != row] + after[stays:]}
    return {**difference, "removed": removed} if removed else difference


def _count_unchanged(keys: list[str], rows: list[list[Any]]) -> int:
    """Return how many leading rows have these keys in their order; keys may be missing."""
    index_by_key, last = {key: index for index, key in enumerate(keys)}, -1
    for number, row in enumerate(rows):
        index = index_by_key.get(row[0], -1)
        if index <= last:
            return number
        last = index
    return len(rows)
