"""The exported page, opened from disk in a browser without a network."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest

import agentnb as nb
from agentnb.cli import main
from agentnb.errors import AgentNbError
from tests.ui import runs

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def finished(**options):
    session = nb.Session(nb.samples("triage"), {"ticket": "I was charged twice."}, answers=["approve"], **options)
    session.run()
    return session


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run as a page, as an exercise, and with hostile values."""
    made = tmp_path_factory.mktemp("pages")
    session = finished()
    session.to_html(made / "run.html")
    session.trace.to_html(made / "quiz.html", quiz=[1, {"step": 3, "key": "draft"}])
    forked = finished()
    forked.fork(at=2, name="again").step()
    forked.to_html(made / "forked.html")
    research = nb.Session(nb.samples("research"))
    research.step(8)
    research.to_html(made / "regions.html")
    hostile = runs.session(HOSTILE)
    hostile.step(2)
    hostile.trace.to_html(made / "hostile.html")
    return made


@pytest.fixture
def opened(browser, folder):
    pages = []

    def open_page(name, **options):
        page = browser.new_page()
        page.emulate_media(**options)
        told = []
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("console", lambda message: told.append(message.text))
        page.on("request", lambda request: None if request.url.startswith("file:") else told.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append((page, told))
        return page

    yield open_page
    for page, told in pages:
        page.close()
        assert told == []


def packed(text, names=r"\w+"):
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
def test_a_text_is_found_in_the_steps_and_the_page_goes_from_one_to_the_next(opened):
    page = opened("run")
    page.get_by_label("find steps that have this text").fill("CHECK_order")
    page.get_by_text("– of 1", exact=True).wait_for()
    page.get_by_role("button", name="previous step found").click()
    page.get_by_text("1 of 1", exact=True).wait_for()
    assert state(page) == "step 3 of 7"
    page.get_by_label("find steps that have this text").fill("of no step")
    page.get_by_text("never", exact=True).wait_for()


@pytest.mark.needs_chromium
def test_the_tree_of_forks_can_be_read(opened):
    page = opened("forked")
    row = page.locator(".agentnb-forks li").filter(has_text="again")
    assert "from step 2: 3 steps" in row.inner_text()
    assert row.get_by_role("button").filter(visible=True).count() == 0


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
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, theme):
    from importlib.resources import files

    page = opened("forked", color_scheme=theme)
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then(found => found.violations)")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


@pytest.mark.needs_chromium
def test_a_printed_page_is_light_and_has_no_buttons(opened):
    page = opened("run", color_scheme="dark")
    page.emulate_media(media="print")
    page.wait_for_selector(".agentnb-cockpit[data-theme=light]")
    assert not page.locator(".agentnb-bar").first.is_visible()
    assert not page.get_by_label("find steps that have this text").is_visible()
    colour = "getComputedStyle(document.querySelector('.agentnb-cockpit')).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.locator("g.node[data-node=sort]").is_visible()
    assert page.locator("tr[data-row=draft]").is_visible()


@pytest.mark.needs_chromium
def test_no_list_is_cut_in_its_last_line(opened):
    page = opened("run")
    cut = """[...document.querySelectorAll('.agentnb-stack, .agentnb-forks')].filter(one => one.offsetParent)
        .filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.className)"""
    assert page.evaluate(cut) == []


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
    page.wait_for_function("document.querySelector('.agentnb-where').textContent === 'step 1 of 3'")
    assert page.locator("g.node.current").get_attribute("data-node") == "sort"


@pytest.mark.needs_chromium
def test_hostile_values_stay_text_and_nothing_may_be_loaded(opened):
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


def test_the_policy_allows_only_the_pages_own_script_and_style():
    text = finished().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src" not in policy  # so nothing can be sent
    assert len(re.findall(r"<script>", text)) == 1


def test_secrets_and_paths_of_this_machine_are_not_in_the_page(tmp_path, monkeypatch):
    session = runs.session()
    session.step()
    text = session.to_html()
    inside = "".join(json.dumps(unpacked(each)) for each in packed(text))
    assert "category" in inside
    for where in (text, inside):
        assert runs.KEY not in where
        assert "/samples/" not in where


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
    chunks = [unpacked(text) for text in packed(long_page, r"\d+")]
    assert sorted(int(number) for chunk in chunks for number in chunk["steps"]) == list(range(1, 1001))


def test_a_step_is_few_enough_bytes_for_a_hundred_thousand_in_15_megabytes(long_page):
    steps = sum(map(len, packed(long_page, r"\d+|timeline")))
    assert steps / 1000 <= 140


def test_the_table_of_a_long_run_ends_with_a_sentence(long_page):
    still = long_page[long_page.index("<noscript>") : long_page.index("</noscript>")]
    assert "500 more steps are shown only with JavaScript" in still


def test_what_is_no_exercise_is_refused():
    trace = finished().trace
    with pytest.raises(AgentNbError, match="U590"):
        trace.to_html(quiz=["read"])
    with pytest.raises(AgentNbError, match="U591"):
        trace.to_html(quiz=[7])
    with pytest.raises(AgentNbError, match=r"U591.*does not write 'closed'"):
        trace.to_html(quiz=[{"step": 3, "key": "closed"}])


def test_the_session_is_not_moved_by_an_export():
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
