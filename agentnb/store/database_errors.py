"""Database errors as StoreErrors with a remedy. Driver messages are masked."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentnb.errors import Problem, StoreError
from agentnb.text import safe_str


class _ErrorText(NamedTuple):
    what: str
    do: str


_KEPT: Final = "everything stored so far is intact, and the operation can be retried"
_WORDS: Final = {
    "L416": _ErrorText("this is not a store of agentnb", "use another file; this one was not changed"),
    "L417": _ErrorText("the store's disk is full or failing", f"free some space; {_KEPT}"),
    "L418": _ErrorText(
        "the store is locked by another program", f"wait until that program has finished, or end it; {_KEPT}"
    ),
    "L419": _ErrorText(
        "the store is read-only",
        f"make its file and folder writable, or use an account with write permission; {_KEPT}",
    ),
    "L420": _ErrorText(
        "access to the store was denied",
        "check the path and its permissions, and the user, password and database in the URL",
    ),
    "L421": _ErrorText(
        "the store's server does not answer",
        f"check that it is running and reachable from here; {_KEPT}: the connection is reopened automatically",
    ),
    "L422": _ErrorText(
        "the store is damaged",
        "restore the file from a backup, or recover what is readable: `sqlite3 runs.db .recover`",
    ),
    "L427": _ErrorText("the store rejected the operation", f"see the message of the database; {_KEPT}"),
    "L429": _ErrorText(
        "the store cannot represent this text", "remove invalid characters: a NUL or a lone UTF-16 surrogate"
    ),
}
_ENCODING: Final = "; a PostgreSQL database with encoding UTF8 can represent any other text"


def make_driver_error(code: str, where: str, error: BaseException, name: str | None = None) -> StoreError:
    """Return the StoreError for an exception of a driver.

    L416: this is not a store of agentnb: not an SQLite database, or that of another program.

    L417: the store's disk is full or failing.

    L418: the store is locked by another program.

    L419: the store is read-only.

    L420: the store cannot be opened: a permission, a folder, a password or a database is missing.

    L421: the store's server does not answer, or the connection to it was lost.

    L422: the store is damaged.

    L427: the store rejected the operation for another reason.

    L429: the store's encoding cannot represent this text.
    """
    message = " ".join(safe_str(error).split()) or type(error).__name__
    return make_refusal_error(code, where, f"the database reports: {message}{f' ({name})' if name else ''}")


def make_refusal_error(code: str, where: str, why: str) -> StoreError:
    """Return the StoreError for an operation that is refused without a database error."""
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
