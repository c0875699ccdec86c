"""Time-bounded regular expression matching for untrusted patterns and strings.

Python's own search backtracks, which for some patterns takes practically forever. It is used only for patterns with few
ways to match; all others run as a nondeterministic automaton, in one pass over the string.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from math import inf, log2
from typing import Any, Final, NamedTuple

LONGEST: Final = 10_000  # characters of a string that a pattern is matched against
MOST_STATES: Final = 1_000  # states of a pattern, with its counted repeats expanded
_KEPT: Final = 1_000  # cached steps
_FEW: Final = 4  # bits: up to this many choices beside one open repeat are left to Python
_MOST_TRIES: Final = 10**8  # limit for Python's own search: some seconds
_SHORTEST: Final = 30  # characters; a pattern that is limited to shorter strings is rejected
_OPEN: Final = 8  # a repeat whose range is at least this wide counts as open
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_SIGNS: Final = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_ANCHORS: Final = ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING", "AT_BOUNDARY", "AT_NON_BOUNDARY")


class EndlessError(ValueError):
    """A pattern could run too long; the message explains why."""


class _MatchCount(NamedTuple):
    """How many ways a part may match a string: 2 to the power of `bits`, times the length to the power of `open`."""

    bits: float
    open: float

    @property
    def few(self) -> bool:
        return self.bits <= _FEW and self.open <= 1

    @property
    def longest(self) -> int:
        """The maximum length of a string for which Python's own search, which starts at each character, is fast."""
        least = (log2(_MOST_TRIES) - self.bits) / (self.open + 1)
        return min(LONGEST, int(2**least + 1e-6)) if least == least else 0  # noqa: PLR0124  (of endless ones NaN)


class Pattern:
    """A regular expression, searched for as `re.search` does.

    Attributes:
        simple: whether Python's own search is fast on any string.
        longest: maximum length of a string; small if the pattern has lookarounds and many ways to match.

    Raises:
        EndlessError: it has a lookahead or lookbehind and too many ways to match; or it is too large.
        re.error: it is not a regular expression.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self._own = re.compile(source)
            # the standard library's parser, which has no public name
            parsed = import_module("re._parser").parse(source)
        except (RecursionError, OverflowError) as error:
            raise EndlessError("it is too large") from error
        count = _count_matches(parsed)
        self.simple, self.longest, self._machine = count.few, LONGEST, None
        if not count.few:
            try:
                self._machine = _Machine(parsed)
            except EndlessError:
                self.longest = count.longest
                if self.longest < _SHORTEST:
                    raise

    def search(self, text: str) -> bool:
        """Return True if the pattern is found in a string no longer than `longest`."""
        return self._own.search(text) is not None if self._machine is None else self._machine.search(text)


@lru_cache(256)
def compile_pattern(source: str) -> Pattern:
    """Return a cached pattern. Raises the same errors as Pattern."""
    return Pattern(source)


def _count_matches(parts: Any) -> _MatchCount:
    bits, open_, lookarounds = 0.0, 0.0, 0.0
    for op, argument in parts:
        match str(op):
            case "ASSERT" | "ASSERT_NOT":  # evaluated once per way to reach it; how it matched is never revisited
                inner = _count_matches(argument[1])
                bits, lookarounds = bits + inner.bits, max(lookarounds, open_ + inner.open)
                continue
            case "SUBPATTERN":
                inner = _count_matches(argument[-1])
            case "ATOMIC_GROUP":
                inner = _count_matches(argument)
            case "BRANCH":
                counts = list(map(_count_matches, argument[1]))
                inner = _MatchCount(
                    log2(len(counts)) + max(count.bits for count in counts), max(count.open for count in counts)
                )
            case "GROUPREF_EXISTS":
                inner = _MatchCount(inf, inf)
            case word if word in _REPEATS:
                inner = _repeat(int(argument[0]), int(argument[1]), _count_matches(argument[2]))
            case _:
                inner = _MatchCount(0, 0)
        bits, open_ = bits + inner.bits, open_ + inner.open
    return _MatchCount(bits, max(open_, lookarounds))


def _repeat(minimum: int, maximum: int, inner: _MatchCount) -> _MatchCount:
    own = _MatchCount(0, 1) if maximum - minimum > _OPEN else _MatchCount(log2(maximum - minimum + 1), 0)
    return _MatchCount(own.bits + inner.bits * maximum, own.open + inner.open * maximum)


class _Machine:
    """A pattern as a nondeterministic automaton: all states are followed at once, character by character."""

    def __init__(self, parsed: Any) -> None:
        self.flags = parsed.state.flags
        if self.flags & (re.MULTILINE | re.ASCII):
            raise EndlessError("it has too many ways to match for a pattern with inline flags")
        # Per state: the test of a character (if any), the anchor (if any), and the successors.
        self.states: list[tuple[Any, str, tuple[int, ...]]] = [(None, "", ())]  # the first one is the end
        self.start = self.sequence(parsed, 0, self.flags)
        self.known: dict[Any, tuple[bool, frozenset[int]]] = {}

    def add_state(self, test: Any, anchor: str, *following: int) -> int:
        if len(self.states) >= MOST_STATES:
            raise EndlessError("it has too many ways to match, and is too large")
        self.states.append((test, anchor, following))
        return len(self.states) - 1

    def sequence(self, parts: Any, following: int, flags: int) -> int:
        """Return the start state of a sequence that leads to `following`."""
        for op, argument in reversed(list(parts)):
            following = self.part(str(op), op, argument, following, flags)
        return following

    def part(self, word: str, op: Any, argument: Any, following: int, flags: int) -> int:
        if word in _SIGNS:
            return self.add_state(_sign(op, argument, flags), "", following)
        if word == "AT" and str(argument) in _ANCHORS and not flags & re.MULTILINE:
            return self.add_state(None, str(argument), following)
        match word:
            case "SUBPATTERN":
                return self.sequence(argument[3], following, (flags | argument[1]) & ~argument[2])
            case "BRANCH":
                return self.add_state(None, "", *(self.sequence(branch, following, flags) for branch in argument[1]))
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self.repeat(int(argument[0]), argument[1], argument[2], following, flags)
        raise EndlessError("it has too many ways to match for a pattern with lookarounds or backreferences")

    def repeat(self, minimum: int, maximum: Any, inner: Any, following: int, flags: int) -> int:
        if str(maximum) == "MAXREPEAT":
            turn = self.add_state(None, "", following)
            self.states[turn] = (None, "", (self.sequence(inner, turn, flags), following))
            start = turn
        else:
            start = following
            for _ in range(int(maximum) - minimum):
                start = self.add_state(None, "", self.sequence(inner, start, flags), following)
        for _ in range(minimum):
            before = len(self.states)
            start = self.sequence(inner, start, flags)
            if len(self.states) == before:  # it is empty, however often it is repeated
                break
        return start

    def search(self, text: str) -> bool:
        states, last = frozenset[int](), len(text)
        for at in range(last + 1):
            following = text[at : at + 1]
            ending = at == last or (at == last - 1 and following == "\n")
            preceding = "" if at == 0 else "w" if _is_word(text[at - 1]) else "-"
            key = (states, preceding, following, ending)
            step = self.known.get(key)
            if step is None:
                if len(self.known) >= _KEPT:
                    self.known = {}
                step = self.known[key] = self.step(states, preceding, following, ending)
            matched, states = step
            if matched:
                return True
        return False

    def step(self, states: frozenset[int], before: str, after: str, ending: bool) -> tuple[bool, frozenset[int]]:
        """Return whether the end is reached before a character, and the states after it."""
        holds = {
            "": True,
            "AT_BEGINNING": not before,
            "AT_BEGINNING_STRING": not before,
            "AT_END": ending,
            "AT_END_STRING": not after,
            "AT_BOUNDARY": (before == "w") != _is_word(after),
            "AT_NON_BOUNDARY": (before == "w") == _is_word(after),
        }
        waiting, seen, behind = [self.start, *states], set[int](), set[int]()
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            if state == 0:
                return True, frozenset()
            seen.add(state)
            test, anchor, following = self.states[state]
            if test is None:
                waiting += following if holds[anchor] else ()
            elif after and test(after):
                behind.update(following)
        return False, frozenset(behind)


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _sign(op: Any, argument: Any, flags: int) -> Any:
    """Return the test of one character: a pattern for it alone, compiled by the standard library."""
    parser = import_module("re._parser")
    state = parser.State()
    state.flags = flags
    return import_module("re._compiler").compile(parser.SubPattern(state, [(op, argument)]), flags).fullmatch
