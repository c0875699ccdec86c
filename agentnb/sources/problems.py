"""The problems of a source before its meaning is checked, one function per error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentnb.errors import Place, Problem, close_match, did_you_mean


def make_unreadable_problem(where: str, error: OSError, default: str) -> Problem:
    """R101: a file cannot be read."""
    reason = error.strerror or type(error).__name__
    return Problem("R101", f"{where!r} cannot be read", where, f"the operating system reports: {reason}", default)


def make_file_type_problem(where: str) -> Problem:
    """R101: a file cannot be read."""
    return Problem("R101", f"{where!r} is not a file", where, "a recipe is one file of YAML or JSON",
                   "use the path of a file in it")  # fmt: skip


def make_missing_file_problem(where: str, names: Iterable[str], folder: str) -> Problem:
    """R101: a file cannot be read."""
    known = sorted(names)
    listed = f"the recipes in {folder!r} are: {', '.join(known[:8])}" if known else f"there is no recipe in {folder!r}"
    stems = {Path(name).stem: name for name in known}  # folders and suffixes that all names have in common
    similar = close_match(Path(where).stem, stems)
    order = f"did you mean {stems[similar]!r}?" if similar else "fix the path, or pass the text itself (several lines)"
    return Problem("R101", f"there is no file {where!r}", where, listed, order)


def make_syntax_problem(place: Place, line: str, why: str, do: str) -> Problem:
    """R102: the text is not well-formed YAML or JSON."""
    shown = line.strip()
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    what = f"line {place.line} cannot be read: {shown!r}" if shown else f"line {place.line} cannot be read"
    return Problem("R102", what, str(place), why, do)


def make_character_problem(place: Place, character: str) -> Problem:
    """R102: the text is not well-formed YAML or JSON."""
    what = f"the text contains the control character U+{ord(character):04X}"
    return Problem("R102", what, str(place), "YAML and JSON are printable text", "remove it, or write it as an escape")


def make_encoding_problem(where: str, error: UnicodeDecodeError) -> Problem:
    """R102: the text is not well-formed YAML or JSON."""
    line = error.object.count(b"\n", 0, error.start) + 1
    column = error.start - (error.object.rfind(b"\n", 0, error.start) + 1) + 1
    what = f"byte 0x{error.object[error.start]:02x} in {where!r} is not UTF-8 text"
    return Problem("R102", what, str(Place(where, line, column)),
    f"recipes are UTF-8 text; the decoder reports: {error.reason}",
                   "save the file as UTF-8")  # fmt: skip


def make_second_document_problem(place: Place) -> Problem:
    """R102: the text is not well-formed YAML or JSON."""
    return Problem("R102", "a second document starts with '---'", str(place), "a source contains a single recipe",
                   "move the second recipe to a separate file")  # fmt: skip


def make_alias_problem(name: str, place: Place, anchors: Iterable[str]) -> Problem:
    """R102: the text is not well-formed YAML or JSON."""
    known = list(anchors)
    why = f"the anchors above it are: {', '.join(known)}" if known else "there is no anchor above it"
    order = did_you_mean(name, known, f"write '&{name}' before the value that it refers to, or quote '*{name}'")
    return Problem("R102", f"the alias '*{name}' is not defined", str(place), why, order)


def make_merge_problem(place: Place) -> Problem:
    """R102: the text is not well-formed YAML or JSON."""
    return Problem(
        "R102",
        "'<<' merges a value that is not a mapping",
        str(place),
        "'<<' merges a mapping, or a list of mappings",
        "use a mapping's '*name', or quote it",
    )


def make_duplicate_key_problem(key: str, place: Place, first: tuple[int, int]) -> Problem:
    """R103: a mapping has the same key twice."""
    reason = f"it is already defined at {first[0]}:{first[1]}" if first[0] else "it is already defined"
    return Problem("R103", f"key {key!r} appears twice in one mapping", str(place),
                   f"keys must be unique; {reason}", "remove one of the two, or rename it")  # fmt: skip


def make_size_problem(where: str, size: int, limit: int) -> Problem:
    """R108: a source exceeds the limits of size, depth or number of values."""
    return Problem("R108", f"{where!r} is too large", where, f"it has {size:,} bytes; the limit is {limit:,}",
                   "split it, or move long texts into separate files")  # fmt: skip


def make_depth_problem(place: Place, limit: int) -> Problem:
    """R108: a source exceeds the limits of size, depth or number of values."""
    return Problem("R108", f"mappings and lists are nested more than {limit} deep", str(place),
                   f"the limit is {limit}, so that a hostile file cannot exhaust the stack", "flatten it")  # fmt: skip


def make_count_problem(place: Place, limit: int) -> Problem:
    """R108: a source exceeds the limits of size, depth or number of values."""
    return Problem("R108", f"the source contains more than {limit:,} keys and values", str(place),
                   "aliases ('*name') count as often as they are used", "use fewer aliases, or split it")  # fmt: skip


def make_cycle_problem(name: str, place: Place) -> Problem:
    """R108: a source exceeds the limits of size, depth or number of values."""
    return Problem("R108", f"'&{name}' contains itself through '*{name}'", str(place), "the nesting would be infinite",
                   f"remove '*{name}', or move '&{name}'")  # fmt: skip


def make_unquoted_key_problem(word: str, place: Place) -> Problem:
    """R109: YAML reads an unquoted word as a boolean or null where a string is required."""
    if not place.line:  # of a dict: there were no quotes to leave out
        return Problem("R109", f"key {word} is not a string", str(place), "the keys of a recipe must be strings",
                       f"write {word!r}")  # fmt: skip
    return Problem("R109", f"key {word!r} is not a string", str(place), _explain_non_text(word), f'quote it: "{word}":')


def make_unquoted_value_problem(word: str, place: Place) -> Problem:
    """R109: YAML reads an unquoted word as a boolean or null where a string is required."""
    if not place.line:
        return Problem("R109", f"value {word} is not a string", str(place), "a string is required",
                       f"write {word!r}")  # fmt: skip
    return Problem(
        "R109", f"value {word!r} is not a string", str(place), _explain_non_text(word), f'quote it: "{word}"'
    )


def _explain_non_text(word: str) -> str:
    if word.lower() in {"", "~", "null", "none"}:
        return f"unquoted, {word!r} is YAML's null; a string is required"
    meaning = "true" if word.lower() in {"yes", "on", "true"} else "false"
    return f"YAML reads unquoted yes, no, on, off, true and false as booleans ({word!r} is {meaning}); use a string"


def make_key_type_problem(place: Place) -> Problem:
    """R114: a value has the wrong type or form."""
    return Problem(
        "R114", "a key is a mapping or a list", str(place), "keys must be strings", "write the key as one string"
    )


def make_tag_problem(tag: str, place: Place) -> Problem:
    """R110: a YAML tag asks for something other than plain values."""
    return Problem("R110", f"tag {tag!r} is rejected", str(place),
                   "a recipe contains only plain values", "remove the tag")  # fmt: skip


def make_tag_value_problem(text: str, tag: str, place: Place) -> Problem:
    """R110: a YAML tag asks for something other than plain values."""
    return Problem("R110", f"{text[:40]!r} does not match its tag {tag!r}", str(place),
    f"it cannot be read as {tag[2:]}",
                   "remove the tag, or fix the value")  # fmt: skip


def make_long_number_problem(place: Place, digits: int) -> Problem:
    """R114: a value has the wrong type or form."""
    return Problem("R114", f"a number has {digits:,} digits", str(place), "Python reads at most 4300 digits",
                   "quote it to make it a string")  # fmt: skip


def make_mapping_problem(place: Place, content: str) -> Problem:
    """R111: the top level of a source is not a mapping of keys."""
    return Problem("R111", f"the source is {content}", str(place), "a recipe is a mapping of keys to values",
                   "start with its first key (coreason: 'apiVersion: coreason.ai/v2')")  # fmt: skip
