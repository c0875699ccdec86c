"""flows: the samples that are built as polaris graphs: control flow in Python."""

from __future__ import annotations

from dataclasses import dataclass

from agentnb.dialects.polaris import Graph, Out, system

PLACES = ("the shelf", "the drawer", "the letter tray")


@dataclass
class Search:
    """Where a key has been looked for, and whether it is there."""

    looked: tuple[str, ...] = ()
    found: str = ""


@dataclass
class Seen:
    """What one look has come to."""

    place: str
    key: bool


@dataclass
class Heard:
    """What somebody said who was asked."""

    said: str


@dataclass
class Report:
    """What is told in the end."""

    text: str


def search() -> Graph:
    """Return a search for a key: a loop, two things done at the same time, one that fails once, and a decision."""

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
    """Begin with nothing looked at."""
    return Search()


@system
def look(search: Out[Search]) -> Seen:
    """Look at the next place."""
    place = PLACES[len(search.looked) % len(PLACES)]
    return Seen(place, key=place == "the drawer")


@system
def ask(search: Out[Search]) -> Heard:
    """Ask who may know; in the first round nobody is there."""
    if not search.looked:
        raise ConnectionError("nobody answers")
    return Heard(f"it is not on {search.looked[-1]}")


@system
def think() -> Heard:
    """Make do with a guess."""
    return Heard("it must be here somewhere")


@system
def note(search: Out[Search], seen: Out[Seen]) -> Search:
    """Put down where it has been looked for."""
    return Search((*search.looked, seen.place), seen.place if seen.key else "")


@system
def praise(search: Out[Search], heard: Out[Heard]) -> Report:
    """Tell of a short search."""
    return Report(f"found in {search.found} after {len(search.looked)} places; somebody said: {heard.said}")


@system
def sigh(search: Out[Search]) -> Report:
    """Tell of a long search."""
    return Report(f"found in {search.found}, at last")
