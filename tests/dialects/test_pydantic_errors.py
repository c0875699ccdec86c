from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agentnb.dialects.pydantic_errors import ValidatedInput, check_words, iter_schema_problems, iter_unknown_keys
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.sources import make_plain_source, read_text
from tests.dialects.coreason.recipe_texts import content


class Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Cat(Part):
    type: Literal["cat"] = "cat"
    lives: int
    toys: list[str] = []


class Dog(Part):
    type: Literal["dog"] = "dog"
    tricks: list[str]


class Home(Part):
    street: str
    number: int = Field(1, validation_alias=AliasChoices("number", "no"))


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = ""


class Zoo(Part):
    name: str
    animals: list[Annotated[Cat | Dog, Field(discriminator="type")]] = []
    homes: dict[str, Home] = {}
    free: dict[str, Any] = {}
    mood: Literal["calm", "loud"] = "calm"
    strict: Strict | None = None
    size: int | Literal["huge"] = 1

    @model_validator(mode="after")
    def _is_not_nowhere(self):
        if self.free.get("nowhere"):
            message = "a zoo is somewhere"
            raise PydanticCustomError("somewhere", "{m}", {"m": message, "at": ("free", "nowhere"), "do": "move it"})
        return self


def list_problems(content):
    """Return every problem of a zoo: unknown keys first, then what is wrong."""
    source = read_text(content) if isinstance(content, str) else make_plain_source(content)
    written = ValidatedInput(source, source.content, Zoo)
    problems = [*check_words(source), *iter_unknown_keys(written)]
    try:
        Zoo.model_validate(source.content)
    except ValidationError as error:
        problems += iter_schema_problems(error, written)
    return problems


def brief(content):
    return [
        (problem.code, problem.severity, problem.where.removeprefix("<dict>, ")) for problem in list_problems(content)
    ]


def test_valid_values_are_not_reported():
    homes = {"a": {"street": "s", "no": 3}, "b": {"street": "t", "number": 4}}
    assert (
        list_problems({"name": "z", "animals": [{"type": "cat", "lives": 9}], "homes": homes, "free": {"x": {"y": 1}}})
        == []
    )


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        ({"name": None}, "R114", "name"),
        ({"name": 3}, "R114", "name"),
        ({"name": True}, "R109", "name"),
        ({"mood": "lowd"}, "R114", "mood"),
        ({"animals": [{"type": "cow"}]}, "R114", "animals[0].type"),
        ({"animals": [{"lives": 3}]}, "R113", "animals[0]"),
        ({"animals": [{"type": "cat", "lives": "many"}]}, "R114", "animals[0].lives"),
        ({"animals": [{"type": "cat", "lives": 1, "toys": ["a", 2]}]}, "R114", "animals[0].toys[1]"),
        ({"homes": {"a": {"street": 3}}}, "R114", "homes.a.street"),
        ({"homes": {"a": {"street": "s", "no": "x"}}}, "R114", "homes.a.no"),
        ({"strict": {"nam": "x"}}, "R112", "strict.nam"),
        ({"free": {"nowhere": True}}, "R114", "free.nowhere"),
    ],
)
def test_a_mistake_is_reported_once_with_its_place(change, code, where):
    actual = [problem for problem in brief({"name": "z", **change}) if problem[1] == "error"]
    assert actual == [(code, "error", where)]


def test_a_member_of_a_union_is_validated_against_its_own_class():
    problem = list_problems({"name": "z", "animals": [{"type": "dog"}]})[0]
    assert problem.why == "required: tricks; found: type"


def test_a_key_named_like_a_member_is_not_part_of_a_place():
    assert brief({"name": "z", "animals": [{"type": "dog", "dog": {"tricks": []}}]}) == [
        ("R112", "warning", "animals[0].dog"),
        ("R113", "error", "animals[0]"),
    ]


def test_a_value_outside_of_a_literal_is_reported_at_its_place():
    assert {place for _, _, place in brief({"name": "z", "size": []})} == {"size"}


def test_the_remedy_of_a_validator_is_reported():
    problem = list_problems({"name": "z", "free": {"nowhere": 1}})[0]
    assert (problem.what, problem.why, problem.do) == ("'nowhere' is 1", "the rule is: a zoo is somewhere", "move it")


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"nme": 1}, "nme"),
        ({"animals": [{"type": "cat", "lives": 9, "tricks": []}]}, "animals[0].tricks"),
        ({"homes": {"a": {"street": "s", "zip": 1}}}, "homes.a.zip"),
    ],
)
def test_an_unknown_key_is_a_warning_if_the_class_ignores_it(change, where):
    assert brief({"name": "z", **change}) == [("R112", "warning", where)]


def test_an_unknown_key_has_a_suggestion():
    unknown, missing = list_problems({"nme": "z"})
    assert unknown.do == "did you mean 'name'?"
    assert missing.do == "write 'name' instead of 'nme'"


def test_places_are_those_of_the_source():
    problems = list_problems("name: z\nanimals:\n  - {type: cat, lives: 9}\n  - {type: dog, trix: [sit]}\n")
    assert [problem.where for problem in problems] == ["<text>:4:17, animals[1].trix", "<text>:4:5, animals[1]"]


def test_an_unquoted_word_is_reported_as_it_was_written():
    problems = list_problems("name: no\nfree: {yes: 1}\n")
    assert [(problem.code, problem.do) for problem in problems] == [
        ("R109", 'quote it: "yes":'),
        ("R109", 'quote it: "no"'),
    ]


class Shifted(ValidatedInput):
    """What stands one level deeper in the source than in the content."""

    def to_source_path(self, path):
        return ("zoo", *path)

    def explain_missing(self, path, needed, found):
        return f"{path[-1]} is a must"

    def explain_unknown(self, path):
        return ("it", "there is nothing like it", "forget it") if path[-1] == "odd" else None


def test_a_dialect_can_have_its_own_messages_and_places():
    source = read_text("zoo:\n  odd: 1\n  mood: loud\n")
    written = Shifted(source, source.content["zoo"], Zoo)
    with pytest.raises(ValidationError) as caught:
        Zoo.model_validate(written.content)
    unknown, missing = [*iter_unknown_keys(written), *iter_schema_problems(caught.value, written)]
    assert (unknown.what, unknown.why, unknown.do) == (
        "unknown key 'it' has no effect",
        "there is nothing like it",
        "forget it",
    )
    assert (unknown.where, unknown.severity) == ("<text>:2:3, zoo.odd", "warning")
    assert (missing.why, missing.where) == ("name is a must", "<text>:1:1, zoo")


@pytest.mark.parametrize(
    ("change", "why", "do"),
    [
        ({"policy": {"max_retries": "many"}}, "the rule is: an integer is required", "write an integer"),
        ({"state": {"properties": 5}}, "the rule is: a mapping is required", "write keys with values"),
        ({"policy": {"caching_enabled": "maybe"}}, "the rule is: true or false is required", "write true or false"),
        ({"requirements": 5}, "the rule is: a list is required", "write a list of items"),
    ],
)
def test_a_value_of_another_type_is_reported_in_our_own_words(change, why, do):
    recipe = {"metadata": {"name": "t"}, "interface": {}, "topology": [{"id": "a", "type": "agent", "agent_ref": "r"}]}
    with pytest.raises(RecipeError) as caught:
        load({**recipe, **change})
    (problem,) = caught.value.problems
    assert (problem.code, problem.why, problem.do) == ("R114", why, do)


def test_missing_keys_of_one_mapping_are_one_problem():
    with pytest.raises(RecipeError) as caught:
        load(content([{"id": "e", "type": "evaluator", "pass_rout": "a"}, "a"]))
    problems = {problem.what: problem.do for problem in caught.value.problems if problem.code == "R113"}
    assert problems.pop("key 'pass_route' is missing") == "write 'pass_route' instead of 'pass_rout'"
    ((message, do),) = problems.items()
    assert message.startswith("keys 'target_variable', 'evaluator_agent_ref', ")
    assert message.endswith(" are missing")
    assert do == "add them"
