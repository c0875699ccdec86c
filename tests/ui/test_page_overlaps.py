"""Nothing in a drawing covers anything else: nodes, labels, titles of regions, the board and its lines, as painted."""

from __future__ import annotations

import networkx as nx
import pytest

import agentnb as nb
from agentnb.draw.render import VARIABLE

pytestmark = pytest.mark.needs_chromium

# A theme changes colors; that it changes no place is seen at one width.
SCREENS = ((700, "light"), (1280, "light"), (1280, "dark"), (1600, "light"))
FAR = 14  # points between a label and its line, at most

# What overlaps, which labels are not at their lines, and how much was looked at.
MEASURED = """far => {
  const svg = document.querySelector('.agentnb-graph svg');
  const by = svg.getScreenCTM().a;
  const seen = element => element !== null && element.getBoundingClientRect().width > 0;
  const parts = [];
  const add = (kind, name, element, more = {}) => {
    if (!seen(element)) return;
    const {left, top, right, bottom} = element.getBoundingClientRect();
    parts.push({kind, name, left, top, right, bottom, ...more});
  };
  for (const node of svg.querySelectorAll('g.node')) add('node', node.dataset.node, node.querySelector('.shape'));
  for (const area of svg.querySelectorAll('g.cluster-title')) {
    add('title', area.dataset.scope, area.querySelector('text'));
  }
  for (const edge of svg.querySelectorAll('g.edge')) {
    const label = edge.querySelector('text');
    if (label?.textContent) add('label', label.textContent, label, {line: edge.querySelector('path')});
  }
  add('board', '', svg.querySelector('.board'));
  const overlaps = [];
  for (const [index, one] of parts.entries()) for (const other of parts.slice(index + 1)) {
    const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (width > 1 && height > 1.5) overlaps.push(`${one.kind} ${one.name} and ${other.kind} ${other.name}`);
  }
  const away = parts.filter(({line, left, right, top, bottom}) => {
    if (!line) return false;
    const screen = line.getScreenCTM(), length = line.points ? 0 : line.getTotalLength();
    line.points ||= [...Array(81).keys()].map(part => line.getPointAtLength(length * part / 80)); // whatever the width
    return !line.points.some(point => {
      const {x, y} = point.matrixTransform(screen);
      return Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom)) <= far * by;
    });
  }).map(({name}) => name);
  const labels = parts.filter(({kind}) => kind === 'label').length;
  return {overlaps, away, labels, count: parts.length};
}"""

# What the lines between nodes and board cross, those too that are shown on demand only: straight from corner to corner.
CROSSED = """() => {
  const svg = document.querySelector('.agentnb-graph svg');
  const painted = svg.querySelector('g.flows')?.getScreenCTM();
  const parts = [...svg.querySelectorAll('g.node, g.edge, g.cluster-title')].flatMap(group => {
    const part = group.querySelector(group.matches('.node') ? '.shape' : 'text');
    const box = part?.getBoundingClientRect();
    return box?.width ? [{name: group.dataset.node ?? part.textContent, box}] : [];
  });
  return [...svg.querySelectorAll('.flow')].flatMap(flow => {
    const {node, direction: way} = flow.dataset;
    const numbers = flow.querySelector('.line').getAttribute('d').split(/[MC]/)[1].match(/-?[\\d.]+/g).map(Number);
    const corner = (x, at) => at % 2 ? [] : [new DOMPoint(x, numbers[at + 1]).matrixTransform(painted)];
    const points = numbers.flatMap(corner);
    const crosses = ({left, top, right, bottom}) => points.slice(1).some((to, at) =>
      Math.min(to.x, points[at].x) < right - 1 && Math.max(to.x, points[at].x) > left + 1 &&
      Math.min(to.y, points[at].y) < bottom - 2 && Math.max(to.y, points[at].y) > top + 2);
    return parts.filter(({name, box}) => name !== node && crosses(box)).map(({name}) => `${node} ${way}: ${name}`);
  });
}"""


def wide(branches=60):
    """Return a session of a node that chooses among many, each by a condition."""

    def choose(n):
        return {"pick": n}

    def work(pick):
        return {"out": pick}

    graph = nx.DiGraph(name="wide", entry="root")
    graph.add_node("root", function=choose, inputs={"n": "n"})
    graph.add_node("join", function=work, inputs={"pick": "pick"})
    for number in range(branches):
        graph.add_node(f"branch_{number:02}", function=work, inputs={"pick": "pick"})
        graph.add_edge("root", f"branch_{number:02}", when=f"pick == {number} and n != {number + 1}")
        graph.add_edge(f"branch_{number:02}", "join", when=f"out == {number}")
    graph.add_edge("join", "root", when="pick > 100")
    return nb.Session(nb.load(graph), {"n": 7})


def incident():
    session = nb.Session(nb.samples("incident"))
    session.emit("alert.raised", {"service": "pay", "text": "timeout"})
    return session


SESSIONS = {
    "triage": lambda: nb.Session(nb.samples("triage"), {"ticket": "I was charged twice."}),
    "approval": lambda: nb.Session(nb.samples("approval"), validate_inputs=False),
    "research": lambda: nb.Session(nb.samples("research"), validate_inputs=False),
    "search": lambda: nb.Session(nb.samples("search"), validate_inputs=False),
    "checkout": lambda: nb.Session(nb.samples("checkout"), validate_inputs=False),
    "refine": lambda: nb.Session(nb.samples("refine"), {"number": 2.0}),
    "incident": incident,
    "eleven branches": lambda: wide(11),
    "sixty branches": wide,
}


def show_board(on):
    toggle = on.page.get_by_role("button", name="Board", exact=True)
    if toggle.is_visible() and toggle.get_attribute("aria-pressed") == "false":
        toggle.click()


def measured(on, name):
    """Check the drawing, board included, at each width and in each theme, and return how many labels there are."""
    labels = 0
    show_board(on)
    assert on.page.evaluate(CROSSED) == []
    for width, theme in SCREENS:
        on.page.set_viewport_size({"width": width, "height": 1000})
        on.page.evaluate("theme => { document.body.dataset.theme = theme; }", theme)
        value = on.page.evaluate(MEASURED, FAR)
        assert (value["overlaps"], value["away"]) == ([], []), f"{name}, {width} pixels, {theme}"
        assert value["count"] > 2
        labels = value["labels"]
    return labels


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize("layout", ["dot", "plain"])
def test_elements_do_not_overlap(host, name, layout, monkeypatch):
    if layout == "plain":
        monkeypatch.setenv(VARIABLE, "plain")
    on = host(SESSIONS[name]())
    on.session.step(2)
    on.show()
    on.obey()
    labels = measured(on, name)
    if name == "sixty branches":
        on.page.get_by_role("button", name="Open all").click()
        on.obey()
        assert on.page.locator("g.node[data-node^=branch_]").count() == 60
        labels = measured(on, f"{name}, opened")
    assert labels or name in ("sixty branches", "research", "refine")


def test_the_measure_finds_a_label_on_a_node_and_one_far_from_its_line(host):
    on = host(SESSIONS["triage"]())
    show_board(on)
    on.page.evaluate("""() => {
      const labels = [...document.querySelectorAll('.agentnb-graph g.edge text')];
      const [first, second] = labels.filter(label => label.textContent);
      const place = element => element.getBoundingClientRect();
      const [label, node] = [place(first), place(document.querySelector('.agentnb-graph g.node'))];
      const by = first.getScreenCTM().a;
      first.setAttribute('transform', `translate(${(node.left - label.left) / by}, ${(node.top - label.top) / by})`);
      second.setAttribute('transform', 'translate(900, 0)');
    }""")
    on.page.evaluate("""() => {
      const place = document.querySelector('g.node[data-node=decide]').getAttribute('transform');
      const line = document.querySelector('g.flow[data-node=write][data-direction=read] .line');
      line.setAttribute('d', `M${place.slice('translate('.length, -1)}L0,0`);
    }""")
    assert "write read: decide" in on.page.evaluate(CROSSED)
    value = on.page.evaluate(MEASURED, FAR)
    assert [each for each in value["overlaps"] if "node read" in each]
    assert len(value["away"]) == 2
