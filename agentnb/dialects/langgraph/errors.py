"""Problems of LangGraph programs: constructs, contexts and answers that are rejected."""

from __future__ import annotations

from agentnb.errors import Place, Problem
from agentnb.text import safe_str


def make_unsupported_problem(construct: str, place: Place | str, do: str) -> Problem:
    """Return the Problem for a construct that would run differently from LangGraph.

    L531: a LangGraph program uses something that is not supported.
    """
    return Problem("L531", f"{construct} is not supported", str(place),
                   "it would run differently from LangGraph, so the graph is rejected", do)  # fmt: skip


def make_inner_breakpoints_problem(place: Place | str) -> Problem:
    """Return the Problem for a graph with its own breakpoints that a function invokes."""
    construct = "a graph with interrupt_before or interrupt_after that a function invokes"
    return make_unsupported_problem(construct, place, "compile it without them, or add it as a node")


def make_compile_problem(error: Exception, place: Place | str) -> Problem:
    """Return the Problem for a graph that LangGraph itself rejects.

    L532: LangGraph cannot compile a graph.
    """
    why = f"LangGraph raises {type(error).__name__}"
    return Problem(
        "L532", f"the graph does not compile: {error}", str(place), why, "fix the graph so that compile() succeeds"
    )


def make_context_problem(error: Exception, place: Place | str) -> Problem:
    """Return the Problem for a runtime context that its schema rejects.

    L543: the context of a LangGraph program does not fit its schema.
    """
    why = f"the schema raises {type(error).__name__}: {safe_str(error, 2_000)}"
    return Problem("L543", "the context does not fit context_schema", str(place), why, "pass a context that fits")


def make_answer_problem(place: str) -> Problem:
    """Return the Problem for an answer that is a Command, which only `invoke` accepts.

    L588: an answer to a LangGraph program is a Command.
    """
    why = "answer() takes what interrupt() returns, without a Command around it"
    return Problem("L588", "the answer is a Command", place, why, "call retry(), then answer(command.resume)")


__all__ = [
    "make_answer_problem",
    "make_compile_problem",
    "make_context_problem",
    "make_inner_breakpoints_problem",
    "make_unsupported_problem",
]
