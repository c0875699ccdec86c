"""prompts: the prompt templates of an agentruntime file, compiled: who says what, with the partials put in.

A text is Jinja, and comes out as text always. `{{> name }}` and `{{ partial("name") }}` stand for a partial's text;
`{{ partial("name", {"x": expression}) }}` lays names over the board for it. `{{env.NAME}}`, alone, stands for a
variable of the environment, which is asked for when a session starts.

R171: a partial is named that there is not
R172: a partial is named otherwise than can be read
R173: the environment is used otherwise than by a lone {{env.NAME}}
R174: what lies over the board for a partial has no names
R175: partials stand in one another in a circle, or too deep
R301 to R305: as of every template; of one with its partials too
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentnb.errors import Place, Problem, RecipeError, did_you_mean
from agentnb.expressions.templates import Path as Read
from agentnb.expressions.templates import Template, compile_template, has_markers
from agentnb.sources import Path, Source, path_of

if TYPE_CHECKING:
    from agentnb.dialects.agentruntime.schema import PromptsConfig, PromptTemplate

__all__ = ["Prompt", "Prompts", "compile_prompts"]

Prompts = dict[str, tuple[tuple[str, "Prompt"], ...]]
_DEEPEST = 32
_NOTHING = "{{ '' }}"  # keeps Jinja from trimming what stands beside it, and a lone expression from being a value
# A mapping as it is written in a template, with two more inside one another: braces in quotes are none.
_PLAIN = r"""[^{}'"]|"[^"\n]*"|'[^'\n]*'"""
_FLAT = rf"\{{(?:{_PLAIN})*\}}"
_NESTED = rf"\{{(?:{_PLAIN}|{_FLAT})*\}}"
_LAID = rf"\{{(?:{_PLAIN}|{_NESTED})*\}}"
# Comments and raw text are passed over; each alternative goes on to where it ends, so that it is one walk.
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
    """One text of a prompt, compiled: `render(context)` gives it as text.

    `key` is what it is called in a mapping of the whole prompt: `system`, or `messages[0]#user`. `reads` are the paths
    of the board that it uses, `needs` the variables of the environment, which `with_env` gives. `source` is the text
    with its partials, `warning` what was odd about the last rendering.
    """

    def __init__(self, key: str, text: str, source: str, place: Place | None = None) -> None:
        """Compile a text (`source`, with the partials in it).

        Raises: RecipeError: R301 to R305
        """
        self.key, self.text, self.source, self.place, self.warning = key, text, source, place, ""
        whole = source if has_markers(source) else ""
        self._template = compile_template(whole + _NOTHING if whole else source, place=place)
        self._template.text = text
        lone = compile_template(whole, strict=False, place=place) if whole.lstrip().startswith("{{") else None
        self._lone: Template | None = lone if lone is not None and lone.native else None
        self._strict, self._env = True, dict[str, str]()
        self.reads: tuple[Read, ...] = tuple(path for path in self._template.reads if path[0] != "env")
        self.needs = tuple(dict.fromkeys(path[1] for path in self._template.reads if path[0] == "env"))

    def __repr__(self) -> str:
        return f"<Prompt {self.key} {self.text!r}>"

    def render(self, context: Mapping[str, Any]) -> str:
        """Return the text for these names. A lone expression that is undefined is no text, if not strict.

        Raises: ExecutionError: X321 to X324
        """
        names = ChainMap({"env": self._env}, context) if self.needs else context  # type: ignore[arg-type]  # is read
        self.warning = ""
        if self._lone is not None and not self._strict:
            self._lone.render(names)
            self.warning = self._lone.warning.replace("as None", "as no text")
        return "" if self.warning else str(self._template.render(names))

    def strictly(self, strict: bool) -> Prompt:
        """Return this text with another strictness about what is undefined."""
        return self if strict is self._strict else self._with("_strict", strict)

    def with_env(self, values: Mapping[str, str]) -> Prompt:
        """Return this text with the texts of the variables that it needs; what they hold is never compiled."""
        return self._with("_env", dict(values)) if self.needs else self

    def _with(self, name: str, value: Any) -> Prompt:
        other = copy(self)
        # Of a template's own: each rendering leaves its warning there.
        other._lone = copy(self._lone)  # noqa: SLF001
        setattr(other, name, value)
        return other


def compile_prompts(config: PromptsConfig, source: Source) -> tuple[Prompts, list[Problem]]:
    """Return the prompts by name, each as pairs of who speaks and the text, in the order that they are sent in.

    What cannot be compiled is left out, and told in the problems.
    """
    partials = _Partials(config.partials, source)
    found: Prompts = {}
    for name, template in config.templates.items():
        texts = [
            (role, partials.prompt(key, text, ("prompts", "templates", name, *path)))
            for role, key, text, path in _texts(template)
        ]
        found[name] = tuple((role, text) for role, text in texts if text is not None)
    return found, partials.problems


def _texts(template: PromptTemplate) -> Iterator[tuple[str, str, str, Path]]:
    """Yield (who speaks, key, text, path in the template) of each text that there is."""
    for role in ("system", "user", "assistant"):
        text = getattr(template, role)
        if text:
            yield role, role, text, (role,)
    for number, message in enumerate(template.messages):
        key = f"messages[{number}]#{message.role}"
        yield message.role, key, message.content, ("messages", number, "content")


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place in a text where a partial stands."""

    name: str
    laid: str  # the mapping that lies over the board for it, as it is written
    left: str
    right: str


def _mark(match: re.Match[str]) -> _Mark | None:
    """Return the mark that was found; None for a comment and for raw text."""
    name = match["name"] or match["called"]
    return None if name is None else _Mark(name, match["laid"] or "", match["left"], match["right"])


class _Partials:
    """The partials of one file: looked at once each, put into texts; what is wrong with any is in `problems`."""

    def __init__(self, partials: Mapping[str, str], source: Source) -> None:
        self.source, self.problems = source, list[Problem]()
        self.written = {name: text.removesuffix("\n") for name, text in partials.items()}
        self.full: dict[str, str | None] = {}  # None: something is wrong with it, and told
        self.around: list[str] = []
        for name in self.written:
            self._full(name)

    def prompt(self, key: str, text: str, path: Path) -> Prompt | None:
        """Return a text compiled with its partials; None where something is wrong with it."""
        text = text.removesuffix("\n")
        full = self._with_partials(text, path)
        try:
            return None if full is None else Prompt(key, text, full, self.source.place(path))
        except RecipeError as error:  # of the whole with its partials: it is too large, or nested too deep
            self.problems += error.problems
            return None

    def _full(self, name: str) -> str | None:
        """Return a partial's text with all partials in it; None where something is wrong with it.

        R175: partials stand in one another in a circle, or too deep.
        """
        told: tuple[str, str, str] | None = None
        if name in self.around:
            circle = " -> ".join([*self.around[self.around.index(name) :], name])
            told = f"the partials stand in one another: {circle}", "it would never end", "take one of them out"
        elif len(self.around) == _DEEPEST:
            deep = f"the partials stand in one another {_DEEPEST} deep"
            told = deep, "that is the limit", "put some of them together"
        if told is not None:
            (what, why, do), place = told, self.source.place(("prompts", "partials", name), key=True)
            self.problems.append(Problem("R175", what, str(place), why, do))
            return None
        if name not in self.full:
            self.around.append(name)
            self.full[name] = self._with_partials(self.written[name], ("prompts", "partials", name))
            self.around.pop()
        return self.full[name]

    def _with_partials(self, text: str, path: Path) -> str | None:
        """Return a text with all partials in it; None where something is wrong with it."""
        if not has_markers(text):
            return text
        problems = list(self._problems(text, path))
        self.problems += problems
        if problems:
            return None
        pieces: list[str] = []
        size = end = 0
        for match in _MARK.finditer(text):
            mark = _mark(match)
            if mark is None:
                continue
            partial = self._full(mark.name)
            if partial is None:
                return None
            pieces += [text[end : match.start()], _put_in(mark, partial)]
            end, size = match.end(), size + len(partial)
            if size > _longest():
                self.problems.append(_too_long(path, self.source))
                return None
        return "".join([*pieces, text[end:]])

    def _problems(self, text: str, path: Path) -> Iterator[Problem]:
        """Yield what is wrong with a text of its own: with its marks, else with its Jinja."""
        if len(text) > _longest():
            yield _too_long(path, self.source)
            return
        alone = _MARK.sub(_alone, text)
        problems = [*self._unknown(text, path), *self._unread(alone, path)]
        yield from problems or self._jinja_problems(alone, path) or self._nameless(text, path)

    def _unknown(self, text: str, path: Path) -> Iterator[Problem]:
        """R171: a partial is named that there is not."""
        for match in _MARK.finditer(text):
            mark = _mark(match)
            if mark is not None and mark.name not in self.written:
                yield Problem("R171", f"there is no partial {mark.name!r}", self._where(text, match, path),
                              f"the partials are: {', '.join(self.written) or 'none'}",
                              did_you_mean(mark.name, self.written, "write it under prompts.partials"))  # fmt: skip

    def _unread(self, alone: str, path: Path) -> Iterator[Problem]:
        """R172: a partial is named otherwise than can be read."""
        for match in _UNREAD.finditer(alone):
            if not _is_passed(match[0]):
                shown = alone[match.start() :].split("\n", 1)[0]
                shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
                yield Problem("R172", f"a partial is named in a way that cannot be read: {shown!r}",
                              self._where(alone, match, path),
                              "a partial stands alone in its braces, and its name is plain text",
                              'write {{> name }}, or {{ partial("name", {"x": 1}) }}')  # fmt: skip
                return  # what follows may be a part of it

    def _jinja_problems(self, alone: str, path: Path) -> list[Problem]:
        """R173: the environment is used otherwise than by a lone {{env.NAME}}."""
        from agentnb.expressions.grammar import Refused, compile_text

        try:
            compile_text(alone, bare=False)
            reads = compile_text(_ENV.sub(_NOTHING, alone), bare=False).reads if "env" in alone else ()
        except Refused as refused:
            return [
                Problem(code, f"{path_of(path)} {what}", str(_line(self.source, path, line)), why, order)
                for code, line, what, why, order in refused.refusals
            ]
        if all(read[0] != "env" for read in reads):
            return []
        return [
            Problem("R173", f"{path_of(path)} uses 'env' otherwise than alone", str(self.source.place(path)),
                    "{{env.NAME}} stands for the text of a variable; what is made of a secret cannot be hidden",
                    "write {{env.NAME}} alone; a key 'env' of the board is state.env")
        ]  # fmt: skip

    def _nameless(self, text: str, path: Path) -> Iterator[Problem]:
        """R174: what lies over the board for a partial has no names."""
        for match in _MARK.finditer(text):
            mark = _mark(match)
            if mark is not None and mark.laid and _names(mark.laid) is None:
                yield Problem("R174", f"what lies over the board for {mark.name!r} has no names",
                              self._where(text, match, path), "its keys are names, in quotes",
                              'write it as {"name": expression}')  # fmt: skip

    def _where(self, text: str, match: re.Match[str], path: Path) -> str:
        return str(_line(self.source, path, text.count("\n", 0, match.start()) + 1))


def _is_passed(text: str) -> bool:
    return text.startswith("{#") or bool(re.match(r"\{%-?\s*raw\b", text))


def _alone(match: re.Match[str]) -> str:
    """Return what stands for a mark while a text is looked at without its partials: as many lines, its names."""
    mark = _mark(match)
    if mark is None:
        return match[0]
    rest = "\n" * (match[0].count("\n") - mark.laid.count("\n"))
    return f"{{{{ {mark.laid or repr('')}{rest} }}}}"


def _put_in(mark: _Mark, partial: str) -> str:
    """Return what stands for a mark: the partial, in a loop of one turn that binds the names which lie over it."""
    text = f"{_NOTHING}{partial}{_NOTHING}"
    names = _names(mark.laid) if mark.laid else None
    if names:
        values = ", ".join(f"{mark.laid}[{name!r}]" for name in names)
        target, values = (names[0], values) if len(names) == 1 else (", ".join(names), f"({values})")
        text = f"{_NOTHING}{{% for {target} in [{values}] %}}{text}{{% endfor %}}{_NOTHING}"
    before, after = "{{- '' }}" if mark.left else "", "{{ '' -}}" if mark.right else ""
    return f"{before}{text}{after}"


def _names(laid: str) -> list[str] | None:
    """Return the keys of a mapping as it is written in a template; None where one of them is no name."""
    from agentnb.expressions.sandbox import Parser, Sandbox, nodes

    tree = Parser(Sandbox({}, {}), laid, state="variable").parse_expression()
    keys = [pair.key for pair in tree.items] if isinstance(tree, nodes.Dict) else []
    names = [key.value for key in keys if isinstance(key, nodes.Const)]
    plain = all(isinstance(name, str) and name.isidentifier() and name != "loop" for name in names)
    return list(dict.fromkeys(names)) if plain and len(names) == len(keys) else None


def _longest() -> int:
    from agentnb.expressions.grammar import MAX_LENGTH

    return MAX_LENGTH


def _too_long(path: Path, source: Source) -> Problem:
    """R302: a template is too large."""
    return Problem("R302", f"{path_of(path)} is too long", str(source.place(path)),
                   f"a template has at most {_longest():,} characters, its partials with it",
                   "write a shorter one; text without {{ }} may be longer")  # fmt: skip


def _line(source: Source, path: Path, line: int) -> Place:
    """Return the place of a line of a text: where the text is written as a block (`|`), that line of the file."""
    place = source.place(path)
    rows = source.text.split("\n") if source.text is not None else []
    here = rows[place.line - 1][place.column - 1 :] if 0 < place.line <= len(rows) else ""
    if not here.startswith("|") or place.line + line > len(rows):
        return place
    row = rows[place.line + line - 1]
    return place._replace(line=place.line + line, column=len(row) - len(row.lstrip()) + 1)
