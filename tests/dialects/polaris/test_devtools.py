from __future__ import annotations

import logging

import agentnb as nb
from agentnb.dialects.polaris import DevToolsPlugin, Graph, HooksAPI, Res, SystemInfo, system
from tests.dialects.polaris.polaris_graphs import execute, plan


@system
def who(info: Res[SystemInfo]) -> str:
    return f"{info.node_id} {info.system_name}"


def test_a_system_knows_which_node_it_is_in_branches_too():
    graph = Graph().add_system(who).add_parallel("both", [plan, lambda g: g.add_system(who)])
    result = execute(graph, hooks=DevToolsPlugin().build())
    assert result.trace.steps[0].outputs["builtins.str"] == "who who"
    assert result.output(str) == "who_2 who"


def test_a_devtools_plugin_can_be_passed_as_hooks():
    assert execute(Graph().add_system(who), hooks=DevToolsPlugin()).output(str) == "who who"
    session = nb.Session(nb.load(Graph().add_system(who)), hooks=DevToolsPlugin())
    session.run()
    assert session.board["builtins.str"] == "who who"


def test_it_can_be_combined_with_other_hooks_and_logs_to_a_given_logger(caplog):
    api, seen = HooksAPI(), []
    api.register("OnSystemStart", "seen", seen.append)
    with caplog.at_level(logging.DEBUG, logger="agentnb.polaris"):
        execute(Graph().add_system(who), hooks=DevToolsPlugin().with_event_tracing().build(api))
    assert api.names("OnSystemStart") == ["seen", "devtools", "devtools_tracing"]
    assert len(caplog.records) == 4
