"""What axe-core finds, contrast in both themes, a page at twice its size, a pointerless hand."""

from __future__ import annotations

import pytest

import agentnb as nb
from agentnb.ui.second_run import open_beside
from tests.ui import ticket_recipe
from tests.ui.axe import violations

pytestmark = pytest.mark.needs_chromium

THEMES = ("light", "dark")


def _run(session):
    session.run()
    return session


def _stepped(session, steps):
    session.step(steps)
    return session


def _failed():
    session = _run(ticket_recipe.session())
    session.answer("explode")
    return _run(session)


def _finished():
    return _run(ticket_recipe.session("other"))


def _in_a_loop():
    return _stepped(nb.Session(nb.samples("research")), 8)


def _watched():
    session = ticket_recipe.session()
    session.breakpoints.add(node="tell")
    session.watch("ticket")
    return _stepped(session, 1)


def _held():
    session = nb.Session(nb.samples("moderation"))
    session.step(2)
    session.step_into()
    return session


def _forked():
    session = _run(ticket_recipe.session("other"))
    session.fork(at=1, name="again").step()
    return session


def _reacting():
    session = nb.Session(nb.samples("incident"))
    for text in ("low memory", "no memory"):
        session.emit("alert.raised", {"service": "shop", "text": text})
    return _run(session)


def _beside():
    session = _forked()
    open_beside(session, session.parent)
    return session


# Where a run may stand: each shows other parts of the cockpit.
STANDS = {
    "at the start": ticket_recipe.session,
    "waiting": lambda: _run(ticket_recipe.session()),
    "failed": _failed,
    "finished": _finished,
    "in a loop": _in_a_loop,
    "with breakpoints": _watched,
    "a call held": _held,
    "beside a second run": _beside,
    "reactive, with an approval": _reacting,
}


# The light of a color and the contrast of two, as WCAG 2.2 defines them (relative luminance; 1.4.3).
CONTRAST = """root => {
  const seen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const parts = (color) => {
    seen.clearRect(0, 0, 1, 1);
    seen.fillStyle = color;
    seen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = seen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, index) => part * a + below[index] * (1 - a));
  const light = (color) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = color.map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = over(parts(getComputedStyle(root).backgroundColor), [255, 255, 255]);
  const bad = [];
  let looked = 0;
  for (const group of root.querySelectorAll('svg.agentnb g.node')) {
    const shape = group.querySelector('.shape');
    if (!shape) continue;
    const fill = getComputedStyle(shape).fill;
    const back = fill === 'none' ? paper : over(parts(fill), paper);
    for (const text of group.querySelectorAll('text')) {
      if (!text.textContent.trim()) continue;
      looked += 1;
      const ink = over(parts(getComputedStyle(text).fill), back);
      const [high, low] = [light(ink), light(back)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      if (ratio < 4.5) bad.push([group.getAttribute('class'), text.textContent, ratio]);
    }
  }
  return [looked, bad];
}"""


@pytest.mark.parametrize("stand", STANDS)
def test_axe_finds_no_violations_and_nodes_have_accessible_names(host, stand):
    on = host(STANDS[stand]())
    on.show()
    on.obey()
    for theme in THEMES:
        on.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        checked, bad = on.page.locator(".agentnb-cockpit").evaluate(CONTRAST)
        assert checked > 0
        assert (theme, bad) == (theme, [])
    for head in on.page.locator(".agentnb-pane-title[aria-expanded=false]:visible").all():
        head.click()
    on.obey()
    assert violations(on.page, ".agentnb-cockpit") == {}


def test_a_page_at_200_percent_zoom_needs_no_horizontal_scrolling(host):
    on = host(STANDS["waiting"]())
    on.page.set_viewport_size({"width": 640, "height": 450})  # 1,280 by 900 at 200 %
    on.show()
    wide = on.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1]
    right = on.page.evaluate(
        "Math.max(...[...document.querySelectorAll('.agentnb-cockpit button')].filter(one => one.offsetParent)"
        ".map(one => one.getBoundingClientRect().right))"
    )
    assert right <= 640


def test_animations_respect_reduced_motion(host):
    on = host()
    on.page.emulate_media(reduced_motion="reduce")
    moving = on.page.evaluate(
        "[...document.querySelectorAll('.agentnb-cockpit *')].filter(one => {"
        " const {transitionDuration, animationName} = getComputedStyle(one);"
        " return transitionDuration.split(',').some(text => parseFloat(text) > 0.01) || animationName !== 'none'; })"
        ".map(one => one.className.baseVal ?? one.className)"
    )
    assert moving == []


def test_every_button_has_a_name_and_can_be_reached(host):
    on = host(STANDS["with breakpoints"]())
    on.show()
    unnamed = on.page.evaluate(
        "[...document.querySelectorAll('.agentnb-cockpit :is(button, input, select, textarea, [role=button])')]"
        ".filter(one => !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length))"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert unnamed == []
    hidden = on.page.evaluate(
        "[...document.querySelectorAll('.agentnb-cockpit button')].filter(one => one.tabIndex < 0"
        " && !one.closest('[role=tablist], [role=tree], [role=treegrid], [role=listbox], table'))"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert hidden == []
