"""Finished sessions for the tests of exports."""

from __future__ import annotations

import agentnb as nb
from agentnb.world.llm.base import LLMResponse, Usage


def answered():
    """Return a finished run of `rag`: tools, a router and a model that reports its usage."""
    response = LLMResponse("It is blue.", usage=Usage(12, 5), model="m-1", provider="vendor", finish_reason="stop")
    session = nb.Session(nb.samples("rag"), {"question": "What color is the sky?"}, llm=lambda _request: response)
    session.run()
    return session


def nested():
    """Return a finished run with a loop inside of which a subgraph runs."""
    session = nb.Session(nb.samples("refine"), {"number": 2})
    session.run()
    return session


def approved():
    """Return a run of `triage` in which a person answered."""
    session = nb.Session(
        nb.samples("triage"), {"ticket": "My invoice is wrong", "customer": "Ada"}, answers=["approve"]
    )
    session.run()
    return session


RUNS = [answered, nested, approved]
