"""What a built page loads from other servers: nothing, or the build fails."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import ClassVar


class Loads(HTMLParser):
    """What a page loads when it is opened: scripts, styles, pictures, frames, fonts."""

    LOADING: ClassVar = {
        "script": ("src",), "img": ("src", "srcset"), "source": ("src", "srcset"), "iframe": ("src",),
        "link": ("href",), "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",),
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses that a tag loads, and those in its style."""
        for name, value in attrs:
            if value and name in self.LOADING.get(tag, ()):
                self.found.append(value)
            elif value and name == "style":
                self.found += re.findall(r"url\(([^)]*)\)", value)


def loads_from_elsewhere(html: str) -> list[str]:
    """Return the addresses on other servers that a page loads when it is opened; links to follow are none."""
    loads = Loads()
    loads.feed(html)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", html, re.DOTALL)
    loads.found += [url for style in styles for url in re.findall(r"(?:url\(|@import\s+)[\"']?([^\"')]+)", style)]
    # The theme fetches a renderer from a CDN for diagrams written as text.
    if re.search(r"<pre class=\"mermaid", html):
        loads.found.append("https://unpkg.com/mermaid")
    return [url for url in loads.found if re.match(r"\s*(https?:)?//", url)]
