"""Database errors as StoreErrors with a remedy. Texts of drivers are masked."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentnb.errors import Problem, StoreError
from agentnb.text import safe_str


class _ErrorText(NamedTuple):
    what: str
    do: str


_KEPT: Final = "what was kept before is whole, and the same can be tried again then"
_WORDS: Final = {
    "L416": _ErrorText("this is not a store of agentnb", "use another file; this one was not changed"),
    "L417": _ErrorText("the store's disk is full, or fails", f"make room on it; {_KEPT}"),
    "L418": _ErrorText(
        "the store is locked by another program", f"wait until that program is done with it, or end it; {_KEPT}"
    ),
    "L419": _ErrorText(
        "the store can only be read",
        f"make its file and folder writable, or take an account that may write; {_KEPT}",
    ),
    "L420": _ErrorText(
        "access to the store was denied",
        "look at the path, the rights on it, and the user, password and database that the URL names",
    ),
    "L421": _ErrorText(
        "the store's server does not answer",
        f"look whether it runs and can be reached from here; {_KEPT}: the connection is made anew by itself",
    ),
    "L422": _ErrorText(
        "the store is damaged",
        "put its file back from a copy, or save what can still be read: `sqlite3 runs.db .recover`",
    ),
    "L427": _ErrorText("the store has refused this", f"what the database says tells more; {_KEPT}"),
    "L429": _ErrorText(
        "the store cannot keep this text", "leave out what is not a text: a NUL, or half of a UTF-16 pair"
    ),
}
_ENCODING: Final = "; a PostgreSQL database keeps every other text if its encoding is UTF8"


def make_driver_error(code: str, where: str, error: BaseException, name: str | None = None) -> StoreError:
    """Return the StoreError for an exception of a driver.

    L416: this is not a store of agentnb: not an SQLite database, or that of another program.

    L417: the store's disk is full or fails.

    L418: the store is locked by another program.

    L419: the store is read-only.

    L420: the store cannot be opened: a permission, a folder, a password or a database is missing.

    L421: the store's server does not answer, or the connection to it was lost.

    L422: the store is damaged.

    L427: the store has refused the operation for another reason.

    L429: the store's encoding cannot represent this text.
    """
    message = " ".join(safe_str(error).split()) or type(error).__name__
    return make_refusal_error(code, where, f"the database says: {message}{f' ({name})' if name else ''}")


def make_refusal_error(code: str, where: str, why: str) -> StoreError:
    """Return the StoreError for a refusal without a database error."""
    texts = _WORDS[code]
    server = code == "L429" and not where.startswith("sqlite:")
    return StoreError(Problem(code, texts.what, where, why, texts.do + _ENCODING * server))


def make_damaged_row_problem(where: str, which: str) -> Problem:
    """Return the warning for runs whose rows cannot be read; `which` names or counts them."""
    return Problem(
        "L434",
        f"{which} cannot be listed",
        where,
        "its row in the store is damaged",
        "restore the store from a backup; the other runs can be opened",
        "warning",
    )
