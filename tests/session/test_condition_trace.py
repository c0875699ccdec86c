from __future__ import annotations

from agentnb.session.condition_trace import Asked


def test_a_line_says_where_it_leads_what_it_came_to_and_what_it_read():
    asked = Asked("n > 1", "next", value=True, taken=True, operands=(("n", 2),))
    assert asked.line() == "-> next: n > 1 is True  (n = 2)"
    assert (
        Asked("", "", value=False, taken=False, warning="so it is").line()
        == "   the end: always is False  odd: so it is"
    )


def test_secrets_are_masked():
    assert "sk-1" not in Asked("api_key", "x", value=True, taken=True, operands=(("api_key", "sk-1"),)).line()
