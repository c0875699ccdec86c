"""A YAML reader based on the events of PyYAML's safe loader; the only module that imports yaml.

It uses events because composing nodes first would recurse through a malicious file before any limit is checked.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

from agentnb.errors import Place
from agentnb.sources import problems
from agentnb.sources.builder import Builder
from agentnb.sources.source import Position

# The C parser is ten times faster; its events are the same, but it accepts a few more texts (`{a: b?}`).
Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset({"str", "int", "float", "bool", "null"})
_TRUE_FALSE = frozenset({"true", "false"})
# The parser's message -> the remedy.
_CURES = (
    ("tab", "indent with spaces, not with a tab"),
    ("mapping values are not allowed", "quote the value (a ': ' inside it needs quotes), or fix the indentation"),
    ("cannot start any token", "quote the value: it starts with a character that is reserved in YAML"),
    ("end of stream", "close the quote that was opened"),
    ("expected ','", "close the bracket or brace that was opened, or add the missing comma"),
    ("escape", "use single quotes, or double the backslash"),
)
# A block (`|`), from its anchor or tag to the indentation of its first nonblank line.
_BLOCK = re.compile(r"(?P<before>(?:[&!]\S*\s+)*)\|[^\n]*\n(?:[ ]*\r?\n)*(?P<indent>[ ]*)")
_NO_CURE = "fix this line or the one above it: indentation, quotes, a missing ':'"


def read_yaml(text: str, builder: Builder, loader_type: type[Any] | None = None) -> None:
    """Feed the builder with what is in a YAML text."""
    loader = (loader_type or Loader)(text)
    try:
        _read_events(loader, builder)
    except yaml.YAMLError as error:
        _stop_at(error, text, builder)
    finally:
        loader.dispose()


def _read_events(loader: Any, builder: Builder) -> None:
    documents = 0
    while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
        position = (event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    builder.stop(problems.make_second_document_problem(Place(builder.file, *position)))
            case yaml.AliasEvent():
                builder.alias(event.anchor or "", position)
            case yaml.ScalarEvent():
                _add_scalar(loader, event, position, builder)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                mapping = isinstance(event, yaml.MappingStartEvent)
                if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
                    builder.problems.append(
                        problems.make_tag_problem(_shorten_tag(event.tag), builder.locate(position))
                    )
                builder.open({} if mapping else [], position, event.anchor)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                builder.close()


def _add_scalar(loader: Any, event: yaml.ScalarEvent, position: Position, builder: Builder) -> None:
    tag = event.tag
    if tag is None:
        tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)
    kind = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if event.tag not in (None, "!") and kind not in _SCALARS:
        builder.problems.append(problems.make_tag_problem(_shorten_tag(event.tag), builder.locate(position)))
    if builder.wants_key:
        odd = kind == "null" or (kind == "bool" and event.value.lower() not in _TRUE_FALSE)
        builder.key(event.value, position, odd=odd, merge=kind == "merge")
        if event.anchor:
            builder.anchors[event.anchor] = (event.value, 1)
        return
    value = _parse_scalar(loader, event, kind, position, builder)
    builder.scalar(value, position, event.value, event.anchor, _find_block_start(event, position, builder.text))


def _parse_scalar(loader: Any, event: yaml.ScalarEvent, kind: str, position: Position, builder: Builder) -> Any:
    """Return the value of a scalar. Dates and times stay strings: a recipe holds only JSON values."""
    text = event.value
    if kind not in _SCALARS or kind == "str" or (kind in ("int", "float") and ":" in text):
        return text
    node = yaml.ScalarNode(_TAG + kind, text)
    try:
        return getattr(loader, f"construct_yaml_{kind}")(node)
    except (ValueError, KeyError, IndexError):
        digits = sum(character.isdigit() for character in text)
        place = builder.locate(position)
        builder.problems.append(
            problems.make_long_number_problem(place, digits)
            if digits > 4300
            else problems.make_tag_value_problem(text, f"!!{kind}", place)
        )
        return text


def _find_block_start(event: yaml.ScalarEvent, position: Position, text: str | None) -> Position | None:
    """Return the position of the first line of a block text (`|`); None for a text in another style."""
    if event.style != "|" or text is None or event.start_mark is None:
        return None
    header = _BLOCK.match(text, event.start_mark.index)
    return header and (position[0] + header["before"].count("\n") + 1, len(header["indent"]) + 1)


def _shorten_tag(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def _stop_at(error: yaml.YAMLError, text: str, builder: Builder) -> NoReturn:
    problem, context = getattr(error, "problem", None) or str(error), getattr(error, "context", None)
    mark, begin = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    lines = text.splitlines()
    if begin and mark and ("end of stream" in problem or mark.line >= len(lines)):
        mark = begin  # an unclosed item is reported where it was opened
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    shown = lines[line - 1] if line <= len(lines) else ""
    if "\t" in shown[:column] and ("token" in problem or "tab" in problem):
        problem, do = "the indentation contains a tab; YAML requires spaces", _CURES[0][1]
    else:
        do = next((cure for word, cure in _CURES if word in problem), _NO_CURE)
        problem = f"the YAML parser says: {problem}"
        if context and begin:
            problem += f" ({context} from {begin.line + 1}:{begin.column + 1})"
    builder.stop(problems.make_syntax_problem(Place(builder.file, line, column), shown, problem, do))
