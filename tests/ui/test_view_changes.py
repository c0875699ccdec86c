from __future__ import annotations

import json
from itertools import pairwise

import pytest

import agentnb as nb
from agentnb.ui.view_changes import find_changes
from agentnb.ui.view_model import make_screen
from tests.ui import ticket_recipe


def states(name="research"):
    """Return the screens of a run: forwards, back, with an edit that deletes and one that adds."""
    session = nb.Session(nb.samples(name))
    drawing = session.recipe.draw(board=False)
    screens = [make_screen(session, drawing)]

    def seen():
        screens.append({**json.loads(json.dumps(make_screen(session, drawing))), "number": len(screens)})

    while session.step() is not None:
        seen()
    for place in (3, 5, 0):
        session.goto(place)
        seen()
    for value in ([1], nb.ABSENT, [2]):
        session.edit({"new": value})
        seen()
    session.breakpoints.add(node=next(iter(session.recipe.nodes)))
    session.watch("new")
    seen()
    return screens


def test_unchanged_values_are_omitted():
    one = states()[1]
    assert find_changes(one, dict(one)) == {}
    assert find_changes(one, {**one, "sentence": "else"}) == {"sentence": "else"}


def test_a_step_of_a_long_run_is_small():
    actual = states()
    assert max(len(json.dumps(find_changes(*pair))) for pair in pairwise(actual[1:-8])) < 2_000


def test_only_changed_keys_of_a_large_board_are_sent():
    session = ticket_recipe.session("hello")
    drawing = session.recipe.draw(board=False)
    session.edit({f"key{number:04}": number for number in range(1000)})
    screens = [make_screen(session, drawing)]
    for operation in (session.step, lambda: session.edit({"new": 1}), lambda: session.edit({"key0500": nb.ABSENT})):
        operation()
        screens.append(make_screen(session, drawing))
    sent = [find_changes(*pair) for pair in pairwise(screens)]
    assert [len(json.dumps(one)) < 1000 for one in sent[1:]] == [True, True]
    assert sent[2]["board"]["removed"] == ["key0500"]
    assert all("keys" not in one["board"] for one in sent)


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("abc", "abc", {"rows": []}),
        ("abc", "abcd", {"rows": [["d"]]}),
        ("abc", "ac", {"rows": [], "removed": ["b"]}),
        ("abc", "acb", {"rows": [["b"]], "removed": ["b"]}),
        ("abc", "", {"rows": [], "removed": ["a", "b", "c"]}),
        ("", "ab", {"rows": [["a"], ["b"]]}),
        ("abc", "xabc", {"rows": [["x"], ["a"], ["b"], ["c"]], "removed": ["a", "b", "c"]}),
    ],
)
def test_rows_are_removed_added_and_moved(before, after, sent):
    actual = find_changes({"board": [[key] for key in before], "n": 1}, {"board": [[key] for key in after], "n": 2})
    assert actual.get("board", {"rows": []}) == sent


def test_if_many_rows_move_all_keys_are_sent():
    keys = [f"k{number}" for number in range(100)]
    actual = find_changes({"board": [[key] for key in keys]}, {"board": [[key] for key in reversed(keys)]})
    assert actual["board"] == {"rows": [], "keys": keys[::-1]}


@pytest.mark.needs_chromium
def test_a_page_that_receives_changes_has_the_state_of_the_kernel(host):
    screens = states()
    on = host()
    on.page.evaluate("state => host.model.set('state', state)", {**screens[0], "number": 0})
    for number, (before, after) in enumerate(pairwise(screens), 1):
        changed = find_changes({**before, "number": 0}, {**after, "number": 0})
        on.page.evaluate("message => host.fire('msg:custom', message)", {"changed": changed, "number": number})
        assert on.page.evaluate("host.model.get('state')") == {**after, "number": number}
    assert on.page.locator("tr[data-row=new]").count() == 1


@pytest.mark.needs_chromium
def test_a_page_that_missed_a_change_requests_the_complete_state(host):
    on = host(views=2)
    on.page.evaluate("message => host.fire('msg:custom', message)", {"changed": {"sentence": "third"}, "number": 3})
    assert {"do": "whole"} in on.page.evaluate("host.sent.splice(0)")
    on.page.evaluate("message => host.fire('msg:custom', message)", {"changed": {"sentence": "first"}, "number": 1})
    assert on.page.locator(".agentnb-sentence").all_inner_texts() == ["first", "first"]
    assert {"do": "whole"} not in on.page.evaluate("host.sent.splice(0)")
