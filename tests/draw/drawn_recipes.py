"""What the drawing tests draw: small recipes made by hand, hostile texts, and any recipe at all."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

from hypothesis import strategies as st

from agentnb.draw.diagram import Picture, make_picture
from agentnb.draw.run_view import RunView
from agentnb.recipe.model import EDGE_KINDS, ROOT, Edge, Node, Recipe, Region

SVG = "{http://www.w3.org/2000/svg}"
DIRECTIONS = ("TB", "LR", "BT", "RL")
HOSTILE = (
    "</svg><script>alert(1)</script>",
    "a\"b'c&<>",
    "\\N\\G\\l",
    "<b>html</b>",
    "new\nline\ttab",
    "ünïcödé 漢字 عربي",
    "\u202egnp.exe",
    "x" * 300,
    "",
    "graph",
    "\x00\x1b[31m",
    "]]>",
    "-->",
    "end",
    '"; x [',
    "\\",
    "\ud800",
)


def recipe(nodes, edges=(), entry=None, **more) -> Recipe:
    first = (nodes[0].id,) if nodes else ()
    entry = first if entry is None else entry
    return Recipe(
        more.pop("name", "sample"), "coreason", {node.id: node for node in nodes}, tuple(edges), entry, **more
    )


def diamond() -> Recipe:
    nodes = [
        Node("load", "function", writes=("ticket", "customer")),
        Node("ask", "llm", label="Ask the model", reads=("ticket.text",), writes=("draft",)),
        Node("look", "tool", reads=("customer",), writes=("orders",)),
        Node("merge", "join", reads=("draft", "orders"), writes=("answer",)),
    ]
    edges = [Edge("load", "ask", "parallel"), Edge("load", "look", "parallel"), Edge("ask", "merge")]
    return recipe(nodes, [*edges, Edge("look", "merge")], inputs={"ticket": "str"}, outputs=("answer",))


def support() -> Recipe:
    """Routes, a person, a loop with its body, a subgraph, and edges of every kind."""
    nodes = [
        Node("classify", "agent", label="Classify the ticket", reads=("ticket",), writes=("category",)),
        Node("route", "router", reads=("category",)),
        Node("approve", "human", label="Approve refund?", reads=("amount",), writes=("approved",)),
        Node("refund", "tool", reads=("amount",), writes=("refund_id",)),
        Node("tries", "loop", label="Try until good", reads=("draft",), bodies=("body",)),
        Node("write", "llm", scope="body", reads=("ticket", "critique"), writes=("draft",)),
        Node("critic", "evaluator", scope="body", reads=("draft",), writes=("critique",)),
        Node("escalate", "subgraph", bodies=("oncall",)),
        Node("page", "tool", scope="oncall"),
        Node("sorry", "function", writes=("answer",)),
        Node("send", "function", reads=("draft", "answer"), writes=("sent",)),
    ]
    edges = [
        Edge("classify", "route"),
        Edge("route", "approve", "route", condition="refund"),
        Edge("route", "tries", "route", condition="question"),
        Edge("route", "escalate", "route", condition="otherwise"),
        Edge("approve", "refund", "conditional", condition="approved == true"),
        Edge("refund", "send"),
        Edge("refund", "sorry", "error", condition="ToolError"),
        Edge("refund", "refund", "loop_back", condition="retry"),
        Edge("write", "critic"),
        Edge("critic", "write", "loop_back", condition="score < 0.8"),
        Edge("tries", "send", "parallel"),
        Edge("tries", "sorry", "timeout"),
        Edge("escalate", "send"),
        Edge("sorry", "send"),
        Edge("send", "classify", "event", condition="ticket.reopened"),
    ]
    regions = {
        ROOT: Region(ROOT, ("classify",)),
        "body": Region("body", ("write",), "Loop body", "tries"),
        "oncall": Region("oncall", ("page",), "On call", "escalate"),
    }
    return recipe(nodes, edges, regions=regions, inputs={"ticket": "str"}, name="support")


def support_run() -> RunView:
    return RunView(
        current="critic",
        next=frozenset({"write"}),
        visited={"classify": 1, "route": 1, "tries": 2, "write": 2, "refund": 1},
        failed=frozenset({"refund"}),
        waiting=frozenset({"approve"}),
        breakpoints=frozenset({"send"}),
        board={"ticket": "My parcel never came. " * 40, "amount": 12.5, "api_key": "sk-abc", "late": [1, 2]},
        written=frozenset({"critique.why", "late"}),
        read=frozenset({"draft"}),
        seen_reads={"critic": frozenset({"draft"})},
        seen_writes={"critic": frozenset({"late"})},
        taken=frozenset({0, 2}),
    )


def hostile() -> Recipe:
    nodes = [
        Node(text, text or "tool", label=text[::-1], reads=(text or "k",), writes=(text, "out"), scope=text or ROOT)
        for text in HOSTILE
    ]
    edges = [Edge(a, b, "conditional", condition=a) for a, b in itertools.pairwise(HOSTILE)]
    regions = {text: Region(text, (), text, HOSTILE[0]) for text in HOSTILE}
    return recipe(
        nodes, [*edges, Edge(HOSTILE[3], HOSTILE[0], "error", condition=HOSTILE[0])], regions=regions,
        name=HOSTILE[0], inputs=dict.fromkeys(HOSTILE, 1), init={HOSTILE[1]: HOSTILE[0]}, outputs=HOSTILE,
    )  # fmt: skip


def hostile_run() -> RunView:
    every = frozenset(HOSTILE)
    return RunView(
        current=HOSTILE[0], next=every, visited=dict.fromkeys(HOSTILE, 3), failed=every, waiting=every,
        breakpoints=every, board={text: text for text in HOSTILE}, written=every, read=every,
        seen_reads={HOSTILE[0]: every}, seen_writes={HOSTILE[1]: every}, taken=frozenset(range(99)),
    )  # fmt: skip


def long(size: int) -> Recipe:
    nodes = [Node(f"n{i}", "tool", reads=(f"k{i}",), writes=(f"k{i + 1}",)) for i in range(size)]
    skips = [Edge(f"n{i}", f"n{min(size - 1, i + i % 7)}", "conditional", condition="x > 1") for i in range(0, size, 4)]
    return recipe(nodes, [*(Edge(f"n{i}", f"n{i + 1}") for i in range(size - 1)), *skips])


def picture(
    given: Recipe, run: RunView | None = None, *, board: bool = True, direction: str = "TB", spare: int = 0
) -> Picture:
    return make_picture(given, board=board, direction=direction, run=run, spare=spare)


def groups(svg: str | ET.Element, name: str) -> list[ET.Element]:
    """Return the groups of an SVG text that carry this class."""
    root = ET.fromstring(svg) if isinstance(svg, str) else svg
    return [group for group in root.iter(f"{SVG}g") if name in group.get("class", "").split()]


def texts(element: ET.Element) -> str:
    return "".join(element.itertext())


@st.composite
def recipes(draw: st.DrawFn, keys: tuple[str, ...] = ()) -> Recipe:
    """Any recipe: loose nodes, circles, self loops, regions in regions, owners anywhere; nodes use these keys."""
    scopes = [ROOT, *(f"r{number}" for number in range(draw(st.integers(0, 3))))]
    kinds = st.sampled_from(["agent", "router", "decision", "loop", "tool", "human", "subgraph", "noop", "odd"])
    words = st.text(max_size=30)
    count = draw(st.integers(0, 12))
    ids = [f"n{number}" for number in range(count)]
    paths = st.lists(st.sampled_from(keys), max_size=2).map(tuple) if keys else st.just(())
    nodes = [
        Node(
            id,
            draw(kinds),
            label=draw(words),
            scope=draw(st.sampled_from(scopes)),
            reads=draw(paths),
            writes=draw(paths),
        )
        for id in ids
    ]
    ends = st.sampled_from(ids) if ids else st.nothing()
    edge = st.builds(Edge, ends, ends, st.sampled_from(EDGE_KINDS), st.none(), words)
    edges = draw(st.lists(edge, max_size=18)) if ids else []
    regions = {
        scope: Region(scope, tuple(draw(st.lists(ends, max_size=2, unique=True))) if ids else (), draw(words), owner)
        for scope in scopes
        for owner in [draw(st.sampled_from(["", *ids]))]
    }
    return recipe(nodes, edges, draw(st.lists(ends, max_size=2).map(tuple)) if ids else (), regions=regions)
