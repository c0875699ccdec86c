"""templates: text with {{ }} in it, compiled and checked when a recipe is loaded, rendered within limits.

A template that is exactly one `{{ expression }}` gives the expression's own value; any other gives text. Text without
`{{`, `{%`, `{#` is no template and comes back as it is. What lies on the board is never compiled.

R301: a template cannot be read
R302: a template is too large
R303: a template uses a filter or a test that there is not
R304: a template uses a name or calls a method that it may not
R305: a template uses a part of Jinja that is not for templates
X321: a template reads what is not there
X322: a template built or walked over more than it may
X323: a template touched what it may not
X324: a template failed while it was rendered
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from agentnb.errors import AgentNbError, ExecutionError, Place, Problem, RecipeError, did_you_mean
from agentnb.expressions.reading import NOTHING, found_at, nearest

if TYPE_CHECKING:
    from agentnb.expressions.grammar import Compiled

__all__ = [
    "Structure",
    "Template",
    "compile_expression",
    "compile_structure",
    "compile_template",
    "has_markers",
    "render_structure",
]

Path = tuple[str, ...]
_MARKERS = ("{{", "{%", "{#")
_MAX_LEVELS = 64
_NOTHINGS = (("null",), ("nil",), ("undefined",))


def has_markers(text: str) -> bool:
    """Say whether text is a template: whether `{{`, `{%` or `{#` stands in it."""
    return any(marker in text for marker in _MARKERS)


class Template:
    """Compiled text: `render(context)` gives its value.

    `reads` are the paths that it uses, as deep as they are written out. `native` says that it is exactly one
    expression, whose value is given as it is. `warning` tells what was odd about the last rendering: an expression
    that is undefined and was taken as None.
    """

    __slots__ = ("_bare", "_run", "native", "place", "reads", "strict", "text", "warning")

    def __init__(self, text: str, compiled: Compiled | None, *, strict: bool, place: Place | None, bare: bool) -> None:
        self.text, self.strict, self.place, self._bare = text, strict, place, bare
        self._run: Callable[[Mapping[str, Any], bool], Any] | None = compiled.run if compiled else None
        self.reads: tuple[Path, ...] = compiled.reads if compiled else ()
        self.native = compiled.native if compiled else False
        self.warning = ""

    def __repr__(self) -> str:
        return f"<Template {self.text!r}>"

    def render(self, context: Mapping[str, Any]) -> Any:
        """Return the template's value for these names.

        Raises: ExecutionError: X321 to X324, with the template's text and place
        """
        if self._run is None:
            return self.text
        self.warning = ""
        try:
            value = self._run(context, self.strict)
        except AgentNbError:
            raise  # the board's own
        except Exception as error:
            raise ExecutionError(self._problem(error, context)) from error
        if value is not NOTHING:
            return value
        self.warning = f"{_quoted(self.text, bare=self._bare)} is undefined and was taken as None"
        return None

    def strictly(self, strict: bool) -> Template:
        """Return this template, compiled once, with another strictness."""
        if strict is self.strict:
            return self
        other = copy(self)
        other.strict, other.warning = strict, ""
        return other

    def explain(self, context: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return (path, value) of what it reads and, last, (text, value) of the whole."""
        rows = [(".".join(path), value) for path in self.reads if (value := found_at(context, path)) is not NOTHING]
        try:
            return [*rows, (self.text, self.render(context))]
        except ExecutionError as error:
            return [*rows, (self.text, f"fails: {error.problems[0].what}")]

    def _problem(self, error: Exception, context: Mapping[str, Any]) -> Problem:
        from agentnb.expressions.sandbox import Limit, SecurityError, UndefinedError

        what, where = _quoted(self.text, bare=self._bare), _where(self.place, self.text, 1)
        match error:
            case UndefinedError():
                return self._undefined(error, context)
            case Limit() | RecursionError() | MemoryError():
                asked = str(error) if isinstance(error, Limit) else "what is nested too deep or too large to hold"
                why = f"it asks for {asked}"
                order = "read less of it, or let a node work it out"
                return Problem("X322", f"{what} asks for too much", where, why, order)
            case SecurityError():
                order = "use a value or a filter, or let a node work it out"
                return Problem("X323", f"{what} touches what it may not", where, str(error), order)
        reason = f"{type(error).__name__}: {error}"
        order = "look at the values that it reads: session.board"
        return Problem("X324", f"{what} failed while it was rendered", where, reason, order)

    def _undefined(self, error: Exception, context: Mapping[str, Any]) -> Problem:
        """Return the Problem of a name that is not there, with the names that are."""
        what, where = _quoted(self.text, bare=self._bare), _where(self.place, self.text, 1)
        order = "write it before, or give a default: |default('')"
        gaps = [gap for path in self.reads if (gap := nearest(context, path))]
        # Others may be missing as well, behind a default; Jinja names the one that hurt.
        gap = next((gap for gap in gaps if repr(gap[0][-1]) in str(error)), None)
        if "inline if-expression" in str(error):
            why = "the test of its if does not hold, and there is no else"
            return Problem("X321", f"{what} has no value", where, why, "write the else: x if test else ''")
        if gap is None:
            return Problem("X321", f"{what} reads what is not there", where, str(error), order)
        path, known = gap
        holder = repr(".".join(path[:-1])) if len(path) > 1 else "the board"
        why = f"{holder} has: {', '.join(known[:20]) or 'no names'}"
        what = f"{what} reads {'.'.join(path)!r}, which is not there"
        if path in _NOTHINGS:
            order = "write none"
        return Problem("X321", what, where, why, did_you_mean(path[-1], known, order))


class Structure:
    """Dicts and lists with templates in them, compiled: only values are rendered, never keys."""

    __slots__ = ("_again", "_build", "_templates", "reads")

    def __init__(self, build: _Build, templates: Sequence[Template], again: Callable[[bool], Structure]) -> None:
        self._build, self._templates, self._again = build, tuple(templates), again
        self.reads: tuple[Path, ...] = tuple(dict.fromkeys(path for each in templates for path in each.reads))

    def __repr__(self) -> str:
        return f"<Structure of {[template.text for template in self._templates]!r}>"

    @property
    def warning(self) -> str:
        """What was odd about the last rendering of its templates."""
        return "; ".join(template.warning for template in self._templates if template.warning)

    def render(self, context: Mapping[str, Any]) -> Any:
        """Return a new structure of the same shape with every template rendered."""
        return self._build(context)

    def strictly(self, strict: bool) -> Structure:
        """Return this structure with another strictness of its templates."""
        return self if all(each.strict is strict for each in self._templates) else self._again(strict)


def compile_template(text: str, *, strict: bool = True, place: Place | None = None) -> Template:
    """Compile text with `{{ }}` in it.

    If not `strict`, an undefined lone expression is None; anywhere else what is undefined is an error.

    Raises: RecipeError: R301 to R305, every problem of the template
    """
    return _compiled(text, strict=strict, place=place, bare=False)


def compile_expression(text: str, *, strict: bool = True, place: Place | None = None) -> Template:
    """Compile an expression without braces, such as `score > 3`; else as `compile_template`."""
    return _compiled(text, strict=strict, place=place, bare=True)


def compile_structure(value: Any, *, strict: bool = True, place: Place | None = None) -> Structure:
    """Compile every template in dicts' values, lists and text.

    Raises: RecipeError: every problem of every template in it
    """
    building = _Building(strict=strict)
    build = building.build_of(value, place)
    if building.problems:
        raise RecipeError(*building.problems)
    return Structure(build, building.templates, lambda again: compile_structure(value, strict=again, place=place))


def render_structure(value: Any, context: Mapping[str, Any], *, strict: bool = True) -> Any:
    """Compile and render a structure at once; for one that is rendered again, compile it."""
    return compile_structure(value, strict=strict).render(context)


# ------------------------------------------------------------------------------------------------------------ compiling


def _compiled(text: str, *, strict: bool, place: Place | None, bare: bool) -> Template:
    if not bare and not has_markers(text):
        return Template(text, None, strict=strict, place=place, bare=bare)
    from agentnb.expressions.grammar import Refused, compile_text

    try:
        compiled = compile_text(text, bare=bare)
    except Refused as refused:
        quoted = _quoted(text, bare=bare)
        problems = [
            Problem(code, f"{quoted} {what}", _where(place, text, line), why, do)
            for code, line, what, why, do in refused.refusals
        ]
        raise RecipeError(*problems) from None
    return Template(text, compiled, strict=strict, place=place, bare=bare)


_Build = Callable[[Mapping[str, Any]], Any]


class _Building:
    """One walk through a structure; what it finds on the way is in `templates` and `problems`."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.templates: list[Template] = []
        self.problems: list[Problem] = []

    def build_of(self, value: Any, place: Place | None, level: int = 0) -> _Build:
        """Return a function that builds `value` anew for a context."""
        if level > _MAX_LEVELS:
            self.problems.append(_too_deep(place))
        elif isinstance(value, dict):
            fields = [(key, self.build_of(item, _inside(place, key), level + 1)) for key, item in value.items()]
            return lambda context: {key: build(context) for key, build in fields}
        elif isinstance(value, list):
            items = [self.build_of(item, _inside(place, at), level + 1) for at, item in enumerate(value)]
            return lambda context: [build(context) for build in items]
        elif isinstance(value, str) and has_markers(value):
            try:
                self.templates.append(compile_template(value, strict=self.strict, place=place))
            except RecipeError as error:
                self.problems += error.problems
            else:
                return self.templates[-1].render
        return lambda _: value


def _inside(place: Place | None, key: object) -> Place | None:
    if place is None:
        return None
    step = f"[{key}]" if isinstance(key, int) else f".{key}"
    return place._replace(path=f"{place.path}{step}".removeprefix("."))


def _too_deep(place: Place | None) -> Problem:
    what = f"values are nested over {_MAX_LEVELS} levels deep"
    return Problem("R302", what, _where(place, "", 1), "a recipe is not that deep, or it holds itself", "write it flat")


# -------------------------------------------------------------------------------------------------------------- wording


def _quoted(text: str, *, bare: bool) -> str:
    shown = text if len(text) <= 200 else f"{text[:199]}…"
    return f"the {'expression' if bare else 'template'} {shown!r}"


def _where(place: Place | None, text: str, line: int) -> str:
    spot = str(place) if place else "<text>"
    return f"{spot}, line {line} of the template" if "\n" in text.strip() else spot
