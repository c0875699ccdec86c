"""HTTP requests as tools (`kind: http`), through the standard library.

urllib is used instead of an HTTP library so that a recipe with an http tool runs in every installation; a request needs
nothing that urllib lacks. The tool is a plain function: the engine runs it in a thread, with timeout and retries.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, NamedTuple
from urllib import request as web
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit, urlunsplit

from agentnb.board.masking import register_secrets
from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean, with_article
from agentnb.recipe.model import ToolSpec
from agentnb.secrets import hide
from agentnb.text import LONGEST_TEXT, safe_repr, safe_str
from agentnb.world.tools.invocation import Tool, find_items, name_tool

WORDS: Final = ("url", "method", "headers", "params", "json", "body", "timeout", "raise_for_status")
SECONDS: Final = 30.0  # default timeout of a request
MOST_BYTES: Final = 16 * 1024 * 1024  # of an answer
_MERGED: Final = ("headers", "params")
# The headers that may follow a redirect to another host: none that could contain a secret.
_HARMLESS: Final = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})


class _Request(NamedTuple):
    url: str
    method: str
    headers: dict[str, str]
    body: bytes | None
    seconds: float
    strict: bool


def tool(spec: ToolSpec, config: Mapping[str, Any]) -> Tool:
    """Return the tool that makes the request of a config; inputs override it, `headers` and `params` are merged.

    It returns status, json, text, items (the response list, or the first of items, results and data), result (json,
    else text) and error. A status of 400 or more is not an error, except with `raise_for_status: true`.

    Raises:
        RecipeError: R163, the config does not describe a request.
    """
    settings = dict(config)
    if "url" not in settings and spec.impl.lower().startswith(("http://", "https://")):
        settings["url"] = spec.impl
    register_secrets(settings)
    where = str(spec.place or f"tool {spec.id!r}")
    wrong = _find_faults({"url": "http://in.the.inputs", **settings})
    if wrong:
        raise RecipeError(*(Problem("R163", f"tool {spec.id!r}: {what}", where, why, do) for what, why, do in wrong))
    if spec.timeout is not None:
        settings.setdefault("timeout", spec.timeout)

    def call(**inputs: Any) -> dict[str, Any]:
        together = {**settings, **inputs}
        for word in _MERGED:
            if isinstance(settings.get(word), Mapping) and isinstance(inputs.get(word), Mapping):
                together[word] = {**settings[word], **inputs[word]}
        register_secrets(together)
        faults = _find_faults(together)
        if faults:
            raise ExecutionError(
                *(Problem("X353", f"tool {spec.id!r}: {what}", where, why, do) for what, why, do in faults)
            )
        return _send(_request(together))

    return name_tool(call, spec, takes=True)


# -- request ---------------------------------------------------------------------------------------------------------


def _find_faults(config: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the faults of a request, each as what, why and do."""
    faults = [
        (f"{str(word)[:60]!r} is not a part of a request", f"a request has: {', '.join(WORDS)}",
         did_you_mean(str(word)[:60], WORDS, "pass the fields that the server expects in `params` or `json`"))
        for word in config if word not in WORDS
    ]  # fmt: skip
    fault = _check_url(config.get("url"))
    if fault:
        faults.append((fault, "requests go to http:// and https:// alone", "write a whole address: https://host/path"))
    method = config.get("method", "GET")
    if not isinstance(method, str) or not method.isascii() or not method.isalpha():
        faults.append(
            (f"{str(method)[:60]!r} is not a method", "a method is a word such as GET or POST", "write one of these")
        )
    faults += [
        (f"`{word}` is {with_article(type(config[word]).__name__)}", "it contains names and values", "write a mapping")
        for word in _MERGED if not isinstance(config.get(word) or {}, Mapping)
    ]  # fmt: skip
    if not faults and any(_is_bad_header(name, value) for name, value in (config.get("headers") or {}).items()):
        faults.append(("a header cannot be sent", "names are plain words, values one line", "see `headers`"))
    if config.get("json") is not None and config.get("body") is not None:
        faults.append(("it has `json` and `body`", "a request has one body", "pass only one of them"))
    seconds = config.get("timeout")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
        faults.append((f"its timeout is {str(seconds)[:60]!r}", "it is a number of seconds above 0", "write a number"))
    return faults


def _check_url(url: Any) -> str | None:
    if url is None:
        return "it has no `url`"
    if not isinstance(url, str) or any(ord(sign) < 32 or ord(sign) == 127 for sign in url.strip()):
        return "its `url` cannot be one"
    try:
        parts = urlsplit(url.strip())
        fine = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and " " not in parts.netloc
        if fine and (parts.port or 1) > 0:  # accessing the port validates it
            str(parts.hostname).encode("idna")
    except ValueError:
        fine = False
    return None if fine else f"its `url` is not valid: {safe_repr(_strip_secrets(url), 200)}"


def _strip_secrets(url: str) -> str:
    """Return a URL in a form that may be shown: without the password and the query."""
    return url.partition("?")[0].rpartition("://")[2].rpartition("@")[2][:200]


def _is_bad_header(name: Any, value: Any) -> bool:
    try:
        text = str(value).encode("latin-1")
    except UnicodeError:
        return True
    return not (isinstance(name, str) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()) or (
        b"\n" in text or b"\r" in text or b"\0" in text
    )


def _request(config: Mapping[str, Any]) -> _Request:
    parts = urlsplit(config["url"].strip())
    headers = {str(name): str(value) for name, value in (config.get("headers") or {}).items()}
    known = {name.lower() for name in headers}
    if parts.username is not None and "authorization" not in known:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        hide(headers["Authorization"].partition(" ")[2])
    body, sort = _make_body(config)
    if sort and "content-type" not in known:
        headers["Content-Type"] = sort
    if "user-agent" not in known:
        headers["User-Agent"] = "agentnb"
    seconds = float(config.get("timeout") or SECONDS)
    method = str(config.get("method") or ("GET" if body is None else "POST")).upper()
    url = _make_address(parts, config.get("params") or {})
    return _Request(url, method, headers, body, seconds, strict=config.get("raise_for_status") is True)


def _make_address(parts: SplitResult, params: Mapping[str, Any]) -> str:
    host = str(parts.hostname).encode("idna").decode()
    host = f"[{host}]" if ":" in host else host
    pairs = [(name, value) for name, value in params.items() if value is not None]
    query = "&".join(filter(None, (quote(parts.query, safe="=&%/?:@!$'()*+,;~-._"), urlencode(pairs, doseq=True))))
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
    netloc = f"{host}:{parts.port}" if parts.port else host
    return urlunsplit((parts.scheme.lower(), netloc, path, query, ""))


def _make_body(config: Mapping[str, Any]) -> tuple[bytes | None, str]:
    if config.get("json") is not None:
        return json.dumps(config["json"], default=str).encode(), "application/json"
    match config.get("body"):
        case None:
            return None, ""
        case bytes(raw):
            return raw, "application/octet-stream"
        case Mapping() as fields:
            return urlencode(list(fields.items()), doseq=True).encode(), "application/x-www-form-urlencoded"
        case other:
            return str(other).encode(), "text/plain; charset=utf-8"


# -- response --------------------------------------------------------------------------------------------------------


class _Redirects(web.HTTPRedirectHandler):
    """Follows redirects without sending headers that could carry a secret to another host.

    Other responses are returned.
    """

    def redirect_request(self, req: web.Request, *args: Any) -> web.Request | None:
        to = super().redirect_request(req, *args)
        if to is not None and _get_origin(req.full_url) != _get_origin(to.full_url):
            to.headers = {name: value for name, value in to.headers.items() if name.lower() in _HARMLESS}
        return to

    def http_error_default(self, req: web.Request, answer: Any, *args: Any) -> Any:
        """Return a response of any status."""
        return answer


def _get_origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _make_opener() -> web.OpenerDirector:
    """Return an opener for http and https only: no file, no ftp, wherever a redirect leads."""
    opener = web.OpenerDirector()
    for part in (web.ProxyHandler(), web.UnknownHandler(), web.HTTPHandler(), web.HTTPSHandler(), _Redirects(),
                 web.HTTPErrorProcessor()):  # fmt: skip
        opener.add_handler(part)
    opener.addheaders = []
    return opener


def _send(request: _Request) -> dict[str, Any]:
    out = web.Request(request.url, data=request.body, headers=request.headers, method=request.method)  # noqa: S310  (checked)
    late = time.monotonic() + request.seconds
    try:
        with _make_opener().open(out, timeout=request.seconds) as answer:
            return _parse_response(answer, _read(answer, late), request)
    except HTTPError as error:  # a redirect that is not followed
        error.close()
        return _make_failure(f"HTTP {error.code}: {error.reason}", error.code)
    except TimeoutError:
        return _make_failure(f"{_strip_secrets(request.url)} took longer than {request.seconds:g} s")
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            return _make_failure(f"{_strip_secrets(request.url)} took longer than {request.seconds:g} s")
        return _make_failure(f"cannot reach {_strip_secrets(request.url)}: {error.reason}")
    except (OSError, HTTPException, ValueError) as error:
        return _make_failure(f"cannot reach {_strip_secrets(request.url)}: {type(error).__name__}: {error}")


def _read(answer: HTTPResponse, late: float) -> bytes:
    """Read a response in pieces, so that a slow response can time out and an endless one is cut off."""
    parts, size = [], 0
    while part := answer.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise ValueError(f"its answer is longer than {MOST_BYTES} bytes")
        if time.monotonic() > late:
            raise TimeoutError
    if answer.length:
        raise OSError("its answer broke off")
    return b"".join(parts)


def _parse_response(answer: HTTPResponse, raw: bytes, request: _Request) -> dict[str, Any]:
    try:
        text = raw.decode(answer.headers.get_content_charset() or "utf-8", "replace")
    except LookupError:  # an unknown charset
        text = raw.decode("utf-8", "replace")
    body = None
    if "json" in answer.headers.get_content_type() or text.lstrip()[:1] in ("{", "["):
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):  # a parser's own limit of depth
            body = None
    error = f"HTTP {answer.status}: {answer.reason}" if request.strict and answer.status >= 400 else None
    result = text if body is None else body
    return {"status": answer.status, "json": body, "text": text, "items": find_items(body), "result": result,
            "error": error}  # fmt: skip


def _make_failure(error: str, status: int | None = None) -> dict[str, Any]:
    return {
        "status": status,
        "json": None,
        "text": None,
        "items": None,
        "result": None,
        "error": safe_str(error, LONGEST_TEXT),
    }
