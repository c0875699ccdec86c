"""JSON Schema validation: violations with their paths. The only module that imports jsonschema.

Nothing is ever fetched: a `$ref` must lead to a part of the schema itself; otherwise it is a fault. Matching is
time-bounded: a pattern that could run too long is a fault of the schema, and a string too long for any pattern is a
fault of the value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from agentnb.bounds import find_excess
from agentnb.errors import with_article
from agentnb.expressions.paths import Path
from agentnb.expressions.regex import LONGEST as LONGEST_TRIED
from agentnb.expressions.regex import EndlessError, compile_pattern
from agentnb.text import get_class_name, safe_repr

LONGEST = 200  # characters of a message, which may quote the value
# Keywords that do not constrain a value, with the types of their content.
_REMARKS: Final = {"title": str, "description": str, "$comment": str, "format": str, "examples": list,
                   "deprecated": bool, "readOnly": bool, "writeOnly": bool, "default": object}  # fmt: skip
TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
# Keywords whose message names only keys, and is more precise than the keyword itself.
_OF_KEYS: Final = frozenset({"required", "additionalProperties", "unevaluatedProperties", "dependentRequired"})


class Fault(NamedTuple):
    """A violation: the path within the value (empty for the whole value), and a description of the violated rule.

    `message` may quote the value; `rule` never does: it quotes the schema, and is empty unless a single rule is
    violated.
    """

    path: Path
    message: str
    rule: str = ""


class Schema:
    """A JSON Schema of the draft that it names (2020-12 by default).

    Tuples count as arrays and every Mapping as an object; True and False are not numbers. `format` is not checked.
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    @cached_property
    def _validator(self) -> Any:
        from referencing import Registry

        library = _get_jsonschema()
        base = library.validators.validator_for(self.rules, default=library.Draft202012Validator)
        # Where a reference leads to a part that names its draft, the library uses that draft's own types.
        source = (
            {key: rule for key, rule in self.rules.items() if key != "$schema"}
            if isinstance(self.rules, dict)
            else self.rules
        )
        return _extend(base)(source, registry=Registry())

    @cached_property
    def rules(self) -> Any:
        """The schema as dicts and lists, even if it was passed in frozen form."""
        return _to_plain(self.source)

    def own_faults(self) -> Iterator[Fault]:
        """Yield the faults of the schema itself, including invalid regular expressions."""
        if not isinstance(self.source, bool | Mapping):
            yield Fault((), f"{with_article(get_class_name(self.source))} is not a JSON Schema")
            return
        if isinstance(self.source, Mapping) and not isinstance(self.source.get("$schema", ""), str):
            yield Fault(("$schema",), "`$schema` must be a string")
            return
        if find_excess(self.source):
            yield Fault((), "it is nested too deeply, or is too large")
            return
        try:
            library = _get_jsonschema()
            base = library.validators.validator_for(self.rules, default=library.Draft202012Validator)
            formats = library.FormatChecker(formats=["regex"])
            meta = _get_meta_class(base)(base.META_SCHEMA, registry=_get_drafts(), format_checker=formats)
            for error in meta.iter_errors(self.rules):
                yield Fault(tuple(error.absolute_path), _format_message(error))
            yield from self._iter_unbounded_patterns()
        except RecursionError:  # by the library, which uses several calls per level
            yield Fault((), "it is nested too deeply")
        except Exception as error:  # noqa: BLE001  (whatever a foreign library meets in what a stranger wrote)
            yield Fault((), f"it cannot be read ({type(error).__name__})")

    def _iter_unbounded_patterns(self) -> Iterator[Fault]:
        """Yield the patterns that could run too long, referenced or not.

        Patterns of keys, and all patterns in a schema with parts that name a draft, are matched by the library itself,
        with backtracking.
        """
        for path, source in _iter_patterns(self.rules):
            try:
                if compile_pattern(source).simple or not (self._tries_itself or path[-1] != "pattern"):
                    continue
                why = "it has too many ways to match for a pattern of keys, or for a schema with an inner '$schema'"
            except EndlessError as error:
                why = str(error)
            except re.error:
                continue  # reported as an invalid pattern, or not used as one
            yield Fault(path, f"the pattern {_shorten(source, 60)!r} could take too long to match: {why}")

    @cached_property
    def _tries_itself(self) -> bool:
        """Return True if the library matches patterns itself: those of keys, or of a part that names its draft."""
        inner = any(len(path) > 1 for path, _ in _iter_texts(self.rules, ("$schema",)))
        return inner or any(path[-1] != "pattern" for path, _ in _iter_patterns(self.rules))

    def iter_lost_references(self) -> Iterator[Fault]:
        """Yield the references that lead out of the schema or to no part of it: they are never fetched.

        A schema whose parts have an `$id` is not checked.
        """
        if next(_iter_texts(self.rules, ("$id", "id")), None) is None:
            for path, ref in _iter_texts(self.rules, ("$ref", "$dynamicRef", "$recursiveRef")):
                if not _resolves(self.rules, ref):
                    yield Fault(path, f"it refers to {_shorten(ref)!r}, which is not in it")

    @cached_property
    def wrong(self) -> Fault | None:
        """The first fault of the schema itself; None if it is valid."""
        return next(self.own_faults(), None)

    def faults(self, value: Any) -> Iterator[Fault]:
        """Yield the violations of a value. An invalid schema or an unresolvable reference is a fault, too."""
        from referencing.exceptions import Unresolvable

        if self.wrong is not None:
            yield Fault((), f"its schema is invalid: {self.wrong.message}")
            return
        if find_excess(value):
            yield Fault((), "it is nested too deeply, or is too large")
            return
        if self._tries_itself and _has_long(value):
            yield Fault((), f"a string in it is longer than {LONGEST_TRIED:,} characters, the limit for patterns",
                        f"a string of at most {LONGEST_TRIED:,} characters, the limit for patterns")  # fmt: skip
            return
        try:
            for error in self._validator.iter_errors(value):
                yield Fault(tuple(error.absolute_path), _format_message(error), _get_rule(error))
        except Unresolvable as error:
            yield Fault((), f"its schema refers to {_shorten(str(getattr(error, 'ref', error)))!r}, which is not in it")
        except RecursionError:  # by the library
            yield Fault((), "it is nested too deeply, or its schema refers to itself endlessly")
        except Exception as error:  # noqa: BLE001  (NaN, a number without an end, a reference to what is not a schema)
            yield Fault((), f"it cannot be checked ({type(error).__name__})")


def is_types_only(source: Any) -> bool:
    """Return True if a schema is well-formed and constrains simple types only; does not import jsonschema."""
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


@lru_cache(maxsize=1)
def _get_jsonschema() -> Any:
    """Return the library, imported without the grammar of IRIs, which takes a second to build and serves two formats.

    The grammar is built when other code that shares the library checks one of these formats.
    """
    name = "rfc3987_syntax"
    is_late = not {"jsonschema", name} & sys.modules.keys() and find_spec(name) is not None
    if is_late:
        sys.modules[name] = late = ModuleType(name)
        late.__dict__["is_valid_syntax"] = lambda rule, text: import_module(name).is_valid_syntax(rule, text)
    try:
        import jsonschema
    finally:
        if is_late:
            del sys.modules[name]
    return jsonschema


def _to_plain(source: Any) -> Any:
    """Return a schema, which may be frozen, as plain dicts and lists for the library."""
    if isinstance(source, Mapping):
        return {key: _to_plain(rule) for key, rule in source.items()}
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [_to_plain(rule) for rule in source]
    return source


@lru_cache(maxsize=16)  # one per draft
def _get_meta_class(base: Any) -> Any:
    """Return the class that validates schemas."""
    return _get_jsonschema().validators.extend(base, {"uniqueItems": _iter_unique_errors})


@lru_cache(maxsize=1)
def _get_drafts() -> Any:
    """Return the schemas of all drafts, without `$schema`: the library would use its own class for them."""
    from jsonschema_specifications import REGISTRY
    from referencing import Registry, Resource
    from referencing.jsonschema import specification_with

    drafts = []
    for uri in REGISTRY:
        rules = dict(REGISTRY.contents(uri))
        draft = specification_with(rules.pop("$schema"))
        drafts.append((uri, Resource.from_contents(rules, default_specification=draft)))
    return Registry().with_resources(drafts)


@lru_cache(maxsize=16)
def _extend(base: Any) -> Any:
    """Return the class that validates values."""
    types = base.TYPE_CHECKER.redefine_many({"array": _is_array, "object": _is_object})
    own = {
        "uniqueItems": _iter_unique_errors,
        **({"pattern": _iter_pattern_errors} if "pattern" in base.VALIDATORS else {}),
    }
    return _get_jsonschema().validators.extend(base, own, type_checker=types)


def _iter_pattern_errors(_checker: Any, source: str, value: Any, _schema: Any) -> Iterator[Any]:
    """Check a pattern as the library does, but time-bounded."""
    if not isinstance(value, str):
        return
    failure = _get_jsonschema().ValidationError
    pattern = compile_pattern(source)
    if len(value) > pattern.longest:
        limit_note = (
            "" if pattern.longest == LONGEST_TRIED else f": at most {pattern.longest:,}, because it has lookarounds"
        )
        yield failure(f"a string of {len(value):,} characters is too long for the pattern{limit_note}")
    elif not pattern.search(value):
        yield failure(f"{safe_repr(value)} does not match {source!r}")


def _iter_unique_errors(checker: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    """Check that no two items are equal, in one pass; the library compares all pairs."""
    if not _is_array(None, value):
        return
    try:
        if len({_to_comparable(item) for item in value}) == len(value):
            return
    except TypeError:
        pass  # an item is not JSON
    yield from _get_jsonschema().Draft202012Validator.VALIDATORS["uniqueItems"](checker, wanted, value, schema)


def _to_comparable(value: Any) -> Any:
    """Return a hashable key that is equal for equal JSON values: 1 and 1.0 are equal, 1 and True are not."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, Mapping):
        return (dict, frozenset((key, _to_comparable(item)) for key, item in value.items()))
    if _is_array(None, value):
        return (list, *map(_to_comparable, value))
    return value


def _iter_patterns(rules: Any) -> Iterator[tuple[Path, str]]:
    """Yield every pattern with its path, wherever it is, because a reference may lead anywhere."""
    yield from _iter_texts(rules, ("pattern",))
    for path, part in _iter_parts(rules):
        keyed = part.get("patternProperties")
        for key in keyed if isinstance(keyed, dict) else ():
            yield (*path, "patternProperties", key), key


def _iter_texts(rules: Any, names: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield the strings under one of these keywords, each with its path."""
    for path, part in _iter_parts(rules):
        for word in names:
            if isinstance(part.get(word), str):
                yield (*path, word), part[word]


def _iter_parts(rules: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every mapping in a schema, each with its path."""
    waiting: list[tuple[Path, Any]] = [((), rules)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, dict):
            yield path, part
            waiting += [((*path, key), rule) for key, rule in part.items()]
        elif isinstance(part, list):
            waiting += [((*path, at), item) for at, item in enumerate(part)]


def _resolves(rules: Any, ref: str) -> bool:
    """Return True if a reference leads to a part of the schema: by its path, or by a name of a part."""
    if not ref.startswith("#/"):
        return ref == "#" or any("#" + name == ref for _, name in _iter_texts(rules, ("$anchor", "$dynamicAnchor")))
    current = rules
    for word in unquote(ref).split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(current, list) and key.isdecimal() and int(key) < len(current):
            current = current[int(key)]
        elif isinstance(current, dict) and key in current:
            current = current[key]
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


def _format_message(error: Any) -> str:
    """Return an error's message; for an object or list, without its content, which may contain a secret."""
    value = error.instance
    name = "an object" if _is_object(None, value) else "a list" if _is_array(None, value) else _shorten(repr(value), 60)
    return _shorten(str(error.message).replace(repr(value), name, 1))


def _get_rule(error: Any) -> str:
    if error.validator in _OF_KEYS:
        return _format_message(error)
    return (
        _shorten(f"{error.validator}: {safe_repr(error.validator_value)}")
        if error.validator
        else "no value is allowed here"
    )


def _shorten(message: str, longest: int = LONGEST) -> str:
    return message if len(message) <= longest else message[: longest - 3] + "..."
