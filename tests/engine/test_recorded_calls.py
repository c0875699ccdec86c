from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

from agentnb.board.values import freeze
from agentnb.engine.core.history import Call
from agentnb.engine.effects.recorded_calls import read_answer
from agentnb.engine.effects.recorded_errors import parse_problems, rebuild_error
from agentnb.errors import AgentRuntimeError, ExecutionError, Problem, format_error
from agentnb.world.llm.base import LLMError, LLMResponse, Usage

PROBLEM = Problem("X304", "the script is empty", "llm=...", "it has: 1\n  answer", "add an answer")


class SlowError(TimeoutError):
    pass


class PickyError(Exception):
    def __init__(self, one, other):
        raise AssertionError("it is not made as people make it")


class OddError(ExecutionError):
    def __init__(self, number):
        super().__init__(PROBLEM)


class SealedError(Exception):
    def __init_subclass__(cls):
        raise TypeError("it has no subclasses")


class Twin:
    class SameError(Exception):
        pass


class OtherTwin:
    class SameError(Exception):
        pass


def row(kind="tool", result=None, error=None, **words):
    return Call(1, 0, 0, kind, "look", 1, 0.0, freeze({}), freeze(result), error, 0.5, **words)


def again(error):
    """Return an error as its row tells it."""
    return rebuild_error(row(error=f"{type(error).__name__}: {error}"))


def test_a_recorded_answer_is_a_separate_copy():
    tool_row = row(result={"rows": [1]})
    read_answer(tool_row)["rows"].append(2)
    assert read_answer(tool_row) == {"rows": [1]}


def test_a_recorded_model_answer_has_its_usage():
    model_row = row("llm", "hello", tokens_in=3, tokens_out=4, cost_usd=Decimal("0.1"))
    assert read_answer(model_row) == LLMResponse("hello", "recorded", Usage(3, 4, Decimal("0.1")))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyError("key"),
        KeyError(),
        OSError(2, "no such file"),
        TimeoutError("late"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        StopIteration("over"),
        SlowError("very late"),
        json.JSONDecodeError("no", "{", 0),
        asyncio.QueueFull(),
        ExecutionError(PROBLEM, PROBLEM),
        ExecutionError("of one's own words: yes"),
        LLMError(PROBLEM),
        OddError(3),
        SealedError("no"),
    ],
    ids=repr,
)
def test_a_restored_error_has_its_name_and_message(error):
    restored = again(error)
    assert (type(restored).__name__, str(restored), format_error(restored)) == (
        type(error).__name__,
        str(error),
        format_error(error),
    )


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (KeyError("key"), LookupError),
        (SlowError("late"), TimeoutError),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), ValueError),
        (AgentRuntimeError(PROBLEM), AgentRuntimeError),
        (LLMError(PROBLEM), ExecutionError),
        (OddError(3), OddError),
    ],
    ids=repr,
)
def test_a_restored_error_has_its_class(error, base):
    assert isinstance(again(error), base)


@pytest.mark.parametrize("key", ["key", "it's", ""])
def test_a_restored_key_error_has_its_key(key):
    error = again(KeyError(key))
    assert (type(error), error.args, repr(error)) == (KeyError, (key,), repr(KeyError(key)))


def test_an_ambiguous_class_name_is_not_guessed():
    error = again(Twin.SameError("which?"))
    assert not isinstance(error, Twin.SameError | OtherTwin.SameError)
    assert type(error).__name__ == "SameError"
    known = rebuild_error(row(error="SameError: this one"), OtherTwin.SameError("this one"))
    assert isinstance(known, OtherTwin.SameError)


def test_restoring_does_not_run_the_constructor():
    error = rebuild_error(row(error="PickyError: no"))
    assert (isinstance(error, PickyError), str(error)) == (True, "no")


def test_an_error_of_another_class_does_not_affect_this_one():
    assert not isinstance(rebuild_error(row(error="ValueError: no"), SlowError("no")), TimeoutError)


def test_a_refusal_by_a_server_may_be_retried():
    assert again(LLMError(PROBLEM)).is_retryable


def test_an_error_contains_the_answer_that_caused_it():
    error = rebuild_error(row(error="ResultError: HTTP 404", result={"status": 404}))
    assert error.result == {"status": 404}
    assert not hasattr(rebuild_error(row(error="ResultError: HTTP 404")), "result")


def test_problems_are_restored_from_their_text():
    warning = Problem("R1", "x", "y", "z", "do", severity="warning")
    coded = Problem("R101", "one", "here", "why", "do it")
    both = f"{coded}\n{PROBLEM}"
    assert parse_problems(both) == (coded, PROBLEM)
    assert parse_problems(f"a text\n{coded}") == ()
    assert parse_problems(str(warning)) == ()
    assert parse_problems("warning " + str(coded)) == (Problem("R101", "one", "here", "why", "do it", "warning"),)


def test_a_class_of_the_same_name_in_another_package_does_not_matter():
    other = type("LLMError", (Exception,), {})  # as the package activegraph has one
    assert isinstance(again(LLMError("no")), LLMError)
    assert other is not LLMError
