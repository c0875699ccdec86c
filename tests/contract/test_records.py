"""Records of the dialects: their defaults are those of the systems' documents, and the public ones cannot be changed.

After a change that is meant: `pytest tests/contract/test_records.py --update-golden`, and read the difference.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import MISSING, FrozenInstanceError, fields, is_dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import agentnb.dialects

PAGE = Path(__file__).parents[1] / "golden" / "defaults.txt"
DIALECTS = ("activegraph", "agentruntime", "coreason", "networkx", "polaris", "symphony")
# What a program builds step by step, or what the engine fills.
MUTABLE = {
    "activegraph": {"Behavior", "Diff", "LLMBehavior", "RelationBehavior", "Tool"},
    "polaris": {
        *("ConditionalEdge", "DecisionNode", "Edge", "ErrorEdge", "GraphEdge", "JoinNode", "LoopBackEdge", "LoopNode"),
        *("ParallelEdge", "ParallelNode", "SequentialEdge", "SwitchNode", "SystemNode", "TimeoutEdge"),
    },
}


def public_records(dialect: str) -> dict[str, type]:
    """Return the public dataclasses of a dialect."""
    module = importlib.import_module(f"agentnb.dialects.{dialect}")
    named = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return {name: value for name, value in named.items() if isinstance(value, type) and is_dataclass(value)}


def records() -> Iterator[type]:
    """Yield the classes of what a recipe may say, and the public records, each once, by the name of its module."""
    public = {value for name in DIALECTS for value in public_records(name).values()}
    for record in sorted(
        pkgutil.walk_packages(agentnb.dialects.__path__, "agentnb.dialects."), key=lambda one: one.name
    ):
        module = importlib.import_module(record.name)
        for value in (*vars(module).values(), *getattr(module, "MODELS", {}).values()):  # MODELS: made of a table
            is_record = isinstance(value, type) and (value in public or issubclass(value, BaseModel))
            if is_record and value.__module__ == record.name:
                yield value


def defaults(record: type) -> Iterator[str]:
    """Yield `module.Class.field = default` for each field of a record that has a constant default."""
    name = f"{record.__module__.removeprefix('agentnb.dialects.')}.{record.__qualname__}"
    constants = (
        {key: field.default for key, field in record.model_fields.items()}
        if issubclass(record, BaseModel)
        else {field.name: field.default for field in fields(record)}
    )
    for key, value in constants.items():
        if value not in (MISSING, PydanticUndefined) and " at 0x" not in repr(value):
            yield f"{name}.{key} = {value!r}"


def test_the_defaults_are_the_documented_ones(request):
    lines = [line for record in records() for line in defaults(record)]
    if request.config.getoption("--update-golden"):
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").splitlines() == lines, "if it is meant: pytest ... --update-golden"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_public_record_cannot_be_changed(dialect):
    changed = set()
    for name, value in public_records(dialect).items():
        record = object.__new__(value)
        try:
            setattr(record, fields(value)[0].name, None)
        except FrozenInstanceError:
            continue
        changed.add(name)
    assert changed == MUTABLE.get(dialect, set())
