from __future__ import annotations

import pytest

from agentnb.magics.line_parsing import split, split_name
from tests.magics.magic_texts import wrong
from tests.session.small_sessions import asking


@pytest.mark.parametrize("line", ["step x", "goto", "back -1", "goto 1.5"])
def test_a_number_is_required(agent, line):
    assert wrong(agent, line).code == "U401"


def test_a_stray_quote_is_part_of_its_word(agent, shell):
    graph = asking()
    del graph.nodes["ask"]["options"]
    agent("board", graph)
    agent("run")
    agent("answer it's fine")
    assert shell.user_ns["session"].board["answer"] == "it's fine"


@pytest.mark.parametrize(
    ("line", "words"), [("a 'b c' d", ["a", "b c", "d"]), ("it's", ["it's"]), ("", []), ('x "', ["x", '"'])]
)
def test_a_line_is_split_as_in_a_shell(line, words):
    assert split(line) == words


def test_the_name_after_as_is_split_off():
    assert split_name(["a", "b", "as", "c"], "x", "load") == ("a b", "c")
    assert split_name(["as"], "x", "load") == ("as", "x")
    assert wrong(split_name, [], "x", "load").code == "U401"
    assert wrong(split_name, ["a", "as", "b", "c"], "x", "load").code == "U401"
