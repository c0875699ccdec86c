"""What runs say to the log, read back line by line; afterwards logging stands as it stood."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from agentnb.session import logs


class Lines:
    """What has been written so far."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def texts(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    @property
    def rows(self) -> list[dict]:
        return [json.loads(text) for text in self.texts]

    def told(self, level=None, logger=None) -> list[str]:
        """Return the messages (of a level, of a logger)."""
        return [
            row["message"]
            for row in self.rows
            if level in (None, row["level"]) and logger in (None, row["logger"].removeprefix("agentnb."))
        ]


@contextmanager
def logging_to(level="INFO", **options) -> Iterator[Lines]:
    """Configure logging for a while."""
    lines = Lines()
    logs.configure_logging(level, stream=lines.stream, **options)
    try:
        yield lines
    finally:
        off()


def off() -> None:
    """Turn logging off, as it is before anybody configures it."""
    if logs._Configuration.handler is not None:
        logs.ROOT.removeHandler(logs._Configuration.handler)
    logs._Configuration.handler = logs._Configuration.redactor = None
    logs.ROOT.setLevel(logging.NOTSET)
    logs.ROOT.propagate = True
