from __future__ import annotations

import asyncio
import json

import pytest

import agentnb as nb
from agentnb.dialects import polaris
from agentnb.secrets import hide
from agentnb.session.breakpoints import SessionBreakpoints
from tests.session.small_sessions import counting, graph, session

CLAUSES = [
    {"node": "check", "when": "n > 1", "side": "after", "on_hit": 2, "once": True},
    {"edge": ("check", "done"), "when": {">=": [{"var": "n"}, 3]}},
    {"key": "n.deep", "error": "ValueError", "step": 3},
    {"call": "tool"},
    {"when": True},
]


def pointed(*clauses):
    run = session(counting(), {"n": 0})
    for each in clauses or CLAUSES:
        run.breakpoints.add(**each)
    return run


def problems(act, *words):
    with pytest.raises(nb.AgentNbError) as caught:
        act(*words)
    return caught.value.problems


def plain(rows):
    return [{key: value for key, value in row.items() if key not in ("id", "hits")} for row in rows]


def test_saved_breakpoints_are_loaded_completely(tmp_path):
    run = pointed()
    next(iter(run.breakpoints)).enabled = False
    path = run.breakpoints.save(tmp_path / "points.json")
    other = session(counting(), {"n": 0})
    loaded = other.breakpoints.load(str(path))
    assert tuple(other.breakpoints) == loaded
    assert plain(other.breakpoints.to_rows()) == plain(run.breakpoints.to_rows())
    assert [row.enabled for row in loaded] == [False, True, True, True, True]
    assert [str(row) for row in loaded] == [str(row) for row in run.breakpoints]


def test_loaded_breakpoints_stop_the_run_and_start_without_hits(tmp_path):
    run = pointed({"node": "check"})
    run.run()
    run.breakpoints.save(tmp_path / "points.json")
    other = session(counting(), {"n": 0})
    (point,) = other.breakpoints.load(tmp_path / "points.json")
    assert point.hits == 0
    other.run()
    assert (other.position, other.stopped_by, point.hits) == (1, point, 1)


def test_load_adds_to_existing_breakpoints(tmp_path):
    run = pointed({"node": "check"})
    run.breakpoints.load(run.breakpoints.save(tmp_path / "points.json"))
    assert [(row.id, row.node) for row in run.breakpoints] == [(1, "check"), (2, "check")]


def test_the_file_is_readable_and_editable_json(tmp_path):
    path = pointed({"node": "check", "when": "n > 1"}).breakpoints.save(tmp_path / "points.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["rows"] == [
        {"node": "check", "when": "n > 1", "side": "before", "on_hit": 1, "once": False, "enabled": True}
    ]
    document["rows"].append({"node": "done"})
    path.write_text(json.dumps(document), encoding="utf-8")
    other = session(counting(), {"n": 0})
    other.breakpoints.load(path)
    assert [row.node for row in other.breakpoints] == ["check", "done"]


def test_a_function_cannot_be_saved_and_no_file_is_written(tmp_path):
    run = pointed({"node": "check"}, {"when": lambda board: board["n"] > 1}, {"when": {"in": [1, (2, 3)]}})
    reported = problems(run.breakpoints.save, tmp_path / "points.json")
    assert [problem.code for problem in reported] == ["X131", "X131"]
    assert "breakpoint 2" in reported[0].what
    assert "board['n'] > 1" in reported[0].what
    assert list(tmp_path.iterdir()) == []


def test_a_secret_is_masked(tmp_path):
    hide("s3cr3t-4711")
    run = pointed({"when": "n == 's3cr3t-4711'"})
    (problem,) = problems(run.breakpoints.save, tmp_path / "points.json")
    assert problem.code == "X132"
    assert "4711" not in str(problem)
    assert run.breakpoints.to_rows() == []
    assert "4711" not in run.breakpoints.to_frame().to_string()


def test_a_missing_node_is_a_problem_and_nothing_is_loaded(tmp_path):
    run = pointed({"node": "check"}, {"node": "done"}, {"edge": ("check", "done")})
    path = run.breakpoints.save(tmp_path / "points.json")
    other = session(graph("check", "b"))
    reported = problems(other.breakpoints.load, path)
    assert [(problem.code, problem.where.rpartition(", ")[2]) for problem in reported] == [
        ("X101", "breakpoint 2"), ("X101", "breakpoint 3"),
    ]  # fmt: skip
    assert len(other.breakpoints) == 0


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"agentnb": "breakpoints"}', '{"agentnb": "breakpoints", "rows": [{"nod": 1}]}', "[" * 99999],
)
def test_an_invalid_breakpoint_file_is_reported(tmp_path, text):
    file = tmp_path / "points.json"
    file.write_text(text, encoding="utf-8")
    assert problems(session(counting()).breakpoints.load, file)[0].code == "X134"


def test_unknown_clauses_are_reported_as_by_add(tmp_path):
    file = tmp_path / "points.json"
    rows = [{}, {"node": "check", "side": "left"}, {"node": 5}, {"when": "n =="}, {"edge": "check"}]
    file.write_text(json.dumps({"agentnb": "breakpoints", "rows": rows}), encoding="utf-8")
    run = session(counting())
    assert [problem.code for problem in problems(run.breakpoints.load, file)][:3] == ["X116", "X120", "X101"]
    assert len(run.breakpoints) == 0


def test_an_unreadable_or_unwritable_file_is_reported(tmp_path):
    run = pointed({"node": "check"})
    for action in (run.breakpoints.load, run.breakpoints.save):
        (problem,) = problems(action, tmp_path / "nowhere" / "points.json")
        assert (problem.code, problem.why) == ("X133", "No such file or directory")


def test_breakpoints_are_restored_with_their_ids_and_hits():
    run = pointed()
    run.breakpoints.remove(1)
    run.breakpoints.add("check", on_hit=3)
    run.run()
    rows = json.loads(json.dumps(run.breakpoints.to_rows()))
    other = session(counting(), {"n": 0})
    other.breakpoints.from_rows(rows)
    assert other.breakpoints.to_rows() == run.breakpoints.to_rows()
    assert [row.id for row in other.breakpoints] == [2, 3, 4, 5, 6]
    assert other.breakpoints.add("done").id == 7


def test_breakpoints_without_their_node_are_omitted():
    run = pointed({"node": "check"}, {"node": "done"}, {"when": lambda board: True})
    rows = run.breakpoints.to_rows()
    other = session(graph("check", "b"))
    other.breakpoints.from_rows(rows)
    assert [(row["id"], row["node"]) for row in rows] == [(1, "check"), (2, "done")]
    assert [row.node for row in other.breakpoints] == ["check"]


def test_breakpoints_can_be_shown_as_a_table():
    frame = pointed().breakpoints.to_frame()
    assert frame["id"].tolist() == [1, 2, 3, 4, 5]
    assert frame["when"].tolist()[:2] == ["n > 1", "n >= 3"]
    assert (frame["edge"][1], frame["step"][2], frame["node"].isna().sum()) == (("check", "done"), 3, 4)
    assert {name: str(kind) for name, kind in frame.dtypes.items() if name in ("step", "hits", "once")} == {
        "step": "Int64", "hits": "int64", "once": "bool",
    }  # fmt: skip
    empty = session(counting()).breakpoints.to_frame()
    assert (len(empty), list(empty.columns)) == (0, list(frame.columns))


def test_only_public_methods_convert_their_arguments():
    converts = {name for name in dir(SessionBreakpoints) if hasattr(getattr(SessionBreakpoints, name), "__wrapped__")}
    assert {"add", "remove"} <= converts
    at_each_step = {"find_after_step", "find_before_step", "find_at_call", "find_met"}  # called by the engine
    assert at_each_step <= set(dir(SessionBreakpoints)) - converts


def side_by_side():
    """Return a session whose two branches have two asynchronous nodes each, which end at the same moments."""

    def branch(*names):
        def build(made):
            for name in names:

                async def rest():
                    await asyncio.sleep(0)
                    return 1.5

                rest.__name__ = name
                made.add_system(rest)

        return build

    graph = polaris.Graph().add_parallel("both", [branch("left", "left_end"), branch("right", "right_end")])
    return nb.Session(nb.load(graph))


def test_branches_that_end_at_a_stop_count_no_hits():
    run = side_by_side()
    first, second = (run.breakpoints.add(node=name, side="after") for name in ("left", "right"))
    asyncio.run(run.arun())
    assert (run.status, run.stopped_by, first.hits, second.hits) == ("paused", first, 1, 0)


def test_a_node_of_a_concurrent_branch_is_a_hit_once():
    run = side_by_side()
    rows = [run.breakpoints.add(node=name, on_hit=9) for name in ("left", "left_end", "right", "right_end")]
    asyncio.run(run.arun())
    assert (run.status, [row.hits for row in rows]) == ("finished", [1, 1, 1, 1])


@pytest.mark.parametrize(
    ("clauses", "stop"),
    [
        ({"node": "right"}, (2, "right")),
        ({"node": "right", "side": "after"}, (3, "left_end")),
        ({"node": "right", "when": lambda board: "left" not in board}, (2, "right")),
        ({"node": "right", "when": lambda board: "left" in board}, (7, None)),
        ({"node": "right", "step": 1}, (2, "right")),  # its branch has begun after step 1, with the other
        ({"node": "right", "step": 2}, (7, None)),
        ({"node": "right_end", "step": 2}, (7, None)),
        ({"node": "right_end", "step": 3}, (4, "right_end")),
        *(({"node": "right", clause: value}, (7, None)) for clause, value in [
            ("error", False), ("key", "both"), ("event", "x"), ("in_place", True), ("no_progress", True),
            ("edge", ("left", "left_end")), ("budget", 0.1),
        ]),
        ({"node": "both"}, (0, "both")),
        ({"node": "both", "side": "after"}, (6, "both_join")),
    ],
)  # fmt: skip
def test_all_clauses_must_hold_before_a_node_of_a_concurrent_branch(clauses, stop):
    run = side_by_side()
    point = run.breakpoints.add(**clauses)
    asyncio.run(run.arun())
    assert (run.position, run.current) == stop
    assert (run.stopped_by is point, point.hits) == (stop[1] is not None, int(stop[1] is not None))


def test_a_disabled_breakpoint_of_a_branch_is_not_met():
    run = side_by_side()
    run.breakpoints.add(node="right").enabled = False
    asyncio.run(run.arun())
    assert run.status == "finished"


@pytest.mark.parametrize(
    ("wanted", "stops"),
    [(True, True), (False, False), ("KeyError", True), ("LookupError", True), ("Exception", True), ("OSError", False)],
)
def test_a_reopened_run_knows_the_classes_of_its_errors(wanted, stops, tmp_path):
    def fails(board):
        return board["nothing"]

    store = tmp_path / "runs.db"
    run = session(graph("a", "b", b=fails), store=store, run_id="r")
    run.run()
    run.close()
    opened = nb.open(store, "r")
    point = opened.breakpoints.add(node="b", side="after", error=wanted)
    opened.goto(1)
    opened.goto(2)
    assert opened.breakpoints.find_met(opened._parts.run, opened.board) is (point if stops else None)
