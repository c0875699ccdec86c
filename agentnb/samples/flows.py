"""Samples of polaris: graphs built in Python, with control flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentnb.dialects.polaris import Graph, Out, system
from agentnb.dialects.symphony import AgentConfig, AgentExecutor

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
def praise(search: Out[Search], quote: Out[Heard]) -> Report:
    """Report a short search."""
    return Report(f"found in {search.found} after {len(search.looked)} places; somebody said: {quote.said}")


@system
def sigh(search: Out[Search]) -> Report:
    """Report a long search."""
    return Report(f"found in {search.found}, at last")


CARD_LIMIT = 500  # euros


@dataclass
class Order:
    """What a customer ordered, and how it will be paid."""

    item: str
    price: int  # euros
    method: str


@dataclass
class Payment:
    """How an order was paid."""

    text: str


@dataclass
class Parcel:
    """A packed parcel."""

    label: str


@dataclass
class Receipt:
    """What the customer gets by e-mail."""

    text: str


def checkout() -> Graph:
    """Return the checkout of a shop: a switch, a refused payment and its handler, concurrent steps, and an agent."""

    def by_card(graph: Graph) -> None:
        payment = graph.add_system_node(charge_card)
        graph.set_retry(payment, attempts=2)
        graph.add_error_handler(payment, ask_for_transfer)

    graph = Graph("checkout").add_system(read_order)
    cases: dict[str, Callable[..., Any]] = {"card": by_card, "invoice": write_invoice}
    graph.add_switch("payment", Order, lambda order: order.method, cases)
    graph.add_parallel("dispatch", [pack, write_receipt])
    graph.add_system(ask_for_thanks)
    graph.add_system(_make_writer("clerk", "thank customers", "Thank you for your order. Enjoy it!"))
    graph.add_system(send)
    return graph


def _make_writer(name: str, task: str, *simulated: str) -> AgentExecutor:
    """Return an agent without tools: it gets the last text, and its answer is the next one."""
    return AgentExecutor(AgentConfig(name=name, description="a writer", task=task), simulated=simulated)


@system
def read_order() -> Order:
    """Read what is in the basket."""
    return Order("a desk", 640, "card")


@system
def charge_card(order: Out[Order]) -> Payment:
    """Charge the card; above its limit the bank refuses."""
    if order.price > CARD_LIMIT:
        raise ConnectionError(f"the bank refused {order.price} euros")
    return Payment(f"{order.price} euros by card")


@system
def ask_for_transfer(order: Out[Order]) -> Payment:
    """Ask for a bank transfer in place of the card."""
    return Payment(f"{order.price} euros by bank transfer, asked for by e-mail")


@system
def write_invoice(order: Out[Order]) -> Payment:
    """Write an invoice."""
    return Payment(f"{order.price} euros by invoice")


@system
def pack(order: Out[Order]) -> Parcel:
    """Pack the order."""
    return Parcel(f"parcel with {order.item}")


@system
def write_receipt(payment: Out[Payment]) -> Receipt:
    """Write the receipt."""
    return Receipt(f"paid: {payment.text}")


@system
def ask_for_thanks(order: Out[Order]) -> str:
    """Say what the agent is to write."""
    return f"Write one friendly sentence to a customer who has ordered {order.item}."


@system
def send(parcel: Out[Parcel], receipt: Out[Receipt], thanks: Out[str]) -> Report:
    """Send the parcel with its receipt and the agent's words."""
    return Report(f"sent: {parcel.label}; {receipt.text}; {thanks}")


@dataclass
class Manuscript:
    """The sentences that have to be translated, and those that are."""

    left: tuple[str, ...]
    done: tuple[str, ...] = ()


def translation() -> Graph:
    """Return a translation: an agent in a loop, which takes the text sentence by sentence."""

    def one_sentence(graph: Graph) -> None:
        graph.add_system(take_sentence)
        graph.add_system(
            _make_writer(
                "translator", "translate English into German", "Der Mond scheint.", "Es ist still.", "Ein Hund bellt."
            )
        )
        graph.add_system(keep_translation)

    graph = Graph("translation").add_system(read_manuscript)
    graph.add_loop("each_sentence", Manuscript, lambda manuscript: not manuscript.left, one_sentence)
    graph.add_system(bind_translation)
    return graph


@system
def read_manuscript() -> Manuscript:
    """Read the text."""
    return Manuscript(("The moon is shining.", "It is quiet.", "A dog barks."))


@system
def take_sentence(manuscript: Out[Manuscript]) -> str:
    """Give the next sentence to the translator."""
    return f"Translate into German, and answer with the translation alone: {manuscript.left[0]}"


@system
def keep_translation(manuscript: Out[Manuscript], translated: Out[str]) -> Manuscript:
    """Keep what the translator has answered."""
    return Manuscript(manuscript.left[1:], (*manuscript.done, translated))


@system
def bind_translation(manuscript: Out[Manuscript]) -> Report:
    """Put the sentences together."""
    return Report(" ".join(manuscript.done))
