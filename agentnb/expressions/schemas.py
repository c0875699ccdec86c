"""schemas: JSON Schema, compiled: what a value breaks, each with its path. The only door to jsonschema.

Nothing is ever fetched: a `$ref` leads into the schema itself, or it is a fault. No pattern is tried without an end:
one that might be is a fault of the schema, and a text that is too long for any a fault of the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from agentnb.expressions.paths import Path
from agentnb.expressions.patterns import LONGEST as LONGEST_TRIED
from agentnb.expressions.patterns import EndlessError, pattern_of

LONGEST = 200  # characters of a message: it may quote the value
# Keywords that ask nothing of a value, with what they hold.
_REMARKS: Final = {"title": str, "description": str, "$comment": str, "format": str, "examples": list,
                   "deprecated": bool, "readOnly": bool, "writeOnly": bool, "default": object}  # fmt: skip
TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
# Rules whose message names keys only, and says more than the rule itself.
_OF_KEYS: Final = frozenset({"required", "additionalProperties", "unevaluatedProperties", "dependentRequired"})


class Fault(NamedTuple):
    """A place in a value that breaks its schema: the path to it (empty: the whole value), and the rule in words.

    `message` may quote the value; `rule` never does: it is the schema's own words, empty where no one rule is broken.
    """

    path: Path
    message: str
    rule: str = ""


class Schema:
    """A JSON Schema of the draft that it names (2020-12 where it names none).

    Tuples count as arrays and every Mapping as an object; True and False are no numbers. `format` is not checked.
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator, validators
        from referencing import Registry

        base = validators.validator_for(self.rules, default=Draft202012Validator)
        # Where a reference leads to a part that names its draft, the library takes its own types of that draft.
        source = (
            {key: rule for key, rule in self.rules.items() if key != "$schema"}
            if isinstance(self.rules, dict)
            else self.rules
        )
        return _extended(base)(source, registry=Registry())

    @cached_property
    def rules(self) -> Any:
        """The schema as dicts and lists, whatever frozen form it was given in."""
        return _plain(self.source)

    def own_faults(self) -> Iterator[Fault]:
        """Yield what is wrong with the schema itself; a pattern that is no regular expression counts."""
        from jsonschema import Draft202012Validator, FormatChecker, validators

        if not isinstance(self.source, bool | Mapping):
            yield Fault((), f"a {type(self.source).__name__} is no JSON Schema")
            return
        if isinstance(self.source, Mapping) and not isinstance(self.source.get("$schema", ""), str):
            yield Fault(("$schema",), "it names no draft: a text is needed")
            return
        try:
            base = validators.validator_for(self.rules, default=Draft202012Validator)
            meta = base(base.META_SCHEMA, format_checker=FormatChecker(formats=["regex"]))
            for error in meta.iter_errors(self.rules):
                yield Fault(tuple(error.absolute_path), _told(error))
            yield from self._endless()
        except RecursionError:
            yield Fault((), "it is nested too deep")
        except Exception as error:  # noqa: BLE001  (whatever a foreign library meets in what a stranger wrote)
            yield Fault((), f"it cannot be read ({type(error).__name__})")

    def _endless(self) -> Iterator[Fault]:
        """Yield the patterns that might be tried without an end, whether a reference leads to where they stand or not.

        Those of keys, and all where a part names its draft, are tried by the library itself, which goes back and forth.
        """
        for path, source in _patterns(self.rules):
            try:
                if pattern_of(source).simple or not (self._tries_itself or path[-1] != "pattern"):
                    continue
                why = "it has too many ways to match for a pattern of keys, or beside an inner '$schema'"
            except EndlessError as error:
                why = str(error)
            except re.error:
                continue  # it is told as no pattern, or stands where none is meant
            yield Fault(path, f"the pattern {_short(source, 60)!r} might be tried without an end: {why}")

    @cached_property
    def _tries_itself(self) -> bool:
        """Whether the library tries patterns itself: those of keys, and those of a part that names its draft."""
        inner = any(len(path) > 1 for path, _ in _texts(self.rules, ("$schema",)))
        return inner or any(path[-1] != "pattern" for path, _ in _patterns(self.rules))

    def lost(self) -> Iterator[Fault]:
        """Yield the references that lead out of the schema, or to nothing in it: what they mean is never fetched.

        Of a schema whose parts have an `$id`, nothing is said.
        """
        if next(_texts(self.rules, ("$id", "id")), None) is None:
            for path, ref in _texts(self.rules, ("$ref", "$dynamicRef", "$recursiveRef")):
                if not _leads(self.rules, ref):
                    yield Fault(path, f"it refers to {_short(ref)!r}, which is not in it")

    @cached_property
    def wrong(self) -> Fault | None:
        """The first thing that is wrong with the schema itself; None where it is a good one."""
        return next(self.own_faults(), None)

    def faults(self, value: Any) -> Iterator[Fault]:
        """Yield what a value breaks. A schema that is wrong itself, or refers to what is not there, is a fault too."""
        from referencing.exceptions import Unresolvable

        if self.wrong is not None:
            yield Fault((), f"its schema is wrong: {self.wrong.message}")
            return
        if self._tries_itself and _has_long(value):
            yield Fault((), f"a text in it is longer than {LONGEST_TRIED:,} characters: no pattern is tried on that",
                        f"a text of {LONGEST_TRIED:,} characters at most, for it is tried on patterns")  # fmt: skip
            return
        try:
            for error in self._validator.iter_errors(value):
                yield Fault(tuple(error.absolute_path), _told(error), _rule(error))
        except Unresolvable as error:
            yield Fault((), f"its schema refers to {_short(str(getattr(error, 'ref', error)))!r}, which is not in it")
        except RecursionError:
            yield Fault((), "it is nested too deep, or its schema refers to itself without an end")
        except Exception as error:  # noqa: BLE001  (NaN, a number without an end, a reference to what is no schema)
            yield Fault((), f"it cannot be checked ({type(error).__name__})")


def asks_types_only(source: Any) -> bool:
    """Return whether a schema is well-formed and asks for simple types at most: that is told without jsonschema."""
    if not isinstance(source, Mapping):
        return source is True
    kinds = source.get("type", [])
    listed = [kinds] if isinstance(kinds, str) else kinds
    known = isinstance(listed, list) and all(isinstance(kind, str) and kind in TYPES for kind in listed)
    rest = {key: value for key, value in source.items() if key != "type"}
    return (
        known
        and (bool(listed) or "type" not in source)
        and len(set(listed)) == len(listed)
        and all(key in _REMARKS and isinstance(value, _REMARKS[key]) for key, value in rest.items())
    )


def _plain(source: Any) -> Any:
    """Return a schema, which may be frozen, as the library knows it: of dicts and lists."""
    if isinstance(source, Mapping):
        return {key: _plain(rule) for key, rule in source.items()}
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [_plain(rule) for rule in source]
    return source


def _extended(base: Any) -> Any:
    from jsonschema import validators

    types = base.TYPE_CHECKER.redefine_many({"array": _is_array, "object": _is_object})
    own = {"pattern": _pattern} if "pattern" in base.VALIDATORS else {}
    return validators.extend(base, own, type_checker=types)  # type: ignore[no-untyped-call]  # its stub has no types


def _pattern(_checker: Any, source: str, value: Any, _schema: Any) -> Iterator[Any]:
    """Try a pattern as the library does, but in a time that has an end."""
    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    pattern = pattern_of(source)
    if len(value) > pattern.longest:
        most = "" if pattern.longest == LONGEST_TRIED else f": at most {pattern.longest:,} are, for it looks around"
        yield ValidationError(f"a text of {len(value):,} characters is too long to be tried on the pattern{most}")
    elif not pattern.search(value):
        yield ValidationError(f"{value!r} does not match {source!r}")


def _patterns(rules: Any) -> Iterator[tuple[Path, str]]:
    """Yield every pattern with its path, wherever it stands: a reference may lead anywhere."""
    yield from _texts(rules, ("pattern",))
    for path, part in _parts(rules):
        keyed = part.get("patternProperties")
        for key in keyed if isinstance(keyed, dict) else ():
            yield (*path, "patternProperties", key), key


def _texts(rules: Any, words: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield the texts that stand under one of these words, each with its path."""
    for path, part in _parts(rules):
        for word in words:
            if isinstance(part.get(word), str):
                yield (*path, word), part[word]


def _parts(rules: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every mapping in a schema, each with its path."""
    waiting: list[tuple[Path, Any]] = [((), rules)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, dict):
            yield path, part
            waiting += [((*path, key), rule) for key, rule in part.items()]
        elif isinstance(part, list):
            waiting += [((*path, at), item) for at, item in enumerate(part)]


def _leads(rules: Any, ref: str) -> bool:
    """Return whether a reference leads to a part of the schema: by its path, or by a name that a part has."""
    if not ref.startswith("#/"):
        return ref == "#" or any("#" + name == ref for _, name in _texts(rules, ("$anchor", "$dynamicAnchor")))
    here = rules
    for word in unquote(ref).split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and key.isdecimal() and int(key) < len(here):
            here = here[int(key)]
        elif isinstance(here, dict) and key in here:
            here = here[key]
        else:
            return False
    return True


def _has_long(value: Any) -> bool:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str) and len(part) > LONGEST_TRIED:
            return True
        if isinstance(part, Mapping):
            waiting += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
    return False


def _is_array(_checker: Any, value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_object(_checker: Any, value: Any) -> bool:
    return isinstance(value, Mapping)


def _told(error: Any) -> str:
    """Return what an error says. Of an object or a list it says no more than that: a secret may stand in it."""
    value = error.instance
    name = "an object" if _is_object(None, value) else "a list" if _is_array(None, value) else _short(repr(value), 60)
    return _short(str(error.message).replace(repr(value), name, 1))


def _rule(error: Any) -> str:
    if error.validator in _OF_KEYS:
        return _told(error)
    return _short(f"{error.validator}: {error.validator_value!r}") if error.validator else "nothing may stand here"


def _short(message: str, longest: int = LONGEST) -> str:
    return message if len(message) <= longest else message[: longest - 3] + "..."
