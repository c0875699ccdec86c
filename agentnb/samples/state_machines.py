"""Samples of Burr: applications as their users write them, which need the extra `burr`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from burr.core import Application, ApplicationBuilder, State, action, default, expr, when
from burr.core.action import streaming_action

from agentnb.samples.chat_models import SimulatedChatModel

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MENU = {"tea": 3, "coffee": 4, "cake": 5, "soup": 7}


@action(reads=[], writes=["wish"])
def listen(state: State[Any], wish: str) -> State[Any]:
    """Ask a person for the guest's next wish."""
    return state.update(wish=wish.strip().lower())


@action(reads=["wish", "order"], writes=["order"])
def add(state: State[Any]) -> State[Any]:
    """Add what is on the menu to the order."""
    return state.append(order={"what": state["wish"], "price": MENU[state["wish"]]})


@action(reads=["wish"], writes=["declined"])
def decline(state: State[Any]) -> State[Any]:
    """Note what is not on the menu."""
    return state.append(declined=state["wish"])


@action(reads=["order"], writes=["bill"])
def charge(state: State[Any]) -> tuple[dict[str, Any], State[Any]]:
    """Add the order up."""
    bill = sum(dish["price"] for dish in state["order"])
    return {"dishes": len(state["order"])}, state.update(bill=bill)


WAITER = SimulatedChatModel(answer=lambda _: "Thank you, and have a lovely afternoon!")


@action(reads=["order", "declined", "bill"], writes=["farewell"])
def part(state: State[Any]) -> State[Any]:
    """Let a model say goodbye."""
    dishes = ", ".join(dish["what"] for dish in state["order"]) or "nothing"
    prompt = (
        f"You are a waiter. In one sentence, say goodbye to a guest who had {dishes}, and paid {state['bill']} euros."
    )
    return state.update(farewell=WAITER.invoke(prompt).content)


def cafe() -> Application[Any]:
    """Return a cafe: a guest orders dish by dish until they say "pay", and what is not on the menu is declined."""
    on_menu = when(wish__in=list(MENU))
    return (
        ApplicationBuilder()
        .with_actions(listen, add, decline, charge, part)
        .with_transitions(
            ("listen", "charge", when(wish="pay")),
            ("listen", "add", on_menu),
            ("listen", "decline", default),
            (["add", "decline"], "listen"),
            ("charge", "part"),
        )
        .with_state(order=[], declined=[], bill=0)
        .with_entrypoint("listen")
        .build()
    )


DRAFT = "Come one, come all, to the great and truly wonderful summer fair on the old market square"


@streaming_action(reads=["draft", "dropped"], writes=["headline"])
def write(state: State[Any]) -> Iterator[tuple[dict[str, Any], State[Any] | None]]:
    """Write the headline word by word, without what was dropped."""
    words = [word for word in state["draft"].split() if word.strip(",") not in state["dropped"]]
    for word in words:
        yield {"word": word}, None
    yield {"words": len(words)}, state.update(headline=" ".join(words))


@action(reads=["headline", "width"], writes=["over"])
def measure(state: State[Any]) -> State[Any]:
    """Measure by how many letters the headline is too long."""
    return state.update(over=max(0, len(state["headline"]) - state["width"]))


def find_longest_word(messages: Sequence[BaseMessage]) -> str:
    """Answer in place of a model: the longest word of the headline, which is the last line."""
    return max(str(messages[-1].content).splitlines()[-1].split(), key=len)


EDITOR = SimulatedChatModel(answer=find_longest_word)


@action(reads=["headline", "dropped"], writes=["dropped"])
def shorten(state: State[Any]) -> State[Any]:
    """Drop the word that a model chooses; the longest one if its answer is not in the headline."""
    words = [word.strip(",") for word in state["headline"].split()]
    prompt = f"Which word of this headline is needed least? Answer with that word alone.\n{state['headline']}"
    chosen = str(EDITOR.invoke(prompt).content).strip(" .,")
    return state.append(dropped=chosen if chosen in words else max(words, key=len))


@action(reads=["headline"], writes=["poster"])
def print_poster(state: State[Any]) -> State[Any]:
    """Frame the headline."""
    line = "*" * (len(state["headline"]) + 4)
    return state.update(poster=f"{line}\n* {state['headline']} *\n{line}")


def poster() -> Application[Any]:
    """Return a printer's: a model shortens a headline, word by word, until it fits on the poster."""
    return (
        ApplicationBuilder()
        .with_actions(write, measure, shorten, print=print_poster)
        .with_transitions(
            ("write", "measure"), ("measure", "shorten", expr("over > 0")), ("measure", "print"), ("shorten", "write")
        )
        .with_state(draft=DRAFT, width=60, dropped=[])
        .with_entrypoint("write")
        .build()
    )
