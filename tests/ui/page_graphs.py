"""What the tests of the drawing in a bare page ask of it, and long recipes."""

from __future__ import annotations

import itertools

import agentnb as nb
from agentnb.recipe.model import Edge, Node, Recipe, Region

WIDTH = "document.querySelector('.agentnb-graph svg').getBoundingClientRect().width"


def node(on, name):
    return on.page.locator(f'g.node[data-node="{name}"]')


def tool(on, name):
    return on.page.locator("[data-pane=graph]").get_by_role("button", name=name, exact=True)


def done(on):
    """What the page has asked to be done; looks do nothing."""
    return [verb for verb, _ in on.sent() if verb != "query"]


def obeyed(on):
    return [verb for verb in on.obey() if verb != "query"]


def chosen(on):
    return on.page.evaluate("[...document.querySelectorAll('g.node.agentnb-chosen')].map(group => group.dataset.node)")


def long(size, prefix="n"):
    nodes = [Node(f"{prefix}{number}", "noop") for number in range(size)]
    edges = tuple(Edge(a.id, b.id) for a, b in itertools.pairwise(nodes))
    return Recipe("long", "test", {one.id: one for one in nodes}, edges, (nodes[0].id,))


def large():
    recipe = long(200)
    nodes = {
        id: Node(id, "noop", scope="root" if number < 5 else "deep", bodies=("deep",) if number == 4 else ())
        for number, id in enumerate(recipe.nodes)
    }
    nodes["n4"] = Node("n4", "subgraph", bodies=("deep",))
    regions = {"root": Region("root", ("n0",)), "deep": Region("deep", ("n5",), "Deep", "n4")}
    edges = tuple(edge for edge in recipe.edges if edge.source != "n4")
    return Recipe("large", "test", nodes, edges, ("n0",), regions=regions)


def wait_for(on, what):
    """Carry out what the page asks for until this is there; a large drawing is made in a thread."""
    for _ in range(400):
        on.obey()
        if on.page.locator(what).count():
            return
        on.page.wait_for_timeout(50)
    raise AssertionError(f"{what} never came")


def approval():
    """Return a session that waits for an approval."""
    session = nb.Session(nb.samples("incident"))
    for text in ("low memory", "no memory"):
        session.emit("alert.raised", {"service": "shop", "text": text})
    session.run()
    return session
