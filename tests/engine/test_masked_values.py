from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import networkx as nx
import pytest

import agentnb as nb
from agentnb.board.values import thaw
from agentnb.engine.core.time_travel import goto
from agentnb.engine.core.work import Append
from agentnb.engine.persistence.masked_values import fill, find_masked_paths, iter_masks
from agentnb.engine.persistence.snapshot import dump, restore_run
from agentnb.secrets import MASK, SECRETS, Secrets, mask_text
from tests.trace.random_runs import go, started


def again(run):
    restored = restore_run(run.plan, json.loads(json.dumps(dump(run))), clock=run.clock)
    restored.has_masked_values = True
    return restored


def test_masked_values_are_known_by_path():
    run = again(started(deep={"list": [1, {"auth_token": "t-1234"}], "open": 1}))
    assert find_masked_paths(run) == ["password", "deep.list.1.auth_token"]
    assert list(iter_masks(run.root.scope.data["deep"], ("deep",))) == [("deep", "list", 1, "auth_token")]


def test_a_run_that_was_never_stored_requests_no_values():
    run = again(started())
    run.has_masked_values = False
    assert find_masked_paths(run) == []


def test_a_value_replaces_its_mask_everywhere():
    run = started(deep={"auth_token": "t-1234"})
    go(run, 6)
    run.write(run.root.scope, ("deep", "auth_token"), "t-1234")
    run.write(run.root.scope, ("log",), Append({"auth_token": "t-1234"}))
    run.history.write_ends[-1] = len(run.history.new_values)
    actual = again(run)
    size = len(thaw(actual.root.scope.data["log"]))
    fill(actual, {"password": "s3cret", "deep.auth_token": "t-1234", f"log.{size - 1}.auth_token": "t-1234"})
    assert find_masked_paths(actual) == []
    for step in range(run.position, -1, -1):
        goto(run, step)
        goto(actual, step)
        assert actual.root.scope.visible_items() == run.root.scope.visible_items()
    assert actual.inputs == run.inputs


def test_a_supplied_value_is_masked_again():
    run = again(started(api_key="k-9876-zz"))
    fill(run, {"api_key": "k-9876-zz"})
    assert "k-9876-zz" not in json.dumps(dump(run))


def test_a_value_supplied_in_a_new_process_is_masked_in_every_text():
    document = json.dumps(dump(started(api_key="k-9876-zz", deep={"auth_token": "t-1234-yy"})))
    run = restore_run(started().plan, json.loads(document))
    for name in Secrets.__slots__:  # a new process knows no secret
        setattr(SECRETS, name, type(getattr(SECRETS, name))())
    fill(run, {"api_key": "k-9876-zz", "deep.auth_token": "t-1234-yy"})
    assert mask_text("k-9876-zz and t-1234-yy") == "******** and ********"


@pytest.mark.parametrize("secret", [["ab", [12]], {"k": "cd", "n": 12}, ("ab",), {"ab"}, 12, "ab"])
def test_no_part_of_a_value_with_a_secret_name_is_stored(secret, tmp_path):
    recipe = nx.DiGraph(name="secrets")
    recipe.add_node("one", function=lambda: {"password": secret, "inner": {"password": secret}})
    recipe.add_node("two", function=lambda: {"password": [secret, secret]})
    recipe.add_edge("one", "two")
    with closing(nb.Session(nb.load(recipe), {}, store=tmp_path / "runs.db", run_id="r")) as session:
        session.run()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        stored = [json.loads(body) for (body,) in connection.execute("SELECT body FROM agentnb_entries")]
    written = [value for entry in stored for part in entry["p"] for value in part[2][1]]
    assert written == [{"$": "masked"}, {"password": {"$": "masked"}}, {"$": "masked"}]
    with closing(nb.open(tmp_path / "runs.db", "r")) as reopened:
        assert dict(reopened.board) == {"password": MASK, "inner": {"password": MASK}}
