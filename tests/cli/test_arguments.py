"""What the command understands, and what it says where it does not."""

from __future__ import annotations

import pytest

from agentnb.cli.arguments import ArgumentsError, make_parser


def refused(*words):
    with pytest.raises(ArgumentsError) as raised:
        make_parser().parse_args(words)
    (problem,) = raised.value.problems
    assert problem.code == "U906"
    return problem


def test_an_unknown_command_is_reported_with_the_available_ones():
    assert "'rn'" in refused("rn", "x.yaml").what
    assert "run" in refused("rn", "x.yaml").what


@pytest.mark.parametrize("word", ["--input", "--chaos"])
@pytest.mark.parametrize("value", ["alone", "=1"])
def test_an_assignment_has_a_key_and_a_value(word, value):
    problem = refused("run", "x.yaml", word, value)
    assert "KEY=VALUE" in problem.what
    assert problem.do == "see agentnb run --help"


def test_a_value_may_contain_the_separator():
    assert make_parser().parse_args(["run", "x.yaml", "-i", "a=b=c"]).inputs == [("a", "b=c")]


def test_options_cannot_be_abbreviated():
    assert "--scen" in refused("run", "x.yaml", "--scen").what


def test_run_without_options_has_the_defaults():
    args = make_parser().parse_args(["run", "x.yaml"])
    assert (args.inputs, args.scenarios, args.only, args.chaos, args.seed) == ([], False, [], [], 0)
