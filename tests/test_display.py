from __future__ import annotations

from agentnb.errors import Problem, render_problems
from tests.session.small_sessions import graph, session

NASTY = "<script>alert(1)</script> & \"'"


def test_a_problem_is_a_card_and_all_of_it_is_escaped():
    card = render_problems([Problem(NASTY, NASTY, NASTY, NASTY, NASTY)])
    assert "<script" not in card
    assert card.count("&lt;script&gt;") == 5
    assert Problem("R1", "a", "b", "c", "d")._repr_html_() == render_problems([Problem("R1", "a", "b", "c", "d")])


def test_several_problems_are_several_cards_and_a_warning_looks_different():
    error, warning = Problem("R1", "a", "b", "c", "d"), Problem("R2", "a", "b", "c", "d", "warning")
    cards = render_problems([error, warning])
    assert cards.count('role="alert"') == 2
    assert "error-color" in render_problems([error])
    assert "warn-color" in render_problems([warning])
    assert render_problems([]) == ""


def test_a_session_displays_its_cockpit_with_a_drawing_as_fallback():
    run = session(graph("a", "b"))
    bundle = run._repr_mimebundle_()
    shown = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert any(kind in shown for kind in ("image/svg+xml", "text/html"))
    second = run._repr_mimebundle_()
    assert set(second[0] if isinstance(second, tuple) else second) == set(shown)


def test_displaying_a_recipe_runs_nothing():
    ran = []
    run = session(graph("a", a=lambda: ran.append(1)))
    run.recipe._repr_mimebundle_()
    run._repr_mimebundle_()
    assert ran == []
