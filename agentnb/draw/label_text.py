"""Label text: cleaned, measured, truncated and wrapped, identically on every machine.

Widths come from a table rather than from a font that may be missing, so a layout is the same everywhere.
"""

from __future__ import annotations

import unicodedata
from html import escape
from typing import Final

from agentnb.secrets import mask_text

# Advance widths of DejaVu Sans from space to tilde, in hundredths of an em. It is the widest of the fonts that the
# pictures name, so text that fits by this table also fits in Helvetica and Arial.
_ASCII: Final = (
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
)  # fmt: skip
# Characters that change the direction of surrounding text and could be used to disguise it.
_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    """Return `text` masked, on one line, without characters that XML forbids or that are invisible."""
    masked = mask_text(str(text))
    shown = masked if masked.isascii() and masked.isprintable() else "".join(map(_show, masked))
    return " ".join(shown.split())


def _show(char: str) -> str:
    if char in _BIDI:
        return ""
    return char if char.isspace() or is_xml(char) else "\ufffd"


def is_xml(char: str) -> bool:
    """Return True if XML 1.0 allows this character."""
    code = ord(char)
    return 0x20 <= code <= 0xD7FF or code in (0x9, 0xA, 0xD) or 0xE000 <= code <= 0xFFFD or code > 0xFFFF


def measure_width(text: str, size: float) -> float:
    """Return the maximum width of `text` at this font size, in points."""
    return size * sum(map(_measure_char, text))


def _measure_char(char: str) -> float:
    code = ord(char)
    if 32 <= code < 127:
        return _ASCII[code - 32] / 100
    if unicodedata.east_asian_width(char) in "WF":
        return 1.1
    category = unicodedata.category(char)
    if category[0] == "M" or category == "Cf":
        return 0.0
    return 0.68 if category == "Ll" else 0.95


def count_columns(text: str) -> int:
    """Return how many columns `text` takes in a monospaced font."""
    return sum(2 if _measure_char(char) > 1 else 0 if _measure_char(char) == 0 else 1 for char in text)


def cut_columns(text: str, limit: int) -> str:
    """Return `text`, truncated to `limit` columns with an ellipsis if it is longer."""
    if count_columns(text) <= limit:
        return text
    taken, used = [], 1
    for char in text:
        used += count_columns(char)
        if used > limit:
            break
        taken.append(char)
    return "".join(taken).rstrip() + "…"


def cut(text: str, width: float, size: float) -> str:
    """Return `text`, truncated to `width` points with an ellipsis if it is longer."""
    if measure_width(text, size) <= width:
        return text
    room, taken = width - measure_width("…", size), []
    for char in text:
        room -= _measure_char(char) * size
        if room < 0:
            break
        taken.append(char)
    return "".join(taken).rstrip() + "…"


def wrap(text: str, width: float, size: float, max_lines: int = 2) -> tuple[str, ...]:
    """Return `text` in at most `max_lines` lines of `width` points; a last line that is too long is truncated."""
    text, lines = clean(text), list[str]()
    while text and len(lines) < max_lines - 1 and measure_width(text, size) > width:
        end = _find_line_end(text, width, size)
        lines.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return (*lines, cut(text, width, size)) if text else tuple(lines)


def _find_line_end(text: str, width: float, size: float) -> int:
    """Return the end of the first line: after its last whole word, or inside a word that fills it."""
    used, end = 0.0, 0
    for index, char in enumerate(text):
        used += _measure_char(char) * size
        if used > width:
            return end or max(index, 1)
        if char.isspace() or (char in "_-/." and index > 3):
            end = index + 1
    return len(text)


def to_safe_text(text: str) -> str:
    """Return `text` masked, with characters that XML forbids replaced; a live view looks up names in this form."""
    return "".join(char if is_xml(char) else "\ufffd" for char in mask_text(str(text)))


def to_attribute(text: str) -> str:
    """Return `text` for a quoted XML attribute; line ends and tabs survive as character references."""
    return escape(to_safe_text(text), quote=True).replace("\n", "&#10;").replace("\t", "&#9;").replace("\r", "&#13;")


def to_content(text: str) -> str:
    """Return `text` for the content of an XML element; line ends are preserved, direction marks removed."""
    return escape("".join(char for char in to_safe_text(text) if char not in _BIDI), quote=False)
