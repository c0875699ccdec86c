"""Hooks of MkDocs: pages from files outside docs/, links between them, and a check that no page calls a server."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import gallery
import privacy
import reference
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Pages that stand beside the code, and where the site has them.
BESIDE = {
    "ARCHITECTURE.md": "design/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "design/contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "design/security.md",
}
# How a page counts in search results: what users look for before why things are as they are.
BOOST = {
    "reference/features.md": 30,
    "how-to/": 2,
    "decisions/": 0.2,
    "requirements.md": 0.2,
    "mutants.md": 0.2,
    "changelog.md": 0.2,
}
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".js": "js", ".css": "css", ".jsonl": "json"}
LINK = re.compile(r"(\]\(|srcset=\"|src=\")([^)\"#\s]+)")
PICTURE = re.compile(
    r"<picture>\s*<source [^>]*srcset=\"(?P<dark>[^\"]+)\">\s*<img alt=\"(?P<alt>[^\"]*)\" src=\"(?P<light>[^\"]+)\">"
    r"\s*</picture>"
)

log = logging.getLogger("mkdocs.hooks.agentnb")


# ---------------------------------------------------------------------------------------------------------------- pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that come from elsewhere: files beside the code, notebooks, linked sources and the gallery."""
    written: dict[str, str] = {
        uri: (ROOT / path).read_text(encoding="utf-8") for path, uri in BESIDE.items() if path != "README.md"
    }
    written |= notebook_pages()
    written["notebooks/index.md"] = notebook_list(written)
    written |= gallery.pages()
    pages = [(text, Path(original(uri))) for uri, text in written.items()]
    pages += [
        (Path(str(file.abs_src_path)).read_text(encoding="utf-8"), Path("docs") / file.src_uri)
        for file in files.documentation_pages()
    ]
    while pages:
        text, of = pages.pop()
        for path in linked_sources("" if of.suffix not in {".md", ".ipynb"} else text, of):
            uri = source_uri(path)
            if uri not in written:
                written[uri] = source_page(path)
                pages.append((written[uri], path))
    for uri, text in written.items():
        files.append(File.generated(config, uri, content=text))
    for uri, content in gallery.attachments().items():
        files.append(File.generated(config, uri, content=content))
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.name}", abs_src_path=str(notebook)))
    return files


def notebook_pages() -> dict[str, str]:
    """Return each notebook as a page: its text and its code, with a link to the file itself."""
    pages = {}
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        parts = [f"[Download this notebook]({notebook.name}), or run `agentnb lab`, which opens copies of all of them."]
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"]).strip()
            parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        title = next(part for part in parts[1:] if part.startswith("# "))
        heading, _, rest = title.partition("\n")
        parts.remove(title)
        pages[f"notebooks/{notebook.stem}.md"] = "\n\n".join([heading, *parts[:1], rest.strip(), *parts[1:]])
    return pages


def notebook_list(pages: dict[str, str]) -> str:
    """Return the page that lists the notebooks."""
    rows = [
        f"- [{text.partition(chr(10))[0].removeprefix('# ')}]({Path(uri).name})"
        for uri, text in pages.items()
        if uri.startswith("notebooks/")
    ]
    head = (
        "# Notebooks\n\n`agentnb lab` opens JupyterLab with copies of these notebooks. They need no key and no network."
    )
    return "\n".join([head, "", *rows])


def original(uri: str) -> str:
    """Return the path in the repository of the file that a page of the site comes from."""
    for path, at in BESIDE.items():
        if at == uri and path != "README.md":
            return path
    if uri.startswith("source/"):
        return uri.removeprefix("source/").removesuffix(".page.md")
    return f"notebooks/{Path(uri).stem}.ipynb" if uri.startswith("notebooks/") else f"docs/{uri}"


def targets(text: str, path: Path) -> Iterator[Path]:
    """Yield the files that a page links to, as paths in the repository."""
    for _, link in LINK.findall(text):
        if not re.match(r"[a-z]+:", link):
            yield Path(os.path.normpath(path.parent / link))


def linked_sources(text: str, path: Path) -> Iterator[Path]:
    """Yield the source files that a page links to, which the site shows as pages of their own."""
    for target in targets(text, path):
        is_source = target.parts[0] not in {"docs", "notebooks", ".."} and str(target) not in BESIDE
        if is_source and (ROOT / target).is_file():
            yield target


def source_uri(path: Path) -> str:
    """Return the page that shows a source file."""
    return f"source/{path.as_posix()}.page.md"


def source_page(path: Path) -> str:
    """Return the text of the page that shows a source file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    language = LANGUAGES.get(path.suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n\n# `{path.as_posix()}`\n\n````{language}\n{text}\n````\n"


# ---------------------------------------------------------------------------------------------------------------- links


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  (MkDocs passes it by name)
    """Point links that are right in the repository to the pages of the site; show pictures by the site's theme."""
    uri = page.file.src_uri
    for beginning, boost in BOOST.items():
        if uri.startswith(beginning):
            page.meta.setdefault("search", {})["boost"] = boost
    if uri.startswith("source/") and not uri.endswith(".md.page.md"):
        return markdown
    markdown = reference.filled(markdown)
    markdown = markdown.replace("<!-- lite -->", lite_link(os.environ.get("LITE", "")))
    if uri == "decisions/README.md":
        markdown += decisions(files)
    path = Path(original(uri))

    def moved(found: re.Match[str]) -> str:
        link = found[2]
        if re.match(r"[a-z]+:", link):
            return found[0]
        at = site_uri(Path(os.path.normpath(path.parent / link)), files)
        return found[0] if at is None else found[1] + os.path.relpath(at, Path(uri).parent)

    moved_text = "".join(
        part if number % 2 else LINK.sub(moved, part)
        for number, part in enumerate(re.split(r"(^```.*?^```|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL))
    )
    return PICTURE.sub(
        r"![\g<alt>](\g<light>#only-light){ loading=lazy }\n![\g<alt>](\g<dark>#only-dark){ loading=lazy }", moved_text
    )


def lite_link(folder: str) -> str:
    """Return the link to the JupyterLite site in a folder of the documentation; without a folder, nothing."""
    if not folder:
        return ""
    address = f"{folder}/lab/index.html?path=00_tour.ipynb"
    return f'<a class="md-button" href="{address}">Try it in the browser</a> There is nothing to install.'


def site_uri(target: Path, files: Files) -> str | None:
    """Return the page of the site that shows a file of the repository; None where there is none."""
    text = target.as_posix()
    candidates = [BESIDE.get(text), text.removeprefix("docs/"), f"{text.removeprefix('docs/')}/README.md"]
    if target.suffix == ".ipynb":
        candidates.insert(0, str(target.with_suffix(".md")))
    candidates += [source_uri(target), source_uri(target / "__init__.py"), source_uri(target / "README.md")]
    return next((uri for uri in candidates if uri and files.get_file_from_path(uri)), None)


def decisions(files: Files) -> str:
    """Return the list of all decisions."""
    rows = []
    for file in files.documentation_pages():
        if file.src_uri.startswith("decisions/0"):
            title = Path(str(file.abs_src_path)).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            rows.append(f"- [{title}]({Path(file.src_uri).name})")
    return "\n\n" + "\n".join(sorted(rows))


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would load anything from another server."""
    found = []
    for file in sorted(Path(config.site_dir).rglob("*")):
        if file.suffix == ".html":
            found += [f"{file.name}: {url}" for url in privacy.loads_from_elsewhere(file.read_text(encoding="utf-8"))]
        elif file.suffix == ".css":
            text = file.read_text(encoding="utf-8")
            found += [f"{file.name}: {url}" for url in re.findall(r"url\([\"']?((?:https?:)?//[^\"')]+)", text)]
    if found:
        raise PluginError("the site loads from other servers: " + "; ".join(found))
