from __future__ import annotations

import inspect
import io
import json
import logging
import subprocess
import sys
from collections import UserDict
from datetime import datetime
from decimal import Decimal

import networkx as nx
import pytest

import agentnb
from agentnb.errors import ExecutionError, Problem, StoreError
from agentnb.secrets import hide
from agentnb.session import logs
from agentnb.session.logs import configure_logging, log_line, log_store_failure
from agentnb.world.llm.base import LLMResponse, Usage
from tests.session.log_capture import logging_to, off
from tests.session.small_sessions import calling, counting, graph, session


@pytest.fixture(autouse=True)
def _off():
    off()
    yield
    off()


# ------------------------------------------------------------------------------------------------------- configuring


def test_the_signature_is_the_one_that_is_documented():
    actual = {name: parameter.default for name, parameter in inspect.signature(configure_logging).parameters.items()}
    assert actual == {"level": "INFO", "json_output": True, "stream": None, "payload_redactor": None}
    assert agentnb.configure_logging is configure_logging


def test_it_returns_the_root_logger_and_replaces_its_handler():
    first, second = io.StringIO(), io.StringIO()
    logger = configure_logging(stream=first)
    assert (logger, logger.name, logger.level) == (logging.getLogger("agentnb"), "agentnb", logging.INFO)
    before = len(logger.handlers)
    assert configure_logging("WARNING", stream=second) is logger
    assert (len(logger.handlers), logger.level) == (before, logging.WARNING)
    logger.warning("now")
    assert (first.getvalue(), len(second.getvalue().splitlines())) == ("", 1)


@pytest.mark.parametrize(("level", "number"), [("debug", 10), ("INFO", 20), ("Warning", 30), (25, 25), (0, 0)])
def test_a_level_is_a_name_or_a_number(level, number):
    assert configure_logging(level, stream=io.StringIO()).level == number


@pytest.mark.parametrize("level", ["INF0", "", None, 2.5, True])
def test_an_unknown_level_is_a_problem_and_changes_nothing(level):
    with pytest.raises(ExecutionError, match="X205"):
        configure_logging(level)
    assert logs.ROOT.level == logging.NOTSET


def test_a_redactor_that_cannot_be_called_is_a_problem():
    with pytest.raises(ExecutionError, match="X206"):
        configure_logging(payload_redactor={"prompt": None})
    assert logs.ROOT.level == logging.NOTSET


def test_without_a_stream_lines_go_to_stderr(capsys):
    configure_logging().warning("here")
    assert json.loads(capsys.readouterr().err)["message"] == "here"


PROGRAM = """
import agentnb as nb, logging, networkx as nx, sys
{before}
graph = nx.DiGraph()
graph.add_node("a", function=lambda: 1 / 0)
run = nb.Session(nb.load(graph))
run.run()
rows = run._parts.state.hooks.rows
print(run.status, run._parts.run.armed, len(rows["step"]), len(rows["change"]))
"""


def ran(before):
    program = [sys.executable, "-c", PROGRAM.format(before=before)]
    return subprocess.run(program, capture_output=True, text=True, check=True)


@pytest.mark.starts_programs
def test_without_logging_configuration_nothing_is_written_and_no_listener_exists():
    done = ran("")
    assert (done.stdout, done.stderr) == ("failed False 0 0\n", "")


@pytest.mark.starts_programs
def test_with_logging_configuration_errors_are_written_without_step_listeners():
    done = ran("logging.basicConfig()")
    assert done.stdout == "failed False 0 1\n"
    assert done.stderr.startswith("ERROR:agentnb.run:step 1: node 'a' failed: ZeroDivisionError")


@pytest.mark.starts_programs
def test_a_level_of_the_root_logger_decides_what_is_written():
    done = ran("logging.basicConfig(level=logging.DEBUG)")
    assert done.stdout == "failed True 1 1\n"
    assert "INFO:agentnb.run:run of" in done.stderr
    assert "DEBUG:agentnb.run:step 1" in done.stderr
    assert ran("logging.basicConfig(level=logging.CRITICAL)").stderr == ""


@pytest.mark.starts_programs
def test_importing_changes_no_level():
    program = """
import logging, agentnb, agentnb.session, agentnb.load, agentnb.dialects.activegraph, agentnb.dialects.symphony.api
import agentnb.dialects.polaris.parts.devtools, agentnb.world.tools.registry, agentnb.session.logs
names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "agentnb"]
assert len(names) > 3, names
for name in names:
    assert logging.getLogger(name).level == logging.NOTSET and logging.getLogger(name).propagate, name
handlers = [handler for name in names for handler in logging.getLogger(name).handlers]
assert [type(handler) for handler in handlers] == [logging.NullHandler], handlers
assert logging.root.handlers == []
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def flaky(attempts):
    """Return a graph whose tool fails at its first two attempts, and the tools."""
    built_graph = graph("a", "b")
    built_graph.nodes["a"].update(kind="tool", function="t", attempts=attempts)
    calls = []

    def t():
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError(f"no {len(calls)}")

    return built_graph, {"t": t}


def test_warnings_are_written_once_and_in_order_without_listening_to_steps():
    recipe, tools = flaky(3)
    with logging_to("WARNING") as lines:
        run = session(recipe, tools=tools)
        while run.step() is not None:
            assert run._parts.state.hooks.rows["step"] == ()
        run.back(2)
        run.run()
    assert [text.partition(" failed: ")[2] for text in lines.told("WARNING")][:2] == [
        "ConnectionError: no 1",
        "ConnectionError: no 2",
    ]
    assert len(lines.texts) == 2


def test_a_differently_configured_logger_works(caplog):
    logs.ROOT.setLevel(logging.INFO)
    caplog.set_level(logging.INFO, "agentnb")
    session(graph("a")).run()
    record = caplog.records[0]
    assert (record.name, record.dialect, record.payload) == ("agentnb.run", "networkx", {"inputs": {}})


# -------------------------------------------------------------------------------------------------------------- lines


def test_a_json_line_has_common_and_specific_fields():
    with logging_to() as lines:
        log_line(logs.RUN, logging.INFO, "all is well", node="a", cost_usd=Decimal("0.10"), tool=None, payload={"x": 1})
        logs.STORE.error("no %s", "room")
    first, second = lines.rows
    assert datetime.fromisoformat(first.pop("timestamp")).tzinfo is not None
    assert first == {
        "level": "INFO", "logger": "agentnb.run", "message": "all is well", "node": "a", "cost_usd": "0.10",
        "payload": {"x": 1},
    }  # fmt: skip
    assert list(second) == ["timestamp", "level", "logger", "message"]
    assert (second["level"], second["message"]) == ("ERROR", "no room")


def test_exceptions_of_other_loggers_are_formatted():
    with logging_to() as lines:
        try:
            raise ValueError("it broke")
        except ValueError:
            logs.ROOT.exception("so be it")
    assert {"error_type": "ValueError", "error_message": "it broke"}.items() <= lines.rows[0].items()


def test_a_plain_text_record_is_one_line():
    with logging_to(json_output=False) as lines:
        log_line(logs.RUN, logging.WARNING, "first\nsecond\r\n  third", node="a")
    assert len(lines.texts) == 1
    assert lines.texts[0].endswith(" WARNING agentnb.run: first second third")


class Odd:
    def __repr__(self):
        return "<odd>"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x" * 5_000, "x" * 2_000 + "… (5000 characters)"),
        (list(range(200)), [*range(100), "… (200 items)"]),
        (dict.fromkeys(range(150), 1), {**dict.fromkeys(map(str, range(100)), 1), "…": "150 keys"}),
        (float("nan"), "nan"),
        ([float("inf"), Decimal("1.5"), (1, 2)], ["inf", "1.5", [1, 2]]),
        (Odd(), "<odd>"),
        ({"deep": [{"in": {1}}]}, {"deep": [{"in": [1]}]}),
        ([2**20_000, -(2**20_000)], [hex(2**20_000), hex(-(2**20_000))]),
        ({2**20_000: 1}, {hex(2**20_000)[:1_999] + "…": 1}),
    ],
)
def test_any_value_can_be_logged(value, told):
    with logging_to() as lines:
        log_line(logs.RUN, logging.INFO, "it is", payload={"value": value})
    assert json.loads(lines.texts[0], parse_constant=pytest.fail)["payload"]["value"] == told


def test_deep_and_recursive_values_are_truncated():
    deep: list = []
    for _ in range(100):
        deep = [deep]
    endless: list = []
    endless += [endless, endless]
    with logging_to(payload_redactor=lambda payload: {"deep": deep} if "deep" in payload else endless) as lines:
        log_line(logs.RUN, logging.INFO, "it is", payload={"deep": 1})
        log_line(logs.RUN, logging.INFO, "it is", payload={"x": 1})
    assert [row["message"] for row in lines.rows] == ["it is", "it is"]
    assert lines.rows[1]["payload"] == ["…", "…"]
    assert len(lines.texts[0]) < 500


def test_a_mapping_that_contains_itself_is_truncated():
    endless: UserDict = UserDict()
    endless |= {"first": endless, "second": endless}
    with logging_to() as lines:
        log_line(logs.RUN, logging.INFO, "it is", payload=endless)
        logs.ROOT.info("it is", extra={"payload": endless})
    assert all(100 < len(line) < 500_000 for line in lines.texts)


# ------------------------------------------------------------------------------------------------------------ secrets


@pytest.mark.parametrize("json_output", [True, False])
def test_no_secret_is_logged(json_output):
    secret = 'sk-"4711"-\nsecret'

    def look(word, api_key):
        raise ValueError(f"{word}: {api_key} was refused")

    built_graph = calling(look, attempts=2)
    built_graph.nodes["look"]["inputs"] = {"word": "word", "api_key": "api_key"}
    with logging_to("DEBUG", json_output=json_output) as lines:
        run = session(built_graph, {"word": f"use {secret}", "api_key": secret})
        run.run()
        run.emit("told", {"it": secret, "token": "x"})
        log_store_failure(run._parts.state, StoreError(Problem("L999", f"cannot write {secret}", "there", "so", "do")))
        log_line(logs.RUN, logging.INFO, f"says {secret}", reason=secret, payload={"password": 4711, "said": [secret]})
        logs.ROOT.warning("somebody else says %s", secret)
    written = lines.stream.getvalue()
    assert run.status == "failed"
    assert "4711" not in written
    assert written.count("********") > 8


def test_a_known_secret_is_masked_in_the_message_too():
    hide("hunter2-hunter2")
    with logging_to() as lines:
        log_line(logs.RUN, logging.INFO, "it is hunter2-hunter2", error_message="hunter2-hunter2")
    assert (lines.rows[0]["message"], lines.rows[0]["error_message"]) == ("it is ********", "********")


def test_a_long_text_is_masked_before_it_is_cut():
    hide("long-secret-0815")
    with logging_to() as lines:
        log_line(logs.RUN, logging.INFO, "it is", payload={"text": "x" * 1_990 + "long-secret-0815"})
    assert "long-secr" not in lines.texts[0]


# ----------------------------------------------------------------------------------------------------------- redactor


def asking_a_model(**options):
    built_graph = nx.DiGraph(name="asks")
    built_graph.add_node("ask", kind="agent", prompt="Be nice")
    return session(built_graph, llm=lambda request: LLMResponse("fine", usage=Usage(1, 2, Decimal("0.5"))), **options)


def test_every_payload_goes_through_the_redactor():
    inputs = []

    def redact(payload):
        inputs.append(payload)
        return {"keys": sorted(payload)}

    with logging_to("DEBUG", payload_redactor=redact) as lines:
        run = asking_a_model()
        run.emit("seen", {"who": "me"}).run()
    payloads = [row["payload"] for row in lines.rows if "payload" in row]
    assert payloads == [{"keys": keys} for keys in (["inputs"], ["answer", "arguments"], ["event"], ["writes"])]
    assert len(inputs) == len(payloads)
    assert all(type(payload) is dict for payload in inputs)
    assert inputs[1]["answer"] == "fine"


def test_the_result_of_a_redactor_is_masked():
    hide("from-elsewhere-99")
    with logging_to(payload_redactor=lambda payload: {"x": "from-elsewhere-99", "password": "p"}) as lines:
        session(graph("a"), {"n": 1}).run()
    assert lines.rows[0]["payload"] == {"x": "********", "password": "********"}


def test_a_redactor_that_raises_warns_once_and_does_not_stop_the_run():
    def refuse(payload):
        raise KeyError("prompt")

    run = session(counting(), {"n": 0})
    with logging_to("DEBUG", payload_redactor=refuse) as lines, pytest.warns(UserWarning, match="KeyError") as warned:
        run.run()
    assert (run.status, len(warned)) == ("finished", 1)
    assert not any("payload" in row for row in lines.rows)
    assert len(lines.told("DEBUG")) == run.position
    with logging_to(payload_redactor=refuse), pytest.warns(UserWarning, match="KeyError"):
        session(graph("a")).run()  # configured anew, it warns anew


# -------------------------------------------------------------------------------------------------------------- store


def test_a_run_that_cannot_be_stored_is_an_error():
    run = session(graph("a"))
    with logging_to("ERROR") as lines:
        run.run()
        log_store_failure(
            run._parts.state,
            StoreError(Problem("L413", "the disk is full", "runs.db", "no space is left", "make room")),
        )
        log_store_failure(run._parts.state, OSError("gone"))
    first, second = lines.rows
    assert (first["level"], first["logger"], first["run_id"]) == ("ERROR", "agentnb.store", run.run_id)
    assert (first["error_type"], first["reason"], first["error_message"]) == ("StoreError", "L413", "the disk is full")
    assert first["message"] == f"run {run.run_id} cannot be stored: the disk is full"
    assert (second["error_type"], second["error_message"], "reason" in second) == ("OSError", "gone", False)


def test_nothing_is_logged_if_the_log_is_off(capsys):
    log_store_failure(session(graph("a"))._parts.state, OSError("gone"))
    assert capsys.readouterr().err == ""
