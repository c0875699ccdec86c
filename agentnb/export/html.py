"""An exported page as one HTML file without a kernel, a network, or other files.

The file contains the page's script and style, a table that needs neither, and the data of the run in compressed chunks.
A Content-Security-Policy allows only this script and this style; nothing can be loaded or sent.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import pbkdf2_hmac, sha256
from html import escape
from string import Template
from typing import Any, Final

ROUNDS: Final = 100_000  # rounds of deriving a key from an answer, as in recorded.js
_STILL_STYLE: Final = """
body{margin:0;padding:12px;font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;background:#fff;color:#1e293b}
@media screen and (prefers-color-scheme:dark){body{background:#0d0f12;color:#e5e9f0}}
.agentnb-still{overflow-wrap:break-word}
.agentnb-still table{border-collapse:collapse}
.agentnb-still :is(th,td){padding:2px 10px;text-align:left;vertical-align:top;border-top:1px solid #8884}
.agentnb-still td:last-child{overflow-wrap:anywhere}
.agentnb-still img{max-width:100%;background:#fff}
"""
_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '$script_hash'; style-src '$style_hash'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="agentnb $version">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main id="agentnb"></main>
<noscript>$still</noscript>
$data
<script>$script</script>
</body>
</html>
""")  # noqa: E501  (one header)


def render_page(
    title: str,
    script: str,
    style: str,
    still: str,
    chunks: Mapping[str, str],
    version: str,
) -> str:
    """Return the HTML file.

    Args:
        script: the JavaScript; a chunk is the text of a `script` element with its name in `data-name`.
        still: the HTML for readers without JavaScript; it must be escaped.
        chunks: the data of the page by name, packed.
    """
    script, style = f"\n{script}\n", f"\n{_STILL_STYLE}{style}\n"
    if "</script" in script.casefold() or "</style" in style.casefold():
        raise ValueError("a script or a style cannot contain its own end")
    return _PAGE.substitute(
        title=escape(title),
        script=script,
        style=style,
        still=still,
        script_hash=_hash(script),
        style_hash=_hash(style),
        version=escape(version),
        data="\n".join(
            f'<script type="application/agentnb" data-name="{escape(name)}">{text}</script>'
            for name, text in chunks.items()
        ),
    )


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of chunks that only the right answer of an exercise opens; `check` tells whether an answer is right.

    It prevents readers from finding the answer by chance, even in the source of the page. A person or a
    program can soon try a small number of options: use it for exercises, not for exams.
    """

    salt: str
    key: bytes
    check: str

    @classmethod
    def of(cls, answer: str, salt: str, before: Seal | None) -> Seal:
        """Return the seal of an answer, which includes the seal of the previous exercise."""
        secret = answer.encode() + (b"" if before is None else before.key)
        key = pbkdf2_hmac("sha256", secret, salt.encode(), ROUNDS)
        return cls(salt, key, b64encode(_stream(key, "check", 16)).decode("ascii"))

    def apply(self, name: str, content: bytes) -> bytes:
        """Encrypt the chunk of this name, or decrypt it."""
        stream = _stream(self.key, name, len(content))
        return (int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(content), "big")


def _stream(key: bytes, name: str, size: int) -> bytes:
    """Return pseudo-random bytes, as a browser's `deriveBits` does."""
    return pbkdf2_hmac("sha256", key, name.encode(), 1, size)


def pack(
    value: Any, name: str = "", seal: Seal | None = None, rewrite: Callable[[str], str] = lambda text: text
) -> str:
    """Return a JSON value compressed (raw deflate) and as base64, which contains nothing that HTML interprets.

    Args:
        seal: encrypts it as the chunk of this name.
        rewrite: changes the JSON text before it is compressed.
    """
    text = rewrite(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = squeeze.compress(text.encode("utf-8", "replace")) + squeeze.flush()
    return b64encode(content if seal is None else seal.apply(name, content)).decode("ascii")


def render_steps_table(columns: Sequence[str], rows: Iterable[Sequence[object]], more: int) -> str:
    """Return an HTML table of strings; `more` is the number of rows that were left out."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    rest = f"<p>The table ends here; {more} more steps are shown only with JavaScript.</p>" if more else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="agentnb-still agentnb-steps-table">{table}{rest}</div>'


def _hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a script or a style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
