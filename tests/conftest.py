"""What every test may ask for: Hypothesis profiles, and programs that only an operating system has."""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import pytest
from hypothesis import HealthCheck, Phase, settings

from agentnb.event_loops import close_loops
from agentnb.secrets import _CURRENT, _EVERYWHERE, SECRETS, Secrets

if TYPE_CHECKING:
    from tests.store.postgres import Server

# Scripts, which need libraries that the tests do not: their imports would fail when doctests are collected.
collect_ignore = ["mutants", "recordings/otel_files/write.py"]

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# mark -> (the names a program goes by, what to do where it is missing)
PROGRAMS = {
    "needs_chromium": (
        ("chromium", "chromium-browser", "google-chrome"),
        "apt-get install chromium fonts-dejavu-core (or brew install --cask chromium)",
    ),
    "needs_dot": (("dot",), "apt-get install graphviz (or brew install graphviz)"),
    "needs_postgres": (("initdb",), "apt-get install postgresql (or brew install postgresql)"),
}
# Debian keeps PostgreSQL's own programs outside the PATH.
ELSEWHERE = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)

# A shared machine stalls now and then: how long an example took says nothing about the code.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", **_CALM, max_examples=15)  # other ones in each run
# CI prints the first failing example as it is, with the blob that reproduces it: shrinking a drawn recipe can take
# longer than the limit of a whole test. `--full` draws many more.
_UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile("ci", **_CALM, derandomize=True, print_blob=True, max_examples=15, phases=_UNSHRUNK)
settings.register_profile("mutants", **_CALM, derandomize=True, max_examples=15, database=None, phases=_UNSHRUNK)
settings.register_profile("thorough", **_CALM, derandomize=True, max_examples=300, database=None, phases=_UNSHRUNK)
settings.register_profile("full", **_CALM, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if IN_CI else "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-errors", action="store_true", help="write docs/errors.md anew from the code")
    parser.addoption("--update-screenshots", action="store_true", help="write tests/ui/screenshots anew")
    parser.addoption("--update-golden", action="store_true", help="write the runs of tests/golden anew")


def program(mark: str) -> str:
    """Return the path of the program that a mark names; where it is missing, fail in CI and skip elsewhere."""
    names, cure = PROGRAMS[mark]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, ELSEWHERE)])
    executable = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if executable is None:
        message = f"{names[0]!r} is not on the PATH; to run this test: {cure}"
        pytest.fail(message, pytrace=False) if IN_CI else pytest.skip(message)
    return executable


# The text of a set of texts, whose order depends on the process, or of an object by its address.
_UNSTABLE = re.compile(r"\{'[^']*', | at 0x[0-9a-f]+")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test whose name differs from process to process: pytest-xdist could not distribute it."""
    if _UNSTABLE.search(item.name):
        raise pytest.UsageError(f"{item.nodeid}: this name differs from process to process; give the parameter an id")


def pytest_collection_finish() -> None:
    """Spare the garbage collector what all tests share, the tests among it: a collection would take half a second."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Spare it the modules that the tests of a file have imported, too, such as the clients of models."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in PROGRAMS:
        if item.get_closest_marker(mark):
            program(mark)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium, which the browser tests drive."""
    return program("needs_chromium")


@pytest.fixture(scope="session")
def dot() -> str:
    """The path of Graphviz's `dot`."""
    return program("needs_dot")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server of these tests alone, which can be stopped and started again."""
    from tests.store.postgres import Server

    server = Server(Path(program("needs_postgres")).resolve().parent)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    """The URL of a store on that server that nobody has used yet."""
    return postgres_server.store()


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory):
    """A client of a model reads the certificates of all authorities whenever it is created; no test connects to any."""
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = Path(certifi.where()).read_text("utf-8").partition(end)
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(first + end, "utf-8")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(autouse=True)
def _secrets_of_its_own():
    """Secrets are hidden in the whole process: those of one test must not change what another one sees."""
    known = {name: getattr(SECRETS, name).copy() for name in Secrets.__slots__}
    _CURRENT.set(_EVERYWHERE)  # a test that interrupts anywhere may have left the secrets of a run here
    yield
    _EVERYWHERE._runs.clear()
    for name, secrets in known.items():
        setattr(SECRETS, name, secrets)


@pytest.fixture(autouse=True)
def _loops_of_its_own():
    """The event loops of a thread stay open between calls, and with them the connections of clients; here they end."""
    yield
    close_loops()


@pytest.fixture
def none_hidden(monkeypatch):
    """No text is masked by its value, whatever tests before this one have hidden."""
    for name, empty in asdict(Secrets()).items():
        monkeypatch.setattr(SECRETS, name, empty)
