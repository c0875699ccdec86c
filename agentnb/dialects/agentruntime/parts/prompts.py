"""The prompt templates of an agentruntime file, compiled: the role and text of each message, with partials inserted.

A text is Jinja and always renders to text. `{{> name }}` and `{{ partial("name") }}` insert a partial's text; `{{
partial("name", {"x": expression}) }}` adds names to its context, over those of the board. A standalone `{{env.NAME}}`
inserts an environment variable, which is read when a session starts.

R171: a partial that does not exist is named
R172: a reference to a partial cannot be parsed
R173: the environment is used other than by a standalone {{env.NAME}}
R174: the context of a partial has no names
R175: partials include one another in a cycle, or are nested too deeply
R301 to R305: as of every template; of one with its partials too
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from agentnb.errors import Place, Problem, RecipeError, did_you_mean
from agentnb.expressions.templates import Line, Origin, Template, compile_template, has_markers, locate
from agentnb.expressions.templates import Path as Read
from agentnb.sources import Path, Source, format_path
from agentnb.text import safe_repr

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.schema import PromptsConfig, PromptTemplate

__all__ = ["Prompt", "Prompts", "compile_prompts"]

Prompts = dict[str, tuple[tuple[str, "Prompt"], ...]]
_DEEPEST = 32
_BREAK = "{{ ''\n}}"  # a line break of the template that produces no output, so that each line comes from one text
_NEWLINE = re.compile(r"\r\n|\r|\n")
_NOTHING = "{{ '' }}"  # keeps Jinja from trimming the surroundings, and a lone expression from returning a value
# A mapping literal in a template, with up to two nested levels; braces in quotes do not count.
_PLAIN = r"""[^{}'"]|"[^"\n]*"|'[^'\n]*'"""
_FLAT = rf"\{{(?:{_PLAIN})*\}}"
_NESTED = rf"\{{(?:{_PLAIN}|{_FLAT})*\}}"
_LAID = rf"\{{(?:{_PLAIN}|{_NESTED})*\}}"
# Comments and raw text are skipped; each alternative matches to its end, so that one pass is enough.
_PASSED = r"\{\#.*?(?:\#\}|\Z)|\{%-?\s*raw\s*-?%\}.*?(?:\{%-?\s*endraw\s*-?%\}|\Z)"
_MARK = re.compile(
    rf"""{_PASSED}|\{{\{{(?P<left>-?)\s*(?:
        >\s*(?P<name>[A-Za-z0-9_/.-]+?)
        |partial\(\s*(?P<quote>['"])(?P<called>[^'"\n]*)(?P=quote)\s*(?:,\s*(?:overrides\s*=\s*)?(?P<laid>{_LAID})\s*)?\)
    )\s*(?P<right>-?)\}}\}}""",
    re.DOTALL | re.VERBOSE,
)
_UNREAD = re.compile(rf"{_PASSED}|\{{\{{-?\s*>|\{{[{{%](?:(?![%}}]\}}|\{{[{{%]).)*?\bpartial\s*\(", re.DOTALL)
_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*-?\}\}")


class Prompt:
    """One text of a compiled prompt: `render(context)` returns it as text.

    `key` identifies it in a mapping of the whole prompt: `system`, or `messages[0]#user`. `reads` are the board paths
    that it uses, `needs` the environment variables, which `with_env` inserts. `source` is the text with its partials,
    `warning` the warning of the last rendering.
    """

    def __init__(self, key: str, source: str, origin: Origin, place: Place) -> None:
        """Compile a text (`source`, including its partials).

        Raises:
            RecipeError: R301 to R305
        """
        self.key, self.text, self.source, self.place, self.warning = key, origin.text, source, place, ""
        whole = source if has_markers(source) else ""
        self._template = compile_template(whole + _NOTHING if whole else source, place=place, origin=origin)
        is_lone = whole.lstrip().startswith("{{")
        lone = compile_template(whole, strict=False, place=place, origin=origin) if is_lone else None
        self._lone: Template | None = lone if lone is not None and lone.native else None
        self._strict, self._env = True, dict[str, str]()
        self.reads: tuple[Read, ...] = tuple(path for path in self._template.reads if path[0] != "env")
        self.needs = tuple(dict.fromkeys(path[1] for path in self._template.reads if path[0] == "env"))

    def __repr__(self) -> str:
        return f"<Prompt {self.key} {safe_repr(self.text, 200)}>"

    def render(self, context: Mapping[str, Any]) -> str:
        """Return the text for these names. An undefined lone expression is an empty string, if not strict.

        Raises:
            ExecutionError: X321 to X324
        """
        names = ChainMap({"env": self._env}, context) if self.needs else context  # type: ignore[arg-type]  # is read
        self.warning = ""
        if self._lone is not None and not self._strict:
            self._lone.render(names)
            self.warning = self._lone.warning.replace("as None", "as no text")
        return "" if self.warning else str(self._template.render(names))

    def with_strictness(self, strict: bool) -> Prompt:
        """Return this text with a different strictness about undefined names."""
        return self if strict is self._strict else self._replace("_strict", strict)

    def with_env(self, values: Mapping[str, str]) -> Prompt:
        """Return this text with the values of the variables that it needs; the values are never compiled."""
        return self._replace("_env", dict(values)) if self.needs else self

    def _replace(self, name: str, value: Any) -> Prompt:
        other = copy(self)
        # Of a template's own: each rendering leaves its warning there.
        other._lone = copy(self._lone)  # noqa: SLF001
        setattr(other, name, value)
        return other


def compile_prompts(config: PromptsConfig, source: Source) -> tuple[Prompts, list[Problem]]:
    """Return the prompts by name, each as (role, text) pairs in the order in which they are sent.

    Texts that cannot be compiled are left out and reported as problems.
    """
    partials = _Partials(config.partials, source)
    compiled: Prompts = {}
    for name, template in config.templates.items():
        texts = [
            (role, partials.prompt(key, text, ("prompts", "templates", name, *path)))
            for role, key, text, path in _iter_texts(template)
        ]
        compiled[name] = tuple((role, text) for role, text in texts if text is not None)
    return compiled, partials.problems


def _iter_texts(template: PromptTemplate) -> Iterator[tuple[str, str, str, Path]]:
    """Yield (role, key, text, path in the template) of each text."""
    for role in ("system", "user", "assistant"):
        text = getattr(template, role)
        if text:
            yield role, role, text, (role,)
    for number, message in enumerate(template.messages):
        key = f"messages[{number}]#{message.role}"
        yield message.role, key, message.content, ("messages", number, "content")


@dataclass(frozen=True, slots=True)
class _PartialReference:
    """A reference to a partial in a text."""

    name: str
    context: str  # the mapping literal with the context of the partial
    left: str
    right: str


def _mark(match: re.Match[str]) -> _PartialReference | None:
    """Return the reference that was matched; None for a comment and for raw text."""
    name = match["name"] or match["called"]
    return None if name is None else _PartialReference(name, match["laid"] or "", match["left"], match["right"])


class _ExpandedText(NamedTuple):
    """A text with its partials inserted, and the source position of each of its lines."""

    text: str
    lines: Sequence[Line]


class _Partials:
    """The partials of one file: each is checked once and inserted into texts; `problems` holds the errors of all."""

    def __init__(self, partials: Mapping[str, str], source: Source) -> None:
        self.source, self.problems = source, list[Problem]()
        self.written = {name: text.removesuffix("\n") for name, text in partials.items()}
        self.full: dict[str, _ExpandedText | None] = {}  # None: it has errors, which are reported
        self.around: list[str] = []
        for name in self.written:
            self._expand_fully(name)

    def prompt(self, key: str, text: str, path: Path) -> Prompt | None:
        """Return a text compiled with its partials; None if it has errors."""
        text = text.removesuffix("\n")
        full = self._expand_partials(text, path)
        try:
            place = self.source.locate(path)
            return None if full is None else Prompt(key, full.text, Origin(text, full.lines), place)
        except RecipeError as error:  # the text with its partials is too large, or nested too deeply
            self.problems += error.problems
            return None

    def _expand_fully(self, name: str) -> _ExpandedText | None:
        """Return a partial's text with nested partials inserted; None if it has errors.

        R175: partials include one another in a cycle, or are nested too deeply.
        """
        problem: tuple[str, str, str] | None = None
        if name in self.around:
            circle = " -> ".join([*self.around[self.around.index(name) :], name])
            problem = f"the partials include one another: {circle}", "it would never end", "remove one of them"
        elif len(self.around) == _DEEPEST:
            deep = f"the partials are nested {_DEEPEST} levels deep"
            problem = deep, "that is the limit", "merge some of them"
        if problem is not None:
            (what, why, do), place = problem, self.source.locate(("prompts", "partials", name), key=True)
            self.problems.append(Problem("R175", what, str(place), why, do))
            return None
        if name not in self.full:
            self.around.append(name)
            self.full[name] = self._expand_partials(self.written[name], ("prompts", "partials", name))
            self.around.pop()
        return self.full[name]

    def _expand_partials(self, text: str, path: Path) -> _ExpandedText | None:
        """Return a text with all of its partials inserted; None if there are errors."""
        place = self.source.locate(path)
        own: tuple[Line, ...] = tuple((place, text, number) for number in range(1, _count_lines(text) + 2))
        if not has_markers(text):
            return _ExpandedText(text, own)
        problems = list(self._check_partials(text, path))
        self.problems += problems
        if problems:
            return None
        pieces: list[str] = []
        lines = [own[0]]
        row = size = end = 0
        for match in _MARK.finditer(text):
            mark = _mark(match)
            if mark is None:
                continue
            partial = self._expand_fully(mark.name)
            if partial is None:
                return None
            prefix, suffix = _wrap_context(mark)
            pieces += [text[end : match.start()], prefix, partial.text, suffix]
            first = row + _count_lines(text[end : match.start()])
            last = first + _count_lines(match[0])
            lines += own[row + 1 : first + 1]  # of the text before the mark
            lines += [own[first]] * (_count_lines(prefix) - 1) + [*partial.lines, own[last]]
            row, end, size = last, match.end(), size + len(partial.text)
            if size > _measure_longest():
                self.problems.append(_make_too_long_problem(path, self.source))
                return None
        return _ExpandedText("".join([*pieces, text[end:]]), (*lines, *own[row + 1 :]))

    def _check_partials(self, text: str, path: Path) -> Iterator[Problem]:
        """Yield the problems of one text: those of its references or, if there are none, those of its Jinja code."""
        if len(text) > _measure_longest():
            yield _make_too_long_problem(path, self.source)
            return
        alone = _MARK.sub(_make_placeholder, text)
        problems = [*self._check_unknown(text, path), *self._check_unread(alone, path)]
        yield from problems or self._check_jinja(alone, path) or self._check_nameless(text, path)

    def _check_unknown(self, text: str, path: Path) -> Iterator[Problem]:
        """R171: a partial that does not exist is named."""
        for match in _MARK.finditer(text):
            mark = _mark(match)
            if mark is not None and mark.name not in self.written:
                yield Problem("R171", f"there is no partial {mark.name!r}", self._format_where(text, match, path),
                              f"the partials are: {', '.join(self.written) or 'none'}",
                              did_you_mean(mark.name, self.written, "write it under prompts.partials"))  # fmt: skip

    def _check_unread(self, alone: str, path: Path) -> Iterator[Problem]:
        """R172: a reference to a partial cannot be parsed."""
        for match in _UNREAD.finditer(alone):
            if not _is_passed(match[0]):
                shown = alone[match.start() :].split("\n", 1)[0]
                shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
                yield Problem("R172", f"a reference to a partial cannot be parsed: {shown!r}",
                              self._format_where(alone, match, path),
                              "braces contain only the reference, and the name is plain text",
                              'write {{> name }}, or {{ partial("name", {"x": 1}) }}')  # fmt: skip
                return  # the following text may belong to it

    def _check_jinja(self, alone: str, path: Path) -> list[Problem]:
        """R173: the environment is used other than by a standalone {{env.NAME}}."""
        from agentnb.expressions.template_grammar import TemplateRefused, compile_text

        try:
            compile_text(alone, bare=False)
            reads = compile_text(_ENV.sub(_NOTHING, alone), bare=False).reads if "env" in alone else ()
        except TemplateRefused as refused:
            return [
                Problem(code, f"{format_path(path)} {what}", locate(self.source.locate(path), alone, line), why, order)
                for code, line, what, why, order in refused.refusals
            ]
        if all(read[0] != "env" for read in reads):
            return []
        return [
            Problem("R173", f"{format_path(path)} uses 'env' inside a larger expression", str(self.source.locate(path)),
                    "{{env.NAME}} is replaced with the variable's value; a result computed from it cannot be masked",
                    "write {{env.NAME}} alone; a key 'env' of the board is state.env")
        ]  # fmt: skip

    def _check_nameless(self, text: str, path: Path) -> Iterator[Problem]:
        """R174: the context of a partial has no names."""
        for match in _MARK.finditer(text):
            mark = _mark(match)
            if mark is not None and mark.context and _list_names(mark.context) is None:
                yield Problem("R174", f"the context of partial {mark.name!r} has no names",
                              self._format_where(text, match, path), "its keys must be quoted names",
                              'write it as {"name": expression}')  # fmt: skip

    def _format_where(self, text: str, match: re.Match[str], path: Path) -> str:
        return locate(self.source.locate(path), text, _count_lines(text[: match.start()]) + 1)


def _is_passed(text: str) -> bool:
    return text.startswith("{#") or bool(re.match(r"\{%-?\s*raw\b", text))


def _make_placeholder(match: re.Match[str]) -> str:
    """Return a placeholder for a reference, with as many lines and names, to check a text without its partials."""
    mark = _mark(match)
    if mark is None:
        return match[0]
    rest = "\n" * (match[0].count("\n") - mark.context.count("\n"))
    return f"{{{{ {mark.context or repr('')}{rest} }}}}"


def _wrap_context(mark: _PartialReference) -> tuple[str, str]:
    """Return the text before and after a partial: a loop with one iteration that binds the names of its context."""
    prefix, suffix = "{{- '' }}" if mark.left else "", "{{ '' -}}" if mark.right else ""
    names = _list_names(mark.context) if mark.context else None
    if not names:
        return f"{prefix}{_BREAK}", f"{_BREAK}{suffix}"
    values = ", ".join(f"{mark.context}[{name!r}]" for name in names)
    target, values = (names[0], values) if len(names) == 1 else (", ".join(names), f"({values})")
    loop = f"{{% for {target} in [{values}] %}}"
    return f"{prefix}{_NOTHING}{loop}{_BREAK}", f"{_BREAK}{{% endfor %}}{_NOTHING}{suffix}"


def _count_lines(text: str) -> int:
    """Return the number of line ends in a text, as Jinja counts them."""
    return len(_NEWLINE.findall(text))


def _list_names(laid: str) -> list[str] | None:
    """Return the keys of a mapping literal in a template; None if a key is not a name."""
    from agentnb.expressions.sandbox import Parser, Sandbox, nodes

    tree = Parser(Sandbox({}, {}), laid, state="variable").parse_expression()
    keys = [pair.key for pair in tree.items] if isinstance(tree, nodes.Dict) else []
    names = [key.value for key in keys if isinstance(key, nodes.Const)]
    plain = all(isinstance(name, str) and name.isidentifier() and name != "loop" for name in names)
    return names if plain and len(names) == len(keys) else None


def _measure_longest() -> int:
    from agentnb.expressions.template_grammar import MAX_LENGTH

    return MAX_LENGTH


def _make_too_long_problem(path: Path, source: Source) -> Problem:
    """R302: a template is too large."""
    return Problem("R302", f"{format_path(path)} is too long", str(source.locate(path)),
                   f"a template has at most {_measure_longest():,} characters, including its partials",
                   "shorten it; text without {{ }} may be longer")  # fmt: skip
