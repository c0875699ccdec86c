"""Errors of the package are there, and are caught as they are caught there."""

from __future__ import annotations

from agentnb.dialects import activegraph
from tests.dialects.activegraph.judge import theirs


def test_errors_are_caught_by_the_names_of_the_package():
    wrong = [name for name in activegraph.__all__ if name.endswith("Error") or "Conflict" in name]
    for name in wrong:
        their_error = getattr(theirs(), name, None) or getattr(__import__("activegraph.llm").llm, name)
        assert issubclass(getattr(activegraph, name), Exception)
        for usual in (KeyError, LookupError):
            assert issubclass(getattr(activegraph, name), usual) or not issubclass(their_error, usual), name
    assert {"PackConflictError", "PackVersionConflictError", "ReplayDivergenceError", "ReservedFieldError"} <= set(
        wrong
    )
