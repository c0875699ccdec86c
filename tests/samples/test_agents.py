from __future__ import annotations

from agentnb.samples.agents import find_rule, moderation, support


def test_the_tools_of_the_moderator_are_plain_functions_too() -> None:
    assert "Hide" in find_rule("insult")
    assert moderation().tools.execute_tool("hide_comment", {"comment_id": 7, "reason": "x"}).success


def test_a_missing_rule_is_a_failed_result() -> None:
    done = moderation().tools.execute_tool("find_rule", {"topic": "weather"})
    assert not done.success
    assert "insult" in str(done.error)


def test_the_clerk_refunds_the_paid_amount_and_no_more() -> None:
    tools = support().tools
    assert tools.execute_tool("refund", {"number": 1001, "amount": 40}).result == {"refunded": 40, "order": 1001}
    for number, amount in ((1001, 41), (1002, 10), (7, 1)):
        assert not tools.execute_tool("refund", {"number": number, "amount": amount}).success
