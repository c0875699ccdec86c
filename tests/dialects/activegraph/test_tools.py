from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import pytest
from pydantic import BaseModel

from agentnb.dialects.activegraph import clear_tool_registry, get_tool_registry, tool
from agentnb.dialects.activegraph.errors import LLMBehaviorError, ToolError, UnknownToolError
from agentnb.dialects.activegraph.parts.tools import digest, hash_args
from tests.dialects.activegraph.judge import assert_same_signatures


class Query(BaseModel):
    q: str


@pytest.fixture(autouse=True)
def _registry():
    clear_tool_registry()
    yield
    clear_tool_registry()


def test_a_tool_is_registered_and_described_to_the_model():
    @tool(input_schema=Query, cost_per_call=0.1, deterministic=True)
    def look(args, ctx):
        """Look it up.

        Nobody is told of this.
        """

    assert get_tool_registry() == [look]
    assert look.to_definition() == {
        "name": "look",
        "description": "Look it up.",
        "input_schema": Query.model_json_schema(),
    }
    assert (look.cost_per_call, look.timeout_seconds, look.deterministic) == (Decimal("0.1"), 30.0, True)
    get_tool_registry().clear()
    assert clear_tool_registry() == [look]
    assert get_tool_registry() == []


def test_without_a_schema_it_takes_any_object():
    any_tool = tool(name="any", description="said")(lambda args, ctx: None)
    assert any_tool.to_definition() == {
        "name": "any",
        "description": "said",
        "input_schema": {"type": "object", "properties": {}},
    }


def test_a_call_has_the_same_digest_whatever_the_order():
    assert hash_args("look", {"a": 1, "b": [2]}) == hash_args("look", {"b": [2], "a": 1})
    assert hash_args("look", {"a": 1}) != hash_args("find", {"a": 1})
    assert digest({"n": Decimal("0.10")}) == digest({"n": "0.10"})


@pytest.mark.parametrize("error_class", [ToolError, UnknownToolError, LLMBehaviorError])
@pytest.mark.parametrize(
    "restore", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_a_failure_with_a_reason_can_be_copied_and_pickled(error_class, restore):
    error = error_class("tool.timeout", "no answer: 3 s")
    restored = restore(error)
    assert (type(restored), restored.reason, str(restored)) == (error_class, "tool.timeout", str(error))
    assert str(restored).endswith("tool.timeout: no answer: 3 s")


def test_signatures_are_those_of_the_package():
    assert_same_signatures("tool")
