from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agentnb.dialects.pydantic_errors import ValidatedInput, check_words, iter_schema_problems, iter_unknown_keys
from agentnb.dialects.symphony import AgentConfig
from agentnb.errors import RecipeError
from agentnb.load import load
from agentnb.sources import make_plain_source, read_text
from tests.dialects.coreason.recipe_texts import content


class Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Cat(Part):
    type: Literal["cat"] = "cat"
    lives: int = Field(ge=1)
    toys: list[str] = []


class Dog(Part):
    type: Literal["dog"] = "dog"
    tricks: list[str] = Field(min_length=1)


def _get_tag(value: Any) -> str | None:
    return value.get("type") if isinstance(value, dict) else None


Tagged = Annotated[Annotated[Cat, Tag("cat")] | Annotated[Dog, Tag("dog")], Discriminator(_get_tag)]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Home(Part):
    street: str = Field(min_length=1, pattern="^[a-z]*$")
    number: int = Field(1, validation_alias=AliasChoices("number", "no"))


class Villa(Home):
    pools: int


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = ""


class Zoo(Part):
    name: str
    animals: list[Annotated[Cat | Dog, Field(discriminator="type")]] = []
    homes: dict[str, Home] = {}
    free: dict[str, Any] = {}
    mood: Literal["calm", "loud", "still", "wild"] = "calm"
    level: Literal[1, 2, 3] = 1
    weight: float = 1.0
    open: bool = True
    open_part: Open = Open()
    tagged: Tagged | None = None
    seat: Home | Villa | None = None
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


@pytest.mark.parametrize(
    ("change", "what", "why", "do"),
    [
        ({"name": {}}, "'name' is a mapping (empty)", "a string is required", "write it as a single string"),
        ({"name": dict.fromkeys("abcde")}, "'name' is a mapping (a, b, c, d)", "a string is required",
         "write it as a single string"),
        ({"name": [1, 2]}, "'name' is a list of 2", "a string is required", "write it as a single string"),
        ({"name": None}, "'name' is empty", "a string is required", "write one, or remove the key"),
        ({"name": 1.5}, "'name' is the number 1.5", "a string is required", 'quote it: "1.5"'),
        ({"mood": "odd"}, "mood 'odd' is not a valid value", "it is one of: calm, loud, still, wild",
         "write 'calm' or 'loud' or 'still'"),
        ({"mood": "laud"}, "mood 'laud' is not a valid value", "it is one of: calm, loud, still, wild",
         "did you mean 'loud'?"),
        ({"level": 7}, "level 7 is not a valid value", "it is one of: 1, 2 or 3", "write 1, 2 or 3"),
        ({"animals": [5]}, "'animals[0]' is 5", "the rule is: a mapping is required", "write keys with values"),
        ({"tagged": 5}, "'tagged' is 5", "the rule is: a mapping is required", "write keys with values"),
        ({"animals": [{"type": "cat", "lives": 0}]}, "'lives' is 0",
         "the rule is: input should be greater than or equal to 1", "write a valid value"),
        ({"homes": {"a": {"street": ""}}}, "'street' is ''",
         "the rule is: a string of at least 1 characters is required", "write a longer string"),
        ({"homes": {"a": {"street": "9"}}}, "'street' is '9'",
         "the rule is: a string that matches '^[a-z]*$' is required", "write a string of that form"),
        ({"animals": [{"type": "dog", "tricks": []}]}, "'tricks' is a list of 0",
         "the rule is: at least 1 items is required", "add what is missing"),
        ({"weight": "heavy"}, "'weight' is 'heavy'", "the rule is: a number is required", "write a number"),
        ({"open": "often"}, "'open' is 'often'", "the rule is: true or false is required", "write true or false"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_described_with_the_rule_and_the_remedy(change, what, why, do):
    (problem,) = list_problems({"name": "z", **change})
    assert (problem.code, problem.what, problem.why, problem.do) == ("R114", what, why, do)


def test_what_is_no_mapping_is_described_as_a_whole():
    written = ValidatedInput(make_plain_source([1]), [1], Zoo)
    with pytest.raises(ValidationError) as caught:
        Zoo.model_validate([1])
    (problem,) = iter_schema_problems(caught.value, written)
    assert (problem.what, problem.do) == ("the recipe is a list of 1", "write keys with values")


def test_the_faults_of_an_item_have_their_place_whatever_is_wrong_beside():
    animals = [{"type": "cat", "lives": "x", "toys": ["a", 2, 3]}, "cat", {"type": "dog", "tricks": [1]}, {"lives": 1}]
    homes = {"a": {"no": "x"}, "b": {"street": "s", "number": "y"}}
    assert sorted(
        place for _, severity, place in brief({"animals": animals, "homes": homes}) if severity == "error"
    ) == [
        "<dict>",
        "animals[0].lives",
        "animals[0].toys[1]",
        "animals[0].toys[2]",
        "animals[1]",
        "animals[2].tricks[0]",
        "animals[3]",
        "homes.a",
        "homes.a.no",
        "homes.b.number",
    ]


@pytest.mark.parametrize(
    ("given", "whats", "dos"),
    [
        ({"street": "s"}, [], []),
        ({}, ["key 'street' is missing"], ["add 'street'"]),
        ({"stret": "s"}, ["key 'street' is missing"], ["write 'street' instead of 'stret'"]),
    ],
)
def test_a_missing_key_is_named_or_its_misspelling(given, whats, dos):
    problems = [each for each in list_problems({"name": "z", "homes": {"a": given}}) if each.code == "R113"]
    assert ([each.what for each in problems], [each.do for each in problems]) == (whats, dos)
    assert all(each.where == "<dict>, homes.a" for each in problems)
    assert all(each.why == f"required: street; found: {', '.join(given) or 'none'}" for each in problems)


def test_unknown_keys_inside_of_any_value_are_not_reported():
    free = {"a": {"b": [{"c": 1}]}, "d": [[{"e": 1}]]}
    assert brief({"name": "z", "free": free}) == []
    assert brief({"name": "z", "open_part": {"anything": {"x": 1}}, "animals": [["x"]]}) == [
        ("R114", "error", "animals[0]")
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"type": "cat", "lives": 1}, []),
        ({"type": "cat"}, [("R113", "tagged", "required: lives; found: type")]),
        ({"lives": 1}, [("R113", "tagged", "required: type; found: lives")]),
        ({}, [("R113", "tagged", "required: type; found: none")]),
        ({"type": "cow"}, [("R114", "tagged.type", "it is one of: cat, dog")]),
        ({"type": "dog", "tricks": [3]}, [("R114", "tagged.tricks[0]", "a string is required")]),
    ],
)
def test_a_member_with_a_computed_tag_is_reported_like_one_with_a_field(given, problem):
    found = list_problems({"name": "z", "tagged": given})
    assert [(each.code, each.where.removeprefix("<dict>, "), each.why) for each in found] == problem


def test_of_classes_without_a_type_the_last_one_says_which_keys_are_known():
    assert brief({"name": "z", "seat": {"street": "s", "pools": 2}}) == []
    (problem,) = list_problems({"name": "z", "seat": {"street": "s", "pols": 2}})
    assert (problem.where, problem.do) == ("<dict>, seat.pols", "did you mean 'pools'?")


def test_a_tuple_is_described_like_a_list():
    for names in ([1, 2], (1, 2)):
        with pytest.raises(RecipeError, match="'name' is a list of 2"):
            AgentConfig(name=names)
