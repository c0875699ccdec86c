"""The cockpit looks as it did: screenshots beside stored ones, in three widths and two themes.

The stored pictures are a third as large, in few colors. Both are compared in squares of 16 pixels, of which few may
differ: letters that another browser draws in another way do not count, a pane that has moved or lost its color does.
`pytest -n0 -m needs_chromium tests/ui/test_page_screenshots.py --update-screenshots` writes the stored ones anew.
"""

from __future__ import annotations

import io
import linecache
from pathlib import Path

import networkx as nx
import pytest
from PIL import Image, ImageChops

import agentnb as nb
from agentnb.draw.render import VARIABLE
from agentnb.ui.commands import run_command
from tests.ui.page_graphs import approval

pytestmark = pytest.mark.needs_chromium

FOLDER = Path(__file__).parent / "screenshots"
WIDTHS, HEIGHT, THEMES = (700, 1000, 1600), 1000, ("light", "dark")
STORED, COLORS = 3, 128  # how many times smaller the stored pictures are, and how many colors they have
SQUARE = 16  # pixels
FAR = 20  # of 255, in the average of a square's red, green or blue
SHARE = 0.008  # of the squares may be farther away: twice what few colors and other ways of drawing letters make
# The fonts of Debian's fonts-dejavu-core; what is another one in each run or on each machine is hidden.
STYLE = """
  :root { --jp-ui-font-family: "DejaVu Sans"; --jp-code-font-family: "DejaVu Sans Mono"; }
  .agentnb-run { visibility: hidden; }
  .agentnb-place { display: none; }
"""
CODE = """def divide(board):
    total = board["total"]
    share = total / board["people"]
    return {"share": share}
"""


def start():
    return nb.Session(nb.samples("fanout"), validate_inputs=False)


def middle():
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    session.goto(9)
    return session


def failure():
    names = {}
    linecache.cache["bill.py"] = (len(CODE), None, CODE.splitlines(keepends=True), "bill.py")
    exec(compile(CODE, "bill.py", "exec"), names)
    graph = nx.DiGraph(name="bill", entry="divide")
    graph.add_node("divide", function=names["divide"])
    session = nb.Session(nb.load(graph), {"total": 90.0, "people": 0})
    session.run()
    return session


def compare():
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    session.goto(5)
    other = session.fork(name="other")
    other.edit({"guess": 40.0})
    other.run()
    run_command(session, "beside", None, other.run_id)
    session.goto(9)
    return session


def take(on, width, theme):
    """Return a screenshot of the page."""
    on.page.set_viewport_size({"width": width, "height": HEIGHT})
    on.page.evaluate("theme => { document.body.dataset.theme = theme; }", theme)
    on.page.wait_for_timeout(100)  # what a changed width sets off takes some frames
    on.obey()
    return Image.open(io.BytesIO(on.page.screenshot())).convert("RGB")


def compute_share(first, second):
    """Return the share of squares in which two pictures of the same page differ."""
    size = (first.width // SQUARE, HEIGHT // SQUARE)
    small = [picture.resize(size, Image.Resampling.BOX) for picture in (first, second)]
    red, green, blue = ImageChops.difference(*small).split()
    distances = ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
    return sum(distances[FAR + 1 :]) / sum(distances)


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    """Lay drawings out without Graphviz, whose versions place nodes differently."""
    monkeypatch.setenv(VARIABLE, "plain")


@pytest.mark.parametrize("make", [start, middle, failure, approval, compare], ids=lambda make: make.__name__)
def test_the_cockpit_matches_its_screenshots(host, make, request, tmp_path):
    on = host(make())
    on.page.emulate_media(reduced_motion="reduce")
    on.page.add_style_tag(content=STYLE)
    on.obey()
    differ = []
    for width in WIDTHS:
        for theme in THEMES:
            name = f"{make.__name__}-{width}-{theme}.png"
            now = take(on, width, theme)
            if request.config.getoption("--update-screenshots"):
                small = now.resize((width // STORED, HEIGHT // STORED), Image.Resampling.BOX)
                FOLDER.mkdir(exist_ok=True)
                small.quantize(COLORS, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)
            share = compute_share(now, Image.open(FOLDER / name).convert("RGB"))
            if share > SHARE:
                now.save(tmp_path / name)
                differ.append(f"{name}: {share:.1%} of its squares differ; as it is now: {tmp_path / name}")
    assert differ == []


def test_the_comparison_detects_a_hidden_pane_and_another_color(host):
    on = host(start())
    on.page.add_style_tag(content=STYLE)
    on.obey()
    before = take(on, 1000, "light")
    assert compute_share(before, take(on, 1000, "light")) == 0
    assert compute_share(before, take(on, 1000, "dark")) > 0.5
    on.page.add_style_tag(content="[data-pane=stops] { display: none; }")
    assert compute_share(before, take(on, 1000, "light")) > SHARE
