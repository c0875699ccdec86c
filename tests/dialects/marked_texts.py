"""Texts with marks: `«R104»gone` stands for the text `gone`, and says that R104 is reported at its first character."""

from __future__ import annotations

import re

from agentnb.errors import RecipeError
from agentnb.load import load

_MARK = re.compile(r"«([^»]*)»")


def read_marks(marked: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without its marks, and (the word in the mark, line:column) of each, in order."""
    marks = []
    for number, line in enumerate(marked.split("\n"), 1):
        removed = 0
        for mark in _MARK.finditer(line):
            marks.append((mark[1], f"{number}:{mark.start() - removed + 1}"))
            removed += len(mark[0])
    return _MARK.sub("", marked), marks


def find_problems(text: str) -> list[tuple[str, str]]:
    """Return (code, line:column) of everything that is wrong with a recipe, raised or not, in the order of the text."""
    try:
        problems = load(text).check()
    except RecipeError as error:
        problems = error.problems
    spots = [(problem.code, problem.where.split(",")[0].removeprefix("<text>:")) for problem in problems]
    return sorted(spots, key=lambda spot: [int(number) for number in spot[1].split(":")])


def get_spot(place: object) -> str:
    """Return line:column of a place in a text."""
    return str(place).split(",")[0].removeprefix("<text>:")
