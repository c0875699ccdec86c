"""`import activegraph` gives this dialect: copied as conftest.py beside the package's own tests.

The package spreads its names over submodules; here all of them stand in one namespace. So each `activegraph.x.y` is a
module without contents that looks its names up there. A name that this dialect does not have is a class that cannot be
used: the tests that need it fail, and the others of their file run.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DIALECT = "agentnb.dialects.activegraph"
SECONDS = 60  # no test of theirs takes one; one that hangs must not hide the others
OUTCOMES: dict[str, str] = {}


class Missing(Exception):
    """Stands for a name of the package that this dialect does not have."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__(type(self).__name__)
        raise NotImplementedError(type(self).__name__)


def renamed() -> dict[str, Any]:
    """Return what this dialect has under another name, or as another call, and the package's tests use."""
    from dataclasses import replace
    from logging import getLogger

    from agentnb.dialects.activegraph.parts import (
        behaviors,
        caches,
        delivery,
        events,
        graph_mutations,
        log_output,
        models,
        patterns,
        printing,
        recorded,
        tools,
    )

    class Parsed:
        """A pattern that is compiled in a step of its own, and matched against a graph."""

        def __init__(self, text: str) -> None:
            self.pattern = patterns.parse_pattern(text)

        def compile(self) -> Parsed:
            return self

        def matches(self, event: Any, graph: Any) -> list[Any]:
            return list(self.pattern.matches(graph.ledger))

    def response_from(fields: dict[str, Any], output_schema: Any) -> Any:
        response = caches.parse_response(fields)
        if output_schema is None or response.parsed is None:
            return response
        return replace(response, parsed=output_schema.model_validate(response.parsed))

    return {
        "CONTEXT_READ_ID_CAP": delivery.READS,
        "LOG_FIELDS": ("timestamp", "level", "logger", "message", *log_output.FIELDS),
        "RESERVED_DATA_FIELDS": frozenset({graph_mutations.RESERVED}),
        "TAG_COL": printing.WIDTH,
        "Trace": printing.GraphLog,
        "_response_from_fixture": response_from,
        "canonicalize_args": recorded.to_plain,
        "causal_chain": lambda graph, id_: printing.GraphLog(graph).causal_chain(id_),
        "decode_payload": json.loads,
        "encode_payload": lambda payload: json.dumps(events.to_canonical(payload)),
        "get_logger": getLogger,
        "hash_tool_call": lambda *, tool_name, args: tools.hash_args(tool_name, recorded.to_plain(args)),
        "native_schema_compatible": lambda schema: schema is not None and models.is_native_schema(schema),
        "parse": Parsed,
        "parse_activate_after": behaviors.parse_delay,
        "runtime_log_extra": lambda **fields: {name: value for name, value in fields.items() if value is not None},
        "schema_to_json": lambda schema: None if schema is None else schema.model_json_schema(),
        "validate_event": lambda event: events.to_canonical(event.payload),
        "validate_handler_signature": lambda fn, *, expected_params, decorator, allow_annotated_extras: (
            behaviors.check_signature(fn, expected_params, decorator, settings=allow_annotated_extras)
        ),
    }


class Alias(types.ModuleType):
    """A module of the package: its names are those of the dialect."""

    __path__: list[str] = []  # noqa: RUF012  (what makes a module a package)
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return importlib.import_module(DIALECT).__all__
        if name.startswith("__"):
            raise AttributeError(name)
        names = renamed()
        if name in names:
            return names[name]
        submodule = self.__name__.removeprefix("activegraph")
        for home in (f"{DIALECT}{submodule}", f"{DIALECT}.parts{submodule}", DIALECT):
            try:
                return getattr(importlib.import_module(home), name)
            except (AttributeError, ImportError):
                continue
        return type(name, (Missing,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of the package."""

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "activegraph":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Alias(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Have nothing to execute."""


def pytest_configure() -> None:
    if os.environ.get("ALIAS") != "no":
        sys.meta_path.insert(0, Finder())
        from agentnb.dialects.activegraph import Graph

        Graph._events = property(lambda self: self.events)  # their tests read the log by this name, too


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Forget what a test has registered, as the suite's own (unpublished) fixtures do."""
    import activegraph
    from activegraph.tools import clear_tool_registry

    activegraph.clear_registry()
    clear_tool_registry()
    yield
    activegraph.clear_registry()
    clear_tool_registry()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    def give_up(*_: Any) -> None:
        raise TimeoutError(f"a test took more than {SECONDS} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    id_ = report.nodeid.removeprefix("tests/")
    if report.when == "call" or report.outcome != "passed":
        OUTCOMES[id_] = "pass" if report.outcome == "passed" else report.outcome


def pytest_sessionfinish() -> None:
    Path("outcomes.json").write_text(json.dumps(OUTCOMES), encoding="utf-8")
