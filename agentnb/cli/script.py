"""Script files: the scripted answers of the model, people and agents of a Session."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentnb.errors import Problem, RecipeError, did_you_mean, with_article
from agentnb.sources import read_file

if TYPE_CHECKING:
    from agentnb.recipe.model import Recipe

SCRIPT_KEYS = ("llm", "answers", "agents")


def read_script(file: str | None, recipe: Recipe | None = None) -> dict[str, Any]:
    """Return the options that a script file supplies to a Session: answers of the LLM, of people and of agents.

    One script serves a run and the scenarios: for a run of a recipe, the part of the scenarios' judge is left out.
    """
    if file is None:
        return {}
    source = read_file(Path(file))
    content = source.content or {}
    problems = list(source.problems)
    if not isinstance(content, dict):
        problems.append(
            Problem(
                code="U903",
                what=f"the script is {with_article(type(content).__name__)}, not a mapping",
                where=str(source.locate()),
                why=f"a script has the keys {', '.join(SCRIPT_KEYS)}",
                do="write for example `answers: {NODE: [yes]}`",
            )
        )
        content = {}
    problems += (
        Problem(
            code="U904",
            what=f"a script has no key {key!r}",
            where=str(source.locate((key,), key=True)),
            why=f"the keys of a script are: {', '.join(SCRIPT_KEYS)}",
            do=did_you_mean(key, SCRIPT_KEYS, f"remove {key!r}"),
        )
        for key in content
        if key not in SCRIPT_KEYS
    )
    if problems:
        raise RecipeError(*problems)
    agents = content.get("agents") or {}
    options = {
        "llm": content.get("llm"),
        "answers": content.get("answers"),
        "tools": dict(map(_make_fixed, agents.items())),
    }
    if recipe is not None:
        from agentnb.scenarios.judge import remove_judge

        options["llm"] = remove_judge(options["llm"], recipe)
    return {name: value for name, value in options.items() if value}


def _make_fixed(agent: tuple[str, Any]) -> tuple[str, Callable[..., Any]]:
    reference, output = agent
    return reference, lambda **_inputs: deepcopy(output)
