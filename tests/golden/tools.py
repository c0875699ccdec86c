"""What the golden agents call. The same answers always; the clock of the tests does not go on."""

from __future__ import annotations

TRIED: list[str] = []


def add(n, by=1):
    return {"result": n + by, "error": None}


def lookup(word):
    if word == "gone":
        return {"error": {"type": "not_found", "message": f"nothing about {word}"}}
    return {"text": f"about {word}", "items": [word, word.upper()], "error": None}


def breaks(**given):
    raise ValueError("it broke")


def third_time(word):
    """Fail twice, then answer: once by raising, once by an error in the answer."""
    TRIED.append(word)
    if len(TRIED) % 3 == 1:
        raise ConnectionError("no line")
    if len(TRIED) % 3 == 2:
        return {"error": "busy"}
    return {"text": f"{word} at last", "error": None}


def busy(word):
    return {"error": "busy"}
