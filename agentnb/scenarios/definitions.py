"""Scenario definitions: a recipe's own scenarios, mappings and objects are converted to Scenarios.

X412: a scenario or its comparison settings are invalid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentnb.board.values import freeze, thaw
from agentnb.dialects.table import DIALECTS, load_recipe
from agentnb.errors import ExecutionError, Problem, did_you_mean, with_article
from agentnb.recipe.model import Recipe, Scenario
from agentnb.scenarios.compare import COMPARES
from agentnb.sources import Source, make_plain_source

# Our name of a field -> its alias.
_WORDS: Final = {
    "id": "id",
    "inputs": "inputs",
    "expected": "expected_output",
    "compare": "validation_logic",
    "about": "description",
}
_KNOWN: Final = tuple(dict.fromkeys([*_WORDS, *_WORDS.values()]))
_REFUSED: Final = "code_eval"
_EXAMPLE: Final = "{'id': 'greets', 'inputs': {'name': 'Ada'}, 'expected': {'text': 'Hi Ada'}}"


def find_recipe(recipe: Any) -> Any:
    """Return the recipe in a dict or in a dialect's own object as a RecipeDefinition; anything else unchanged.

    Raises:
        RecipeError: the recipe has errors.
    """
    if isinstance(recipe, Recipe | str):
        return recipe
    dialect = next((row for row in DIALECTS.values() if row.recognize(recipe)), None)
    if dialect is None:
        return recipe
    source = make_plain_source(recipe) if isinstance(recipe, Mapping) else Source(recipe, f"<{type(recipe).__name__}>")
    return load_recipe(source, dialect)


def unwrap(scenarios: Any) -> tuple[Any, dict[int, Any]]:
    """Return the definitions as a list, and by index the fault injection that some of them request for themselves.

    A single one counts as a list of one. A SimulationRequest is its scenario with its chaos.
    """
    if scenarios is None or isinstance(scenarios, str):
        return scenarios, {}
    if _is_request(scenarios) or _to_fields(scenarios) is not None:
        scenarios = [scenarios]
    elif not isinstance(scenarios, Iterable):
        return scenarios, {}
    rows: list[Any] = list(scenarios)
    chaos: dict[int, Any] = {}
    for at, row in enumerate(rows):
        if _is_request(row):
            fields = row if isinstance(row, Mapping) else vars(row)
            rows[at] = fields["scenario"]
            if fields.get("chaos_config") is not None:
                chaos[at] = fields["chaos_config"]
    return rows, chaos


def _is_request(row: Any) -> bool:
    if isinstance(row, Mapping):
        return "scenario" in row
    return not isinstance(row, type) and "scenario" in getattr(row, "__dict__", ())


def collect_scenarios(recipe: Recipe, source: Any) -> tuple[Scenario, ...]:
    """Return the scenarios to run: the ones passed, otherwise the recipe's own.

    Raises:
        ExecutionError: X410, there are none; X411, two have the same id; X412, one is invalid. All invalid ones are
            reported at once.
    """
    if source is not None and (isinstance(source, str) or not isinstance(source, Iterable)):
        raise ExecutionError(
            Problem("X412", f"{with_article(type(source).__name__)} is not a list of scenarios",
                    "run_scenarios(scenarios=...)",
                    "scenarios are passed as a list; without one, the recipe's own scenarios run",
                    f"write [{_EXAMPLE}]")
        )  # fmt: skip
    rows = list(recipe.scenarios if source is None else source)
    if not rows:
        raise ExecutionError(_make_no_scenarios_problem(recipe, source))
    problems: list[Problem] = []
    scenarios = [scenario for at, row in enumerate(rows) if (scenario := _make_scenario(row, at, problems)) is not None]
    for scenario in scenarios:
        problems += _check_scenario(recipe, scenario)
    problems += _iter_duplicates(scenarios)
    if problems:
        raise ExecutionError(*problems)
    return tuple(scenarios)


def _make_no_scenarios_problem(recipe: Recipe, scenarios: Any) -> Problem:
    if scenarios is not None:
        return Problem("X410", "there are no scenarios to run", "run_scenarios(scenarios=...)", "the list is empty",
                       f"write [{_EXAMPLE}], or leave it out to run the recipe's own")  # fmt: skip
    return Problem(
        "X410",
        f"{recipe.name!r} has no scenarios",
        recipe.file or f"recipe {recipe.name!r}",
        "it contains no tests",
        "add them to the recipe, `tests: [{id: greets, description: It greets, inputs: {name: Ada}, "
        "expected_output: {text: Hi Ada}, validation_logic: exact_match}]`, "
        f"or pass run_scenarios(recipe, [{_EXAMPLE}])",
    )


def _make_scenario(row: Any, at: int, problems: list[Problem]) -> Scenario | None:
    """Return a definition as a Scenario; None, with the reasons in `problems`, if it is invalid."""
    if isinstance(row, Scenario):
        return row
    where = f"run_scenarios, scenarios[{at}]"
    fields = _to_fields(row)
    if fields is None:
        problems.append(
            Problem("X412", f"{with_article(type(row).__name__)} is not a scenario", where,
                    "it has no id and no inputs",
                    f"write {_EXAMPLE}")
        )  # fmt: skip
        return None
    unknown = list(_iter_unknown_keys(fields, where)) if isinstance(row, Mapping) else []
    values = {word: fields.get(word, fields.get(other)) for word, other in _WORDS.items()}
    if values["id"] is None or values["id"] == "":
        unknown.append(
            Problem("X412", "a scenario has no id", where, "scenarios are identified by their id", f"write {_EXAMPLE}")
        )
    problems += unknown
    if unknown:
        return None
    return Scenario(
        id=str(values["id"]),
        inputs={} if values["inputs"] is None else values["inputs"],
        expected=values["expected"],
        compare=str(getattr(values["compare"], "value", values["compare"]) or COMPARES[0]),
        about=str(values["about"] or ""),
    )


def _to_fields(row: Any) -> Mapping[str, Any] | None:
    if isinstance(row, Mapping):
        return row
    fields = {word: getattr(row, word) for word in _KNOWN if hasattr(row, word)}
    return fields if {"id", "inputs"} <= fields.keys() else None


def _iter_unknown_keys(fields: Mapping[Any, Any], where: str) -> Iterator[Problem]:
    """Yield the unknown keys of a mapping: a misspelled one would test nothing."""
    for word in fields:
        if word not in _KNOWN:
            yield Problem("X412", f"a scenario has no key {word!r}", where, f"its keys are: {', '.join(_WORDS)}",
                          did_you_mean(word, _KNOWN, f"remove {word!r}"))  # fmt: skip


def find_refusal(recipe: Recipe, scenario: Scenario) -> Problem | None:
    """Return why a scenario is refused; None if it can run. The other scenarios run regardless.

    X413: a scenario requests to run code
    """
    if scenario.compare != _REFUSED:
        return None
    return Problem(
        "X413",
        f"scenario {scenario.id!r} uses 'code_eval', which is rejected",
        _format_where(recipe, scenario),
        "code in a scenario is never executed",
        f"compare by {', '.join(COMPARES[:-1])} or {COMPARES[-1]}",
    )


def _format_where(recipe: Recipe, scenario: Scenario) -> str:
    return str(scenario.place or f"scenario {scenario.id!r} of {recipe.name!r}")


def _check_scenario(recipe: Recipe, scenario: Scenario) -> Iterator[Problem]:
    where = _format_where(recipe, scenario)
    if scenario.compare not in (*COMPARES, _REFUSED):
        yield Problem("X412", f"scenario {scenario.id!r} has the unknown comparison {scenario.compare!r}", where,
                      f"the comparisons are: {', '.join(COMPARES)}",
                      did_you_mean(scenario.compare, COMPARES, "use one of them"))  # fmt: skip
    for word, value in (("inputs", scenario.inputs), ("expected", scenario.expected)):
        if not (isinstance(value, Mapping) or (value is None and word == "expected")):
            kind = with_article(type(value).__name__)
            yield Problem("X412", f"the {word} of scenario {scenario.id!r} are {kind}", where,
                          "expected a mapping from board keys to values", f"write {_EXAMPLE}")  # fmt: skip


def _iter_duplicates(scenarios: list[Scenario]) -> Iterator[Problem]:
    for id, number in Counter(scenario.id for scenario in scenarios).items():
        if number > 1:
            second = [scenario.place for scenario in scenarios if scenario.id == id][1]
            yield Problem("X411", f"{number} scenarios have the id {id!r}", str(second or f"scenario {id!r}"),
                          "results are looked up by id", "use a unique id for each")  # fmt: skip


def copy_expected(scenario: Scenario) -> dict[str, Any] | None:
    """Return a copy of what a scenario expects, so that the definition may be changed afterwards.

    Raises:
        BoardError: a value cannot be stored on a board.
    """
    if scenario.expected is None:
        return None
    return {str(key): thaw(freeze(value)) for key, value in scenario.expected.items()}
