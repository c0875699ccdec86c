"""Make docs/pictures/time-travel.webp: screenshots of the cockpit in Chromium, one after the other.

    python docs/tools/moving_picture.py [CHROMIUM]

A support desk mistakes a crash for a refund. The picture runs back from the reply, asks who wrote the topic, and forks.
It needs playwright, pillow and Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, sync_playwright

import agentnb as nb

OUT = Path(__file__).parents[1] / "pictures" / "time-travel.webp"
SIZE = (1040, 660)
CAPTION = 44  # pixels
FONTS = ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "DejaVuSans.ttf", "Arial.ttf")


def font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return a font of this system, or Pillow's own."""
    for name in FONTS:
        try:
            return ImageFont.truetype(name, 20)
        except OSError:
            continue
    return ImageFont.load_default(20)


def frame(page: Page, caption: str) -> Image.Image:
    """Return a screenshot with a caption below."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(400)
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    made = Image.new("RGB", (shot.width, shot.height + CAPTION), "#1e293b")
    made.paste(shot, (0, 0))
    ImageDraw.Draw(made).text((18, shot.height + 9), caption, font=font(), fill="white")
    return made


def pages(folder: Path) -> tuple[Path, Path]:
    """Write the run that goes wrong, and its fork, as pages."""
    session = nb.Session(nb.samples("triage"), {"ticket": "The app crashes when I sign in."}, answers=["approve"])
    session.run()
    fork = session.fork(at=1, name="a bug", edit={"topic": "bug"})
    fork.run()
    session.to_html(folder / "run.html")
    fork.to_html(folder / "fork.html")
    return folder / "run.html", folder / "fork.html"


def frames(page: Page, run: Path, fork: Path) -> list[tuple[Image.Image, int]]:
    """Return the pictures, each with how long it is shown in milliseconds."""
    made: list[tuple[Image.Image, int]] = []
    end = "A crash is answered with a refund. What went wrong?"
    page.goto(f"{run.as_uri()}#7")
    made.append((frame(page, end), 2600))
    page.get_by_role("button", name="Back", exact=False).first.focus()
    for step in (6, 5, 4, 3, 2):
        page.goto(f"{run.as_uri()}#{step}")
        page.reload()
        made.append((frame(page, "session.run_back()    every step is recorded; nothing runs again"), 700))
    made.append((frame(page, "session.why()    the router went to check_order, because topic is 'refund'"), 2600))
    page.goto(f"{run.as_uri()}#1")
    page.reload()
    made.append((frame(page, "session.who_wrote('topic')    step 1: the reader was wrong"), 2600))
    for step, time in ((1, 1600), (2, 800), (3, 800), (4, 800), (7, 3000)):
        page.goto(f"{fork.as_uri()}#{step}")
        page.reload()
        made.append((frame(page, "session.fork(at=1, edit={'topic': 'bug'}).run()    the past, changed"), time))
    return made


def main() -> None:
    """Write the picture."""
    program = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        shown = frames(page, *pages(Path(folder)))
        browser.close()
    first, *rest = [image for image, _ in shown]
    times = [time for _, time in shown]
    first.save(OUT, save_all=True, append_images=rest, duration=times, loop=0, quality=60, method=4)


if __name__ == "__main__":
    main()
