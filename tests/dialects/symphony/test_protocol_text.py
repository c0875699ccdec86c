from __future__ import annotations

import inspect

from agentnb.dialects.symphony.parts import protocol_text


def test_every_text_depends_on_its_arguments_alone():
    placeholders = "{0} ${x} %s {{ y }}"
    texts = [
        protocol_text.format_identity(placeholders, placeholders, placeholders, has_tools=True),
        protocol_text.format_tools([(placeholders, placeholders, {placeholders: placeholders})]),
        protocol_text.format_directives(placeholders),
        protocol_text.format_json_requirements([placeholders]),
        protocol_text.format_tool_report(placeholders, {placeholders: placeholders}, 1, succeeded=True),
    ]
    assert [text.count(placeholders) for text in texts] == [3, 4, 1, 1, 3]


def test_no_tools_give_an_empty_text():
    assert protocol_text.format_tools([]) == ""


def test_a_tool_without_a_schema_is_described_by_name_and_description():
    text = protocol_text.format_tools([("look_up", "Looks an order up.", None), ("bare", "", None)])
    assert text.endswith("## look_up\nLooks an order up.\n\n## bare")


def test_the_answer_format_is_demanded_in_capitals():
    lines = protocol_text.format_json_requirements().splitlines()
    demands = [line for line in lines if not line.startswith(("{", "- "))]
    assert all(line == line.upper() for line in demands)


def test_the_instructions_mention_tools_only_if_there_are_some():
    with_tools, without = (protocol_text.format_identity("", "", "", has_tools=has) for has in (True, False))
    assert with_tools.startswith(without)
    assert "tool" in with_tools
    assert "tool" not in without
    assert inspect.cleandoc(without) == without
