"""Templates: text with {{ }} in it, compiled and checked when a recipe is loaded, rendered within limits.

A template that is exactly one `{{ expression }}` renders to the expression's value; any other renders to text. Text
without `{{`, `{%`, `{#` is not a template and is returned unchanged. Values of the board are never compiled.

R301: a template does not parse
R302: a template is too large
R303: a template uses an unknown filter or test
R304: a template uses a name or calls a method that is not allowed
R305: a template uses a part of Jinja that is not allowed
X321: a template reads an undefined value
X322: a template exceeded a limit on what it may build or loop over
X323: a template accessed something that is not allowed
X324: a template failed while it was rendered
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.errors import AgentNbError, ExecutionError, Place, Problem, RecipeError, did_you_mean
from agentnb.expressions.lookup import NOTHING, get_value
from agentnb.text import safe_repr, safe_str

if TYPE_CHECKING:
    from agentnb.expressions.sandbox import Program, UndefinedError
    from agentnb.expressions.template_grammar import Compiled, Mention

__all__ = [
    "Line",
    "Origin",
    "Structure",
    "Template",
    "compile_expression",
    "compile_structure",
    "compile_template",
    "has_markers",
    "locate",
    "render_structure",
]

Path = tuple[str, ...]
Line = tuple[Place | None, str, int]  # the place of a text, the text, and the line in it
PlaceOf = Callable[[tuple[str | int, ...]], Place | None]
_MARKERS = ("{{", "{%", "{#")
_MAX_LEVELS = 64
_NOTHINGS = ("null", "nil", "undefined")


def locate(place: Place | None, text: str, line: int) -> str:
    """Return the position of a template's line, counted from 1: in its file, if known, and in the template."""
    location = str(place.of_line(line)) if place else "<text>"
    return f"{location}, line {line} of the template" if "\n" in text.rstrip() else location


def has_markers(text: str) -> bool:
    """Return True if text is a template: if it contains `{{`, `{%` or `{#`."""
    return any(marker in text for marker in _MARKERS)


class Origin(NamedTuple):
    """The source of a template that was assembled from several texts, and the place of each of its lines."""

    text: str
    lines: Sequence[Line]

    def where(self, line: int) -> str:
        """Return the position of a line, counted from 1, of the assembled text."""
        return locate(*self.lines[min(line, len(self.lines)) - 1])


class Template:
    """Compiled text: `render(context)` returns its value.

    `reads` are the paths that it uses, as deep as they are written. `native` is True if it is exactly one expression,
    whose value is returned as it is; `rule` is then the equivalent JsonLogic rule, if it contains only comparisons.
    `warning` describes a problem of the last rendering: an undefined expression that was taken as None.
    """

    __slots__ = (
        "_bare",
        "_origin",
        "_program",
        "_source",
        "native",
        "place",
        "reads",
        "rule",
        "strict",
        "text",
        "warning",
    )

    def __init__(
        self,
        source: str,
        compiled: Compiled | None,
        *,
        strict: bool,
        place: Place | None,
        bare: bool,
        origin: Origin | None,
    ) -> None:
        self._source, self.strict, self.place, self._bare, self._origin = source, strict, place, bare, origin
        self.text = source if origin is None else origin.text
        self._program: Program | None = compiled.program if compiled else None
        self.reads: tuple[Path, ...] = compiled.reads if compiled else ()
        self.native = compiled.native if compiled else False
        self.rule = compiled.rule if compiled else None
        self.warning = ""

    def __repr__(self) -> str:
        return f"<Template {safe_repr(self.text, 200)}>"

    def render(self, context: Mapping[str, Any]) -> Any:
        """Return the template's value for these names.

        Raises:
            ExecutionError: X321 to X324, with the template's text and place
        """
        if self._program is None:
            return self.text
        self.warning = ""
        try:
            value = self._program.run(context, self.strict)
        except AgentNbError:
            raise  # raised by the board
        except Exception as error:
            raise ExecutionError(self._make_problem(error, context)) from error
        if value is not NOTHING:
            return value
        self.warning = f"{_quote(self.text, bare=self._bare)} is undefined and was taken as None"
        return None

    def with_strictness(self, strict: bool) -> Template:
        """Return this template, compiled once, with another strictness."""
        if strict is self.strict:
            return self
        other = copy(self)
        other.strict, other.warning = strict, ""
        return other

    def explain(self, context: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return (path, value) for what it reads and, last, (text, value) for the whole."""
        rows = [(".".join(path), value) for path in self.reads if (value := get_value(context, path)) is not NOTHING]
        try:
            return [*rows, (self.text, self.render(context))]
        except ExecutionError as error:
            return [*rows, (self.text, f"fails: {error.problems[0].what}")]

    def _make_problem(self, error: Exception, context: Mapping[str, Any]) -> Problem:
        from agentnb.expressions.sandbox import Limit, SecurityError, UndefinedError

        line = self._program.line_of(error) if self._program else None
        what, where = _quote(self.text, bare=self._bare), self._format_where(line)
        match error:
            case UndefinedError():
                return self._make_undefined_problem(error, context, line or 1)
            case Limit() | RecursionError() | MemoryError():
                cause = str(error) if isinstance(error, Limit) else "a value that is nested too deeply or too large"
                why = f"it would build {cause}"
                order = "read less, or compute it in a node"
                return Problem("X322", f"{what} exceeds its limits", where, why, order)
            case SecurityError():
                order = "use a value or a filter, or compute it in a node"
                return Problem("X323", f"{what} accesses something that is not allowed", where, str(error), order)
        reason = f"{type(error).__name__}: {error}"
        order = "check the values it reads: session.board"
        return Problem("X324", f"{what} failed while it was rendered", where, reason, order)

    def _make_undefined_problem(self, error: UndefinedError, context: Mapping[str, Any], line: int) -> Problem:
        """Return the Problem of an undefined name, with the names that exist."""
        from agentnb.expressions.sandbox import MissingError

        what, where = _quote(self.text, bare=self._bare), self._format_where(line)
        if "inline if-expression" in str(error):
            why = "its `if` condition is false, and there is no `else`"
            return Problem("X321", f"{what} has no value", where, why, "add an else: x if test else ''")
        gap = error if isinstance(error, MissingError) else None
        missing = self._list_missing(error, context, line)
        texts = list(dict.fromkeys(each.text for each in missing)) or ([safe_str(gap.key, 200)] if gap else [])
        order = "write it first, or give a default: |default('')"
        if not texts:
            return Problem("X321", f"{what} reads an undefined value", where, str(error), order)
        what = f"{what} reads {' or '.join(map(repr, texts))}, which is not defined"
        where = self._format_where(missing[0].line) if missing else where
        holder, key = (gap.holder, safe_str(gap.key, 200)) if gap else (context, texts[0])
        if not isinstance(holder, Mapping):
            return Problem("X321", what, where, str(error), order)
        of = "the board" if gap is None else repr(missing[0].holder) if len(texts) == len(missing) == 1 else "the value"
        known = [str(name) for name in holder]
        why = f"{of} has: {', '.join(known[:20]) or 'no names'}"
        if gap is None and key in _NOTHINGS:
            order = "write none"
        return Problem("X321", what, where, why, did_you_mean(key, known, order))

    def _list_missing(self, error: UndefinedError, context: Mapping[str, Any], line: int) -> list[Mention]:
        """Return the undefined values that the template reads: those of the first line from `line` on that has any."""
        from agentnb.expressions.sandbox import MissingError
        from agentnb.expressions.template_grammar import list_mentions

        mentions = [
            each
            for each in list_mentions(self._source, bare=self._bare)
            if each.line >= line and (each.path is None or get_value(context, each.path) is NOTHING)
        ]
        if not isinstance(error, MissingError):
            return [each for each in mentions if not each.holder and str(error) == f"{each.key!r} is undefined"][:1]
        kind = type(error.key)  # another type may be undefined itself, or an object with its own `==`
        named = [each for each in mentions if each.holder and type(each.key) is kind and each.key == error.key]
        mentions = named or [each for each in mentions if each.holder and each.key is None]
        first = min((each.line for each in mentions), default=None)
        return [each for each in mentions if each.line == first]

    def _format_where(self, line: int | None) -> str:
        if line is None:
            return str(self.place or "<text>")
        return locate(self.place, self._source, line) if self._origin is None else self._origin.where(line)


class Structure:
    """Dicts and lists that contain templates, compiled. Only values are rendered, never keys."""

    __slots__ = ("_again", "_build", "_templates", "reads")

    def __init__(self, build: _Build, templates: Sequence[Template], again: Callable[[bool], Structure]) -> None:
        self._build, self._templates, self._again = build, tuple(templates), again
        self.reads: tuple[Path, ...] = tuple(dict.fromkeys(path for each in templates for path in each.reads))

    def __repr__(self) -> str:
        return f"<Structure of {safe_repr([template.text for template in self._templates], 200)}>"

    @property
    def warning(self) -> str:
        """A warning about the last rendering of its templates; empty if there is none."""
        return "; ".join(template.warning for template in self._templates if template.warning)

    def render(self, context: Mapping[str, Any]) -> Any:
        """Return a new structure of the same shape with all templates rendered."""
        return self._build(context)

    def with_strictness(self, strict: bool) -> Structure:
        """Return this structure with another strictness of its templates."""
        return self if all(each.strict is strict for each in self._templates) else self._again(strict)


def compile_template(
    text: str, *, strict: bool = True, place: Place | None = None, origin: Origin | None = None
) -> Template:
    """Compile text with `{{ }}` in it; `origin` is the source if it was assembled from several texts.

    If not `strict`, an undefined lone expression is None; everywhere else, an undefined value is an error.

    Raises:
        RecipeError: R301 to R305, every problem of the template
    """
    return _compile(text, strict=strict, place=place, bare=False, origin=origin)


def compile_expression(text: str, *, strict: bool = True, place: Place | None = None) -> Template:
    """Compile an expression without braces, such as `score > 3`; otherwise like `compile_template`."""
    return _compile(text, strict=strict, place=place, bare=True)


def _ignore_path(_: tuple[str | int, ...]) -> None:
    return None


def compile_structure(value: Any, *, strict: bool = True, get_place: PlaceOf = _ignore_path) -> Structure:
    """Compile all templates in dict values, lists and text; `get_place` returns the place of the part at a path.

    Raises:
        RecipeError: every problem of every template in it
    """
    building = _StructureCompiler(get_place, strict=strict)
    build = building.build_of(value, ())
    if building.problems:
        raise RecipeError(*building.problems)
    return Structure(
        build, building.templates, lambda again: compile_structure(value, strict=again, get_place=get_place)
    )


def render_structure(value: Any, context: Mapping[str, Any], *, strict: bool = True) -> Any:
    """Compile and render a structure at once. To render it repeatedly, compile it first."""
    return compile_structure(value, strict=strict).render(context)


# ------------------------------------------------------------------------------------------------------------ compiling


def _compile(text: str, *, strict: bool, place: Place | None, bare: bool, origin: Origin | None = None) -> Template:
    if not bare and not has_markers(text):
        return Template(text, None, strict=strict, place=place, bare=bare, origin=origin)
    from agentnb.expressions.template_grammar import TemplateRefused, compile_text

    try:
        compiled = compile_text(text, bare=bare)
    except TemplateRefused as refused:
        quoted = _quote(text if origin is None else origin.text, bare=bare)
        problems = [
            Problem(
                code,
                f"{quoted} {what}",
                locate(place, text, line) if origin is None else origin.where(line),
                why,
                do,
            )
            for code, line, what, why, do in refused.refusals
        ]
        raise RecipeError(*problems) from None
    return Template(text, compiled, strict=strict, place=place, bare=bare, origin=origin)


_Build = Callable[[Mapping[str, Any]], Any]


class _StructureCompiler:
    """One walk through a structure; fills `templates` and `problems`."""

    def __init__(self, get_place: PlaceOf, *, strict: bool) -> None:
        self.get_place, self.strict = get_place, strict
        self.templates: list[Template] = []
        self.problems: list[Problem] = []

    def build_of(self, value: Any, path: tuple[str | int, ...]) -> _Build:
        """Return a function that builds `value`, the part at a path, for a context."""
        if len(path) > _MAX_LEVELS:
            self.problems.append(_make_depth_problem(self.get_place(path)))
        elif isinstance(value, dict):
            fields = [(key, self.build_of(item, (*path, key))) for key, item in value.items()]
            return lambda context: {key: build(context) for key, build in fields}
        elif isinstance(value, list):
            items = [self.build_of(item, (*path, at)) for at, item in enumerate(value)]
            return lambda context: [build(context) for build in items]
        elif isinstance(value, str) and has_markers(value):
            try:
                self.templates.append(compile_template(value, strict=self.strict, place=self.get_place(path)))
            except RecipeError as error:
                self.problems += error.problems
            else:
                return self.templates[-1].render
        return lambda _: value


def _make_depth_problem(place: Place | None) -> Problem:
    what = f"values are nested more than {_MAX_LEVELS} levels deep"
    return Problem(
        "R302", what, str(place or "<text>"), "the recipe is nested too deeply, or contains itself", "flatten it"
    )


# -- messages ------------------------------------------------------------------------------------------------------


def _quote(text: str, *, bare: bool) -> str:
    shown = text if len(text) <= 200 else f"{text[:199]}…"
    return f"the {'expression' if bare else 'template'} {shown!r}"
