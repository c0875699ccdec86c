"""Samples of LangGraph: programs as their users write them, which need the extra `langgraph`."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt

from agentnb.samples.chat_models import SimulatedChatModel

FARES = {"Lisbon": 180, "Oslo": 240, "Rome": 120}
RAIN = {"Lisbon": 10, "Oslo": 70, "Rome": 30}


class Trip(TypedDict):
    """A trip that is planned: cities to compare, their offers, the one that a person chose, and what to pack."""

    cities: list[str]
    offers: Annotated[list[dict[str, Any]], operator.add]
    choice: str
    booking: str
    advice: str


class Quote(TypedDict):
    """One city to ask the fare of."""

    city: str


def plan(trip: Trip) -> dict[str, Any]:
    """Take the cities that were named, else all that there is a fare for."""
    return {"cities": trip.get("cities") or list(FARES)}


def ask_fares(trip: Trip) -> list[Send]:
    """Ask for all cities at the same time."""
    return [Send("quote", {"city": city}) for city in trip["cities"]]


def quote(asked: Quote) -> dict[str, Any]:
    """Look up the fare to a city."""
    return {"offers": [{"city": asked["city"], "price": FARES[asked["city"]]}]}


def choose(trip: Trip) -> dict[str, Any]:
    """Let a person choose one of the offers."""
    return {"choice": interrupt({"Where to?": trip["offers"]})}


def book(trip: Trip) -> dict[str, Any]:
    """Book the chosen offer; the cheapest one for any other answer."""
    chosen = [offer for offer in trip["offers"] if offer["city"] == trip["choice"]]
    offer = min(chosen or trip["offers"], key=lambda offer: offer["price"])
    return {"booking": f"{offer['city']} for {offer['price']} euros"}


ADVISER = SimulatedChatModel(answer=lambda _: "Pack light shoes, and a coat for the evenings.")


def advise(trip: Trip) -> dict[str, Any]:
    """Ask a model what to pack."""
    return {"advice": ADVISER.invoke(f"In one sentence: what should I pack for {trip['booking']}?").content}


def trip() -> StateGraph[Trip]:
    """Return a travel planner: fares are requested in parallel, a person chooses, and a model suggests what to pack."""
    graph = StateGraph(Trip)
    graph.add_node("plan", plan)
    graph.add_node("quote", quote)
    graph.add_node("choose", choose)
    graph.add_node("book", book)
    graph.add_node("advise", advise)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", ask_fares, ["quote"])
    graph.add_edge("quote", "choose")
    graph.add_edge("choose", "book")
    graph.add_edge("book", "advise")
    graph.add_edge("advise", END)
    return graph


class Messages(TypedDict):
    """A conversation."""

    messages: Annotated[list[AnyMessage], add_messages]


@tool
def rain(city: str) -> str:
    """Return the chance of rain in a city today."""
    return f"{RAIN[city]} % in {city}"


def foretell(messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Answer in place of a model: ask for the rain in each city that was named, then say it."""
    known = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
    if known:
        return f"The chance of rain: {'; '.join(known)}."
    cities = [city for city in re.findall(r"\w+", str(messages[0].content)) if city in RAIN]
    return AIMessage("", tool_calls=[{"name": "rain", "args": {"city": city}, "id": f"call_{city}"} for city in cities])


def forecast() -> StateGraph[Messages]:
    """Return an agent that asks a tool about the weather until it can answer."""
    bound = SimulatedChatModel(answer=foretell).bind_tools([rain])

    def ask(state: Messages) -> dict[str, Any]:
        """Ask its own question if no question was asked."""
        return {} if state.get("messages") else {"messages": [("user", "Will it rain in Oslo or in Rome?")]}

    def think(state: Messages) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def act(state: Messages) -> dict[str, Any]:
        calls = getattr(state["messages"][-1], "tool_calls", [])
        return {"messages": [rain.invoke({**call, "type": "tool_call"}) for call in calls]}

    def following(state: Messages) -> str:
        return "act" if getattr(state["messages"][-1], "tool_calls", []) else END

    graph = StateGraph(Messages)
    graph.add_node("ask", ask)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "think")
    graph.add_conditional_edges("think", following, ["act", END])
    graph.add_edge("act", "think")
    return graph
