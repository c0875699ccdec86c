"""Checksums of stored JSON text, to detect damaged files. The checksum is the last field of a document.

A document written before checksums were introduced has none and is read as it is.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

_FIELD: Final = ',"crc":"'
_SIZE: Final = len(_FIELD) + 8 + len('"}')


def add_checksum(text: str, *context: object) -> str:
    """Return the text of a non-empty JSON object with a checksum of the text and its context as the last field.

    Example:
        >>> add_checksum('{"a":1}', "run", 3)
        '{"a":1,"crc":"c643ac36"}'
    """
    return f'{text[:-1]}{_FIELD}{_digest(text[:-1], context)}"}}'


def has_checksum(text: str) -> bool:
    """Return True if the text of a JSON object ends with a checksum."""
    return text.startswith(_FIELD, len(text) - _SIZE)


def is_intact(text: str, *context: object) -> bool:
    """Return True if the checksum of a text matches it and its context.

    Example:
        >>> is_intact('{"a":1,"crc":"c643ac36"}', "run", 3), is_intact('{"a":7,"crc":"8e7de6d1"}', "run", 3)
        (True, False)
    """
    return text[-10:-2] == _digest(text[:-_SIZE], context)


def is_text(text: str) -> bool:
    """Return True if a text can be encoded as UTF-8."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _digest(text: str, context: tuple[object, ...]) -> str:
    around = "\0".join(map(str, context))
    # A lone surrogate in a name is encoded as a database stores it.
    return f"{crc32(text.encode('utf-8', 'backslashreplace'), crc32(around.encode('utf-8', 'backslashreplace'))):08x}"


__all__ = ["add_checksum", "has_checksum", "is_intact", "is_text"]
