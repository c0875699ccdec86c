"""schemas: JSON Schema, compiled: what a value breaks, each with its path. The only door to jsonschema.

Nothing is ever fetched: a `$ref` leads into the schema itself, or it is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from agentnb.expressions.paths import Path

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
        except RecursionError:
            yield Fault((), "it is nested too deep")
        except Exception as error:  # noqa: BLE001  (whatever a foreign library meets in what a stranger wrote)
            yield Fault((), f"it cannot be read ({type(error).__name__})")

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
    return validators.extend(base, type_checker=types)  # type: ignore[no-untyped-call]  # its stub has no types


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
