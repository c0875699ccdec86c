"""Masking of secrets in text: which names and which values are secret, and how a text is masked.

This is the lowest layer, so that everything that makes text for people (`agentnb.text`, a Problem) masks it in one
place. The secrets belong to the process, not to one run: a secret of one session must not leak through another one.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus


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


Number = int | float | complex | Decimal | Fraction
NUMBERS: Final[frozenset[type]] = frozenset({int, float, complex, Decimal, Fraction})


@dataclass(slots=True)
class Secrets:
    """The secrets of this process, and every form in which a text may contain one: as it is, or escaped."""

    values: set[str | bytes] = field(default_factory=set)
    numbers: set[Number] = field(default_factory=set)
    forms: set[str] = field(default_factory=set)
    # The longest form first, each with a pattern if the form counts only as a whole word; built on demand.
    ordered: list[tuple[str, re.Pattern[str] | None]] = field(default_factory=list)


SECRETS: Final = Secrets()
_LARGEST: Final = 20_000  # bits; larger numbers are written in hexadecimal
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


def hide(*secrets: str | bytes | Number | None) -> None:
    """Mask these secrets in all texts from now on, also in escaped forms; ignore those of fewer than 4 characters.

    For `Bearer abc`, a cookie or a connection string, its credentials are masked, too.
    """
    for secret in secrets:
        if isinstance(secret, str):
            hide(*_iter_credentials(secret))
        known: Iterable[str | bytes] = (secret,) if isinstance(secret, str | bytes) else ()
        if isinstance(secret, Number) and not isinstance(secret, bool):
            number = int(secret) if isinstance(secret, int) else secret
            known = [text for text in _iter_number_forms(number) if len(text) >= SHORTEST]
            if known:
                SECRETS.numbers.add(number)
        for text in known:
            if len(text) < SHORTEST or text in SECRETS.values:
                continue
            exact = bytes(text) if isinstance(text, bytes) else str.__str__(text)
            if exact == MASK or (isinstance(exact, str) and exact.lower() in _NO_SECRETS):
                continue
            SECRETS.forms.update(form for form in _iter_forms(exact) if len(form) >= SHORTEST)
            SECRETS.ordered.clear()
            SECRETS.values.add(exact)


def _iter_number_forms(number: Number) -> Iterator[str]:
    """Yield the texts of a number; Python refuses to write the digits of a very large one."""
    if not isinstance(number, int):
        with suppress(ValueError):
            yield from {str(number), repr(number)}
        return
    with suppress(ValueError):
        if number.bit_length() < _LARGEST:
            yield from {str(number), f"{number:,}"}
    if number.bit_length() > 32:
        yield f"{number:x}"


def is_secret_number(value: Any) -> bool:
    """Return True if a number is a known secret."""
    try:
        return value in SECRETS.numbers
    except TypeError:  # a signaling NaN has no hash
        return False


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


def _list_patterns() -> list[tuple[str, re.Pattern[str] | None]]:
    if not SECRETS.ordered and SECRETS.forms:
        SECRETS.ordered = [(form, _compile_word(form)) for form in sorted(SECRETS.forms, key=len, reverse=True)]
    return SECRETS.ordered


def _compile_word(form: str) -> re.Pattern[str] | None:
    """Return the pattern of a form that may be part of another word or number, and only counts as a whole one."""
    if form.replace(".", "").replace(",", "").isdigit():
        return re.compile(rf"(?<!\d){re.escape(form)}(?!\d)")
    if form.isalpha() and len(form) < 12:
        return re.compile(rf"(?<![^\W\d_]){re.escape(form)}(?![^\W\d_])")
    return None


def count_secrets() -> int:
    """Return the number of secrets masked by value: if it has changed, texts masked before are outdated."""
    return len(SECRETS.values)


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
    if SECRETS.values:
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
        bool(SECRETS.values)
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
    for secret in SECRETS.values:
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
