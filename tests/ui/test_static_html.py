from __future__ import annotations

import base64
import re

from agentnb.ui.static_html import render_still
from agentnb.ui.view_model import make_screen
from tests.ui import ticket_recipe


def still(session):
    return render_still(make_screen(session, session.recipe.draw(board=False)), session.draw().svg)


def test_it_shows_position_drawing_and_board():
    session = ticket_recipe.session()
    session.run()
    page = still(session)
    assert "step 1 of 1, waiting" in page
    assert "<th" in page
    picture = base64.b64decode(re.search(r'base64,([^"]+)"', page)[1]).decode()
    assert picture.startswith("<svg")


def test_text_of_a_recipe_is_escaped():
    session = ticket_recipe.session()
    session.run()
    assert "Refund &lt;i&gt;this&lt;/i&gt;?" in still(session)
    session.answer("explode")
    session.run()
    page = still(session)
    assert "&lt;b&gt;the till is empty&lt;/b&gt;" in page
    assert "<script" not in page


def test_secrets_are_masked():
    session = ticket_recipe.session()
    session.step()
    page = still(session)
    picture = base64.b64decode(re.search(r'base64,([^"]+)"', page)[1]).decode()
    assert ticket_recipe.KEY not in page + picture
