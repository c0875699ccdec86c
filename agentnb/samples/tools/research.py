"""Tools of the research sample besides searching: asking questions, and an archive that is closed."""

from __future__ import annotations

from typing import Any


def questions(topics: list[str]) -> dict[str, Any]:
    """Return one question for each topic."""
    return {"items": [f"What is known about {topic}?" for topic in topics], "error": None}


def archive(query: str) -> dict[str, Any]:
    """Ask an archive that is closed: it never answers, so that the sample shows what happens then.

    Raises:
        ConnectionError: always.
    """
    raise ConnectionError(f"the archive is closed; it was asked: {query}")
