"""The samples whose packages are installed (those of LangGraph and Burr need an extra), and what they are sent."""

from __future__ import annotations

from importlib.util import find_spec

from agentnb.samples import samples

EXTRA = {"langgraph", "burr"}
NAMES = [sample.name for sample in samples() if sample.dialect not in EXTRA or find_spec(sample.dialect)]
# What people answer, and the events that reactive agents wait for.
ANSWERS = {
    "triage": ["shorter, please", "approve"],
    "approval": ["yes", "yes"],
    "trip": ["Rome"],
    "cafe": ["tea", "cake", "steak", "pay"],
}
EVENTS = {
    "team": [("goal.created", {"goal": "Write about swifts"})],
    "incident": [("alert.raised", {"service": "shop", "text": text}) for text in ("low memory", "no memory")],
    "feedback": [
        ("comment.received", {"text": text})
        for text in ("It came late.", "Where is my parcel?", "Too expensive!", "Two days late.")
    ],
}
