"""Make the pictures of docs/reference/cockpit.md: screenshots of the cockpit in Chromium, in both themes.

    python docs/tools/pictures.py [CHROMIUM]

It needs playwright, pillow and Chromium. The page around the cockpit is that of the tests.
`moving_picture.py` makes the picture of the README.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from PIL import Image

import agentnb as nb

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.ui.conftest import Host  # noqa: E402  (found by the line above)
from tests.ui.pages import HOST, opened  # noqa: E402

OUT = ROOT / "docs" / "pictures"
WIDTH = 1320  # pixels
# A source is given by its whole path; the folder on this machine is not for others.
WITHOUT_FOLDER = """folder => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(folder, '');
}"""
COLORS = 256  # of each picture: text stays sharp, and the file is half as large


def make_triage() -> nb.Session:
    """Return a run of the support desk that has gone back to step 2 of 4."""
    session = nb.Session(nb.samples("triage"), {"ticket": "I was charged twice."})
    session.step(4)
    session.goto(2)
    return session


def make_incident() -> nb.Session:
    """Return a run of behaviors that waits for an approval."""
    session = nb.Session(nb.samples("incident"))
    for text in ("low memory", "no memory"):
        session.emit("alert.raised", {"service": "shop", "text": text})
    session.run()
    return session


def make_two_runs() -> nb.Session:
    """Return a run of a loop, with a fork beside it that starts from another guess."""
    session = nb.Session(nb.samples("refine"), {"number": 2.0})
    session.run()
    session.goto(6)
    fork = session.fork(name="high", edit={"guess": 40.0}, expect="error < 1")
    fork.run()
    session.goto(8)
    nb.Debugger(session).beside(fork)
    return session


PICTURES: dict[str, Callable[[], nb.Session]] = {
    "cockpit": make_triage,
    "reactive": make_incident,
    "two-runs": make_two_runs,
}


def main() -> None:
    """Write the pictures."""
    program = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium") or shutil.which("google-chrome")
    with opened(program, viewport={"width": WIDTH, "height": 1000}) as (browser, _):
        for name, make in PICTURES.items():
            for theme in ("light", "dark"):
                page = browser.new_page()
                page.evaluate(HOST)
                page.evaluate("theme => { document.body.dataset.theme = theme; }", theme)
                shown = Host(page, make(), 1)
                for _ in range(3):  # what the page asks for once it has the first answers
                    shown.obey()
                    page.wait_for_timeout(400)
                page.evaluate(WITHOUT_FOLDER, f"{Path(nb.__file__).parent}/samples/")
                picture = Image.open(BytesIO(page.locator(".agentnb-cockpit").screenshot())).convert("RGB")
                picture.quantize(COLORS, dither=Image.Dither.NONE).save(OUT / f"{name}-{theme}.png", optimize=True)
                page.close()


if __name__ == "__main__":
    main()
