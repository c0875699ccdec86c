"""Sources: the only package that reads YAML and JSON, into plain values with a position for every key and item.

No source can create objects, limits are checked before anything is expanded, and all problems are reported at once, as
far as the parser can continue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from agentnb.errors import Place
from agentnb.sources import problems
from agentnb.sources.builder import Builder, StopReadingError
from agentnb.sources.source import TEXT, Lines, Path, Source, format_path
from agentnb.text import safe_str

__all__ = ["MAX_BYTES", "SUFFIXES", "Path", "Source", "format_path", "make_plain_source", "read_file", "read_text"]

MAX_BYTES = 10_000_000
SUFFIXES = (".yaml", ".yml", ".json")

_Form = Literal["yaml", "json"]
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_LISTS = (str, bytes, bytearray, memoryview, type)
_LOOKS_LIKE_JSON = re.compile(r'\s*\{\s*["}]')


def read_file(path: FilePath) -> Source:
    """Return a file's content with its positions; errors are in `problems`."""
    name = str(path)
    try:
        if path.exists() and not path.is_file():  # a folder; or a device, which may never end
            return Source(None, name, problems=(problems.make_file_type_problem(name),))
        if (size := path.stat().st_size) > MAX_BYTES:
            return Source(None, name, problems=(problems.make_size_problem(name, size, MAX_BYTES),))
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Source(None, name, problems=(problems.make_encoding_problem(name, error),))
    except OSError as error:
        return Source(
            None, name, problems=(problems.make_unreadable_problem(name, error, "check the path and its permissions"),)
        )
    forms: dict[str, _Form] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
    return read_text(text, name, forms.get(path.suffix.lower()))


def read_text(text: str, file: str = TEXT, form: _Form | None = None) -> Source:
    """Return the content of YAML or JSON text with its positions.

    Valid JSON is read by the rules of JSON. `form` is the intended format of invalid text; by default JSON if it starts
    with a brace and a double quote, else YAML.
    """
    text = text.removeprefix("\ufeff")
    size = len(text) if len(text) > MAX_BYTES else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        return Source(None, file, problems=(problems.make_size_problem(file, size, MAX_BYTES),))
    if unprintable := _UNPRINTABLE.search(text):
        place = Place(file, *Lines(text).get_position(unprintable.start()))
        return Source(None, file, text, problems=(problems.make_character_problem(place, unprintable[0]),))
    if form == "json" or text.lstrip().startswith("{"):
        as_json = _build(text, file, "json")
        # A text whose first key is in double quotes is meant to be JSON: YAML would read parts of it differently.
        meant = form == "json" or (form is None and _LOOKS_LIKE_JSON.match(text))
        if meant or _is_read(as_json):
            return as_json
    return _build(text, file, "yaml")


def make_plain_source(content: Mapping[Any, Any], file: str = "<dict>") -> Source:
    """Return a dict as a source, with the checks of keys, depth and size of a text; its positions have no lines."""
    builder = Builder(file)
    try:
        _walk(content, builder)
    except StopReadingError:
        builder.top = None
    return builder.source()


def _is_read(source: Source) -> bool:
    return not any(problem.code == "R102" for problem in source.problems)


def _build(text: str, file: str, form: _Form) -> Source:
    # Imported late: a networkx graph or a dict needs no YAML.
    from agentnb.sources.json_text import read_json
    from agentnb.sources.yaml_text import read_yaml

    builder = Builder(file, text)
    try:
        (read_json if form == "json" else read_yaml)(text, builder)
    except StopReadingError:
        builder.top = None
    return builder.source()


def _walk(value: Any, builder: Builder) -> None:
    """Feed the builder with a plain value. Recursive, to the depth that the builder allows."""
    nowhere = (0, 0)
    if isinstance(value, Mapping):
        builder.open({}, nowhere)
        for key, item in value.items():
            if isinstance(key, tuple | frozenset):
                builder.stop(problems.make_key_type_problem(builder.locate(nowhere)))
            builder.key(
                key if isinstance(key, str) else safe_str(key), nowhere, odd=key is None or isinstance(key, bool)
            )
            _walk(item, builder)
        builder.close()
    elif _is_list(value):
        builder.open([], nowhere)
        for item in value:
            _walk(item, builder)
        builder.close()
    else:
        builder.scalar(value, nowhere)


def _is_list(value: Any) -> bool:
    """Return True for a list, and for what a schema would read as one without a limit: a range, an iterator, a set."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, _NO_LISTS)
        and not hasattr(type(value), "model_fields")  # a pydantic object yields its fields
    )
