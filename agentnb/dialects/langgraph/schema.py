"""How objects of LangGraph are recognized without importing it, and the names that its compiled graphs use."""

from __future__ import annotations

from typing import Any, Final

START: Final = "__start__"
END: Final = "__end__"
PREVIOUS: Final = "__previous__"


def is_graph(value: object) -> bool:
    """Return True for a StateGraph, a compiled graph, an entrypoint or a remote graph of LangGraph."""
    return is_builder(value) or is_compiled(value) or is_remote(value)


def is_builder(value: object) -> bool:
    """Return True for a graph that is not compiled yet."""
    return _is_a(value, "StateGraph")


def is_compiled(value: object) -> bool:
    """Return True for a compiled graph, also that of an entrypoint."""
    return _is_a(value, "Pregel")


def is_remote(value: object) -> bool:
    """Return True for a graph that runs on a server."""
    return _is_a(value, "RemoteGraph")


def is_state_graph(value: Any) -> bool:
    """Return True for a compiled StateGraph."""
    return _is_a(value, "CompiledStateGraph")


def is_entrypoint(value: Any) -> bool:
    """Return True for a compiled graph that @entrypoint created from a function."""
    return is_compiled(value) and len(value.nodes) == 1 and value.channels.keys() >= {START, END, PREVIOUS}


def _is_a(value: object, name: str) -> bool:
    classes = type(value).__mro__
    return any(cls.__name__ == name and cls.__module__.partition(".")[0] == "langgraph" for cls in classes)
