"""An exported page as one HTML file: no kernel, no network, no file beside it.

The file holds the page's script and style, a table that needs neither, and the data of the run in compressed chunks.
A Content-Security-Policy allows exactly this script and this style; nothing can be loaded or sent.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from string import Template
from typing import Any, Final

_STILL_STYLE: Final = """
body{margin:0;padding:12px;font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;background:#fff;color:#1e293b}
@media screen and (prefers-color-scheme:dark){body{background:#0d0f12;color:#e5e9f0}}
.agentnb-still{overflow-wrap:anywhere}
.agentnb-still table{border-collapse:collapse}
.agentnb-still :is(th,td){padding:2px 10px;text-align:left;vertical-align:top;border-top:1px solid #8884}
.agentnb-still img{max-width:100%;background:#fff}
@media print{
.agentnb-recorded :is(.agentnb-bar,.agentnb-sash,.agentnb-split,.agentnb-finder,.agentnb-pane-tools,.agentnb-filter){
  display:none!important}
.agentnb-recorded :is([data-pane=details],[data-pane=board]) :is(div,section){
  max-height:none!important;overflow:visible!important}
}
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
<noscript><div class="agentnb-still">$still</div></noscript>
$data
<script>$script</script>
</body>
</html>
""")  # noqa: E501  (one header)


def page(
    title: str,
    script: str,
    style: str,
    still: str,
    chunks: Mapping[str, Any],
    version: str,
) -> str:
    """Return the HTML file.

    Args:
        script: the JavaScript; a chunk is the text of a `script` element with its name in `data-name`.
        still: the HTML for readers without JavaScript; it must be escaped.
        chunks: the data of the page by name, as JSON values.
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
            f'<script type="application/agentnb" data-name="{escape(name)}">{packed(value)}</script>'
            for name, value in chunks.items()
        ),
    )


def packed(value: Any) -> str:
    """Return a JSON value compressed (raw deflate) and as base64, which contains nothing that HTML interprets."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b64encode(squeeze.compress(text.encode("utf-8", "replace")) + squeeze.flush()).decode("ascii")


def steps_table(columns: Sequence[str], rows: Iterable[Sequence[object]], more: int) -> str:
    """Return an HTML table of texts; `more` is the number of rows that were left out."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    rest = f"<p>The table ends here; {more} more steps are shown only with JavaScript.</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a script or a style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
