"""Partial texts of models while they stream, sent to the pages a few times a second, always including the last.

A piece may split a secret, so text that could be the beginning of one is withheld until it is decided. A model that
finishes at once is never shown streaming: its answer is already on the board.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from agentnb.secrets import count_settled, mask_text, masks_by
from agentnb.session.state import get_state
from agentnb.ui.kernel_loop import get_kernel_loop

if TYPE_CHECKING:
    from agentnb.engine.control.listeners import Token
    from agentnb.session import Session

INTERVAL: Final = 1 / 12  # seconds between two messages, and until the first
LONGEST: Final = 20_000  # characters of one text shown; of the rest only the count
DROPPED: Final = -1  # the text is obsolete: its call was cancelled, or another of its node has begun
_KEPT: Final = 20  # finished texts that a page may still request in full


@dataclass(slots=True)
class _Text:
    """The text of one model call. `shown` is masked; `tail` is not: it may be the beginning of a secret."""

    node: str
    call: int
    model: str
    position: int
    attempt: int = 1
    shown: str = ""
    tail: str = ""
    size: int = 0
    pieces: int = 0
    sent: int = 0
    reported: tuple[Any, ...] = field(default=())
    over: int | None = None

    @property
    def name(self) -> str:
        return f"{self.call}/{self.node}"

    def append(self, token: Token) -> None:
        """Append a piece; another attempt starts over."""
        if token.attempt != self.attempt:
            self.attempt, self.shown, self.tail, self.size, self.pieces, self.sent = token.attempt, "", "", 0, 0, 0
        self.size, self.pieces = self.size + len(token.text), self.pieces + 1
        self.tail += token.text
        self.settle(count_settled(self.tail))

    def settle(self, end: int) -> None:
        """Mask and release the text up to `end`, which no later piece can turn into a secret."""
        if len(self.shown) < LONGEST:
            self.shown = (self.shown + _to_sendable(mask_text(self.tail[:end])))[:LONGEST]
        self.tail = self.tail[end:]

    def row(self, start: int) -> dict[str, Any]:
        """Return the text from a position on, as the page receives it."""
        return {
            "id": self.name,
            "node": self.node,
            "model": self.model,
            "attempt": self.attempt,
            "at": start,
            "text": self.shown[start:],
            "size": self.size,
            "pieces": self.pieces,
            "over": self.over,
        }


@masks_by(lambda streams: get_state(streams.session).run.tables.secrets, private=("_handle_message",))
class Streams:
    """Listens to the models of one session and sends rows: the new part of each text and its position.

    While it listens, models that support streaming stream.
    """

    def __init__(self, session: Session, send: Callable[[list[dict[str, Any]]], None]) -> None:
        self.session = session
        self._send, self._loop = send, get_kernel_loop()
        self._texts: dict[str, _Text] = {}
        self._lock = RLock()
        self._flushed, self._due = 0.0, False
        self.close = session.subscribe(self._handle_message, to="token")

    def _handle_message(self, token: Token) -> None:
        """Append a piece, from any thread; send at once if the last message is old enough."""
        with self._lock:
            name = f"{token.call}/{token.node}"
            known = self._texts.get(name)
            if known is None or known.over is not None:
                known = self._texts[name] = _Text(token.node, token.call, token.model, self.session.position)
                self._flushed = time.monotonic()  # texts that end before the first interval are not shown
            known.append(token)
            rest = self._flushed + INTERVAL - time.monotonic()
            if rest <= 0:
                self._flush()
            elif not self._due and self._loop is not None and not self._loop.is_closed():
                self._due = True
                self._loop.call_soon_threadsafe(self._send_later, rest)

    def _send_later(self, rest: float) -> None:
        assert self._loop is not None
        self._loop.call_later(rest, self._flush)

    def settle(self) -> None:
        """Check which calls have ended and send the rest of their texts. To be called when the run has changed."""
        if not self._texts:
            return
        with self._lock:
            out = _count_calls_in_flight(self.session)
            for text in sorted(self._texts.values(), key=lambda text: -text.call):
                if text.over is None and not _takes(out, text.node):
                    text.settle(len(text.tail))
                    text.over = self.session.position if self.session.position > text.position else DROPPED
            self._flush()
            ended = [name for name, text in self._texts.items() if text.over is not None]
            for name in ended[:-_KEPT]:
                del self._texts[name]

    def _flush(self) -> None:
        with self._lock:
            self._due, self._flushed = False, time.monotonic()
            rows = []
            for text in self._texts.values():
                now = (text.attempt, text.size, text.over)
                # it finished before it was first shown
                if text.reported == now or (text.over is not None and not text.reported):
                    continue
                rows.append(text.row(text.sent))
                text.sent, text.reported = len(text.shown), now
            if rows:
                self._send(rows)

    def get_full_text(self, name: Any) -> dict[str, Any] | None:
        """Return a text in full so far, for a page that has missed a piece; None if it does not exist."""
        with self._lock:
            text = self._texts.get(str(name))
            return None if text is None else text.row(0)


def _count_calls_in_flight(session: Session) -> Counter[str]:
    """Count the model calls in flight, by node."""
    pending_steps = tuple(get_state(session).run.pending_steps.values())
    calls = (
        (pending_step.activation.node.id, tuple(pending_step.activation.work.calls_in_flight.values()))
        for pending_step in pending_steps
    )
    return Counter(node for node, effects in calls for _, effect, *_ in effects if effect.kind == "llm")


def _takes(out: Counter[str], node: str) -> bool:
    out[node] -= 1
    return out[node] >= 0


def _to_sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
