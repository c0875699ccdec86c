"""The files of each release are opened by this version; those of a newer one are refused with a Problem."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pytest

import agentnb as nb
from tests.formats.write import BEGAN, recipe
from tests.formats.write import session as new_session
from tests.ui.pages import opened

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "run.db").exists())
NODES = ["price", "add", "add", "add", "approve"]


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request, tmp_path):
    """A copy of the files of a release."""
    return Path(shutil.copytree(request.param, tmp_path / "files"))


@pytest.mark.parametrize("name", ["run.db", "trace.json", "golden.jsonl"])
def test_a_run_of_any_format_is_opened_and_stepped_through(release, name):
    run = nb.open(release / name)
    assert [step.node_id for step in run.trace.steps] == NODES
    run.goto(2)
    assert (run.board["total"], run.board["item"]) == (10, "coffee")
    assert run.goto(5).board["paid"] == "yes"
    assert run.who_wrote("total", 3) == 3
    if name == "run.db":
        assert run.board["at"] == BEGAN
        assert list(run.trace.frames.interventions["action"]) == ["edit", "answer"]
        assert [row.text for row in run.breakpoints] == ["total > 100"]


def test_a_stored_run_continues_with_its_recipe(release):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another Python compiles the functions to other code
        run = nb.open(release / "run.db", recipe=recipe(), tools={"catalog": lambda item: {"cost": 5}})
    with closing(run):
        fork = run.fork(at=1)
        fork.run()
        assert fork.status == "waiting"
        assert run.replay().ok


def test_breakpoints_are_loaded(release):
    (row,) = new_session().breakpoints.load(release / "breakpoints.json")
    assert (row.node, row.text) == ("add", "total > 100")


def test_the_tables_of_parquet_have_their_columns(release):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(release / "run.parquet")
    about = json.loads(table.schema.metadata[b"agentnb"])
    assert (about["run_id"], about["version"]) == ("orders-1", 1)
    steps = table.filter([name == "steps" for name in table["table"].to_pylist()])
    assert steps["node"].to_pylist() == NODES


@pytest.mark.needs_chromium
def test_a_page_still_shows_its_run(release, chromium):
    with opened(chromium) as (browser, outside):
        page = browser.new_page()
        page.goto((release / "page.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        assert "approve" in page.content()
        assert outside == []


def newer_store(release):
    with closing(sqlite3.connect(release / "run.db")) as connection, connection:
        connection.execute("UPDATE agentnb_meta SET value = '99' WHERE key = 'schema'")
    return release / "run.db"


def newer_document(name):
    def make(release):
        path = release / name
        first, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
        text = re.sub(r'"version": ?\d', '"version":99', first)
        path.write_text("".join([text, *rest]), encoding="utf-8")
        return path

    return make


@pytest.mark.parametrize(
    ("make", "code"),
    [(newer_store, "L4"), (newer_document("trace.json"), "L403"), (newer_document("golden.jsonl"), "L403")],
    ids=["store", "trace", "golden"],
)  # fmt: skip
def test_a_file_of_a_newer_version_is_rejected(release, make, code):
    path = make(release)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(nb.StoreError, match=code) as caught:
            nb.open(path)
    assert "newer" in str(caught.value)


def test_breakpoints_of_a_newer_version_are_rejected(release):
    path = release / "breakpoints.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["rows"][0]["later"] = True
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(nb.ExecutionError, match="X134"):
        new_session().breakpoints.load(path)
