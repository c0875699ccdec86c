"""The drawing of the causes and effects of an event: each event below the one that caused it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agentnb.draw.generic_diagram import GenericBox, GenericLink, Sketch, draw_sketch
from agentnb.draw.label_text import clean

MOST: Final = 120  # maximum number of events drawn
_SAID: Final = {"cause": "cause", "self": "itself", "effect": "effect"}
_FAMILIES: Final = {"llm.": "think", "tool.": "act", "approval.": "person"}


@dataclass(frozen=True, slots=True)
class ChainEvent:
    """An event of a chain: the node that emitted it (empty: from outside), its cause, and its subject.

    `part` is cause, self or effect; `distance` is counted from the event asked about.
    """

    id: str
    type: str
    actor: str
    node: str
    cause: str
    objects: tuple[str, ...]
    part: str
    distance: int
    step: int | None = None


def draw_chain(title: str, rows: Sequence[ChainEvent], *, most: int = MOST) -> Sketch:
    """Return the drawing of a chain; if it is long, of the events nearest to the one asked about."""
    near = {row.id for row in sorted(rows, key=lambda row: abs(row.distance))[:most]}  # on a tie the first
    shown = [row for row in rows if row.id in near]
    hidden = len(rows) - len(shown)
    rest = f"and {hidden} more events; {len(shown)} are drawn" if hidden else ""
    lines = [f"{title}: {len(rows)} events", *_iter_words(shown)]
    return draw_sketch(title, map(_make_thing, shown), _iter_ties(shown), lines, rest=rest, what="chain of causes:")


def _make_thing(row: ChainEvent) -> GenericBox:
    family = "event" if row.node else "person"
    family = next((color for begin, color in _FAMILIES.items() if row.type.startswith(begin)), family)
    description = ", ".join(row.objects)
    tip = f"{row.id} {row.type}\nemitted by {row.actor} {_format_where(row)}" + (
        f"\nabout {description}" if description else ""
    )
    marks = ("self",) if row.part == "self" else ()
    notes = (description,) if description else ()
    return GenericBox(
        row.id, f"{row.id} · {row.actor}", row.type, notes, tip, family, marks=(*marks, row.part), badge=_SAID[row.part]
    )


def _iter_ties(rows: Sequence[ChainEvent]) -> Iterator[GenericLink]:
    known = {row.id for row in rows}
    for row in rows:
        if row.cause in known and row.cause != row.id:
            tip = f"{row.id} followed from {row.cause}" + (f", by {row.node}" if row.node else "")
            yield GenericLink(row.cause, row.id, "causes", row.node, tip)


def _iter_words(rows: Sequence[ChainEvent]) -> Iterator[str]:
    for row in rows:
        sign = {"cause": "<-", "self": "==", "effect": "->"}[row.part]
        subjects = f" about {', '.join(row.objects)}" if row.objects else ""
        cause = f", after {row.cause}" if row.cause else ""
        yield clean(f"{sign} {row.id} {row.type}{subjects}: {row.actor} {_format_where(row)}{cause}")


def _format_where(row: ChainEvent) -> str:
    if row.step is not None:
        return f"in step {row.step}"
    return "in the current step" if row.node else "from outside"


__all__ = ["MOST", "ChainEvent", "draw_chain"]
