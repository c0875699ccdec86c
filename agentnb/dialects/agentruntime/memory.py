"""memory: conversations that are kept from run to run: in this process, in a JSON file, or in SQLite.

Before a run the messages of its conversation stand at the front of `state.messages`; after it, what came behind them
is kept. Which conversation it is, an input says (or the state), under `session_key`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from agentnb.errors import AgentRuntimeError, Problem

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.schema import MemoryConfig

Message = dict[str, Any]
MESSAGES, WINDOW = "messages", "messages_window"
_TYPES: Final = {"user": "human", "human": "human", "assistant": "ai", "ai": "ai"}
_ROLES: Final = {"human": "user", "ai": "assistant"}
_WORD: Final = re.compile(r"\{(\w+)\}")
_LONGEST: Final = 80  # characters of one part of a file's name


class History(Protocol):
    """Where conversations are kept, each a list of messages."""

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        """Return a conversation's messages, the oldest first."""

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        """Keep more messages of a conversation."""


class Memory:
    """The conversations of one agent. `folder` is what paths of files are relative to."""

    def __init__(self, config: MemoryConfig, folder: Path | None) -> None:
        self.config = config
        self.history: History = _history(config, folder or Path.cwd())

    def session(self, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> str:
        """Return the name of the conversation that a run goes on with."""
        key = self.config.session_key
        name = inputs.get(key) or state.get(key) or "default"
        return f"{self.config.namespace}:{name}" if self.config.namespace else str(name)

    def recall(self, inputs: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """Return a first state with what was said before at the front of its messages.

        Raises:
            AgentRuntimeError: X422, `messages` is no list; X423, what is kept cannot be read.
        """
        messages = state.get(MESSAGES)
        if messages is not None and not isinstance(messages, list | tuple):
            raise AgentRuntimeError(
                Problem("X422", f"state.{MESSAGES} is a {type(messages).__name__}", "memory",
                        "the memory keeps the conversation there, as a list of messages",
                        f"make state.{MESSAGES} a list, or leave it out")
            )  # fmt: skip
        before = self.history.read(self.session(inputs, state), _known(inputs, state))
        return {**state, **self.window([*before, *map(as_message, messages or ())])}

    def keep(self, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Keep what a finished run has said beyond what was kept already.

        Raises:
            AgentRuntimeError: X430, it cannot be kept; X423, what was kept before cannot be read.
        """
        session, known = self.session(inputs, state), _known(inputs, state)
        messages = [as_message(message) for message in state.get(MESSAGES) or ()]
        more = _beyond(self.history.read(session, known), messages)
        if more:
            self.history.add(session, known, more)

    def window(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return the keys of the state that hold the conversation: all of it and, where `k` is set, its end."""
        kept = list(messages)
        return {MESSAGES: kept, WINDOW: kept[-self.config.k :]} if self.config.k else {MESSAGES: kept}


def as_message(given: Any) -> Message:
    """Return what stands among the messages as one: type, role and content; a text is what the user has said."""
    if not isinstance(given, Mapping):
        return {"type": "human", "role": "user", "content": given if isinstance(given, str) else str(given)}
    word = str(given.get("role") or given.get("type") or "user")
    kind = _TYPES.get(word, word)
    return {**given, "type": kind, "role": _ROLES.get(kind, word), "content": given.get("content", "")}


def _beyond(kept: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Return the messages that are not kept yet: as a rule those behind what stands there already.

    Where another run has kept more of this conversation meanwhile, or a node has cut the messages short, the two do not
    begin alike: then those that are not found there.
    """
    if list(messages[: len(kept)]) == list(kept):
        return list(messages[len(kept) :])
    alike = next(n for n, pair in enumerate(zip(kept, [*messages, None], strict=False)) if pair[0] != pair[1])
    return [message for message in messages[alike:] if message not in kept[alike:]]


def _known(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the path of a file may name: simple values of the state and the inputs."""
    both = {**state, **inputs}
    return {key: value for key, value in both.items() if isinstance(value, str | int | float) and key.isidentifier()}


def _history(config: MemoryConfig, folder: Path) -> History:
    match config.kind:
        case "file":
            return _Files(str(config.path), folder, config.namespace or "")
        case "sqlite":
            return _Sqlite(str(config.dsn), folder, config.table or "message_store")
    return _InMemory()


class _InMemory:
    def __init__(self) -> None:
        self.kept: dict[str, list[Message]] = {}

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        return list(self.kept.get(session, ()))

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        self.kept.setdefault(session, []).extend(messages)


def _stored(message: Message) -> dict[str, Any]:
    """Return a message as it is written down: its type, and the rest as data (as langchain's histories have it)."""
    return {"type": message["type"], "data": {key: value for key, value in message.items() if key != "type"}}


def _listed(kept: Any) -> list[Any]:
    if not isinstance(kept, list):
        raise TypeError(f"it holds a {type(kept).__name__}, where a list of messages was expected")
    return kept


def _read(stored: Any) -> Message:
    data = stored.get("data", {}) if isinstance(stored, Mapping) else {}
    return as_message({**data, "type": stored["type"], "role": data.get("role") or stored["type"]})


class _Files:
    """One JSON file a conversation; its path may hold `{session_id}`, `{namespace}` and simple values of the inputs."""

    def __init__(self, path: str, folder: Path, namespace: str) -> None:
        self.path, self.folder, self.namespace = path, folder, namespace
        self.lock = threading.Lock()

    def _file(self, session: str, known: Mapping[str, Any]) -> Path:
        words = {key: _safe(value) for key, value in known.items()}
        words |= {"session_id": "_".join(map(_safe, session.split(":", bool(self.namespace))))}
        words |= {"namespace": _safe(self.namespace)}
        return self.folder / _WORD.sub(lambda found: words.get(found[1], found[0]), self.path)

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        file = self._file(session, known)
        if not file.exists():
            return []
        try:
            return [_read(stored) for stored in _listed(json.loads(file.read_text(encoding="utf-8")))]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _unreadable(str(file), error) from error

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        with self.lock:
            kept, file = self.read(session, known), self._file(session, known)
            text = json.dumps([_stored(message) for message in [*kept, *messages]], ensure_ascii=False, default=str)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_name(f"{file.name}.new")
                beside.write_text(text, encoding="utf-8")
                beside.replace(file)  # whole or not at all
            except (OSError, ValueError) as error:
                raise _not_kept(str(file), error) from error


class _Sqlite:
    """A table with a row a message, as langchain's SQL history has it; `dsn` is a path or a URL `sqlite:///path`."""

    def __init__(self, dsn: str, folder: Path, table: str) -> None:
        path = dsn.removeprefix("sqlite:///").removeprefix("sqlite://")
        self.path = path if path == ":memory:" else str(folder / path)
        self.table = '"' + table.replace('"', '""') + '"'
        self.lock = threading.Lock()
        self.only = sqlite3.connect(":memory:", check_same_thread=False) if path == ":memory:" else None

    def _rows(self, statement: str, *rows: tuple[Any, ...]) -> list[Any]:
        with self.lock, _connected(self.path, self.only) as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self.table} (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)"
            )
            found = [connection.execute(statement, row).fetchall() for row in rows]
            connection.commit()
            return found[0] if found else []

    def read(self, session: str, known: Mapping[str, Any]) -> list[Message]:
        statement = f"SELECT message FROM {self.table} WHERE session_id = ? ORDER BY id"  # noqa: S608  (quoted above)
        try:
            return [_read(json.loads(text)) for (text,) in self._rows(statement, (session,))]
        except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError) as error:
            raise _unreadable(self.path, error) from error

    def add(self, session: str, known: Mapping[str, Any], messages: Sequence[Message]) -> None:
        statement = f"INSERT INTO {self.table} (session_id, message) VALUES (?, ?)"  # noqa: S608  (the same)
        rows = [(session, json.dumps(_stored(message), ensure_ascii=False, default=str)) for message in messages]
        try:
            self._rows(statement, *rows)
        except sqlite3.Error as error:
            raise _not_kept(self.path, error) from error


def _connected(path: str, only: sqlite3.Connection | None) -> Any:
    return _Open(only) if only is not None else closing(sqlite3.connect(path))


class _Open:
    """A connection that stays open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        """Leave it open."""


def _safe(value: Any) -> str:
    """Return a value as a part of a file's name: what could lead elsewhere becomes `_`.

    Where that changes it, a mark is added, so that two values never have one name.
    """
    given = str(value)
    text = "".join(char if char.isalnum() or char in "-_.@ " else "_" for char in given)
    text = text.replace("..", "__")[:_LONGEST]
    if text == given and text.strip(". "):
        return text
    return f"{text.strip('. ')}-{hashlib.sha256(given.encode('utf-8', 'replace')).hexdigest()[:12]}" if given else "_"


def _not_kept(where: str, error: Exception) -> AgentRuntimeError:
    return AgentRuntimeError(
        Problem("X430", "what was said cannot be kept", where, f"{type(error).__name__}: {error}",
                "see to it that the place can be written to; what was kept before is whole")
    )  # fmt: skip


def _unreadable(where: str, error: Exception) -> AgentRuntimeError:
    return AgentRuntimeError(
        Problem("X423", "what the memory has kept cannot be read", where, f"{type(error).__name__}: {error}",
                "mend it or move it away; a new one is begun where there is none")
    )  # fmt: skip


__all__ = ["MESSAGES", "WINDOW", "Memory", "as_message"]
