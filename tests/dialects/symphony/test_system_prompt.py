from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from agentnb.dialects.symphony.parts.system_prompt import (
    SystemPromptService,
    format_json_requirements,
    format_tool_report,
)
from agentnb.errors import AgentRuntimeError
from agentnb.world.tools.registry import ToolRegistry

generate = SystemPromptService.generate_system_prompt
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
ADD = SimpleNamespace(name="add", description="Adds numbers.", schema=SCHEMA)
LOOK = SimpleNamespace(name="look_up", description="Looks an order up.", schema=None)
WORDS = {"name": "Ada", "description": "A careful clerk.", "task": "Do sums.", "directives": "Never guess."}
BEGIN = "=== BEGIN REQUIRED FORM"


def config(**words):
    return SimpleNamespace(**{**WORDS, **words})


# ------------------------------------------------------------------------------------------------------------ the parts


@pytest.mark.parametrize("made", [dict, lambda words: SimpleNamespace(**words)], ids=["mapping", "object"])
@pytest.mark.parametrize("service", [SystemPromptService, SystemPromptService()], ids=["class", "instance"])
def test_the_prompt_contains_role_goal_and_tools_in_order(made, service):
    prompt = service.generate_system_prompt(made(WORDS), has_tools=True, tools=[ADD, LOOK])
    requests = ["Ada", "A careful clerk.", "Do sums.", "add", "Adds numbers.", json.dumps(SCHEMA), "look_up",
             "Looks an order up.", "Never guess.", BEGIN]  # fmt: skip
    places = [prompt.index(text) for text in requests]
    assert places == sorted(places)


@pytest.mark.parametrize("has_tools", [True, False])
@pytest.mark.parametrize("own", [None, "You speak like a pirate."])
def test_directives_occur_once_after_the_rest_and_before_the_answer_format(has_tools, own):
    prompt = generate(config(system_prompt=own), has_tools, tools=[ADD])
    assert prompt.count("Never guess.") == 1
    assert prompt.index(own or "Do sums.") < prompt.index("Never guess.")
    if has_tools:
        assert prompt.index("Adds numbers.") < prompt.index("Never guess.") < prompt.index(BEGIN)


@pytest.mark.parametrize("own", [None, "You speak like a pirate."])
def test_the_answer_format_comes_last_and_only_with_tools(own):
    with_tools, without = (generate(config(system_prompt=own), has, tools=[ADD]) for has in (True, False))
    assert with_tools.endswith(format_json_requirements(["add"]))
    assert BEGIN not in without
    assert "tool_name" not in without
    assert "Adds numbers." not in without


def test_a_custom_prompt_is_the_unchanged_base():
    prompt = "You are ${name}, {task} {{ description }}."
    parts = SystemPromptService.parts(config(system_prompt=prompt), has_tools=True, tools=[ADD])
    assert parts.base == prompt
    assert parts.text.startswith(prompt)
    assert "A careful clerk." not in parts.text
    assert "Adds numbers." in parts.text


def test_placeholders_in_a_config_are_not_expanded():
    words = {"name": "{name}", "description": "${task} %s {0}", "task": "{{ name }}", "directives": "{directives}"}
    prompt = generate(words, has_tools=True, tools=[SimpleNamespace(name="{x}", description="${y}", schema={"{z}": 1})])
    assert all(text in prompt for text in [*words.values(), "{x}", "${y}", '{"{z}": 1}'])


def test_the_parts_make_up_the_prompt():
    parts = SystemPromptService.parts(config(), has_tools=True, tools=[ADD])
    assert parts.text == generate(config(), has_tools=True, tools=[ADD]) == "\n\n".join(parts)
    for service in (SystemPromptService, SystemPromptService()):
        assert service.parts(config(), has_tools=True, tools=[ADD]) == parts
        assert service.base(config(), has_tools=True) == parts.base != service.base(config())
        assert service.directives(config()) == parts.directives
    assert parts.json_requirements == format_json_requirements(["add"])


@pytest.mark.parametrize("directives", [None, "", []])
def test_missing_parts_leave_no_trace(directives):
    parts = SystemPromptService.parts({"name": "Ada", "directives": directives})
    assert (parts.tools, parts.directives, parts.json_requirements) == ("", "", "")
    assert "None" not in parts.text
    assert "# Goal" not in parts.text


def test_a_list_of_directives_has_one_line_each():
    assert "- Be kind.\n- Be short." in generate(config(directives=["Be kind.", "Be short."]))


def test_the_original_field_names_are_read_too():
    assert generate({"name": "Ada", "systemPrompt": "Ahoy."}) == "Ahoy."


# ------------------------------------------------------------------------------------------------------------ the tools


def test_named_tools_are_looked_up_in_the_shared_registry():
    registry = ToolRegistry.get_instance()
    registry.register_tool("triple", {"description": "Triples it.", "handler": print, "input_schema": SCHEMA})
    try:
        prompt = generate(config(tools=["triple", "unheard_of"]), has_tools=True)
    finally:
        registry.unregister_tool("triple")
    assert "Triples it." in prompt
    assert '"required": ["a"]' in prompt
    assert 'THESE NAMES: "triple", "unheard_of"' in prompt


def test_a_tool_of_a_registry_is_described():
    registry = ToolRegistry()
    is_registered = registry.register_tool(
        "double", {"description": "Doubles it.", "handler": print, "input_schema": SCHEMA}
    )
    for tool in (is_registered, registry.describe("double")):
        prompt = generate(config(), has_tools=True, tools=[tool])
        assert "Doubles it." in prompt
        assert '"required": ["a"]' in prompt


def test_the_presence_of_tools_is_detected_by_default():
    assert BEGIN in generate(config(tools=["add"]))
    assert BEGIN not in generate(config(tools=[]))


# ------------------------------------------------------------------------------------------------------------- the form


def test_the_answer_format_shows_both_forms_and_the_exact_names():
    text = format_json_requirements(["add", 'odd "name"'])
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [sorted(row) for row in rows] == [["parameters", "tool_name"], ["response", "tool_name"]]
    assert rows[1]["tool_name"] == "none"
    assert '"add", "odd \\"name\\""' in text
    for demand in ("ONE SINGLE VALID JSON OBJECT", "EXACTLY ONE OF THESE NAMES", "IS AN ERROR"):
        assert demand in text


def test_without_names_it_mentions_the_tools_of_the_agent():
    assert "THE NAME OF ONE OF YOUR TOOLS" in format_json_requirements()


# ------------------------------------------------------------------------------------------------- a prompt from a file


@pytest.mark.parametrize("name", ["own.md", "own.txt", "OWN.XML", "deep/own.md"])
def test_a_prompt_file_in_the_folder_is_read(name, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / name).write_text("\ufeffAhoy, ${name}.", encoding="utf-8")
    assert generate({"system_prompt": name}, folder=tmp_path) == "Ahoy, ${name}."


def test_no_file_outside_of_the_folder_is_read(tmp_path):
    folder = tmp_path / "agents"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("s", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    for named in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt"):
        assert generate({"system_prompt": named}, folder=folder) == named


@pytest.mark.parametrize("own", ["own.md", "Read me.txt", "a\n.md", "bad\0.md", f"{'x' * 5000}.md", "own.py", "sub.md"])
def test_a_text_that_is_not_a_file_name_is_the_prompt(own, tmp_path):
    (tmp_path / "own.py").write_text("no", encoding="utf-8")
    (tmp_path / "sub.md").mkdir()
    assert generate({"system_prompt": own}, folder=tmp_path) == own


def test_without_a_folder_no_file_is_read(tmp_path, monkeypatch):
    (tmp_path / "own.md").write_text("no", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert generate({"system_prompt": "own.md"}) == "own.md"


@pytest.mark.parametrize(("content", "why"), [(b"\xff\xfe", "not UTF-8"), (b"x" * 1_000_001, "1,000,001 bytes")])
def test_a_file_that_cannot_be_read_is_reported(content, why, tmp_path):
    (tmp_path / "own.md").write_bytes(content)
    with pytest.raises(AgentRuntimeError, match=rf"X467: the system prompt 'own.md'(.|\n)*{why}"):
        generate({"system_prompt": "own.md"}, folder=tmp_path)


# ------------------------------------------------------------------------------------------------- after a tool has run


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"success": True, "result": {"n": 5}}, {"success": True, "result": {"n": 5}}),
        ({"success": True, "result": None}, {"success": True, "result": None}),
        ({"success": False, "error": "no such order"}, {"success": False, "result": None, "error": "no such order"}),
        ({"success": False}, {"success": False, "result": None, "error": "the tool gave no details"}),
    ],
)
@pytest.mark.parametrize("made", [dict, lambda words: SimpleNamespace(**words)], ids=["mapping", "object"])
def test_the_result_of_a_tool_is_reported_as_json(made, tool, said):
    lines = format_tool_report(made({"name": "look_up", **tool}), 2).splitlines()
    assert json.loads(lines[1]) == {"tool_name": "look_up", **said}
    assert ("has run" in lines[0]) is tool["success"]


@pytest.mark.parametrize(("left", "said"), [(3, "3 more times. Call another tool"), (1, "once more. Give your answer")])
def test_the_number_of_remaining_responses_is_reported(left, said):
    assert said in format_tool_report({"name": "add", "success": True, "result": 1}, left)
