"""Masking of secrets in text: which names and which values are secret, and how a text is masked.

This is the lowest layer, so that everything that makes text for people (`agentnb.text`, a Problem) masks it in one
place. A secret belongs to the process if it was registered (`hide`: keys of providers, variables of the environment),
and to a tree of runs if it was found in its fields. A text of a run is masked by the secrets of the process and its own
ones (`masking_for`), a text of unknown origin by those of all runs that exist.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache, partial, wraps
from inspect import iscoroutinefunction, isfunction
from itertools import count, pairwise
from threading import Lock
from typing import Any, Final, TypeVar
from urllib.parse import quote, quote_plus, unquote, unquote_plus
from weakref import WeakSet


class Masked(str):
    """A placeholder for a masked secret; a reopened run requests the value before it continues."""

    __slots__ = ()


MASK: Final = Masked("********")
SHORTEST: Final = 4  # a shorter text would be found everywhere

# -- names -----------------------------------------------------------------------------------------------------------

_SPLIT: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])")
# Whole words of a name: `api_key`, `x-auth-token`, `apiKey`; `keyboard`, `compass` and `author` are not secret.
_WORDS: Final = frozenset(
    [
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "pwd",
        "pswd",
        "pw",
        "secret",
        "credential",
        "cred",
        "authorization",
        "apikey",
        "jwt",
        "cookie",
        "csrf",
        "xsrf",
        "bearer",
        "dsn",
        "otp",
        "totp",
    ]
)
_ENDINGS: Final = ("password", "passwd", "passphrase", "secret", "apikey", "authtoken", "accesstoken", "refreshtoken")
_KEYS: Final = frozenset(
    [
        "access",
        "account",
        "api",
        "auth",
        "client",
        "encryption",
        "host",
        "master",
        "private",
        "secret",
        "service",
        "session",
        "shared",
        "signing",
        "ssh",
        "storage",
        "subscription",
    ]
)
_PAIRS: Final = frozenset(
    [
        ("connection", "string"),
        ("connection", "str"),
        ("conn", "string"),
        ("conn", "str"),
        ("pass", "phrase"),
        ("pass", "word"),
        ("pass", "code"),
    ]
)
_JOINED: Final = frozenset({"connectionstring", "connstr", "privatekey", "secretkey", "accesskey"})
# Words beside `token` and `tokens` that make them an amount of text: `tokens_in`, `max_tokens`, `token_count`.
_AMOUNTS: Final = frozenset(
    [
        "in",
        "out",
        "input",
        "output",
        "prompt",
        "completion",
        "cached",
        "cache",
        "reasoning",
        "thinking",
        "max",
        "min",
        "maximum",
        "minimum",
        "total",
        "sum",
        "mean",
        "avg",
        "average",
        "count",
        "counts",
        "counter",
        "number",
        "num",
        "n",
        "used",
        "usage",
        "use",
        "limit",
        "limits",
        "budget",
        "left",
        "remaining",
        "per",
        "estimate",
        "estimated",
        "cost",
        "costs",
        "price",
        "prices",
        "length",
        "len",
        "size",
        "rate",
        "generated",
        "new",
        "sent",
        "received",
        "type",
        "types",
    ]
)
# Names that are also those of counts, switches and settings: a number under one of them is not a secret.
_WEAK: Final = frozenset({"tokens", "pass", "auth", "cookies"})


def is_secret(key: Any, value: object = None) -> bool:
    """Return True if a key is the name of a secret; a number under `tokens`, `pass` or `auth` is not secret.

    A tuple, such as the label of a column with several levels, is one if a part of it is.

    Example:
        >>> is_secret("api_key"), is_secret("OpenAI-Api-Key"), is_secret("tokens_in"), is_secret("tokens", 120)
        (True, True, False, False)
    """
    kind = type(key)
    if kind is not str:
        if issubclass(kind, Enum) and (not issubclass(kind, str) or is_secret(key._name_)):
            key, kind = key._name_, str
        if issubclass(kind, tuple):
            return any(issubclass(type(part), str) and is_secret(part, value) for part in tuple.__iter__(key))
        if not issubclass(kind, str | bytes):
            return False
        key = str.__str__(key) if issubclass(kind, str) else bytes.decode(key, "latin-1")
    strength = _rate_name(key if len(key) <= 200 else key[:200])
    return strength == 2 or (strength == 1 and not issubclass(type(value), int | float))


@lru_cache(maxsize=4096)
def _rate_name(key: str) -> int:
    """Return 2 for the name of a secret, 1 for one that may also name a number, 0 for any other."""
    words = [word.lower() for word in _SPLIT.split(key) if word]
    plain = [word if word in _KEYS or word in _WEAK else word.removesuffix("s") for word in words]
    if any(word in _WORDS or word in _JOINED or word.endswith(_ENDINGS) for word in plain):
        return 2
    if any((left in _KEYS and right == "key") or (left, right) in _PAIRS for left, right in pairwise(plain)):
        return 2
    if not _AMOUNTS.isdisjoint(words):
        return 0
    if "token" in words:
        return 2
    if "tokens" in words or "cookies" in words or (words and words[-1] in ("pass", "auth")):
        return 1
    return int(any(left == "auth" and right in ("header", "data", "info") for left, right in pairwise(plain)))


# -- values ----------------------------------------------------------------------------------------------------------


Form = tuple[str, re.Pattern[str] | None]  # a text, and its pattern if it counts only as a whole word


@dataclass(slots=True)
class Secrets:
    """Secrets, and every form in which a text may contain one: as it is, or escaped."""

    values: set[str | bytes] = field(default_factory=set)
    forms: set[str] = field(default_factory=set)
    ordered: list[Form] = field(default_factory=list)  # the longest form first; built on demand


class RunSecrets(Secrets):
    """The secrets that were found in the fields of one tree of runs. Numbers and truth values are none."""

    def __init__(self) -> None:
        super().__init__()
        self.number = next(_NUMBERS)
        self.scope = _Scope(self)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other

    def __copy__(self) -> RunSecrets:
        """Return this object: the secrets of a replay are those of its run."""
        return self


class _Scope:
    """The secrets by which texts are masked: those of the process, and of some trees of runs."""

    def __init__(self, *owners: RunSecrets) -> None:
        self.owners = owners
        self._sources: tuple[Secrets, ...] = (SECRETS, *owners)
        self._known: tuple[list[tuple[list[Form], int]], list[Form]] = [], []  # set at once: threads mask, too

    def list_sources(self) -> tuple[Secrets, ...]:
        """Return whose secrets these are."""
        return self._sources

    def list_forms(self) -> list[Form]:
        """Return the forms of the secrets, the longest first."""
        sources, (parts, forms) = self.list_sources(), self._known
        if len(parts) != len(sources) or any(
            source.ordered is not ordered or len(ordered) != size or len(source.forms) != size
            for source, (ordered, size) in zip(sources, parts, strict=True)
        ):
            parts = [(own, len(own)) for own in map(_list_own_forms, sources)]
            patterns = dict(form for own, _ in parts for form in own)
            forms = sorted(patterns.items(), key=lambda form: len(form[0]), reverse=True)
            self._known = parts, forms
        return forms

    def get_version(self) -> tuple[object, ...]:
        """Return a value that differs for other secrets."""
        return len(SECRETS.values), *((owner.number, len(owner.values)) for owner in self.owners if owner.values)


class _Everywhere(_Scope):
    """The secrets by which a text of unknown origin is masked: those of all runs that still exist."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: WeakSet[RunSecrets] = WeakSet()
        self._lock = Lock()
        self._growth, self._seen = 0, (-1, -1)

    def add(self, owner: RunSecrets) -> None:
        """Notice that a run has another secret."""
        with self._lock:
            self._runs.add(owner)
            self._growth += 1

    def list_sources(self) -> tuple[Secrets, ...]:
        """Return whose secrets these are."""
        now = self._growth, len(self._runs)
        if now != self._seen:
            with self._lock:
                self._sources, self._seen = (SECRETS, *self._runs), now
        return self._sources

    def get_version(self) -> tuple[object, ...]:
        """Return a value that differs for other secrets."""
        return len(SECRETS.values), self._growth


SECRETS: Final = Secrets()  # those of the process
_NUMBERS: Final = count()
_EVERYWHERE: Final = _Everywhere()
_PROCESS: Final = _Scope()
_CURRENT: Final[ContextVar[_Scope]] = ContextVar("agentnb_secrets", default=_EVERYWHERE)


class Masking:
    """A context in which texts are masked by some secrets. It can be entered again, but not twice at a time."""

    __slots__ = ("_token", "scope")

    def __init__(self, scope: _Scope) -> None:
        self.scope = scope
        self._token: Token[_Scope] | None = None

    def __enter__(self) -> None:
        if _CURRENT.get(None) is None:  # so that a reset never removes the variable, which raises if it is not there
            _CURRENT.set(_EVERYWHERE)
        self._token = _CURRENT.set(self.scope)

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        with suppress(ValueError):  # a coroutine that is closed by the garbage collector ends in another context
            _CURRENT.reset(self._token)


def masking_for(*owners: RunSecrets) -> Masking:
    """Return a context in which texts are masked by the secrets of some trees of runs, and of the process.

    Without any, by those of the process alone: for what belongs to no run, such as a recipe.
    """
    return Masking(owners[0].scope if len(owners) == 1 else _Scope(*owners) if owners else _PROCESS)


def remember_masking() -> Callable[[], Masking]:
    """Return a function that returns the context of now again: for a text that is made later."""
    return partial(Masking, _CURRENT.get())


Class = TypeVar("Class", bound=type)
_SHOWN: Final = ("__repr__", "__str__", "_repr_html_", "_repr_mimebundle_", "_ipython_display_")


def masks_by(find: Callable[[Any], RunSecrets | Masking], private: Iterable[str] = ()) -> Callable[[Class], Class]:
    """Return a class decorator: what the objects return, show or write is masked by the secrets of their runs.

    Args:
        find: returns the secrets of an object's run, or its context if it has several.
        private: names of methods, besides the public ones and the reprs, that others call.
    """
    names = frozenset((*_SHOWN, *private))

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def masked(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = _CURRENT.get()
            try:  # not `with`: an interrupt at its beginning would leave the scope
                _CURRENT.set(find(self).scope)
                return function(self, *args, **kwargs)
            finally:
                _CURRENT.set(before)

        @wraps(function)
        async def masked_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            with Masking(find(self).scope):
                return await function(self, *args, **kwargs)

        return masked_async if iscoroutinefunction(function) else masked

    def decorate(cls: Class) -> Class:
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name not in names:
                continue
            if isfunction(member):
                setattr(cls, name, wrap(member))
            elif type(member) is property and member.fget is not None:
                setattr(cls, name, property(wrap(member.fget), member.fset, member.fdel, member.__doc__))
            elif type(member) is cached_property:
                setattr(cls, name, cached := cached_property(wrap(member.func)))
                cached.__set_name__(cls, name)
        return cls

    return decorate


_NO_SECRETS: Final = frozenset(  # values of settings beside a secret, not secrets
    [
        "none",
        "null",
        "true",
        "false",
        "bearer",
        "basic",
        "digest",
        "token",
        "secret",
        "password",
        "auth",
        "required",
        "optional",
        "default",
        "unknown",
        "missing",
        "empty",
        "string",
        "integer",
        "number",
        "boolean",
        "object",
        "array",
        "header",
        "query",
        "cookie",
        "oauth",
        "oauth2",
        "apikey",
        "masked",
    ]
)


def hide(*secrets: str | bytes | None, owner: Secrets | None = None) -> None:
    """Mask these secrets in texts from now on, also in escaped forms; ignore those of fewer than 4 characters.

    For `Bearer abc`, a cookie or a connection string, its credentials are masked, too.

    Args:
        owner: whose secrets they are; default: those of the process, which are masked everywhere.
    """
    known = SECRETS if owner is None else owner
    for secret in secrets:
        if isinstance(secret, str):
            hide(*_iter_credentials(secret), owner=owner)
        if not isinstance(secret, str | bytes) or len(secret) < SHORTEST or secret in known.values:
            continue
        exact = bytes(secret) if isinstance(secret, bytes) else str.__str__(secret)
        if exact == MASK or (isinstance(exact, str) and exact.lower() in _NO_SECRETS):
            continue
        known.forms.update(form for form in _iter_forms(exact) if len(form) >= SHORTEST)
        known.ordered.clear()
        known.values.add(exact)
        if isinstance(known, RunSecrets):
            _EVERYWHERE.add(known)


def get_owner() -> RunSecrets | None:
    """Return the secrets of the run for which texts are masked now; None if there is none, or several."""
    owners = _CURRENT.get().owners
    return owners[0] if len(owners) == 1 else None


def _iter_credentials(secret: str) -> Iterator[str]:
    """Yield the secret parts of a header's value, a cookie, a connection string, a URL or a JSON text."""
    scheme, _, rest = secret.partition(" ")
    if scheme.lower() in ("bearer", "basic", "token", "apikey", "digest") and rest:
        yield rest.strip()
        if scheme.lower() == "basic":
            with suppress(ValueError):
                yield base64.b64decode(rest, validate=True).decode().partition(":")[2]
    for pair in {*secret.split(";"), *secret.split()} if "=" in secret else ():
        name, equals, value = pair.strip().partition("=")
        is_assignment = equals and name.replace(" ", "").isidentifier() and value != secret
        if is_assignment and (is_secret(name) or (len(value) >= 8 and any(map(str.isdigit, value)))):
            yield value
    yield from iter_secrets(secret)


def _iter_forms(secret: str | bytes) -> Iterator[str]:
    """Yield the texts in which a secret may occur: as it is, and as common writers escape it."""
    raw = secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogatepass")
    for write_bytes in BYTES_FORMS.values():
        yield from write_bytes(raw)
    try:
        text = raw.decode() if isinstance(secret, bytes) else secret
    except UnicodeDecodeError:
        return
    if len(text) < SHORTEST:
        return
    forms = {text, *_iter_lines(text)}
    for stage in TEXT_FORMS:
        forms |= {write(each) for each in forms for write in stage.values()}
    yield from forms
    for each in (text, *_iter_lines(text)):
        for write_text in WHOLE_FORMS.values():
            yield from write_text(each)


_NOT_IN_YAML: Final = re.compile(r'[^ -~]|["\\]')
_YAML_NAMES: Final = dict(zip('"\\\0\a\b\t\n\v\f\r\x1b\x85\xa0\u2028\u2029', '"\\0abtnvfreN_LP', strict=True))


def _escape_for_yaml(match: re.Match[str]) -> str:
    number = ord(match[0])
    width = "x02" if number < 0x100 else "u04" if number < 0x10000 else "U08"
    return "\\" + _YAML_NAMES.get(match[0], f"{width[0]}{number:{width[1:]}X}")


def _escape_html_by_number(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&#39;")


def _iter_lines(text: str) -> Iterator[str]:
    """Yield the lines of a multi-line key: each one is a part of the secret."""
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= 8 and not line.startswith("-----"))


def _iter_base64_forms(raw: bytes) -> Iterator[str]:
    """Yield the base64 parts that do not depend on the text before and after (`Basic <base64 of user:password>`)."""
    if len(raw) < 8:
        return
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + raw).decode()
        first = (0, 2, 3)[offset]
        end = (offset + len(raw)) * 8 // 6
        yield text[first:end]
        yield text[first:end].replace("+", "-").replace("/", "_")


# How common writers escape a text. Each stage is applied to all results of the previous ones.
_WRITERS: Final[dict[str, Callable[[str], str]]] = {
    "repr": lambda text: repr(text)[1:-1],
    "ascii": lambda text: ascii(text)[1:-1],
    "json": lambda text: json.dumps(text)[1:-1],
    "json in unicode": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
}
_QUOTES: Final[dict[str, Callable[[str], str]]] = {  # which are escaped depends on the surrounding text
    "quotes escaped": lambda text: text.replace("'", "\\'"),
    "quotes not escaped": lambda text: text.replace("\\'", "'"),
}
TEXT_FORMS: Final[tuple[dict[str, Callable[[str], str]], ...]] = (
    _WRITERS,
    _QUOTES,
    {f"{name}, again": write for name, write in _WRITERS.items()},
    {"quotes escaped, again": _QUOTES["quotes escaped"]},
    {
        "html": html.escape,
        "html without quotes": lambda text: html.escape(text, quote=False),
        "html by number": _escape_html_by_number,
        "html of templates": lambda text: _escape_html_by_number(text).replace("&quot;", "&#34;"),
    },
)


def _iter_written_forms(text: str) -> Iterator[str]:
    """Yield a text, and how an error or a log writes it."""
    yield text
    yield from (write(text) for write in _WRITERS.values())


# Forms that are not escaped again, or only once.
WHOLE_FORMS: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "url path": lambda text: [quote(text.encode("utf-8", "surrogatepass"))],
    "url": lambda text: [quote(text.encode("utf-8", "surrogatepass"), safe="")],
    "url query": lambda text: [quote_plus(text.encode("utf-8", "surrogatepass"))],
    "sql": lambda text: _iter_written_forms(text.replace("'", "''")),  # YAML too
    "csv": lambda text: _iter_written_forms(text.replace('"', '""')),
    "shell": lambda text: _iter_written_forms(text.replace("'", "'\"'\"'")),
    "shell with backslashes": lambda text: _iter_written_forms(text.replace("'", "'\\''")),
    "yaml": lambda text: _iter_written_forms(_NOT_IN_YAML.sub(_escape_for_yaml, text)),
    "one line": lambda text: [" ".join(text.split())],
}
BYTES_FORMS: Final[dict[str, Callable[[bytes], Iterable[str]]]] = {
    "bytes": lambda raw: [repr(raw)[2:-1]],
    "hex": lambda raw: [raw.hex()],
    "base64": _iter_base64_forms,
}


def _list_own_forms(source: Secrets) -> list[Form]:
    if len(source.ordered) != len(source.forms):  # another thread may have added some since
        source.ordered = [(form, _compile_word(form)) for form in sorted(source.forms, key=len, reverse=True)]
    return source.ordered


def _list_patterns() -> list[Form]:
    """Return the forms of the secrets by which texts are masked now."""
    return _CURRENT.get().list_forms()


def _compile_word(form: str) -> re.Pattern[str] | None:
    """Return the pattern of a form that may be part of another word or number, and only counts as a whole one."""
    if form.replace(".", "").replace(",", "").isdigit():
        return re.compile(rf"(?<!\d){re.escape(form)}(?!\d)")
    if form.isalpha() and len(form) < 12:
        return re.compile(rf"(?<![^\W\d_]){re.escape(form)}(?![^\W\d_])")
    return None


def get_version() -> tuple[object, ...]:
    """Return a value that differs if texts are masked by other secrets now: texts masked before are outdated then."""
    return _CURRENT.get().get_version()


def has_known_secrets() -> bool:
    """Return True if texts are masked by value now: there are known secrets."""
    for source in _CURRENT.get().list_sources():  # noqa: SIM110  (a generator costs three times as much)
        if source.forms:
            return True
    return False


def get_longest_form() -> int:
    """Return the length of the longest form of a secret: a secret cut at an end may start this far before it."""
    patterns = _list_patterns()
    return len(patterns[0][0]) if patterns else 0


def count_settled(text: str) -> int:
    """Return how many characters of a growing text can be shown, because no continuation makes them part of a secret.

    Example:
        >>> hide("s3cr3t-4711"); count_settled("the key is s3cr3")
        11
    """
    end, forms = len(text), [form for form, _ in _list_patterns()]
    for form in forms:
        begins = (size for size in range(min(len(form) - 1, len(text)), 0, -1) if text.endswith(form[:size]))
        end = min(end, len(text) - next(begins, 0))
    while True:  # the end must not cut a secret in two
        around = ((max(end - len(form) + 1, 0), end + len(form) - 1, form) for form in forms)
        cut = [at for first, last, form in around if (at := text.find(form, first, last)) >= 0]
        if not cut:
            return end
        end = min(cut)


# -- texts -----------------------------------------------------------------------------------------------------------

_URL: Final = re.compile(r"(://[^\s/?#:@\"'<>\\]*:)([^\s/?#\"'<>\\]+)(?=@)")
_WHOLE_URL: Final = re.compile(r"[A-Za-z][\w+.\-]*://\S+")
# A parameter of a URL or a form, or a part of a connection string.
_QUERY: Final = re.compile(r"((?:^|[?&;#])[^\S\n]*([\w.\-]{2,80})=)([^\s&#;\"'<>\\]+)", re.MULTILINE)
_SEPARATORS: Final = re.compile(r"[?&;#]")
_PRIVATE_KEY: Final = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(.*?)(?=-----END|\Z)", re.DOTALL)
_BEARER: Final = re.compile(r"\b([Bb]earer\s+)(?=[\w.~+/=\-]{0,200}\d)[\w.~+/=\-]{8,}")
# A quoted name (with escaped quotes for JSON in JSON) and a colon; the value follows.
_NAMED: Final = re.compile(r"(\\{0,16}[\"'])([\w .\-]{2,80})\1\s*:\s*")
# An unquoted name, an equals sign and a quoted text: an argument, or a field in the repr of an object.
_ASSIGNED: Final = re.compile(r"\b([^\W\d]\w{1,79})=(?=b?(\\{0,16}[\"']))")
# A variable of the environment, as in a `.env` file or a shell command, or in an error that quotes one.
_VARIABLE: Final = re.compile(
    r"""(?<![\w$.\-])([A-Z][A-Z0-9_]{1,79})=(?!=)((?:[^\s"'`<>{}()\[\],;&|$*\\]|,(?!\s|\w+=|$)){4,}+)(?![(\[])"""
)
_PLAIN: Final = re.compile(r"[^\s,}\])]+")
_MARKS: Final = re.compile(r"\\{0,16}[\"']|[\[\](){}]")
_NOTHING: Final = frozenset({"null", "None", "true", "false", "True", "False"})


def mask_text(text: str) -> str:
    """Return a text with its secrets masked; a text that is a secret as a whole becomes the mask itself.

    Masked are the known secrets in every common escaped form, the password of a URL, private keys, and the values under
    names of secrets in texts that look like JSON, the repr of a mapping or an object, a form, a connection string, or a
    variable of the environment (`API_KEY=...`).

    Example:
        >>> hide("s3cr3t-4711"); mask_text("Bearer s3cr3t-4711"), mask_text("https://ann:pw@host")
        ('Bearer ********', 'https://ann:********@host')
    """
    if type(text) is Masked or not needs_masking(text):
        return text
    if has_known_secrets():
        text = _mask_known(text)
    if "://" in text and "@" in text:
        text = _URL.sub(rf"\1{MASK}", text)
    if _has_parameters(text):
        text = _QUERY.sub(lambda found: found[1] + MASK if _is_secret_parameter(found[2]) else found[0], text)
    if "earer " in text:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(rf"\1{MASK}", text)
    if "=" in text:
        text = _VARIABLE.sub(lambda found: f"{found[1]}={MASK}" if _is_secret_variable(found) else found[0], text)
    return _mask_named(text)


def has_secret(text: str) -> bool:
    """Return True if `mask_text` would mask something in a text."""
    return mask_text(text) != text


def is_same_text(left: str, right: str) -> bool:
    """Return True if two texts are equal, apart from secrets that are masked in one of them."""
    if str.__eq__(left, right) or mask_text(left) == right or mask_text(right) == left:
        return True
    for masked, plain in ((left, right), (right, left)):
        if MASK in masked and re.fullmatch(".+".join(map(re.escape, masked.split(MASK))), plain, re.DOTALL):
            return True
    return False


def is_url(text: str) -> bool:
    """Return True if a text is a single URL."""
    return "://" in text[:40] and _WHOLE_URL.fullmatch(text) is not None


def needs_masking(text: str) -> bool:
    """Return False for a text in which `mask_text` would find nothing; fast, for thousands of values."""
    return (
        has_known_secrets()
        or "://" in text
        or "earer " in text
        or "PRIVATE KEY" in text
        or _looks_named(text)
        or _has_parameters(text)
        or ("=" in text and _VARIABLE.search(text) is not None)
    )


def _is_secret_variable(found: re.Match[str]) -> bool:
    return found[2] not in _NOTHING and is_secret(found[1], 0 if found[2].isdigit() else "")


def _has_parameters(text: str) -> bool:
    return "=" in text and _SEPARATORS.search(text) is not None


def _looks_named(text: str) -> bool:
    if ":" not in text and "=" not in text:  # nearly always
        return False
    if "=" in text and ("='" in text or '="' in text or "=\\" in text or "=b" in text):
        return True
    return ":" in text and ("':" in text or '":' in text or "' :" in text or '" :' in text)


def _mask_known(text: str) -> str:
    for form, word in _list_patterns():
        if form in text:
            if text == form:
                return MASK
            text = text.replace(form, MASK) if word is None else word.sub(MASK, text)
    return text


def mask_bytes(data: bytes) -> bytes:
    """Return bytes with their secrets masked, whether they are text or not."""
    for source in _CURRENT.get().list_sources():
        for secret in source.values:
            if isinstance(secret, bytes):
                data = data.replace(secret, MASK.encode())
    text = data.decode("utf-8", "surrogateescape")
    without = mask_text(text)
    return data if without is text else without.encode("utf-8", "surrogateescape")


def iter_secrets(text: str) -> Iterator[str]:
    """Yield the secrets recognized by the form of a text: passwords of URLs, private keys, values of secret names."""
    if "://" in text:
        for match in _URL.finditer(text):
            if match[2] != match[1][3:-1]:  # a password equal to the user's name is not a secret
                yield from {match[2], unquote(match[2])}
    if _has_parameters(text):
        for match in _QUERY.finditer(text):
            if _is_secret_parameter(match[2]):
                yield from {match[3], unquote_plus(match[3])}
    if "PRIVATE KEY" in text:
        for match in _PRIVATE_KEY.finditer(text):
            yield match[2]
    # A shorter one may be a word of other texts.
    variables = _VARIABLE.finditer(text) if "=" in text else ()
    yield from (match[2] for match in variables if _is_secret_variable(match) and len(match[2]) >= 8)
    if _looks_named(text):
        for begin, end, mark, quoted in _iter_named_values(text):
            value = text[begin:end]
            if quoted:
                yield value
                yield from _unescape(value, mark)


def _unescape(value: str, mark: str) -> Iterator[str]:
    """Yield the unescaped form of a text in JSON, or in JSON within JSON."""
    for _ in range(2 if len(mark) > 1 else 1):
        try:
            value = json.loads(f'"{value}"', strict=False)
        except ValueError:
            return
        yield value


def _is_secret_parameter(name: str) -> bool:
    """Return True for a parameter that is a secret: also the signature of a URL, with which anybody may use it."""
    return is_secret(name) or name.lower() == "sig" or name.lower().endswith("signature")


def _mask_named(text: str) -> str:
    """Mask the values under names of secrets in JSON or a repr, without parsing it: it may be part of a longer text."""
    pieces, end = list[str](), 0
    for begin, stop, mark, quoted in _iter_named_values(text):
        pieces += (text[end:begin], MASK if quoted else f"{mark}{MASK}{mark}")
        end = stop
    return "".join([*pieces, text[end:]]) if pieces else text


def _iter_named_values(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield the start and end of each value under a secret's name, the quotes of the name, and whether it is quoted."""
    end = 0
    named = [(match.start(), match.end(), match[2], match[1]) for match in _NAMED.finditer(text)]
    if "=" in text:
        named += [(match.start(), match.end(), match[1], match[2]) for match in _ASSIGNED.finditer(text)]
        named.sort()
    for first, last, name, mark in named:
        if first < end or not is_secret(name):
            continue
        begin, stop, quoted = _find_value_span(text, last, mark)
        value = text[begin:stop]
        if value and value not in _NOTHING and is_secret(name, 0 if value.isdigit() and not quoted else ""):
            yield begin, stop, mark, quoted
            end = stop


def _find_value_span(text: str, begin: int, quote_mark: str) -> tuple[int, int, bool]:
    """Return the start and end of a value, and whether it is quoted; an unclosed one extends to the end."""
    slashes = len(quote_mark) - 1
    head = text[begin : begin + slashes + 2]
    if head[:1] in ("[", "{", "("):
        return begin, _find_closing_bracket(text, begin), False
    mark = head[: slashes + 1]
    if head[:1] == "b":  # bytes
        begin, mark = begin + 1, head[1 : slashes + 2]
    if mark[-1:] in ("'", '"') and mark[:-1] == "\\" * slashes:
        return begin + len(mark), _find_closing_quote(text, begin + len(mark), mark), True
    plain = _PLAIN.match(text, begin)
    return begin, plain.end() if plain else begin, False


def _find_closing_quote(text: str, begin: int, mark: str) -> int:
    """Return the index of a text's closing quote: the quote mark without additional backslashes."""
    at, slashes = begin, len(mark) - 1
    while (at := text.find(mark[-1], at)) >= 0:
        index = at
        while index > begin and text[index - 1] == "\\":
            index -= 1
        count = at - index
        if (count % 2 == 0) if not slashes else count == slashes:
            return at - slashes
        at += 1
    return len(text)


def _find_closing_bracket(text: str, begin: int) -> int:
    """Return the end of a list or mapping that starts at a bracket."""
    depth, at, inside = 0, begin, ""
    for match in _MARKS.finditer(text, begin):
        mark, at = match[0], match.end()
        if inside:
            inside = "" if mark == inside else inside
        elif mark[-1] in "\"'":
            inside = mark
        else:
            depth += 1 if mark in "[{(" else -1
            if not depth:
                return at
    return len(text)
