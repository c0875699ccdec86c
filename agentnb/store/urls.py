"""Open the store at a path or a URL; the same name returns the same log."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from agentnb.engine.persistence.event_log import EventLog
from agentnb.errors import Problem, StoreError, with_article
from agentnb.secrets import MASK, hide, is_secret
from agentnb.text import safe_repr, safe_str

_FORMS: Final = (
    "a store is a path (runs.db), sqlite:///runs.db (beside this notebook), sqlite:////absolute/runs.db, "
    "postgresql://user:password@host:5432/database (or postgres://), or an EventLog such as MemoryLog()"
)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://|(sqlite|postgres|postgresql):", re.IGNORECASE)
_METHODS: Final = (
    *("create", "append", "update_run", "entries", "last", "run", "runs", "claim", "release", "checkpoint", "close"),
)

_OPEN: Final[WeakValueDictionary[tuple[str, str], Any]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()


class StoreAddress(NamedTuple):
    """A parsed address: `kind` is sqlite or postgresql, `target` a path or URL, `display_name` it without password."""

    kind: str
    target: str
    display_name: str


def open_log(where: str | os.PathLike[str] | EventLog) -> EventLog:
    """Return the log at a path or a URL; an EventLog is returned unchanged.

    Nothing is opened or created before the log is used. While a log is alive, its path or URL returns the same object.

    Raises:
        StoreError: L414, this is not the name of a store; L423, an SQLite database in memory.

    Example:
        >>> open_log("sqlite:///runs.db") is open_log("runs.db")
        True
    """
    if all(callable(getattr(where, name, None)) for name in _METHODS):
        return cast("EventLog", where)
    from agentnb.store.sql_log import SqlLog

    address = parse(where)
    with _LOCK:
        log = _OPEN.get(address[:2])
        if log is None:
            log = _OPEN[address[:2]] = SqlLog(address)
        return cast("EventLog", log)


def parse(where: object) -> StoreAddress:
    """Parse the path or URL of a store.

    Raises:
        StoreError: L414, this is not the name of a store; L423, an SQLite database in memory.
    """
    if not isinstance(where, str | os.PathLike):
        raise _make_unknown_store_error(f"{with_article(type(where).__name__)}", "this is neither a path nor a URL")
    text = os.fspath(where)
    if not isinstance(text, str):
        raise _make_unknown_store_error("a path of bytes", "paths must be strings")
    match = _SCHEME.match(text) if isinstance(where, str) else None
    scheme = (match[1] or match[2]).lower() if match else ""
    if scheme in {"postgres", "postgresql"}:
        return _parse_server(text)
    if scheme == "sqlite":
        if text[7:] == "//" or text[7:] in {"///:memory:", "//:memory:"}:
            raise _make_memory_error(text)
        if text[7:10] != "///":
            raise _make_unknown_store_error(repr(text), "sqlite: is followed by three slashes and a path")
        return _parse_file(text[10:], text)
    if scheme:
        raise _make_unknown_store_error(repr(_hide_password(text)), f"{scheme!r} is not supported")
    return _parse_file(text, text)


def _parse_file(path: str, text: str) -> StoreAddress:
    if path == ":memory:" or path.startswith("file:"):
        raise _make_memory_error(text)
    if not path.strip() or "\0" in path:
        raise _make_unknown_store_error(repr(text), "it does not name a file")
    if re.search(r"\?\w+=", path) and text.startswith("sqlite:"):
        raise _make_unknown_store_error(repr(text), "options after a `?` are not supported")
    try:
        absolute = str(Path(path).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:  # too long, a symlink loop, an unknown home folder
        raise _make_unknown_store_error(safe_repr(text), getattr(error, "strerror", None) or str(error)) from None
    return StoreAddress("sqlite", absolute, safe_str(f"sqlite:///{Path(absolute).as_posix()}"))


def _parse_server(text: str) -> StoreAddress:
    shown = _hide_password(text)
    if not text.partition(":")[2].startswith("//"):
        raise _make_unknown_store_error(repr(shown), "postgresql: is followed by two slashes and a server")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise _make_unknown_store_error(repr(shown), safe_str(error)) from None
    secrets = [parts.password or "", *(value for key, _, value in _parse_options(parts.query) if _is_secret(key))]
    for each in secrets:
        if each != parts.username:  # otherwise it is also the name of a server, a user and a database
            hide(each, unquote(each))
    return StoreAddress("postgresql", "postgresql://" + text.partition("://")[2], shown)


def _hide_password(text: str) -> str:
    """Return a URL for display: its password and other secrets are masked."""
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = None
    if parts is None or ("@" in text and "@" not in parts.netloc and ":" in parts.netloc):
        # A password with an unescaped `/`, `?` or `#` (write %2F, %3F or %23).
        return safe_str(re.sub(r"(//[^:@]*):.*@", rf"\1:{MASK}@", text))
    userinfo, at, server = parts.netloc.rpartition("@")
    user, colon, _ = userinfo.partition(":")
    query = "&".join(
        f"{key}={MASK}" if _is_secret(key) else f"{key}{equals}{value}"
        for key, equals, value in _parse_options(parts.query)
    )
    scheme, _, _ = text.partition("://")
    rest = f"{user}{colon}{MASK if colon else ''}{at}{server}{parts.path}{'?' if query else ''}{query}"
    return safe_str(f"{scheme}://{rest}")


def _parse_options(query: str) -> list[tuple[str, str, str]]:
    return [option.partition("=") for option in query.split("&")]


def _is_secret(key: str) -> bool:
    return is_secret(unquote(key)) or "password" in unquote(key).lower()  # matches `sslpassword`


def _make_unknown_store_error(what: str, why: str) -> StoreError:
    """L414: this is not the name of a store, or cannot be read."""
    return StoreError(Problem("L414", f"{what} is not the address of a store", "store", why, _FORMS))


def _make_memory_error(text: str) -> StoreError:
    return StoreError(
        Problem(
            "L423",
            f"{text!r} is an SQLite database in memory",
            "store",
            "it would be lost with its connection, and other connections could not see it",
            "to keep runs, use a file (runs.db); for runs in memory: from agentnb.store import MemoryLog, and "
            "store=MemoryLog()",
        )
    )
