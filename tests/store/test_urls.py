"""What names a store, and that the same name is the same log."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from agentnb.secrets import mask_text
from agentnb.store import MemoryLog, SqlLog, open_log
from agentnb.store.urls import parse
from tests.store.stores import ROOT, refused, row


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("runs.db", "runs.db"),
        (Path("runs.db"), "runs.db"),
        ("deep/../runs.db", "runs.db"),
        ("~/runs.db", "home/runs.db"),
        (Path("~/runs.db"), "home/runs.db"),
        ("sqlite:///runs.db", "runs.db"),
        ("SQLite:///runs.db", "runs.db"),
        ("sqlite:///./deep/runs.db", "deep/runs.db"),
        ("sqlite:///~/runs.db", "home/runs.db"),
        ("odd name?x=1&y #2%20.db", "odd name?x=1&y #2%20.db"),
        ("a:b.db", "a:b.db"),
    ],
)
def test_a_path_or_a_url_names_a_file(where, path, tmp_path):
    assert parse(where).kind == "sqlite"
    assert parse(where).target == str(tmp_path / path)


def test_four_slashes_start_an_absolute_path(tmp_path):
    assert parse(f"sqlite:///{tmp_path}/runs.db").target == str(tmp_path / "runs.db")


def test_a_file_with_an_unusual_name_is_written(tmp_path):
    log = open_log("odd name?x=1&y #2%20.db")
    log.create(row())
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == ["odd name?x=1&y #2%20.db"]


def test_its_url_names_the_same_store(tmp_path):
    log = open_log("runs.db")
    assert log.url == f"sqlite:///{tmp_path}/runs.db"
    assert open_log(log.url) is log


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "does not name a file"),
        ("  ", "does not name a file"),
        ("run\0s.db", "does not name a file"),
        ("sqlite:///", "does not name a file"),
        ("sqlite:runs.db", "three slashes"),
        ("sqlite:/runs.db", "three slashes"),
        ("sqlite://runs.db", "three slashes"),
        ("sqlite:///runs.db?mode=ro", "options"),
        ("postgresql:runs", "two slashes"),
        ("postgres://[half/runs", "Invalid IPv6"),
        ("~nobody-has-this-name/runs.db", "home directory"),
        ("mysql://ann:s3cr3t-77@host/runs", "'mysql' is not supported"),
        ("postgresql+psycopg2://host/runs", "'postgresql+psycopg2' is not supported"),
        (None, "neither a path nor a URL"),
        (7, "neither a path nor a URL"),
        (b"runs.db", "neither a path nor a URL"),
    ],
)
def test_any_other_url_is_reported_with_the_valid_forms(where, said):
    message = refused("L414", open_log, where)
    assert said in message
    assert "s3cr3t-77" not in message
    for form in ("runs.db", "sqlite:///", "sqlite:////", "postgresql://", "postgres://", "MemoryLog()"):
        assert form in message


@pytest.mark.parametrize(
    "where", [":memory:", "sqlite://", "sqlite:///:memory:", "sqlite://:memory:", "file:runs.db?mode=memory"]
)
def test_a_database_in_memory_is_rejected_with_advice(where, tmp_path):
    assert "MemoryLog()" in refused("L423", open_log, where)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_returned_unchanged():
    log = MemoryLog()
    assert open_log(log) is log


def test_opening_creates_nothing(tmp_path):
    open_log("runs.db")
    assert list(tmp_path.iterdir()) == []


def test_the_same_file_is_the_same_log_while_it_is_open(tmp_path):
    log = open_log("runs.db")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "link").symlink_to(tmp_path)
    for place in (Path("runs.db"), "sqlite:///runs.db", f"sqlite:///{tmp_path}/runs.db", "deep/link/runs.db"):
        assert open_log(place) is log
    assert open_log("other.db") is not log
    assert SqlLog("runs.db") is not log
    alive = weakref.ref(log)
    del log
    gc.collect()
    assert alive() is None
    assert isinstance(open_log("runs.db"), SqlLog)


def test_the_same_server_is_the_same_log():
    log = open_log("postgres://ann@db.example.org/runs")
    assert open_log("postgresql://ann@db.example.org/runs") is log
    assert open_log("postgresql://bob@db.example.org/runs") is not log


# ----------------------------------------------------------------------------------------------------------- passwords


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann@host/runs", "postgresql://ann@host/runs"),
        ("postgresql:///runs?host=/tmp", "postgresql:///runs?host=/tmp"),
        ("postgresql://host:5432,other:5433/runs", "postgresql://host:5432,other:5433/runs"),
        ("postgresql://ann:s3cr3t-77@host:5432/runs", "postgresql://ann:********@host:5432/runs"),
        ("postgres://ann:s3cr3t-77@host/runs?a=b", "postgres://ann:********@host/runs?a=b"),
        ("postgresql://ann:s3cr3t%2F77@host/runs", "postgresql://ann:********@host/runs"),
        ("postgresql://ann:s3cr3t@77@host/runs", "postgresql://ann:********@host/runs"),
        ("postgresql://ann:s3cr3t/77@host/runs", "postgresql://ann:********@host/runs"),
        ("postgresql://ann:s3cr3t#77@host/runs", "postgresql://ann:********@host/runs"),
        ("postgresql://ann:s3cr3t?77@host/runs", "postgresql://ann:********@host/runs"),
        ("postgresql://ann:xy@host/runs", "postgresql://ann:********@host/runs"),
        (
            "postgresql://host/runs?user=ann&password=s3cr3t-77&sslmode=require",
            "postgresql://host/runs?user=ann&password=********&sslmode=require",
        ),
        ("postgresql://host/runs?ssl%70assword=s3cr3t-77", "postgresql://host/runs?ssl%70assword=********"),
    ],
)
def test_a_password_is_never_shown(url, shown):
    log = open_log(url)
    assert log.url == shown
    assert repr(log) == f"SqlLog({shown!r})"


def test_a_long_location_is_cut():
    log = open_log("deep/" * 100 + "runs.db")
    assert len(log.url) > 500
    assert len(repr(log)) == len("SqlLog()") + 200


def test_a_password_is_masked_everywhere():
    parse("postgresql://ann:s3cr3t%2F77@host/runs?passphrase=p4ss-phrase")
    assert mask_text("no s3cr3t/77, s3cr3t%2F77 or p4ss-phrase") == "no ********, ******** or ********"


def test_a_password_that_is_a_common_word_is_not_masked_elsewhere():
    parse("postgresql://postgres:postgres@host/postgres")
    assert mask_text("a postgres server") == "a postgres server"


def test_importing_the_store_imports_no_database():
    program = (
        "import sys, agentnb.store as store; from agentnb.store import MemoryLog, open_log; open_log(MemoryLog())\n"
        "heavy = {'sqlalchemy', 'psycopg', 'psutil', 'sqlite3'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "open_log('runs.db')\n"
        "assert 'sqlalchemy' in sys.modules and 'psycopg' not in sys.modules\n"
        "assert sorted(store.__all__) == ['MemoryLog', 'SqlLog', 'open_log']\n"
        "try: store.nothing\n"
        "except AttributeError as error: assert 'nothing' in str(error)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
