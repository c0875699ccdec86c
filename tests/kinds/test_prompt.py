from __future__ import annotations

from tests.dialects.symphony.making import executor


def composed(**fields: object) -> str:
    session = executor("x", **fields).session("go")
    session.step()
    return str(session.board["system_prompt"])


def test_the_model_is_told_who_it_is_and_which_tools_it_has() -> None:
    text = composed()
    for part in ("Helper", "helps", "Help people", "doubles a number", '"n"', "tool_name"):
        assert part in text
    assert "of another agent" not in text


def test_without_tools_there_is_no_word_of_json() -> None:
    assert "tool_name" not in composed(tools=())


def test_directives_come_once_whatever_else_there_is() -> None:
    for fields in ({}, {"system_prompt": "Own."}, {"tools": ()}):
        assert composed(directives="Never shout.", **fields).count("Never shout.") == 1


def test_what_is_not_registered_is_told_as_odd() -> None:
    session = executor("x", tools=("nobody",)).session("go")
    session.step()
    assert session.trace.steps[0].thought == "odd: no tool is registered as 'nobody'"
    assert "nobody" in session.board["system_prompt"]
