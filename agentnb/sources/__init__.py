"""sources: the one door for YAML and JSON. Text becomes plain values, and every key and item keeps its place.

Nothing in a source can make an object, limits hold before anything is expanded, and all problems are told at once as
far as the parser can go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from agentnb.errors import Place
from agentnb.sources import faults
from agentnb.sources.builder import Builder, StopReadingError
from agentnb.sources.source import TEXT, Lines, Path, Source, path_of

__all__ = ["MAX_BYTES", "SUFFIXES", "Path", "Source", "path_of", "plain_source", "read_file", "read_text"]

MAX_BYTES = 10_000_000
SUFFIXES = (".yaml", ".yml", ".json")

_Form = Literal["yaml", "json"]
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOOKS_LIKE_JSON = re.compile(r'\s*\{\s*["}]')


def read_file(path: FilePath) -> Source:
    """Return a file's content with its places; what is wrong with it is in `problems`."""
    name = str(path)
    try:
        if path.exists() and not path.is_file():  # a folder; or a device, which may never end
            return Source(None, name, problems=(faults.no_plain_file(name),))
        if (size := path.stat().st_size) > MAX_BYTES:
            return Source(None, name, problems=(faults.too_large(name, size, MAX_BYTES),))
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Source(None, name, problems=(faults.not_utf8(name, error),))
    except OSError as error:
        return Source(None, name, problems=(faults.unreadable(name, error, "give a file that you may read"),))
    forms: dict[str, _Form] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
    return read_text(text, name, forms.get(path.suffix.lower()))


def read_text(text: str, file: str = TEXT, form: _Form | None = None) -> Source:
    """Return the content of YAML or JSON text with its places.

    Whatever is JSON is read by JSON's rules. `form` says what the text was meant to be when it is broken; left out,
    it was meant to be JSON when it starts with a brace and a double quote.
    """
    text = text.removeprefix("\ufeff")
    size = len(text) if len(text) > MAX_BYTES else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        return Source(None, file, problems=(faults.too_large(file, size, MAX_BYTES),))
    if odd := _UNPRINTABLE.search(text):
        place = Place(file, *Lines(text).spot(odd.start()))
        return Source(None, file, text, problems=(faults.unprintable(place, odd[0]),))
    if form == "json" or text.lstrip().startswith("{"):
        as_json = _built(text, file, "json")
        # A text whose first key stands in double quotes was meant to be JSON: YAML would read some of it otherwise.
        meant = form == "json" or (form is None and _LOOKS_LIKE_JSON.match(text))
        if meant or _is_read(as_json):
            return as_json
    return _built(text, file, "yaml")


def plain_source(content: Mapping[Any, Any], file: str = "<dict>") -> Source:
    """Return a dict as a source: checked for keys, depth and size like a text; its places have no lines."""
    builder = Builder(file)
    try:
        _walk(content, builder)
    except StopReadingError:
        builder.top = None
    return builder.source()


def _is_read(source: Source) -> bool:
    return not any(problem.code == "R102" for problem in source.problems)


def _built(text: str, file: str, form: _Form) -> Source:
    # Late: a networkx graph or a dict needs no YAML.
    from agentnb.sources.json_text import read_json
    from agentnb.sources.yaml_text import read_yaml

    builder = Builder(file, text)
    try:
        (read_json if form == "json" else read_yaml)(text, builder)
    except StopReadingError:
        builder.top = None
    return builder.source()


def _walk(value: Any, builder: Builder) -> None:
    """Feed the builder with a plain value. It calls itself as deep as the builder allows."""
    nowhere = (0, 0)
    if isinstance(value, Mapping):
        builder.open({}, nowhere)
        for key, item in value.items():
            if isinstance(key, tuple | frozenset):
                builder.stop(faults.key_not_text(builder.place(nowhere)))
            builder.key(key if isinstance(key, str) else str(key), nowhere, odd=key is None or isinstance(key, bool))
            _walk(item, builder)
        builder.close()
    elif isinstance(value, list | tuple):
        builder.open([], nowhere)
        for item in value:
            _walk(item, builder)
        builder.close()
    else:
        builder.scalar(value, nowhere)
