"""Search for the paragraphs of text files that match a query best. Real files, no network."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent
_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset(
    {"about", "and", "are", "does", "for", "from", "has", "have", "how", "its", "that", "the", "there", "this"}
    | {"was", "what", "when", "which", "why", "with"}
)


def search(query: str, folder: str = "texts", k: int = 3) -> dict[str, Any]:
    """Return the `k` paragraphs that share the rarest words with a query, the best first.

    The result has `items` (text, source, score), `text` (all of them as one) and `error`, where nothing was found.
    """
    paragraphs = [
        (file.stem, " ".join(paragraph.split()))
        for file in sorted((HERE / folder).glob("*.txt"))
        for paragraph in file.read_text(encoding="utf-8").split("\n\n")
    ]
    words = [Counter(stems(paragraph)) for _, paragraph in paragraphs]
    spread = Counter(word for each in words for word in each)
    query_stems = stems(query)
    results: list[tuple[float, dict[str, Any]]] = []
    for (source, text), counts in zip(paragraphs, words, strict=True):
        score = sum(math.log(1 + len(paragraphs) / spread[word]) for word in query_stems if word in counts)
        if score:
            results.append((score, {"text": text, "source": source, "score": round(score, 3)}))
    results.sort(key=lambda pair: -pair[0])
    items = [item for _, item in results[: int(k)]]
    error = None if items else {"type": "nothing_found", "message": f"no text says anything about {query!r}"}
    return {"items": items, "text": "\n\n".join(item["text"] for item in items), "error": error}


def stems(text: str) -> list[str]:
    """Return the words of a text in a form in which `tide` and `tides` are equal; common words are left out."""
    words = dict.fromkeys(word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return list(dict.fromkeys(word.removesuffix("s") for word in words))
