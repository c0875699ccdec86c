"""Samples of polaris: graphs built in Python, with control flow."""

from __future__ import annotations

from dataclasses import dataclass

from agentnb.dialects.polaris import Graph, Out, system

PLACES = ("the shelf", "the drawer", "the letter tray")


@dataclass
class Search:
    """The places searched for a key, and whether it was found."""

    looked: tuple[str, ...] = ()
    found: str = ""


@dataclass
class Seen:
    """The result of one look."""

    place: str
    key: bool


@dataclass
class Heard:
    """The answer of a person who was asked."""

    said: str


@dataclass
class Report:
    """The final report."""

    text: str


def search() -> Graph:
    """Return a search for a key: a loop, two concurrent steps, one that fails once, and a decision."""

    def one_round(graph: Graph) -> None:
        graph.add_parallel("side_by_side", [look, ask_somebody])
        graph.add_system(note)

    def ask_somebody(graph: Graph) -> None:
        graph.add_error_handler(graph.add_system_node(ask), think)

    graph = Graph("search").add_system(begin)
    graph.add_loop("until_found", Search, lambda search: bool(search.found), one_round, max_iterations=10)
    graph.add_conditional_branch("quick", Search, lambda search: len(search.looked) < len(PLACES), praise, sigh)
    return graph


@system
def begin() -> Search:
    """Start with no place searched."""
    return Search()


@system
def look(search: Out[Search]) -> Seen:
    """Search the next place."""
    place = PLACES[len(search.looked) % len(PLACES)]
    return Seen(place, key=place == "the drawer")


@system
def ask(search: Out[Search]) -> Heard:
    """Ask someone who may know; in the first round the call fails."""
    if not search.looked:
        raise ConnectionError("nobody answers")
    return Heard(f"it is not on {search.looked[-1]}")


@system
def think() -> Heard:
    """Guess as a fallback."""
    return Heard("it must be here somewhere")


@system
def note(search: Out[Search], seen: Out[Seen]) -> Search:
    """Record the searched place."""
    return Search((*search.looked, seen.place), seen.place if seen.key else "")


@system
def praise(search: Out[Search], heard: Out[Heard]) -> Report:
    """Report a short search."""
    return Report(f"found in {search.found} after {len(search.looked)} places; somebody said: {heard.said}")


@system
def sigh(search: Out[Search]) -> Report:
    """Report a long search."""
    return Report(f"found in {search.found}, at last")
