"""Conversations that persist between runs: in this process, in a JSON file, or in SQLite.

Before a run, the messages of its conversation are inserted at the start of `state.messages`; after it, the new messages
are stored. An input (or the state) identifies the conversation, under `session_key`.

A recipe must not read or write arbitrary files: like its tools, its memory must be in the recipe's folder or in an
allowed one, with links resolved, and its files must have the suffix of their kind.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb.errors import AgentRuntimeError, Problem, with_article
from agentnb.recipe.descriptions import describe_how_to_allow
from agentnb.world.tools.allow_list import Allowed, is_regular_or_new, resolve_path

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.schema import MemoryConfig

Message = dict[str, Any]
MESSAGES, WINDOW = "messages", "messages_window"
_TYPES: Final = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai"}
_ROLES: Final = {"human": "user", "ai": "assistant"}
_WORD: Final = re.compile(r"\{(\w+)\}")
_LONGEST: Final = 80  # characters of one part of a file name
_JSON: Final = (".json", ".jsonl")
_DATABASES: Final = (".db", ".db3", ".sqlite", ".sqlite3")


class History(Protocol):
    """The storage of conversations, each a list of messages."""

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        """Return a conversation's messages, the oldest first."""

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        """Append messages to a conversation."""


class Memory:
    """The conversations of one agent.

    Args:
        allowed: where files may be; relative paths start in the recipe's own folder or, without one, in the current
            folder.
    """

    def __init__(self, config: MemoryConfig, allowed: Allowed) -> None:
        self.config = config
        self.history: History = _make_history(config, allowed)

    def session(self, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> str:
        """Return the name of the conversation that a run continues."""
        key = self.config.session_key
        name = inputs.get(key) or state.get(key) or "default"
        return f"{self.config.namespace}:{name}" if self.config.namespace else str(name)

    def recall(self, inputs: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """Return an initial state in which the earlier messages precede its own.

        Raises:
            AgentRuntimeError: X422, `messages` is not a list; X423, the stored text cannot be read; X362, the path is
                not allowed.
        """
        messages = state.get(MESSAGES)
        if messages is not None and not isinstance(messages, list | tuple):
            raise AgentRuntimeError(
                Problem("X422", f"state.{MESSAGES} is {with_article(type(messages).__name__)}", "memory",
                        "the memory stores the conversation there as a list of messages",
                        f"make state.{MESSAGES} a list, or leave it out")
            )  # fmt: skip
        earlier = self.history.read(self.session(inputs, state), _collect_path_values(inputs, state))
        return {**state, **self.window([*earlier, *map(to_message, messages or ())])}

    def keep(self, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Store the messages of a finished run that are not stored yet.

        Raises:
            AgentRuntimeError: X430, it cannot be stored; X423, what was stored before cannot be read.
        """
        session, known = self.session(inputs, state), _collect_path_values(inputs, state)
        messages = [to_message(message) for message in state.get(MESSAGES) or ()]
        more = _select_new_messages(self.history.read(session, known), messages)
        if more:
            self.history.add(session, known, more)

    def window(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return the state keys that hold the conversation: all of it and, if `k` is set, its end."""
        remaining = list(messages)
        return {MESSAGES: remaining, WINDOW: remaining[-self.config.k :]} if self.config.k else {MESSAGES: remaining}


def to_message(source: Any) -> Message:
    """Return an entry of the messages in full form: type, role and content; a string becomes a user message."""
    if not isinstance(source, Mapping):
        return {"type": "human", "role": "user", "content": source if isinstance(source, str) else str(source)}
    word = str(source.get("role") or source.get("type") or "user")
    kind = _TYPES.get(word, word)
    return {**source, "type": kind, "role": _ROLES.get(kind, word), "content": source.get("content", "")}


def _select_new_messages(stored: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Return the messages that are not stored yet: usually those after the stored ones.

    If another run has stored more of this conversation since, or a node has truncated the messages, the starts differ;
    of what follows, the result is the messages not found in the store.
    """
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(stored, messages, strict=False)))
    return [message for message in messages[same:] if message not in stored[same:]]


def _collect_path_values(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the path of a file may refer to: simple values of the state and the inputs."""
    both = {**state, **inputs}
    return {key: value for key, value in both.items() if isinstance(value, str | int | float) and key.isidentifier()}


def _make_history(config: MemoryConfig, allowed: Allowed) -> History:
    match config.kind:
        case "file":
            return _Files(str(config.path), allowed, config.namespace or "")
        case "sqlite":
            return _Sqlite(str(config.dsn), allowed, config.table or "message_store")
    return _InMemory()


def _resolve_file(path: str, allowed: Allowed, suffixes: Sequence[str]) -> Path:
    """Return the file that a path refers to, with links and dots resolved.

    Raises:
        AgentRuntimeError: X362, it is outside the allowed folders, or lacks the suffix of its kind.
    """
    file = resolve_path((allowed.recipe_folder or Path.cwd()) / path)
    if file is None:
        why, do = "it is not a valid file path", "write a relative path"
    elif not allowed.holds_file(file):
        why = "a recipe may store its memory only in its own folder (symbolic links resolved) and in allowed folders"
        do = f"write a path below the recipe's folder, or allow its folder: {describe_how_to_allow(str(file.parent))}"
    elif not is_regular_or_new(file):
        why, do = "it is not a file, or its name is too long", "use another name"
    elif file.suffix.lower() not in suffixes:
        why, do = f"such a file has the suffix {', '.join(suffixes)}", f"use the suffix {suffixes[0]}"
    else:
        return file
    raise AgentRuntimeError(Problem("X362", f"the memory cannot be stored in {path!r}", "memory", why, do))


class _InMemory:
    def __init__(self) -> None:
        self.sessions: dict[str, list[Message]] = {}

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        return list(self.sessions.get(session, ()))

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        self.sessions.setdefault(session, []).extend(messages)


def _to_stored(message: Message) -> dict[str, Any]:
    """Return a message in its stored form: its type, and the rest as data (as in langchain's histories)."""
    return {"type": message["type"], "data": {key: value for key, value in message.items() if key != "type"}}


def _check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"it contains {with_article(type(value).__name__)}; expected a list of messages")
    return value


def _read(stored: Any) -> Message:
    data = stored.get("data", {}) if isinstance(stored, Mapping) else {}
    return to_message({**data, "type": stored["type"], "role": data.get("role") or stored["type"]})


class _Files:
    """One JSON file per conversation.

    Its path may contain `{session_id}`, `{namespace}` and simple values of the inputs.
    """

    def __init__(self, path: str, allowed: Allowed, namespace: str) -> None:
        self.path, self.allowed, self.namespace = path, allowed, namespace
        self.lock = threading.Lock()

    def _file(self, session: str, known: Mapping[str, Any]) -> Path:
        parts = {key: _to_file_name_part(value) for key, value in known.items()}
        parts |= {"session_id": "_".join(map(_to_file_name_part, session.split(":", bool(self.namespace))))}
        parts |= {"namespace": _to_file_name_part(self.namespace)}
        path = _WORD.sub(lambda found: parts.get(found[1], found[0]), self.path)
        return _resolve_file(path, self.allowed, _JSON)

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        file = self._file(session, known)
        if not file.exists():
            return []
        try:
            return [_read(stored) for stored in _check_list(json.loads(file.read_text(encoding="utf-8")))]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _make_read_error(str(file), error) from error

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        with self.lock:
            stored, file = self.read(session, known), self._file(session, known)
            text = json.dumps(
                [_to_stored(message) for message in [*stored, *messages]], ensure_ascii=False, default=str
            )
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                _replace(file, text)
            except (OSError, ValueError) as error:
                raise _make_write_error(str(file), error) from error


def _replace(file: Path, text: str) -> None:
    """Replace a file's content atomically."""
    new_file = file.with_name(f"{file.name}.new")
    new_file.unlink(missing_ok=True)
    with new_file.open("x", encoding="utf-8") as new:  # never through a link created by someone else
        new.write(text)
    new_file.replace(file)


class _Sqlite:
    """A table with one row per message, as in langchain's SQL history; `dsn` is a path or a URL `sqlite:///path`."""

    def __init__(self, dsn: str, allowed: Allowed, table: str) -> None:
        self.written = dsn.removeprefix("sqlite:///").removeprefix("sqlite://")
        self.allowed = allowed
        self.table = '"' + table.replace('"', '""') + '"'
        self.lock = threading.Lock()
        self.only = sqlite3.connect(":memory:", check_same_thread=False) if self.written == ":memory:" else None
        if self.only is not None:
            weakref.finalize(self, self.only.close)  # otherwise Python 3.13 warns about an unclosed connection

    @property
    def path(self) -> str:
        """The database's file, checked again at each use, because a link may have been created meanwhile."""
        return self.written if self.only is not None else str(_resolve_file(self.written, self.allowed, _DATABASES))

    def _read_rows(self, statement: str, *rows: tuple[Any, ...]) -> list[Any]:
        with self.lock, _connect(self.path, self.only) as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self.table} (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)"
            )
            results = [connection.execute(statement, row).fetchall() for row in rows]
            connection.commit()
            return results[0] if results else []

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        statement = f"SELECT message FROM {self.table} WHERE session_id = ? ORDER BY id"  # noqa: S608  (quoted above)
        try:
            return [_read(json.loads(text)) for (text,) in self._read_rows(statement, (session,))]
        except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _make_read_error(self.path, error) from error

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        statement = f"INSERT INTO {self.table} (session_id, message) VALUES (?, ?)"  # noqa: S608  (the same)
        rows = [(session, json.dumps(_to_stored(message), ensure_ascii=False, default=str)) for message in messages]
        try:
            self._read_rows(statement, *rows)
        except sqlite3.Error as error:
            raise _make_write_error(self.path, error) from error


def _connect(path: str, only: sqlite3.Connection | None) -> Any:
    return _Open(only) if only is not None else closing(sqlite3.connect(path))


class _Open:
    """A connection that stays open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        """Keep the connection open."""


def _to_file_name_part(value: Any) -> str:
    """Return a value as a part of a file name: characters that could lead elsewhere become `_`.

    A hash is appended if that changes it, so that different values have different names.
    """
    original = str(value)
    text = "".join(char if char.isalnum() or char in "-_.@ " else "_" for char in original)
    text = text.replace("..", "__")[:_LONGEST]
    if text == original and text.strip(". "):
        return text
    return (
        f"{text.strip('. ')}-{hashlib.sha256(original.encode('utf-8', 'replace')).hexdigest()[:12]}"
        if original
        else "_"
    )


def _make_write_error(where: str, error: Exception) -> AgentRuntimeError:
    return AgentRuntimeError(
        Problem("X430", "the conversation cannot be stored", where, f"{type(error).__name__}: {error}",
                "check that the path is writable; the previously stored memory is intact")
    )  # fmt: skip


def _make_read_error(where: str, error: Exception) -> AgentRuntimeError:
    return AgentRuntimeError(
        Problem("X423", "the stored memory cannot be read", where, f"{type(error).__name__}: {error}",
                "repair it or move it away; if there is none, a new one is created")
    )  # fmt: skip


__all__ = ["MESSAGES", "WINDOW", "Memory", "to_message"]
