"""Secrets of many shapes, searched for in everything that leaves the memory of a run."""

from __future__ import annotations

import base64
import html
import io
import json
import logging
import os
import shlex
import urllib.parse
from collections import deque
from contextlib import suppress
from enum import Enum
from functools import partial
from itertools import product
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple
from uuid import UUID

import markupsafe
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pyarrow import parquet

import agentnb as nb
from agentnb.cli import main
from agentnb.recordings.golden_files import to_json_text
from agentnb.secrets import BYTES_FORMS, MASK, SECRETS, TEXT_FORMS, WHOLE_FORMS, Secrets, hide, mask_text
from agentnb.session.logs import JsonLines
from agentnb.ui.debugger import Debugger

NAMES = ["password", "api_key", "cookie", "jwt", "pass", "pwd", "auth", "connection_string", "tokens", "credentials",
         "privateKey", "X-Auth-Token", "client_secret", "passphrase", "db_password", "Set-Cookie", "pass_phrase",
         "csrf", "db_pw", "pswd"]  # fmt: skip
# What no other text of a run has in it, with all that writers escape.
SECRET_TEXTS = [
    "correcthorsebattery", "swordfish", "zq-4711-plain", "quo'te-4711", 'quo"te-4711', "it's \"both\"-4711",
    "back\\slash-4711", "-----BEGIN KEY-----\nMIIEv12345zq/+==\nQQbb9988zq==\n-----END KEY-----", "tab\there-4711",
    "schlüssel-ß-4711", "鍵鍵鍵鍵-4711", "emoji-🔑-4711", "<b>&amp;-4711", "sp ace+plus%41-4711", "nul\0zq-4711",
    "\u202eright-to-left-4711", "correct horse battery staple", "98765432109", "line\r\nfeed-4711",
]  # fmt: skip
AROUND = {
    "text": lambda secret: secret, "bytes": lambda secret: secret.encode(), "list": lambda secret: [secret],
    "set": lambda secret: {secret}, "frozenset": lambda secret: frozenset({secret}),
    "tuple": lambda secret: (1, secret),
    "dict": lambda secret: {"value": secret}, "deep": lambda secret: [{"a": ({"b": [secret]},)}],
}  # fmt: skip


def forms(secret: str) -> list[str]:
    """Return every text by which somebody who sees it would have the secret."""
    raw = secret.encode()
    return [
        secret, repr(secret)[1:-1], ascii(secret)[1:-1], repr(raw)[2:-1], json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1],
        urllib.parse.quote(secret), urllib.parse.quote_plus(secret), html.escape(secret),
        html.escape(repr(secret)[1:-1]), base64.b64encode(raw).decode().rstrip("=")[:-1], " ".join(secret.split()),
    ]  # fmt: skip


def failing(wrap):
    """Return the graph of a run: a node that writes its input to the board, whole and in parts, and one that fails."""
    graph = nx.DiGraph(name="leak")

    def copy(config):
        parts = {f"part_{index}": part for index, part in enumerate(parts_of(config))}
        keyed = {str(part): 1 for part in parts.values() if isinstance(part, str)}
        return {"note": f"it is {wrap(config)}", "copied": config, "again": [config], "keyed": keyed, **keyed, **parts}

    def boom(config):
        raise ValueError(f"cannot use {wrap(config)}")

    graph.add_node("copy", function=copy, inputs={"config": "config"})
    graph.add_node("boom", function=boom, inputs={"config": "config"})
    graph.add_edge("copy", "boom")
    return graph


def parts_of(value):
    """Yield the values inside the dicts, lists, tuples and sets of a value."""
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple | set | frozenset):
        for item in items:
            yield from parts_of(item)
    else:
        yield value


def artifacts(graph, inputs, folder):
    """Run, and yield (what it is, its text) for everything that shows or stores the run."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("agentnb")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("DEBUG")
    try:
        session = nb.Session(nb.load(graph), inputs, store=str(folder / "runs.db"), run_id="r")
        session.run()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert session.status == "failed"
    yield "log", text.getvalue()
    error = session.error
    yield "error", f"{error}\n{error!r}\n{error._repr_html_()}"
    yield "board", f"{session.board!r}\n{session!r}"
    yield "why", f"{session.why()}"
    trace = session.trace
    yield "steps", "\n".join(f"{step!r} {step.error}" for step in trace.steps)
    for name, frame in trace.frames.items():
        yield (
            f"frame {name}",
            f"{frame.to_csv()}\n{frame.to_html()}\n{frame.astype(object).to_json(default_handler=str)}",
        )
    trace.to_json(folder / "trace.json")
    yield "trace", (folder / "trace.json").read_text()
    yield from exports(trace, folder)
    drawing = session.draw()
    yield "drawing", drawing.dot + drawing.svg
    debugger = Debugger(session)
    try:
        sent = []
        debugger.send = lambda content, buffers=None: sent.append(content)
        for view in ("board", "step", "node"):
            debugger._handle_custom_msg({"do": "query", "view": "a", "number": 1, "value": view, "target": "boom"}, [])
        yield "cockpit", json.dumps([debugger.get_state(), sent], default=str, ensure_ascii=False)
    finally:
        debugger.close()
    session.close()
    for file in folder.glob("runs.db*"):
        yield file.name, file.read_bytes().decode("latin-1") + file.read_bytes().decode("utf-8", "replace")


def exports(trace, folder):
    """Yield what each export of a trace has written."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.to_otel(provider)
    yield "spans", "\n".join(span.to_json() for span in exporter.get_finished_spans())
    trace.to_parquet(folder / "run.parquet")
    yield "parquet", f"{parquet.read_table(folder / 'run.parquet').to_pylist()}"
    yield "event log", trace.to_event_log().to_csv()
    yield "golden", to_json_text(trace)
    yield "sequence diagram", trace.sequence_diagram()
    charts = trace.charts
    yield (
        "charts",
        "".join(chart.to_json() for chart in (charts.timeline, charts.durations, charts.board, charts.usage)),
    )


def clear():
    for name in Secrets.__slots__:
        getattr(SECRETS, name).clear()


def check(config, secrets, folder, wrap=str):
    """Run with a configuration; none of its secrets may be found in any artifact."""
    clear()
    unwanted = [form for secret in secrets for form in forms(secret)]
    for label, text in artifacts(failing(wrap), {"config": config}, folder):
        leaked = [form for form in unwanted if form in text]
        assert not leaked, f"{label} tells {leaked[0]!r}: …{text[max(0, text.find(leaked[0]) - 80) :][:200]!r}"


def few(items):
    """Return items in groups of four: one run can look for several secrets, and no view cuts the last of so few."""
    return [items[start : start + 4] for start in range(0, len(items), 4)]


@pytest.mark.parametrize("names", few(NAMES))
def test_no_artifact_contains_a_value_under_a_secret_name(names, tmp_path):
    secrets = {name: f"zq-4711-{number}-plain" for number, name in enumerate(names)}
    check({**secrets, "other": 1}, secrets.values(), tmp_path)


@pytest.mark.parametrize("secrets", few(SECRET_TEXTS))
def test_no_artifact_contains_a_secret_however_it_is_written(secrets, tmp_path):
    check([{"api_key": secret} for secret in secrets], secrets, tmp_path)


@pytest.mark.parametrize("wrap", [repr, ascii, partial(json.dumps, default=repr), lambda config: config["password"],
                                  lambda config: urllib.parse.quote(config["password"]),
                                  lambda config: html.escape(repr(config)),
                                  lambda config: base64.b64encode(f"ann:{config['password']}".encode()).decode(),
                                  lambda config: repr(json.dumps(config))],
                         ids=["repr", "ascii", "json", "bare", "url", "html", "base64", "repr of json"])  # fmt: skip
@pytest.mark.parametrize("secret", ["swordfish-4711", "quo\"te's\\ 4711\nand more-4711"])
def test_no_artifact_contains_a_secret_escaped_in_an_error(wrap, secret, tmp_path):
    check({"password": secret}, [secret], tmp_path, wrap)


@pytest.mark.parametrize("around", AROUND)
def test_no_artifact_contains_a_part_of_a_value_under_a_secret_name(around, tmp_path):
    secrets = ["swordfish", "quo'te-4711\n-line"]
    check([{"credentials": AROUND[around](secret)} for secret in secrets], secrets, tmp_path)


@pytest.mark.parametrize(
    "array",
    [np.array(["s3ns1tive-4711"]), np.array([b"s3ns1tive-4711"]), np.array(["s3ns1tive-4711", 1], dtype=object),
     pd.Series(["s3ns1tive-4711"]), pd.Series(["s3ns1tive-4711"], dtype="category"),
     pd.DataFrame({"a": ["s3ns1tive-4711"]}), pd.DataFrame({"a": [1]}, index=["s3ns1tive-4711"]).index.to_series()],
)  # fmt: skip
def test_no_artifact_contains_a_cell_of_an_array_under_a_secret_name(array, tmp_path):
    check({"credentials": array, "again": pd.Series([1], index=["s3ns1tive-4711"])}, ["s3ns1tive-4711"], tmp_path)


class Client:
    def __init__(self):
        self.password = "s3ns1tive-4711"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"credentials": deque([["s3ns1tive-4711"]])}, "s3ns1tive-4711"),
        ({"credentials": bytearray(b"s3ns1tive-4711")}, "s3ns1tive-4711"),
        (Client(), "s3ns1tive-4711"),
        ({"credentials": SimpleNamespace(user="ann", word="s3ns1tive-4711")}, "s3ns1tive-4711"),
        (MappingProxyType({"password": "s3ns1tive-4711"}), "s3ns1tive-4711"),
    ],
    ids=lambda config: type(config).__name__,
)
@pytest.mark.filterwarnings("ignore:.*by reference")
def test_a_secret_in_an_object_that_is_held_by_reference_is_masked(config, text):
    clear()
    session = nb.Session(nb.load(failing(lambda config: f"{text} it is")), {"config": config})
    session.run()
    assert "s3ns" not in f"{session.error} {session.trace.to_json()} {session.trace.frames.writes.to_csv()}"
    assert "********" in f"{session.error}"


class Login(NamedTuple):
    user: str
    password: str


class Word(Enum):
    SECRET = "s3ns1tive"


class Kind(Enum):
    API_KEY = 1


@pytest.mark.parametrize(
    ("config", "secret"),
    [
        ("postgres://ann:s3ns1tive@host/db", "s3ns1tive"),
        ({"url": "amqps://ann:s3ns1tive@host:5671/%2f"}, "s3ns1tive"),
        ({"url": "https://host/path?access_token=s3ns1tive&page=2"}, "s3ns1tive"),
        ('{"user": "ann", "password": "s3ns1tive"}', "s3ns1tive"),
        ({"body": '{"deep": [{"api_key": "s3ns1tive"}]}'}, "s3ns1tive"),
        ('{"cookie": ["s3ns1tive", "other"]}', "s3ns1tive"),
        ({"headers": {"X-Plain": "Bearer s3ns1tive-4711"}}, "s3ns1tive-4711"),
        ({"auth": ("ann", "s3ns1tive")}, "s3ns1tive"),
        ({"connection_string": "Server=db;User=sa;Password=s3ns1tive;"}, "s3ns1tive"),
        ({"Authorization": "Basic YW5uOnMzbnMxdGl2ZQ=="}, "s3ns1tive"),
        ({"url": "https://host/blob?se=2030&sig=s3ns1tive%2B4711"}, "s3ns1tive%2B4711"),
        ({"url": "https://host/blob?X-Amz-Signature=s3ns1tive&a=b"}, "s3ns1tive"),
        ({"otp": "s3ns1tive"}, "s3ns1tive"),
        ("user=ann&password=s3ns1tive&page=2", "s3ns1tive"),
        ("export DB_PASSWORD=s3ns1tive\nDEBUG=1", "s3ns1tive"),
        ("docker run -e OPENAI_API_KEY=sk-s3ns1tive/4711+== image", "sk-s3ns1tive/4711+=="),
        ({"env": "A=1, TOKEN=s3ns1tive,4711, B=2"}, "s3ns1tive,4711"),
        ("https://host/#access_token=s3ns1tive&state=1", "s3ns1tive"),
        ("could not open Driver=x;Server=db;UID=sa;PWD=s3ns1tive;", "s3ns1tive"),
        ({"connection_string": "host=db user=ann password=s3ns1tive dbname=x"}, "s3ns1tive"),
        ("a key: -----BEGIN EC PRIVATE KEY-----\ns3ns1tive\n-----END EC PRIVATE KEY----- and more", "s3ns1tive"),
        ({("login", "password"): "s3ns1tive"}, "s3ns1tive"),
        ({Kind.API_KEY: "s3ns1tive"}, "s3ns1tive"),
        (pd.DataFrame({("login", "password"): ["s3ns1tive"]}), "s3ns1tive"),
        ({"config": Login("ann", "s3ns1tive")}, "s3ns1tive"),
        ({"password": Word.SECRET}, "s3ns1tive"),
        ({"api_key": UUID("12345678-1234-5678-1234-567812345678")}, "12345678-1234-5678-1234-567812345678"),
        ({"credentials": PurePosixPath("/etc/s3ns1tive")}, "s3ns1tive"),
        ({"config": pd.Series({"user": "ann", "password": "s3ns1tive"})}, "s3ns1tive"),
        ({"config": pd.DataFrame({"value": {"user": "ann", "password": "s3ns1tive"}})}, "s3ns1tive"),
    ],
)  # fmt: skip
def test_no_artifact_contains_a_secret_inside_a_text(config, secret, tmp_path):
    check(config, [secret], tmp_path)


def test_a_value_that_only_looks_like_a_secret_stays_visible(tmp_path):
    config = {"tokens_in": 12, "max_tokens": 4711, "keyboard": "qwertz", "compass": "north", "tokens": 42,
              "url": "https://host:8080/path@v2", "author": "anna-lena"}  # fmt: skip
    texts = dict(artifacts(failing(str), {"config": config}, tmp_path))
    for text in (texts["error"], texts["board"], texts["trace"]):
        assert "********" not in text
    for word in ("4711", "qwertz", "north", "42", "anna-lena", "https://host:8080/path@v2"):
        assert word in texts["trace"]


@settings(max_examples=int(os.environ.get("ATTACKS_SECRETS", "10")), deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # fmt: skip
@given(secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=60), name=st.sampled_from(NAMES),
       around=st.sampled_from(sorted(AROUND)), wrap=st.sampled_from([str, repr, ascii]))  # fmt: skip
def test_no_artifact_contains_a_secret_text_of_any_form(secret, name, around, wrap, tmp_path_factory):
    assume(len(set(secret)) > 4 and len(secret.strip()) > 5 and "zq" not in secret)
    secret = f"{secret}zq4711"  # so that no text of agentnb has it by chance
    with suppress(nb.errors.StoreError):
        check({name: AROUND[around](secret)}, [secret], tmp_path_factory.mktemp("secret"), wrap)


# Where a cut could leave the first half of a secret; and every way out that the runs above do not use.
def test_no_output_contains_a_secret(tmp_path, capsys):
    clear()
    secret = "s3ns1tive-4711"
    hide(secret)
    graph = nx.DiGraph(name=f"graph {secret}")
    graph.add_node("ask", function=lambda: {"out": [f"{secret} {'x' * 9000}"]}, label=f"label {secret}")
    graph.add_node("end", function=lambda out: {"done": True}, inputs={"out": "out"})
    graph.add_edge("ask", "end", when=f"out != '{secret}'")
    session = nb.Session(nb.load(graph), name=f"run {secret}", store=str(tmp_path / "runs.db"))
    session.breakpoints.add(node="end", when=f"out == '{secret}'")
    session.watch(f"out == '{secret}'")
    messages = []
    session.subscribe(lambda step: messages.append(repr(step)))
    session.run()
    texts = {
        "listener": messages, "session": session, "recipe": session.recipe, "why": session.why(),
        "breakpoints": [*session.breakpoints, session.breakpoints.to_frame().to_csv()], "tree": session.tree(),
        "runs": nb.runs(str(tmp_path / "runs.db")).to_csv(), "replay": session.replay(),
        "drawing": [session.draw().dot, session.draw().svg, session.draw().mermaid, session.draw()],
        "why not": session.why_not("end", at=0),
    }  # fmt: skip
    debugger = Debugger(session)
    sent = []
    debugger.send = lambda content, buffers=None: sent.append(content)
    for verb in ("board", "step", "node", "source", "whole", "text", "look", "open", "edit", "inside"):
        debugger._handle_custom_msg({"do": "query", "view": "a", "number": 1, "value": verb, "target": "ask"}, [])
        debugger._handle_custom_msg({"do": verb, "view": "a", "number": 2, "value": ["out"], "target": "ask"}, [])
    texts["cockpit"] = [json.dumps([debugger.get_state(), sent], default=str), debugger, debugger._repr_mimebundle_()]
    debugger.close()
    session.close()
    assert main(["runs", str(tmp_path / "runs.db")]) == 0
    assert main(["runs", str(tmp_path / "runs.db"), "--json"]) == 0
    assert main(["trace", str(tmp_path / "runs.db")]) == 0
    texts["command line"] = capsys.readouterr()
    for label, text in texts.items():
        assert "s3ns" not in f"{text} {text!r}", label


# What is known is the value alone: the text that an error makes of it has no name beside it.
ESCAPED = {
    "repr": repr, "ascii": ascii, "json": json.dumps, "json of text": partial(json.dumps, ensure_ascii=False),
    "json in json": lambda secret: json.dumps(json.dumps(secret)),
    "repr of json": lambda secret: repr(json.dumps(secret)),
    "repr of repr": lambda secret: repr(repr(secret)), "bytes": lambda secret: repr(secret.encode()),
    "hex": lambda secret: secret.encode().hex(),
    "quote": urllib.parse.quote, "quote all": partial(urllib.parse.quote, safe=""),
    "quote plus": urllib.parse.quote_plus,
    "html": html.escape, "html without quotes": partial(html.escape, quote=False),
    "html of repr": lambda secret: html.escape(repr(secret)),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 behind a name": lambda secret: base64.b64encode(f"ann:{secret}".encode()).decode(),
    "base64 for urls": lambda secret: base64.urlsafe_b64encode(f"x{secret}".encode()).decode(),
    "one line": lambda secret: " ".join(secret.split()),
    "a line": lambda secret: next((line for line in secret.splitlines()[1:] if len(line) >= 8), secret),
    "repr with quotes": lambda secret: repr(f'"{secret}'),
    "ascii with quotes": lambda secret: ascii(f'"{secret}'),
    "escaped unicode": lambda secret: secret.encode("unicode_escape").decode(),
    "html by number": lambda secret: html.escape(secret).replace("&#x27;", "&#39;"),
    "html of templates": lambda secret: str(markupsafe.escape(secret)),
    "sql": lambda secret: "'" + secret.replace("'", "''") + "'",
    "sql in an error": lambda secret: repr("'" + secret.replace("'", "''") + "'"),
    "csv": lambda secret: '"' + secret.replace('"', '""') + '"',
    "csv in json": lambda secret: json.dumps('"' + secret.replace('"', '""') + '"'),
    "shell": shlex.quote,
    "shell with backslashes": lambda secret: "'" + secret.replace("'", "'\\''") + "'",
    "yaml": lambda secret: yaml.safe_dump({"note": secret}, width=1000, default_style='"'),
    "json, line by line": lambda secret: "\n".join(json.dumps(line)[1:-1] for line in secret.splitlines()),
}  # fmt: skip
WRITERS = {"repr": repr, "ascii": ascii, "json": json.dumps, "json in unicode": partial(json.dumps, ensure_ascii=False)}
for outer, inner in product(WRITERS, WRITERS):
    ESCAPED[f"{outer} of {inner}"] = lambda secret, outer=outer, inner=inner: WRITERS[outer](WRITERS[inner](secret))
    ESCAPED[f"{outer} of {inner}, quoted"] = lambda secret, outer=outer, inner=inner: WRITERS[outer](
        f'"{WRITERS[inner](secret)}\'"'
    )
    ESCAPED[f"{outer} of {inner} with quotes"] = lambda secret, outer=outer, inner=inner: WRITERS[outer](
        WRITERS[inner](f'"{secret}')
    )
for name, write in WRITERS.items():
    ESCAPED[f"{name} of escaped unicode"] = lambda secret, write=write: write(secret.encode("unicode_escape").decode())
# With a quote of each kind, what JSON, URLs, HTML and base64 escape, a letter beyond ASCII, and lines.
KNOWN = [
    "it's-4711",
    'quo"te-4711',
    "both'\"-4711",
    "back\\slash-4711",
    "two\nlines-of-it-4711",
    "schlüssel-/+&<>-4711",
    "ü's\x07bell-4711",
    "ü'\"\x07both-4711",
    "space/of it-4711",
    "it's <b>-4711",
    "two\nof-4711",
]


@pytest.mark.parametrize("escape", ESCAPED.values(), ids=ESCAPED)
def test_a_known_secret_is_masked_in_a_text_however_it_is_escaped(escape):
    for secret in KNOWN:
        clear()
        hide(secret)
        text = escape(secret)
        masked = mask_text(f"cannot use {text} here")
        assert MASK in masked
        assert secret not in masked
        assert "4711" not in masked
        error = nb.errors.Problem("X100", f"cannot use {text}", "here", text, text)
        assert "4711" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "Client(host='a', password='s3ns1tive')", 'Client(api_key="s3ns1tive", retries=3)',
        "Client(token=b's3ns1tive')", "f(client_secret='it\\'s s3ns1tive')",
        repr("Client(password='s3ns1tive')"), json.dumps('Client(password="s3ns1tive")'),
    ],
)  # fmt: skip
def test_the_value_of_a_field_with_a_secret_name_is_masked(text):
    clear()
    masked = mask_text(f"cannot use {text} here")
    assert "s3ns1tive" not in masked
    assert masked.endswith(" here")
    assert "retries=3" in masked or "retries" not in text


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens='12'",
        "f(token=token)",
        "x=1, y='a'",
        "password=None",
        "a == 'b'",
        "API_KEY=None",
        "MAX_TOKENS=1000",
        "TOKEN=${TOKEN}",
        "TOKEN=$OTHER",
        "API_KEY=<your key>",
        "API_KEY=os.environ['X']",
        "API_KEY=getenv('x')",
        "if PASSWORD==given:",
        "AUTH=12345",
        "self.API_KEY=value",
        "KEY=value",
    ],
)
def test_text_that_only_looks_like_a_field_with_a_secret_stays_visible(text):
    clear()
    assert mask_text(text) == text


def leaks(secret, escape):
    clear()
    hide(secret)
    return MASK not in mask_text(f"cannot use {escape(secret)} here")


@pytest.mark.parametrize("name", [name for table in (*TEXT_FORMS, WHOLE_FORMS, BYTES_FORMS) for name in table])
def test_each_form_of_a_secret_is_necessary(name, monkeypatch):
    table = next(table for table in (*TEXT_FORMS, WHOLE_FORMS, BYTES_FORMS) if name in table)
    monkeypatch.delitem(table, name)
    assert any(leaks(secret, escape) for secret in KNOWN for escape in ESCAPED.values())


@pytest.mark.parametrize("label", ["password", "api_key", "pwd", "X-Auth-Token"])
def test_no_artifact_contains_a_column_with_a_secret_name(label, tmp_path):
    frame = pd.DataFrame({label: ["s3ns1tive-one", "s3ns1tive-two"], "city": ["Rome", "Oslo"]})
    for value in (frame, frame[label]):
        clear()
        folder = tmp_path / type(value).__name__
        folder.mkdir()
        graph = failing(lambda config: "it")
        for name, text in artifacts(graph, {"config": value}, folder):
            assert "s3ns1tive" not in text, name
