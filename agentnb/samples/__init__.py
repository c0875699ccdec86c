"""Sample recipes that ship with agentnb; they run offline, without a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, overload

from agentnb.arguments import plain_arguments
from agentnb.dialects.table import DIALECTS, load_recipe
from agentnb.errors import Problem, RecipeError, did_you_mean, require_library
from agentnb.recipe.listing import Listing
from agentnb.recipe.model import Recipe
from agentnb.sources import Source, read_file

__all__ = ["ANSWERS", "EVENTS", "Sample", "samples"]

_FOLDER: Final = Path(__file__).parent


class Sample(NamedTuple):
    """A row of `nb.samples()`: the name to load it by, its dialect, and what it shows."""

    name: str
    dialect: str
    description: str


_ALL: Final = (
    Sample(
        "triage",
        "coreason",
        "a support desk: agents, two routers, a person, and a reply that goes round until it is good",
    ),
    Sample(
        "document",
        "coreason",
        "a writer and a judge: a draft goes round until it scores well enough; with scenarios",
    ),
    Sample(
        "approval",
        "coreason",
        "a chain of people, each with a role and a deadline, and what happens if no one answers in time",
    ),
    Sample("pipeline", "coreason", "three agents in a row"),
    Sample("rag", "agentruntime", "answers from texts of its own: a search through real files, a router, a prompt"),
    Sample(
        "research",
        "agentruntime",
        "a loop around a subgraph: questions looked up one by one, with a fallback where the archive fails",
    ),
    Sample("assistant", "agentruntime", "a conversation that is remembered from run to run"),
    Sample(
        "moderation", "symphony", "a moderator with three tools: rules to look up, comments to hide, people to call"
    ),
    Sample("support", "symphony", "a clerk with two tools: it looks an order up before it pays money back"),
    Sample("refine", "networkx", "a loop around a subgraph: a square root, nearer with each round"),
    Sample("fanout", "networkx", "an offer: three parallel branches, a join, a choice by a condition, and a letter"),
    Sample("inbox", "networkx", "letters are sorted one by one: bills are filed, questions answered"),
    Sample("search", "polaris", "systems in a loop, two at the same time, one that fails, its handler, and a decision"),
    Sample(
        "checkout", "polaris", "an order is paid by card or by invoice, packed, and sent; a refused card has a handler"
    ),
    Sample("translation", "polaris", "an agent in a loop translates a text sentence by sentence"),
    Sample(
        "team", "activegraph", "a research team on a graph of tasks: emit goal.created, and it works until it is idle"
    ),
    Sample("incident", "activegraph", "an incident board: emit alert.raised; what is changed, a person has approved"),
    Sample(
        "feedback",
        "activegraph",
        "customers' comments: emit comment.received; a model finds the topic, and three of one make a task",
    ),
    Sample("trip", "langgraph", "fares asked for side by side, a person who chooses an offer, and advice on packing"),
    Sample("forecast", "langgraph", "an agent that asks a tool about the weather until it can answer"),
    Sample("cafe", "burr", "a guest orders dish by dish; a person says what they wish, until they pay"),
    Sample("poster", "burr", "a headline that streams word by word is shortened until it fits on the poster"),
)
# What people answer in a sample, and the events that a reactive sample waits for, so that it can finish by itself.
ANSWERS: Final[Mapping[str, list[str]]] = {
    "approval": ["yes", "yes"],
    "cafe": ["tea", "cake", "steak", "pay"],
    "triage": ["shorter, please", "approve"],
    "trip": ["Rome"],
}
EVENTS: Final[Mapping[str, list[tuple[str, dict[str, str]]]]] = {
    "team": [("goal.created", {"goal": "Write about swifts"})],
    "incident": [("alert.raised", {"service": "shop", "text": text}) for text in ("low memory", "no memory")],
    "feedback": [
        ("comment.received", {"text": text})
        for text in ("It came late.", "Where is my parcel?", "Too expensive!", "Two days late.")
    ],
}
# Dialects whose samples are built in Python, and the modules that build them.
_BUILT: Final = {
    "networkx": "graphs",
    "symphony": "agents",
    "polaris": "flows",
    "activegraph": "reactive",
    "langgraph": "state_graphs",
    "burr": "state_machines",
}


@overload
def samples() -> Listing[Sample]: ...
@overload
def samples(name: str) -> Recipe: ...
@plain_arguments
def samples(name: str | None = None) -> Listing[Sample] | Recipe:
    """Return the list of recipes that ship with agentnb, or with `name` the recipe of that name.

    Raises:
        RecipeError: R132, the sample does not exist.
        ExecutionError: L590, it is a program of LangGraph or Burr, which is not installed.

    Example:
        >>> samples("pipeline")
        <Recipe 'pipeline' (coreason): 3 nodes, 2 edges>
    """
    if name is None:
        return Listing(_ALL)
    known = {sample.name: sample for sample in _ALL}
    if name not in known:
        raise RecipeError(
            Problem("R132", f"there is no sample {name!r}", "nb.samples()", f"the samples are: {', '.join(known)}",
                    did_you_mean(name, known, "use one of them"))
        )  # fmt: skip
    recipe = load_recipe(_source(known[name]), DIALECTS[known[name].dialect])
    return replace(recipe, name=name) if recipe.dialect in {"langgraph", "burr"} else recipe  # they have no names


def _source(sample: Sample) -> Source:
    if sample.dialect in _BUILT:
        # Late: listing the samples needs no import.
        with require_library(sample.dialect, sample.dialect, f"nb.samples({sample.name!r})"):
            built = import_module(f"agentnb.samples.{_BUILT[sample.dialect]}")
        return Source(getattr(built, sample.name)(), f"<{sample.name}>")
    return read_file(_FOLDER / f"{sample.name}.yaml")
