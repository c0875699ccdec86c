"""Where an exception was raised in the user's own code: the file or the cell, the line, and the source around it."""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from pathlib import Path
from types import CodeType
from typing import Any, Final

from agentnb.recipe.user_functions import NO_FILE
from agentnb.ui.details.source import format_place, mask_lines

_AROUND: Final = 4  # lines shown before and after
_MOST: Final = 200  # lines of a traceback
_OURS: Final = str(Path(__file__).parents[2])
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def find_raise(error: BaseException | None) -> dict[str, Any] | None:
    """Return the last line of the user's code in an exception's traceback; None if it has none.

    Its texts are not masked here, but with the whole message. `place` is `file:line`, or the cell as IPython names it,
    `line` the number of the line, `lines` are [number, text], `traceback` is all of it.
    """
    found = None
    for frame, number in traceback.walk_tb(None if error is None else error.__traceback__):
        if _is_users(frame.f_code):
            found = frame.f_code.co_filename, number
    if error is None or found is None:
        return None
    file, number = found
    first = max(number - _AROUND, 1)
    numbers = range(first, number + _AROUND + 1) if file != NO_FILE else ()
    texts = [linecache.getline(file, each).rstrip("\n") for each in numbers]
    while texts and not texts[-1].strip():
        texts.pop()
    lines = "".join(traceback.format_exception(error)).splitlines()[-_MOST:]  # whole lines: half a secret is not masked
    return {
        "place": format_place(file, number),
        "line": number,
        "lines": [[first + at, text] for at, text in enumerate(mask_lines(texts))],
        "traceback": "\n".join(lines),
    }


def _is_users(code: CodeType) -> bool:
    file = code.co_filename
    return not file.startswith((_OURS, "<frozen", *_LIBRARIES)) or "/agentnb/samples/" in file.replace("\\", "/")
