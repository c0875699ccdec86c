"""The exported page, opened from disk in a browser without a network."""

from __future__ import annotations

import base64
import json
import re
import shutil
import warnings
import zlib

import pytest

import agentnb as nb
from agentnb.board.values import ABSENT
from agentnb.cli import main
from agentnb.errors import AgentNbError
from tests.ui import ticket_recipe

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def finished(**options):
    session = nb.Session(nb.samples("triage"), {"ticket": "I was charged twice."}, answers=["approve"], **options)
    session.run()
    return session


@pytest.fixture(scope="module")
def forks():
    """A run with a fork, and a fork of that one which begins with an edit."""
    session = finished()
    second_fork = session.fork(at=2, name="again")
    second_fork.step()
    deeper = second_fork.fork(at=1, name="deeper", edit={"topic": "bug"})
    deeper.step(2)
    return {"triage": session, "again": second_fork, "deeper": deeper}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, forks):
    """A run as a page, as an exercise, and with hostile values."""
    folder = tmp_path_factory.mktemp("pages")
    session = finished()
    session.to_html(folder / "run.html")
    session.trace.to_html(folder / "quiz.html", quiz=[1, {"step": 3, "key": "draft"}])
    forks["triage"].to_html(folder / "forked.html")
    research = nb.Session(nb.samples("research"))
    research.step(8)
    research.to_html(folder / "regions.html")
    for name, sample in (("waiting", "approval"), ("long values", "document")):
        session = nb.Session(nb.samples(sample))
        session.run()
        session.to_html(folder / f"{name}.html")
    hostile = ticket_recipe.session(HOSTILE)
    hostile.step(2)
    hostile.trace.to_html(folder / "hostile.html")
    return folder


@pytest.fixture
def opened(browser, folder):
    pages = []

    def open_page(name, **options):
        page = browser.new_page()
        page.emulate_media(**options)
        messages = []
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("console", lambda message: messages.append(message.text))
        page.on("request", lambda request: None if request.url.startswith("file:") else messages.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append((page, messages))
        return page

    yield open_page
    for page, messages in pages:
        page.close()
        assert messages == []


def packed(text, names=r"[\w -]+"):
    """Return the data of a page, still compressed, of the chunks with these names."""
    return re.findall(rf'data-name="(?:{names})">([^<]*)<', text)


def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text), -15))


def state(page):
    return page.locator(".agentnb-where").inner_text()


@pytest.mark.needs_chromium
def test_a_page_shows_every_step_without_a_kernel(opened):
    page = opened("run")
    assert state(page) == "step 7 of 7"
    page.get_by_label("agentnb cockpit").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.querySelector('.agentnb-where').textContent === 'step 4 of 7'")
    current = "[...document.querySelectorAll('g.node.current')].map(group => group.dataset.node)"
    assert page.evaluate(current) == ["review"]
    assert page.locator("tr[data-row=draft] .agentnb-value").inner_text() == "1"
    page.wait_for_function("document.querySelector('[data-pane=details]').textContent.includes('Hello Ada')")
    page.locator("g.node[data-node=check_order]").click()
    page.wait_for_function("document.querySelector('[data-pane=details]').textContent.includes('It has made one step')")
    page.get_by_label("filter the blackboard").fill("charges")
    assert page.locator(".agentnb-board tbody:not([hidden]) tr[data-row]").count() == 1
    page.get_by_role("option", name=re.compile("step 2: sort")).click()
    page.wait_for_function("document.querySelector('.agentnb-where').textContent === 'step 2 of 7'")


@pytest.mark.needs_chromium
def test_a_page_that_cannot_be_edited_offers_to_show_values_and_not_to_edit_them(opened):
    page = opened("run")
    page.get_by_role("button", name="show draft").click()
    page.locator(".agentnb-detail .agentnb-fixed").wait_for()
    assert page.get_by_role("button", name=re.compile("^edit ")).count() == 0


@pytest.mark.needs_chromium
def test_a_text_search_goes_from_step_to_step(opened):
    page = opened("run")
    page.get_by_label("find steps where this holds").fill("CHECK_order")
    page.get_by_text("– of 1", exact=True).wait_for()
    page.get_by_role("button", name="previous step found").click()
    page.get_by_text("1 of 1", exact=True).wait_for()
    assert state(page) == "step 3 of 7"
    page.get_by_label("find steps where this holds").fill("of no step")
    page.get_by_text("never", exact=True).wait_for()


def nodes_of(page):
    """Return the names of the steps in the timeline, in order."""
    labels = page.locator(".agentnb-step[data-step]").evaluate_all(
        "cells => cells.map(cell => [Number(cell.dataset.step), cell.getAttribute('aria-label')])"
    )
    return [re.match(r"step \d+: ([^,]+)", label)[1] for _, label in sorted(labels)]


def marked(page, mark):
    ids = page.locator(f"g.node.{mark}").evaluate_all("groups => groups.map(group => group.dataset.node)")
    return sorted(ids)


@pytest.mark.needs_chromium
def test_a_click_in_the_tree_of_forks_shows_that_run_everywhere(opened, forks):
    page = opened("forked")
    tree = page.locator(".agentnb-forks li")
    assert tree.count() == 3
    for session in (forks["again"], forks["deeper"], forks["triage"]):
        page.locator(".agentnb-forks").get_by_role("button", name=session.name, exact=True).click()
        page.locator(".agentnb-forks [aria-current=true]").get_by_text(session.name, exact=True).wait_for()
        length = len(session.trace)
        page.locator(".agentnb-where").get_by_text(f"step {session.position} of {length}", exact=True).wait_for()
        assert session.run_id[-6:] in page.locator(".agentnb-run").inner_text()
        page.locator(".agentnb-step[data-step]").nth(length - 1).wait_for()
        assert nodes_of(page) == [step.node_id for step in session.trace.steps]
        for position in range(length, -1, -1):
            page.get_by_role("slider", name="step", exact=True).fill(str(position))
            page.locator(".agentnb-where").get_by_text(f"step {position} of {length}", exact=True).wait_for()
            session.goto(position)
            page.wait_for_timeout(30)
            assert marked(page, "current") == ([session.current] if session.current else [])
            shown = page.locator("tr[data-row=topic] .agentnb-value").inner_text()
            topic = session.board.get("topic")
            assert shown == ("not yet" if topic is None else topic) or repr(topic) == shown
        session.goto(length)


@pytest.mark.needs_chromium
def test_details_and_search_belong_to_the_shown_fork(opened, forks):
    page = opened("forked")
    page.locator(".agentnb-forks").get_by_role("button", name="deeper", exact=True).click()
    page.get_by_role("option", name=re.compile("step 1:")).click()
    find = page.get_by_label("find steps where this holds")
    find.fill("topic == 'bug'")
    expected = forks["deeper"].find("topic == 'bug'")
    page.locator(".agentnb-finder small").get_by_text(f"of {len(expected)}").wait_for()
    hits = page.locator(".agentnb-step[data-hit]").evaluate_all("all => all.map(one => Number(one.dataset.step))")
    assert sorted(hits) == expected
    page.locator(".agentnb-forks").get_by_role("button", name="triage", exact=True).click()
    page.get_by_text("never", exact=True).wait_for()
    assert forks["triage"].find("topic == 'bug'") == []
    page.locator("g.node[data-node=sort]").click()
    page.locator("[data-pane=details]").get_by_text("It has made one step").wait_for()


def test_a_page_with_exercises_has_the_following_steps_encrypted():
    text = counted(6).to_html(quiz=[1, {"step": 3, "key": "note"}])
    opened, closed = {}, []
    for name in re.findall(r'data-name="([\w -]+)"', text):
        try:
            opened[name] = json.dumps(unpacked(packed(text, name)[0]))
        except (zlib.error, UnicodeDecodeError, json.JSONDecodeError):
            closed.append(name)
    assert list(opened) == ["main", "0-0", "0-timeline"]
    assert sorted(closed) == ["1-0", "1-timeline", "2-0", "2-timeline", "stretch 1", "stretch 2"]
    everything = text + "".join(opened.values())
    assert "now 0" in everything
    assert [note for note in ("now 1", "now 2", "now 3", "now 4", "now 5") if note in everything] == []
    start = json.loads(opened["0-0"])
    last = {**start["state"], **start["changes"][-1]}
    assert [part for part in ("current", "next", "later", "frames", "pending") if last[part]] == []
    assert start["changes"][-1]["picture"].get("edges", {}) == {}
    assert [part for part in ("targets", "why", "sets_off", "interventions") if start["steps"]["1"][part]] == []
    assert "6" not in re.search("<title>(.*)</title>", text)[1]


def test_an_exercise_after_a_router_does_not_show_its_decision():
    session = nb.Session(nb.samples("triage"), answers=["approve"])
    session.run()
    exercise = unpacked(packed(session.to_html(quiz=[2]), "0-0")[0])
    assert exercise["steps"]["2"]["node"] == "sort"
    assert "Go to" not in json.dumps(exercise)
    assert "Go to check_order" in json.dumps(unpacked(packed(session.to_html(), "0-0")[0]))


def test_without_javascript_each_fork_has_its_own_table(forks):
    text = forks["triage"].to_html()
    still = text[text.index("<noscript>") : text.index("</noscript>")]
    assert still.count("<thead>") == 3
    assert "<h2>again, a fork of triage from step 2</h2>" in still
    assert "<h2>deeper, a fork of again from step 1</h2>" in still
    rows = still[still.index("<h2>again") : still.index("<h2>deeper")].count("<tr><td>")
    assert rows == len(forks["again"].trace) - 2


def test_the_steps_that_forks_share_are_in_the_page_once(tmp_path):
    alone = counted(1000)
    size = len(alone.to_html())
    for number in range(8):
        fork = alone.fork(at=990, name=f"fork {number}")
        fork.run()
    assert len(alone.to_html()) < size + 8 * 12_000


@pytest.mark.needs_chromium
def test_single_regions_are_collapsed_and_opened(opened):
    page = opened("regions")
    folds = page.locator(".agentnb-fold")
    before = folds.count()
    page.locator('.agentnb-fold[data-scope="look_up"]').focus()
    page.keyboard.press("Enter")
    box = page.locator('g.node[data-node="region: look_up"]')
    box.wait_for()
    assert folds.count() == before - 1
    box.focus()
    page.keyboard.press("Enter")
    page.locator("g.node[data-node=archive]").wait_for()
    assert folds.count() == before


@pytest.mark.needs_chromium
@pytest.mark.parametrize(("name", "theme"), [("forked", "light"), ("forked", "dark"), ("long values", "light"),
                                             ("waiting", "dark")])  # fmt: skip
def test_axe_finds_no_violations(opened, name, theme):
    from importlib.resources import files

    page = opened(name, color_scheme=theme)
    page.set_viewport_size({"width": 700, "height": 900})
    page.locator("[data-pane=details]").get_by_text("Step ").first.wait_for()
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    value = page.evaluate("axe.run().then(found => found.violations)")
    assert [(one["id"], one["nodes"][0]["html"]) for one in value] == []


@pytest.mark.needs_chromium
def test_an_unanswered_question_is_shown_without_an_input(opened):
    page = opened("waiting")
    card = page.locator(".agentnb-ask")
    assert "Do you approve this request?" in card.inner_text()
    assert "There was no answer when this was recorded." in card.inner_text()
    assert card.locator("button, input, textarea, select").count() == 0
    page.get_by_role("button", name="Back", exact=True).click()
    card.wait_for(state="detached")


@pytest.mark.needs_chromium
def test_a_printed_page_is_light_and_has_no_buttons(opened):
    page = opened("run", color_scheme="dark")
    page.emulate_media(media="print")
    page.wait_for_selector(".agentnb-cockpit[data-theme=light]")
    assert not page.locator(".agentnb-bar").first.is_visible()
    assert not page.get_by_label("find steps where this holds").is_visible()
    color = "getComputedStyle(document.querySelector('.agentnb-cockpit')).backgroundColor"
    assert page.evaluate(color) == "rgb(255, 255, 255)"
    assert page.locator("g.node[data-node=sort]").is_visible()
    assert page.locator("tr[data-row=draft]").is_visible()


CUT = """[...document.querySelectorAll('.agentnb-pane :is(div, section, table, pre, code), .agentnb-pane')]
    .filter(one => one.offsetParent && !one.closest('.agentnb-hidden, .agentnb-graph'))
    .filter(one => one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY !== 'visible')
    .filter(one => one.clientHeight > 1).map(one => one.className)"""


@pytest.mark.needs_chromium
@pytest.mark.parametrize("name", ["run", "regions", "long values"])
def test_a_printed_page_is_complete(opened, name):
    page = opened(name)
    page.set_viewport_size({"width": 720, "height": 500})
    assert page.evaluate(CUT) != []  # on the screen, panes scroll
    page.emulate_media(media="print")
    page.wait_for_selector(".agentnb-cockpit[data-theme=light]")
    assert page.evaluate(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    drawn = page.locator(".agentnb-graph svg.agentnb").bounding_box()
    pane = page.locator("[data-pane=graph]").bounding_box()
    assert pane["x"] <= drawn["x"]
    assert drawn["x"] + drawn["width"] <= pane["x"] + pane["width"]
    assert drawn["y"] + drawn["height"] <= pane["y"] + pane["height"]
    rows = page.locator(".agentnb-steps-table tbody tr")
    assert rows.count() == len(page.locator(".agentnb-steps-table").inner_text().splitlines()) - 1 > 4
    assert rows.first.is_visible()


@pytest.mark.needs_chromium
def test_no_list_is_cut_off_in_its_last_line(opened):
    page = opened("run")
    cut_off = """[...document.querySelectorAll('.agentnb-stack, .agentnb-forks')].filter(one => one.offsetParent)
        .filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.className)"""
    assert page.evaluate(cut_off) == []


@pytest.mark.needs_chromium
def test_an_exercise_hides_what_follows_until_it_is_answered(opened):
    page = opened("quiz")
    assert state(page) == "step 0 of 1"
    page.get_by_role("button", name="Step", exact=True).click()
    card = page.locator(".agentnb-ask")
    assert "Which node runs next?" in card.inner_text()
    assert page.locator("g.node.current").count() == 0
    assert page.locator(".agentnb-step").count() == 1
    card.get_by_role("combobox").select_option("close")
    card.get_by_role("button", name="Answer", exact=True).first.click()
    page.get_by_text("Not close.").wait_for()
    card.get_by_role("combobox").select_option("sort")
    card.get_by_role("button", name="Answer", exact=True).first.click()
    page.locator(".agentnb-where").get_by_text("step 1 of 3", exact=True).wait_for()
    assert page.locator("g.node.current").get_attribute("data-node") == "sort"


@pytest.mark.needs_chromium
def test_hostile_values_remain_text_and_nothing_is_loaded(opened):
    page = opened("hostile")
    assert page.evaluate("window.hacked") is None
    page.get_by_text("onerror", exact=False).first.wait_for()


@pytest.mark.needs_chromium
def test_without_javascript_the_page_is_a_table(browser, folder):
    context = browser.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "run.html").as_uri())
    rows = page.locator(".agentnb-still table").last.locator("tbody tr")
    assert [row.split("\t")[:3] for row in rows.all_inner_texts()][2] == ["3", "check_order", "ok"]
    assert page.locator(".agentnb-still img").count() == 1
    context.close()


def shown_values():
    """Return a run whose board has values of many kinds, and a fork of it that begins with an edit."""
    import networkx as nx

    first = {
        "n": 0, "ratio": 0.5, "none": None, "yes": True, "text": "naïve \U0001f600 \uffff", "empty": "", "my-key": 3,
        "items": ["a", "b"], "order": {"price": 3, "items": [{"name": "pen"}, {"name": "ink"}], "with.dot": 1},
        "pair": (1, 2), "some": {1, 2}, "wide": 2**60, "inf": float("inf"), "gone": "soon", "keys": {1: "one"},
        "long": ["x"] * 3_000, "__proto__": 5, "constructor": "c", "deep": [[1, [2]], []], "number": "10",
        "dotted.key": 7,
    }  # fmt: skip

    def change(board):
        n = board["n"] + 1
        order = board["order"]
        items = [*board["items"], f"item {n}"]
        order = {**order, "price": order["price"] * 2, "items": [*order["items"], {"name": f"new {n}"}]}
        writes = {"n": n, "ratio": n / 4, "items": items, "order": order, "long": [*board["long"], n]}
        return writes | {"late": n, "deep": [[n, [2]], [n]], "text": f"{board['text']}{n}"} if n > 2 else writes

    graph = nx.DiGraph(name="values", entry="change")
    graph.add_node("change", function=change)
    graph.add_node("forget", function=lambda board: {"order": {"price": board["n"]}} if board["n"] == 6 else {})
    graph.add_edge("change", "forget")
    graph.add_edge("forget", "change", when="n < 6")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = nb.Session(nb.load(graph), first)
    session.run()
    fork = session.fork(at=5, name="edited", edit={"n": 40, "text": None, "gone": ABSENT})
    fork.step(2)
    return session, fork


CONDITIONS = """
n > 3 ; n >= 3 and n < 5 ; not n == 2 ; n != 2 ; 2 < n <= 4 ; n in [1, 3] ; n not in [1, 3] ; not n in [1] ; n == 3.0
n == true ; yes == 1 ; yes ; not yes ; none ; none == none ; ratio > 0.5 ; ratio == 0.25 or n == 6 ; -n < -3
n == -1 ; 1_0 > n ; 1e1 > n ; items[0] == "a" ; items[-1] == 'item 3' ; items[9] == 'a' ; 'item 2' in items
items|length > 4 ; items | count == 3 ; items == ['a', 'b', 'item 1'] ; items < ['b'] ; items > ['a', 'b', 'item 4']
order.price > 10 ; order['price'] > 10 ; order.items[0].name == "pen" ; order.items.1.name == 'ink'
order.items|length
order.items[-1]['name'] == 'new 2' ; 'price' in order ; 'with.dot' in order ; order.missing == 1 ; not order.missing
order.price.x == 1 ; late > 3 ; not late ; late > 3 or n == 1 ; n == 1 or late > 3 ; late and n ; n and late
text ; text > 'n' ; 'naïve' in text ; text < '\U0001f600' ; text[6] == '\U0001f600' ; text == none ; text != none
text|length
'\uffff' < text ; empty ; empty == '' ; not empty ; number < '9' ; number < 9 ; number == 10 ; n < '3' ; n == '3'
deep[0][0] > 3
deep == [[4, [2]], [4]] ; deep[1] ; deep > [[4]] ; deep[0] < [5] ; 3 in deep[1] ; [] in deep ; n in order
n in none ; 'x' in n
constructor == 'c' ; order.constructor == 1 ; order.toString ; items.length == 2 ; my-key ; dotted.key
(n == 1) == (yes == true) ; (n > 1 and (n < 3 or n == 5)) ; not (n > 1) and not (n < 0) ; not not n > 5 ; n == n
items == items ; [n, 2] == [3, 2] ; order.price in [n] ; items[n] == 'b' ; items[n] == 'item 3' ; '1' in text
none in [none]
true ; false ; 3 ; 0 ; n[0] == 1 ; none[0] == 1 ; text[99] == 'x' ; items['0'] == 'a' ; gone == 'soon'
"""
WRONG = """
n > ; n = 3 ; n and ; (n > 3 ; n > 3) ; n == 'open ; n && n > 2 ; n > 3 or ; [n ; n ! 3 ; and n ; items[0
n > 3 n ; @ == 3 ; n >> 3 ; ratio > .5
"""
ONLY_IN_A_NOTEBOOK = """
n + 1 == 3 ; items|first == 'a' ; pair == 3 ; wide > 3 ; long|length > 3000 ; some == 3 ; n is none
items[0:1] == ['a']
(1, 2) == pair ; inf > 3 ; keys == 3 ; {'a': 1} == order ; 1 in pair ; n if yes else ratio ; text.upper() == 'X'
n % 2 == 0
long[0] == 'x' and n < 0 ; n == wide ; order == {}
"""


SEARCH = """async texts => {
  const field = document.querySelector('.agentnb-find'), told = document.querySelector('.agentnb-finder small');
  const wrong = document.querySelector('.agentnb-timeline .agentnb-wrong');
  const found = [];
  const search = async text => {
    field.value = text;
    field.form.requestSubmit();
    for (let turn = 0; turn < 400 && Boolean(text) === !(told.textContent || wrong.textContent); turn++) {
      await new Promise(done => setTimeout(done, 5));
    }
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  };
  for (const text of texts) {
    await search('');
    await search(text);
    const hits = [...document.querySelectorAll('.agentnb-step[data-hit]')].map(cell => Number(cell.dataset.step));
    found.push(wrong.textContent || hits.sort((one, other) => one - other));
  }
  return found;
}"""


def listed(text):
    return [each.strip() for line in text.strip().splitlines() for each in line.split(" ; ")]


@pytest.mark.needs_chromium
def test_conditions_are_evaluated_as_in_python(browser, tmp_path):
    session, fork = shown_values()
    session.to_html(tmp_path / "values.html")
    page = browser.new_page()
    page.goto((tmp_path / "values.html").as_uri())
    page.wait_for_selector("html[data-ready]")

    def searched(texts):
        """Return for each text the steps that the page marks, or what it says at the field."""
        return dict(zip(texts, page.evaluate(SEARCH, texts), strict=True))

    for shown in (session, fork):
        page.locator(".agentnb-forks").get_by_text(shown.name, exact=True).click()
        page.locator(".agentnb-forks [aria-current=true]").get_by_text(shown.name, exact=True).wait_for()
        results = searched(listed(CONDITIONS))
        assert results == {text: found_in(shown, text) for text in results}
    unknown = searched(["nokey == 3", "toString == 1", "dotted.key == 7"])
    assert [text for text in unknown.values() if "There is no key" not in text] == []
    for text, message in searched(listed(WRONG)).items():
        with pytest.raises(AgentNbError):
            session.find(text)
        assert isinstance(message, str), text
    for text, message in searched(listed(ONLY_IN_A_NOTEBOOK)).items():
        session.find(text)
        assert "An exported page cannot evaluate" in message, text
    page.close()


def found_in(session, text):
    try:
        return session.find(text)
    except AgentNbError as error:
        return str(error)


def readable(text):
    """Return everything that a page holds: its text, its data, and the pictures in both."""
    parts = [text, *(zlib.decompress(base64.b64decode(each), -15).decode() for each in packed(text))]
    pictures = re.findall(r"base64,([A-Za-z0-9+/=]+)", "".join(parts))
    return "".join([*parts, *(base64.b64decode(each).decode() for each in pictures)])


@pytest.mark.parametrize("name", ["approval", "research", "triage"])
def test_a_page_contains_no_folder_of_this_machine(name, tmp_path):
    from pathlib import Path

    from agentnb.samples import graphs

    home = Path(graphs.__file__).parent
    shutil.copytree(home, tmp_path / "where I work", ignore=shutil.ignore_patterns("*.py[co]"))
    session = nb.Session(nb.load(tmp_path / "where I work" / f"{name}.yaml"))
    session.run(max_steps=20)
    text = readable(session.to_html())
    assert f"{name}.yaml:" in text
    assert "where I work" not in text
    assert str(tmp_path) not in text


def test_a_page_names_the_line_of_a_failure_without_its_folder(tmp_path):
    import importlib.util

    import networkx as nx

    folder = tmp_path / "where I work"
    folder.mkdir()
    (folder / "mine.py").write_text("def fail():\n    return int('x')\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mine", folder / "mine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph = nx.DiGraph(name="g")
    graph.add_node("a", function=module.fail)
    session = nb.Session(nb.load(graph))
    session.run()
    assert "where I work" in session.error.where
    text = readable(session.to_html())
    assert "mine.py:2" in text
    assert "where I work" not in text


def test_an_unanswered_question_is_reported_without_javascript():
    session = nb.Session(nb.samples("approval"))
    session.run()
    text = session.to_html()
    still = text[text.index("<noscript>") : text.index("</noscript>")]
    assert "manager asks for role manager: Do you approve this request?" in still


def test_the_table_shows_phases_and_errors():
    session = nb.Session(nb.samples("research"))
    session.run()
    text = session.to_html()
    assert "<td>each (enter)</td>" in text
    assert "<td>error</td><td>ConnectionError: the archive is closed" in text


def test_the_policy_allows_only_the_pages_own_script_and_style():
    text = finished().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src" not in policy  # so nothing can be sent
    assert len(re.findall(r"<script>", text)) == 1


def test_secrets_and_paths_of_this_machine_are_not_in_the_page(tmp_path, monkeypatch):
    session = ticket_recipe.session()
    session.step()
    text = session.to_html()
    inside = "".join(json.dumps(unpacked(each)) for each in packed(text))
    assert "category" in inside
    for place in (text, inside):
        assert ticket_recipe.KEY not in place
        assert "/samples/" not in place


def counted(steps):
    import networkx as nx

    graph = nx.DiGraph(name="count", entry="add")
    graph.add_node("add", function=lambda n: {"n": n + 1, "note": f"now {n}"}, inputs={"n": "n"})
    graph.add_edge("add", "add", when=f"n < {steps}")
    session = nb.Session(nb.load(graph), {"n": 0}, budget={"max_steps": None})
    session.run()
    return session


@pytest.fixture(scope="module")
def long_page():
    return counted(1000).to_html()


def test_a_thousand_steps_are_less_than_a_megabyte_and_all_have_details(long_page):
    assert len(long_page.encode()) <= 1_000_000
    chunks = [unpacked(text) for text in packed(long_page, r"0-\d+")]
    assert sorted(int(number) for chunk in chunks for number in chunk["steps"]) == list(range(1, 1001))


def test_a_hundred_thousand_steps_fit_into_15_megabytes(long_page):
    steps = sum(map(len, packed(long_page, r"0-\w+")))
    assert steps / 1000 <= 140


def test_the_table_of_a_long_run_ends_with_a_sentence(long_page):
    still = long_page[long_page.index("<noscript>") : long_page.index("</noscript>")]
    assert "500 more steps are shown only with JavaScript" in still


def test_an_invalid_exercise_is_rejected():
    trace = finished().trace
    with pytest.raises(AgentNbError, match="U590"):
        trace.to_html(quiz=["read"])
    with pytest.raises(AgentNbError, match="U591"):
        trace.to_html(quiz=[7])
    with pytest.raises(AgentNbError, match=r"U591.*does not write 'closed'"):
        trace.to_html(quiz=[{"step": 3, "key": "closed"}])


def test_an_export_does_not_move_the_session():
    session = finished()
    session.goto(3)
    session.to_html()
    assert (session.position, len(session.trace), session.forks) == (3, 7, ())


def test_the_command_line_exports_a_trace_and_a_store(tmp_path, capsys):
    trace = tmp_path / "run.json"
    finished().trace.to_json(trace)
    assert main(["export", str(trace), "-o", str(tmp_path / "run.html")]) == 0
    assert "7 steps" in capsys.readouterr().out
    assert (tmp_path / "run.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["export", str(trace), "-o", str(tmp_path / "run.htlm")]) == 1
    assert "U592" in capsys.readouterr().err
