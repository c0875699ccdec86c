"""Translation of SDK errors: failures between a client and its server, independent of the SDK.

X334: a setting is invalid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agentnb.errors import AgentRuntimeError, Problem
from agentnb.text import safe_str
from agentnb.world.llm.base import LLMError

LONGEST: Final = 500  # characters of a server's message
_RETRYABLE: Final = {408, 409, 425, 429}
_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)s")
_DO: Final = {
    400: "fix the request: its messages, its settings, its schema",
    404: "check the model's name and the base_url",
    429: "wait and try again: add a retry with a backoff to the node, or run fewer at a time",
}


class UnreadableResponse(ValueError):
    """A response does not follow the protocol."""


def to_failure(
    error: Exception, name: str, node: str, variables: Sequence[str] = (), seconds: float | None = None
) -> Exception:
    """Return the error to raise for an SDK's exception.

    A TimeoutError if the answer did not arrive in time; else an LLMError with the server's message, masked and
    truncated.

    Args:
        name: the model, as provider:model.
        node: the node that asked.
        variables: the environment variables that may hold the key.
        seconds: the time limit of the request.
    """
    where = f"node {node!r}" if node else name
    status = get_status(error)
    if status is not None and status >= 400:
        return _to_error(error, status, name, where, variables)
    if isinstance(error, UnreadableResponse | ValueError) or (status is not None and not _is_stream_error(error)):
        return LLMError(
            Problem("X338", f"{name} sent a response that cannot be parsed: {find_server_message(error)}", where,
                    "it does not follow the protocol", "try again; check that base_url points to such a server"),
            status=status, is_retryable=True,
        )  # fmt: skip
    if isinstance(error, TimeoutError) or any("Timeout" in cls.__name__ for cls in type(error).__mro__):
        is_own_limit = isinstance(error, TimeoutError) and seconds  # the package has its own, different limit
        return TimeoutError(f"{name} did not answer {f'within {seconds:g} s' if is_own_limit else 'in time'}")
    if isinstance(error, TypeError) and "argument" in str(error):
        return make_settings_error(name, error)
    if _is_stream_error(error):
        return LLMError(
            Problem(
                "X336",
                f"{name} ended the stream with an error: {find_server_message(error)}",
                where,
                _find_error_kind(error),
                "try again: add a retry with a backoff to the node",
            ),
            status=status,
            is_retryable=True,
        )
    return LLMError(
        Problem("X337", f"the connection to {name} failed: {find_server_message(error)}", where,
                "the server was not reached, or the connection was lost before the answer was complete",
                "check that the server is running, and the base_url, then try again"),
        is_retryable=True,
    )  # fmt: skip


def make_settings_error(name: str, error: Exception) -> AgentRuntimeError:
    """Return the error to raise for settings that a vendor's package rejects before it sends anything."""
    return AgentRuntimeError(
        Problem("X334", f"{name} cannot be used: {find_server_message(error)}", f"settings of {name!r}",
                "its package does not accept this setting", "fix `kwargs` or `client_kwargs`")
    )  # fmt: skip


def _to_error(error: Exception, status: int, name: str, where: str, variables: Sequence[str]) -> LLMError:
    is_retryable, wait = status in _RETRYABLE or status >= 500, retry_after(error)
    later = "a retry may succeed" if is_retryable else "the same request would be rejected again"
    why = f"{_find_error_kind(error)}; {later}{'' if wait is None else f', after {wait:g} s (retry-after)'}"
    if status in {401, 403}:
        do = f"check the key ({' or '.join(variables) or 'api_key'}) and its permissions"
    elif refuses_format(error):
        do = (
            "use a model that supports it, or do without: `json_object: false` in its provider's settings, or no schema"
        )
    else:
        do = _DO.get(status, "try again later" if is_retryable else "fix the request")
    problem = Problem("X336", f"{name} answered {status}: {find_server_message(error)}", where, why, do)
    return LLMError(problem, status=status, is_retryable=is_retryable, retry_after=wait)


def refuses_format(error: BaseException) -> bool:
    """Return True if a server rejected a request because of its response format."""
    return get_status(error) in {400, 422} and "response_format" in find_server_message(error)


def get_status(error: BaseException) -> int | None:
    """Return the HTTP status of an SDK's error, if it has one."""
    for word in ("status_code", "code"):
        status = getattr(error, word, None)
        if isinstance(status, int) and not isinstance(status, bool):
            return status
    return None


def find_server_message(error: BaseException) -> str:
    """Return the server's message of an error, else the error's own; masked, on one line, truncated."""
    message = next(_iter_messages(error), "") or str(error)
    cause = error.__cause__
    if cause is not None and get_status(error) is None and message.rstrip(".").lower() == "connection error":
        message = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    text = " ".join(safe_str(message or type(error).__name__).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _iter_messages(error: BaseException) -> Iterator[str]:
    body = _make_body(error)
    for part in (body.get("error"), body):
        if isinstance(part, Mapping) and isinstance(part.get("message"), str):
            yield part["message"]
        elif isinstance(part, str):
            yield part
    try:
        text = "" if body else str(getattr(getattr(error, "response", None), "text", ""))
    except Exception:  # noqa: BLE001  (the body was not read, or cannot be)
        text = ""
    if text and get_status(error) not in {None, 200}:
        yield text
    message = getattr(error, "message", None)
    if isinstance(message, str):
        yield message


def _make_body(error: BaseException) -> Mapping[str, Any]:
    """Return the JSON object in an error; of a list with one object, that object."""
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    return body if isinstance(body, Mapping) else {}


def _find_error_kind(error: BaseException) -> str:
    """Return the server's identifier of the error, such as `rate_limit_error`."""
    body = _make_body(error)
    inner = body.get("error") if isinstance(body.get("error"), Mapping) else body
    kinds = [inner.get(word) for word in ("code", "type", "status")] if isinstance(inner, Mapping) else []
    return safe_str(next((word for word in kinds if isinstance(word, str) and word), "the server gives no details"))


def _is_stream_error(error: BaseException) -> bool:
    """Return True if a server reported an error after it had started to answer."""
    return bool(_make_body(error)) and (get_status(error) or 200) < 400


def retry_after(error: BaseException) -> float | None:
    """Return how many seconds a server asks to wait: from its header, or from Google's RetryInfo."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(str(headers.get(name))) / unit
        except (TypeError, ValueError):  # not there, or a date
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    inner = _make_body(error).get("error")
    for row in inner.get("details") or () if isinstance(inner, Mapping) else ():
        match = _SECONDS.fullmatch(str(row.get("retryDelay", ""))) if isinstance(row, Mapping) else None
        if match:
            return float(match[1])
    return None
