"""A file and a folder of a store that may not be read or written."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from agentnb.store import SqlLog
from tests.store.stores import refused, row, some

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="rights are of another kind there")
NOBODY = 65534


@pytest.fixture
def unprivileged():
    """A folder of somebody without rights, and who that is: root could do anything."""
    folder = Path(tempfile.mkdtemp(prefix="agentnb-store-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.parametrize("folder", [0o500, 0o700], ids=["folder too", "file alone"])
@pytest.mark.parametrize("beside", [(), ("runs.db-wal",)], ids=["one file", "with an empty log"])
def test_a_read_only_file_is_read(unprivileged, folder, beside):
    log = SqlLog(unprivileged / "runs.db")
    log.create(row(), some(1, 2))
    log.close()
    for name in beside:
        (unprivileged / name).touch()
    (unprivileged / "runs.db").chmod(0o400)
    unprivileged.chmod(folder)
    for _ in range(2):
        assert list(log.entries("one")) == some(1, 2)
        assert log.run("one").writer is None
        assert "is read-only" in refused("L419", log.append, "one", some(3, 3))
        assert "is read-only" in refused("L419", log.create, row("two"))
    (unprivileged / "runs.db").chmod(0o600)
    unprivileged.chmod(0o700)
    log.append("one", some(3, 3))
    log.close()


def test_writes_by_a_user_with_permissions_are_visible(unprivileged):
    path, log = unprivileged / "runs.db", SqlLog(unprivileged / "runs.db")
    other = SqlLog(path)
    other.create(row(), some(1, 1))
    for seq in (1, 2, 3):
        other.close()
        path.chmod(0o400)
        unprivileged.chmod(0o500)
        assert log.last("one") == seq
        unprivileged.chmod(0o700)
        path.chmod(0o600)
        other.append("one", some(seq + 1, seq + 1))
    other.close()


def test_an_unwritable_folder_cannot_contain_a_store(unprivileged):
    unprivileged.chmod(0o500)
    log = SqlLog(unprivileged / "runs.db")
    refused("L420", log.create, row())
    unprivileged.chmod(0o700)
    log.create(row())
    log.close()


def test_an_unreadable_file_is_reported(unprivileged):
    log = SqlLog(unprivileged / "runs.db")
    log.create(row())
    log.close()
    (unprivileged / "runs.db").chmod(0)
    refused("L420", log.runs)
    refused("L420", log.create, row("two"))
