"""Artifacts: the values that a person decides on, as the page renders them, and how they differ from earlier versions.

An artifact is plain JSON: `text` and `as` (`text` or `json`). If an earlier version exists, `diff` has the lines of
both versions, and `since` says which version that is. A line is [sign, parts]: the sign is `+`, `-` or a space, and a
part is [text, whether it changed].
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import ABSENT, thaw
from agentnb.text import safe_repr, safe_str

WIDTH: Final = 20_000  # characters of a value
_LINE_WIDTH: Final = 2_000  # longer lines are not compared word by word
_ALIKE: Final = 0.4  # two lines with this share of common words are versions of one line
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_Parts = tuple[tuple[str, bool], ...]
Line = tuple[str, _Parts]


def make_artifact(value: Any, key: str, before: Any = ABSENT, since: str = "") -> dict[str, Any]:
    """Return a value of the board or of an effect's arguments as an artifact, masked.

    Args:
        key: its name; a secret's name masks the value.
        before: its earlier version, if there is one.
        since: what the page calls the earlier version.
    """
    text, kind = _make_text(value, key)
    artifact = {"text": text, "as": kind}
    if before is ABSENT:
        return artifact
    older, other = _make_text(before, key)
    if older == text or other != kind or not older:
        return artifact
    return {
        **artifact,
        "diff": [[sign, list(map(list, parts))] for sign, parts in diff_lines(older, text)],
        "since": since,
    }


def _make_text(value: Any, key: str) -> tuple[str, str]:
    value = mask_value(thaw(value), key)
    if isinstance(value, str):
        return safe_str(value, WIDTH), "text"
    try:
        return safe_str(json.dumps(value, indent=2, ensure_ascii=False), WIDTH), "json"
    except (TypeError, ValueError, RecursionError):  # not JSON
        return safe_repr(value, WIDTH), "text"


@lru_cache(maxsize=32)  # a view repaints often while a person decides
def diff_lines(before: str, after: str) -> tuple[Line, ...]:
    r"""Return the lines of two texts, all of them, with the words that differ between versions of one line.

    Example:
        >>> for sign, parts in diff_lines("Dear Ada,\nbye", "Dear Ada,\ngood bye"):
        ...     print(sign, parts)
          (('Dear Ada,', False),)
        - (('bye', False),)
        + (('good ', True), ('bye', False))
    """
    old, new = before.splitlines(), after.splitlines()
    lines: list[Line] = []
    for what, first, last, start, stop in SequenceMatcher(None, old, new).get_opcodes():
        if what == "equal":
            lines += ((" ", ((line, False),)) for line in old[first:last])
            continue
        pairs = [_diff_words(*pair) for pair in zip_longest(old[first:last], new[start:stop])]
        lines += (("-", removed) for removed, _ in pairs if removed is not None)
        lines += (("+", come) for _, come in pairs if come is not None)
    return tuple(lines)


def _diff_words(old: str | None, new: str | None) -> tuple[_Parts | None, _Parts | None]:
    """Return the parts of two lines, those that differ marked; a line without a counterpart is one part."""
    whole = [None if line is None else ((line, False),) for line in (old, new)]
    if old is None or new is None or max(len(old), len(new)) > _LINE_WIDTH:
        return whole[0], whole[1]
    words: list[list[str]] = [_WORDS.findall(line) for line in (old, new)]
    matcher = SequenceMatcher(None, words[0], words[1])
    if matcher.ratio() < _ALIKE:
        return whole[0], whole[1]
    codes = matcher.get_opcodes()
    removed = (("".join(words[0][a:b]), what != "equal") for what, a, b, _, _ in codes if a < b)
    come = (("".join(words[1][c:d]), what != "equal") for what, _, _, c, d in codes if c < d)
    return tuple(removed), tuple(come)


__all__ = ["diff_lines", "make_artifact"]
