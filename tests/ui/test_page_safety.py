"""A recipe full of traps: what stands in its names, values, prompts and conditions is text, and does nothing."""

from __future__ import annotations

import itertools

import pytest

from agentnb.recipe.model import ROOT, Edge, Node, Recipe, Region
from agentnb.session import Session

pytestmark = pytest.mark.needs_chromium

TRAPS = (
    "<script>window.pwned = 1</script>",
    "</title></g></svg><script>window.pwned = 2</script>",
    "<img src=x onerror='window.pwned = 3'>",
    '"><svg onload="window.pwned = 4"><rect/></svg>',
    "<foreignObject><body onload='window.pwned = 5'><iframe srcdoc='<script>top.pwned = 6</script>'/></body>",
    "javascript:window.pwned=7",
    '`]; node [URL="javascript:window.pwned=8", href="https://example.com/"]; a [label="',
    "\\N \\G \\l \\n <b>html</b> <<i>x</i>>",
    "<a href='https://example.com/' onclick='window.pwned = 9'>x</a>",
    "<style>*{background:url(https://example.com/x.png)}</style>",
    "<?xml-stylesheet href='https://example.com/x.css'?><!DOCTYPE svg [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>&x;",
    "' onmouseover='window.pwned = 10' x='",
    "${window.pwned = 11}",
    "{{ ''.constructor.constructor('window.pwned = 12')() }}",
    "__proto__",
)


class Told:
    """A condition whose text is a trap, and that holds."""

    def __init__(self, text):
        self.text, self.reads = text, ()

    def __call__(self, board, /):
        return True


def write(board):
    return {trap: trap for trap in TRAPS}


def broken():
    raise ValueError(TRAPS[2])


def recipe():
    nodes = [
        Node(f"{trap} {number}", "function", label=trap, scope="inside" if number % 3 == 0 else ROOT,
             params={"function": write})
        for number, trap in enumerate(TRAPS)
    ]  # fmt: skip
    first = nodes[1].id
    ask = Node("ask " + TRAPS[0], "human", params={"prompt": TRAPS[2], "output": TRAPS[1], "options": list(TRAPS[:4])})
    fails = Node("fails " + TRAPS[3], "function", params={"function": broken})
    every = {node.id: node for node in (*nodes, ask, fails)}
    root = [node.id for node in nodes if node.scope == ROOT]
    pairs = itertools.pairwise([*root, ask.id, fails.id])
    edges = tuple(Edge(a, b, "conditional", Told(TRAPS[2]), TRAPS[2]) for a, b in pairs)
    regions = {
        ROOT: Region(ROOT, (first,)),
        "inside": Region("inside", (nodes[0].id,), TRAPS[4], nodes[1].id),
    }
    inputs = dict.fromkeys(TRAPS, str)
    return Recipe(TRAPS[0], "test", every, edges, (first,), inputs, TRAPS, regions=regions)


def nothing_happened(on):
    """Nothing ran, and nothing of the page listens, links or loads by what the recipe says."""
    assert on.page.evaluate("window.pwned") is None
    assert on.page.evaluate("({}).pwned") is None
    value_slice = on.page.evaluate(
        """() => [...document.querySelectorAll('.agentnb-cockpit *')].filter(each =>
            /^(script|iframe|object|embed|foreignobject|img|image|use|link|base|meta|style|a|animate|set)$/i.test(each.localName)
            || [...each.attributes].some(({name, value}) => /^on|href$|^src|^action$|^formaction$/i.test(name)
                || (/^(style|fill|stroke|filter|mask|clip-path)$/.test(name) && /url\\(|javascript:/i.test(value))))
            .map(each => each.outerHTML.slice(0, 200))"""
    )
    assert value_slice == []


def test_no_part_of_a_hostile_recipe_runs_or_leaves_the_page(host):
    on = host(Session(recipe(), dict.fromkeys(TRAPS, TRAPS[0]), validate_inputs=False))
    nothing_happened(on)
    root = [node for node in on.session.recipe.nodes.values() if node.scope == ROOT]
    on.session.step(len(root) - 1)
    assert on.session.status == "waiting"
    on.show()
    on.obey()
    nothing_happened(on)
    for title in ("Table", "Close all", "Open all"):
        on.page.locator("[data-pane=graph]").get_by_role("button", name=title, exact=True).click()
        on.obey()
        nothing_happened(on)
    every = on.page.locator(".agentnb-graph g.node")
    for number in range(every.count()):
        every.nth(number).dispatch_event("mouseover")
        every.nth(number).dispatch_event("pointerover", {"bubbles": True})
        every.nth(number).dispatch_event("click", {"bubbles": True})
        on.obey()
    nothing_happened(on)
    opened = "[...document.querySelectorAll('[aria-expanded=false]')]"
    on.page.evaluate(f"{opened}.forEach(each => each.dispatchEvent(new MouseEvent('click', {{bubbles: true}})))")
    on.obey()
    nothing_happened(on)


def test_output_of_a_hostile_run_is_shown_as_text(host):
    # One of the traps is a secret's name ("passwd"): its value is masked wherever it stands.
    values = {trap: "its own" if "passwd" in trap else TRAPS[0] for trap in TRAPS}
    on = host(Session(recipe(), values, validate_inputs=False))
    on.session.run()
    on.session.answer(TRAPS[2])
    on.session.run()
    assert on.session.status == "failed"
    on.show()
    on.obey()
    nothing_happened(on)
    assert TRAPS[2] in on.page.locator(".agentnb-problems").inner_text()
    texts = on.page.evaluate("[...document.querySelectorAll('.agentnb-graph g.node')].map(group => group.dataset.node)")
    assert set(texts) == set(on.session.recipe.nodes)


SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink"'
DRAWINGS = (
    f'{SVG} onload="window.pwned = 1"><script>window.pwned = 2</script></svg>',
    f'{SVG}><a x:href="javascript:window.pwned=3"><g class="node" data-node="a"><text>x</text></g></a></svg>',
    f'{SVG}><foreignObject><b xmlns="http://www.w3.org/1999/xhtml" onclick="pwned = 4">x</b></foreignObject></svg>',
    f'{SVG}><g class="node" data-node="a" onclick="pwned = 5" style="background:url(https://example.com/)"/></svg>',
    f'{SVG}><rect fill="url(https://example.com/#a)" mask="url(#b)"/></svg>',
    f'{SVG}><image href="https://example.com/x.png"/><use href="https://example.com/x.svg#x"/></svg>',
    "<svg broken",
)


@pytest.mark.parametrize("text", DRAWINGS)
def test_an_untrusted_drawing_is_sanitized(host, text):
    on = host()
    on.page.evaluate("text => host.model.set('svg', text)", text)
    for group in on.page.locator(".agentnb-graph g").all():
        group.dispatch_event("click", {"bubbles": True})
    nothing_happened(on)
