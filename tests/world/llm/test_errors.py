from __future__ import annotations

import json

import pytest

from agentnb.errors import AgentRuntimeError
from agentnb.secrets import hide
from agentnb.world.llm.base import LLMError
from agentnb.world.llm.errors import UnreadableResponse, find_server_message, retry_after, to_failure


class Response:
    def __init__(self, headers=None, text=""):
        self.headers, self.text = headers or {}, text


class StatusError(Exception):
    def __init__(self, status, body=None, response=None):
        super().__init__(f"Error code: {status}")
        self.status_code, self.body, self.response = status, body, response or Response()


class ReadTimeout(Exception):
    """As HTTP libraries call it; it is no TimeoutError."""


@pytest.mark.parametrize(("error", "told"), [(TimeoutError(), "within 1.5 s"), (ReadTimeout("x"), "in time")])
def test_a_timeout_is_recognized_by_any_class_name(error, told):
    failure = to_failure(error, "p:m", "n", seconds=1.5)
    assert type(failure) is TimeoutError
    assert str(failure) == f"p:m did not answer {told}"


@pytest.mark.parametrize(
    ("error", "kind", "code", "again"),
    [
        (StatusError(408), LLMError, "X336", True),
        (StatusError(504), LLMError, "X336", True),
        (StatusError(422), LLMError, "X336", False),
        (StatusError(200), LLMError, "X338", True),
        (UnreadableResponse("no"), LLMError, "X338", True),
        (json.JSONDecodeError("bad", "x", 0), LLMError, "X338", True),
        (OSError("refused"), LLMError, "X337", True),
        (TypeError("unexpected keyword argument 'x'"), AgentRuntimeError, "X334", None),
    ],
)
def test_errors_have_a_code_and_whether_a_retry_may_help(error, kind, code, again):
    failure = to_failure(error, "p:m", "n")
    assert (type(failure), failure.problems[0].code, getattr(failure, "is_retryable", None)) == (kind, code, again)
    assert "p:m" in failure.problems[0].what


def test_an_authentication_error_names_the_key_to_check():
    problem = to_failure(StatusError(403), "p:m", "n", ("P_KEY", "Q_KEY")).problems[0]
    assert "P_KEY or Q_KEY" in problem.do


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StatusError(400, {"error": {"message": "inner"}, "message": "outer"}), "inner"),
        (StatusError(400, {"message": "outer"}), "outer"),
        (StatusError(400, {"error": "flat"}), "flat"),
        (StatusError(400, [{"error": {"message": "in a list"}}]), "in a list"),
        (StatusError(500, None, Response(text="plain\n  words")), "plain words"),
        (StatusError(400, 5), "Error code: 400"),
        (OSError(), "OSError"),
    ],
)
def test_the_message_of_the_server_is_found_anywhere(error, text):
    assert find_server_message(error) == text


def test_the_message_of_the_server_is_masked_before_it_is_truncated():
    hide("s3cr3t-4711")
    server_message = find_server_message(StatusError(400, {"message": "x" * 495 + " s3cr3t-4711" + "y" * 500}))
    assert len(server_message) == 500
    assert "s3cr" not in server_message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_the_retry_delay_is_read_from_the_headers(headers, seconds):
    assert retry_after(StatusError(429, None, Response(headers))) == seconds


@pytest.mark.parametrize("details", [None, "x", ["x"], [{"retryDelay": "soon"}]])
def test_details_without_a_delay_are_ignored(details):
    assert retry_after(StatusError(429, {"error": {"details": details}})) is None
