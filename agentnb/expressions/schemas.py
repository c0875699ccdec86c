"""schemas: JSON Schema, compiled: what a value breaks, each with its path. The only door to jsonschema.

Nothing is ever fetched: a `$ref` leads into the schema itself, or it is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from agentnb.expressions.paths import Path

LONGEST = 200  # characters of a message: it may quote the value


class Fault(NamedTuple):
    """A place in a value that breaks its schema: the path to it (empty: the whole value), and the rule in words."""

    path: Path
    message: str


class Schema:
    """A JSON Schema of the draft that it names (2020-12 where it names none).

    Tuples count as arrays and every Mapping as an object; True and False are no numbers.
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator, validators
        from referencing import Registry

        base = validators.validator_for(self.source, default=Draft202012Validator)
        types = base.TYPE_CHECKER.redefine_many({
            "array": lambda _, value: isinstance(value, list | tuple),
            "object": lambda _, value: isinstance(value, Mapping),
        })  # fmt: skip
        made: Any = validators.extend(base, type_checker=types)  # type: ignore[no-untyped-call]  # its stub has no types
        return made(self.source, registry=Registry())

    def own_faults(self) -> Iterator[Fault]:
        """Yield what is wrong with the schema itself."""
        from jsonschema import Draft202012Validator, validators

        if not isinstance(self.source, bool | Mapping):
            yield Fault((), f"a {type(self.source).__name__} is no JSON Schema")
            return
        base = validators.validator_for(self.source, default=Draft202012Validator)
        for error in base(base.META_SCHEMA).iter_errors(self.source):
            yield Fault(tuple(error.absolute_path), _short(error.message))

    def faults(self, value: Any) -> Iterator[Fault]:
        """Yield what a value breaks. A schema that is wrong itself, or refers to what is not there, is a fault too."""
        from referencing.exceptions import Unresolvable

        wrong = next(self.own_faults(), None)
        if wrong is not None:
            yield Fault((), f"its schema is wrong: {wrong.message}")
            return
        try:
            for error in self._validator.iter_errors(value):
                yield Fault(tuple(error.absolute_path), _short(error.message))
        except Unresolvable as error:
            yield Fault((), f"its schema refers to {_short(str(getattr(error, 'ref', error)))!r}, which is not in it")
        except RecursionError:
            yield Fault((), "its schema refers to itself without an end")


def _short(message: str) -> str:
    return message if len(message) <= LONGEST else message[: LONGEST - 3] + "..."
