"""Whose secrets mask what: those of a run mask everything that shows or stores it, and nothing of another run."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging

import networkx as nx
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pyarrow import parquet

import agentnb as nb
from agentnb import secrets
from agentnb.mcp.assistant import Assistant
from agentnb.mcp.open_runs import OpenRuns
from agentnb.recordings.golden_files import to_json_text
from agentnb.secrets import MASK
from agentnb.session.logs import JsonLines
from agentnb.ui.debugger import Debugger

WORD = "approved-4711"


def payment(**fields):
    """Return a run with these fields, which have names of secrets."""
    graph = nx.DiGraph(name="payment")
    graph.add_node("pay", function=lambda: fields, inputs={})
    session = nb.Session(nb.load(graph))
    session.run()
    return session


def loan_recipe(word=WORD, node=WORD):
    """Return a recipe with a word in a value, in a text, in a node's name, in a condition and in an error."""

    def decide(income):
        return {"decision": word, "note": f"it is {word} today", "income": income, "limit": income + 200}

    def end(decision):
        raise ValueError(f"cannot tell {decision}")

    graph = nx.DiGraph(name="loan", entry="decide")
    graph.add_node("decide", function=decide, inputs={"income": "income"})
    graph.add_node("ask", kind="human", prompt="ok?", output="ok")
    graph.add_node(node, function=lambda limit, decision: {"paid": limit, "how": decision},
                   inputs={"limit": "limit", "decision": "decision"})  # fmt: skip
    graph.add_node("end", function=end, inputs={"decision": "decision"})
    graph.add_edge("decide", "ask")
    graph.add_edge("ask", node, when=f"decision == '{word}'")
    graph.add_edge(node, "end")
    return nb.load(graph)


def loan(recipe, inputs=None, **options):
    session = nb.Session(recipe, {"income": 1200, **(inputs or {})}, answers={"ask": "yes"}, **options)
    session.run()
    return session


async def ask_assistant(session):
    assistant = Assistant(OpenRuns(live=session))
    answers = [await assistant.call(name, {"run": session.run_id, **more}) for name, more in
               (("board", {}), ("step", {}), ("why", {}), ("node", {"node": "decide"}))]  # fmt: skip
    return "\n".join(answer.text for answer in answers)


def outputs(recipe, folder, inputs=None):
    """Run, and yield (what it is, its text) for everything that shows or stores the run."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("agentnb")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("DEBUG")
    try:
        session = loan(recipe, inputs, store=str(folder / "runs.db"), run_id="r", name=f"run {WORD}")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert session.status == "failed"
    trace = session.trace
    yield "log", text.getvalue()
    yield "error", f"{session.error}\n{session.error!r}\n{session.error._repr_html_()}"
    yield "board", f"{session.board!r}"
    yield "why", f"{session.why(2)}\n{session.why(2)._repr_html_()}"
    yield "steps", "\n".join(f"{step!r} {step.error}" for step in trace.steps)
    yield "frames", "\n".join(f"{frame.to_csv()}{frame.to_html()}" for frame in trace.frames.values())
    yield "frames of many", nb.frames([session, payment()]).writes.to_csv()
    yield "trace", str(trace.to_json())
    yield "page", str(session.to_html())
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.to_otel(provider)
    yield "spans", "\n".join(span.to_json() for span in exporter.get_finished_spans())
    trace.to_parquet(folder / "run.parquet")
    yield "parquet", f"{parquet.read_table(folder / 'run.parquet').to_pylist()}"
    yield "event log", trace.to_event_log().to_csv()
    yield "golden", to_json_text(trace)
    yield "sequence diagram", trace.sequence_diagram()
    drawing = session.draw()
    yield "drawing", drawing.dot + drawing.svg + drawing.mermaid + drawing.text
    yield "comparison", f"{nb.compare(session, loan(loan_recipe('other', WORD)))}"
    yield "slice", f"{session.slice('how')}"
    yield "cockpit", show_cockpit(session)
    session.close()
    yield "store", "".join(file.read_bytes().decode("latin-1") for file in folder.glob("runs.db*"))
    opened = nb.open(folder / "runs.db", recipe=recipe, secrets=inputs)
    yield "reopened", f"{opened.board!r}{opened.trace.to_json()}{opened.error}{opened.why(2)}"


def show_cockpit(session):
    debugger = Debugger(session)
    try:
        sent = []
        debugger.send = lambda content, buffers=None: sent.append(content)
        for view in ("step", "node", "key"):
            message = {"do": "query", "view": "a", "number": 1, "value": view, "target": "decide"}
            debugger._handle_custom_msg(message, [])
        return json.dumps([debugger.get_state(), sent], default=str, ensure_ascii=False)
    finally:
        debugger.close()


def test_a_word_that_is_a_secret_of_another_run_is_not_masked(tmp_path):
    other = payment(authorization=WORD, secret_number=1200, api_key="1400")
    assert WORD not in repr(other.board)
    for name, text in outputs(loan_recipe(), tmp_path):
        assert MASK not in text, f"{name}: {text[max(text.find(MASK) - 200, 0) :][:400]}"
        if name not in ("comparison", "slice"):  # they show what differs, and what led to a value
            assert WORD in text, name
    assert WORD not in repr(other.board)
    recipe = loan_recipe()
    assert WORD in f"{recipe!r}{recipe.draw().dot}"
    assert MASK not in f"{recipe!r}{recipe.draw().dot}"


def test_a_word_that_is_a_secret_of_the_run_is_masked_in_all_that_shows_or_stores_it(tmp_path):
    for name, text in outputs(loan_recipe(node="tell"), tmp_path, {"api_key": WORD}):
        assert WORD not in text, f"{name}: {text[max(text.find(WORD) - 200, 0) :][:400]}"


def test_an_assistant_sees_no_secret_of_the_run_and_no_mask_of_another_one():
    other = payment(authorization=WORD)
    text = asyncio.run(ask_assistant(loan(loan_recipe())))
    assert WORD in text
    assert MASK not in text
    assert other.status == "finished"
    assert WORD not in asyncio.run(ask_assistant(loan(loan_recipe(node="tell"), {"api_key": WORD})))


def test_forks_and_replays_of_a_run_have_its_secrets():
    session = loan(loan_recipe(node="tell"), {"api_key": WORD})
    fork = session.fork(at=1)
    fork.run()
    texts = [fork.board, fork.error, fork.trace.to_json(), session.replay(), session.replay(recipe=loan_recipe("no"))]
    texts.append(nb.compare(session, loan(loan_recipe("other", "tell"))))
    text = "\n".join(f"{each}{each!r}" for each in texts)
    assert MASK in text
    assert WORD not in text


def test_a_secret_of_a_run_is_masked_in_an_error_that_is_shown_after_it():
    session = loan(loan_recipe(node="tell"), {"api_key": WORD})
    error, why, drawing, frames = session.error, session.why(2), session.draw(), session.trace.frames
    del session
    gc.collect()
    text = f"{error}{error!r}{why}{drawing.dot}{frames.steps.to_csv()}{frames.writes.to_csv()}"
    assert MASK in text
    assert WORD not in text


def test_what_two_runs_have_is_masked_in_their_comparison():
    one = loan(loan_recipe("one-s3cret-4711", "tell"), {"api_key": "one-s3cret-4711"})
    other = loan(loan_recipe("other-s3cret-4711", "tell"), {"api_key": "other-s3cret-4711"})
    comparison = nb.compare(one, other)
    text = f"{comparison!r}{comparison._repr_html_()}{comparison.to_frame().to_csv()}{comparison.first_divergence}"
    assert "s3cret" not in text
    assert MASK in text
    debugger = Debugger(one)
    try:
        debugger.beside(other)
        assert "s3cret" not in json.dumps(debugger.get_state(), default=str)
    finally:
        debugger.close()


def test_a_stored_run_is_complete_whatever_other_runs_have(tmp_path):
    others = [payment(authorization=WORD, secret_number=1200)]
    recipe = loan_recipe()
    session = nb.Session(recipe, {"income": 1200}, store=tmp_path / "runs.db", run_id="loan")
    session.run()
    board = dict(session.board)
    session.close()
    assert dict(nb.open(tmp_path / "runs.db").board) == board
    opened = nb.open(tmp_path / "runs.db", recipe=recipe)
    assert [each.node for each in opened.pending] == ["ask"]
    opened.answer("yes")
    opened.run()
    assert opened.board["how"] == WORD
    assert opened.replay().ok
    assert others[0].status == "finished"


def test_nodes_that_are_named_like_a_secret_of_another_run_are_stored(tmp_path):
    others = [payment(authorization=word) for word in ("approved", "declined", "notify")]
    graph = nx.DiGraph(name="flow", entry="check")
    graph.add_node("check", function=lambda n: {"n": n}, inputs={"n": "n"})
    for name in ("approved", "declined", "notify"):
        graph.add_node(name, function=lambda: {"state": 1}, inputs={})
    graph.add_edge("check", "approved", when="n > 1")
    graph.add_edge("check", "declined")
    graph.add_edge("approved", "notify")
    recipe = nb.load(graph)
    session = nb.Session(recipe, {"n": 5}, store=tmp_path / "runs.db")
    session.run()
    session.trace.to_json(tmp_path / "run.json")
    session.close()
    for file in ("runs.db", "run.json"):
        opened = nb.open(tmp_path / file)
        assert list(opened.recipe.nodes) == ["check", "approved", "declined", "notify"]
        assert opened.trace.frames.steps["node"].to_list() == ["check", "approved", "notify"]
    assert nb.open(tmp_path / "runs.db", recipe=recipe).replay().ok
    assert len(others) == 3


def test_the_many_secrets_of_one_run_are_not_searched_for_in_another_one(monkeypatch):
    other = payment(tokens=[f"word-{number}-of-many" for number in range(500)])
    assert not secrets.SECRETS.values
    searched = []
    monkeypatch.setattr(secrets, "_mask_known", lambda text: searched.append(text) or text)
    session = loan(loan_recipe())
    session.trace.to_json()
    session.to_html()
    assert searched == []
    other.trace.to_json()
    assert searched


def test_a_registered_secret_is_masked_in_every_run():
    secrets.hide(WORD)
    assert WORD not in f"{loan(loan_recipe(node='tell')).board!r}"
