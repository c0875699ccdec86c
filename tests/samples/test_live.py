"""Samples with `--live`: a server on this machine stands in for the provider, and speaks its protocol."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from agentnb.load import dialects
from agentnb.samples import ANSWERS, EVENTS, samples
from agentnb.samples.reactive import ARCHIVE
from tests.cli.command_files import called
from tests.samples.installed import NAMES
from tests.world.llm.model_server import KEY, Server
from tests.world.llm.protocols import OpenAI

MEMO = " ".join(source for _, source in ARCHIVE.values())
WORDS = "Words of the model."
# What is asked for -> what the model answers.
SAID = {
    "An outline for": {"points": ["light", "air"]},
    "Write the text along its points": {"draft": WORDS},
    "Say the topic": {"topic": "bug", "urgency": 2, "summary": "it crashes"},
    "Of which sort": {"sort": "question"},
    "You write short memos": {"title": "Swifts", "text": MEMO},
    "You say what a comment is about": {"topic": "price"},
    "score": {"score": 0.95, "critique": "Good."},
    '"tool_name"': {"tool_name": "none", "response": "Done by the model."},
}
# name -> a value on the board that only the model can have said, by its path
FOUND = {
    "triage": ("topic", "bug"),
    "document": ("draft", WORDS),
    "approval": (None, WORDS),
    "pipeline": (None, WORDS),
    "rag": ("answer", WORDS),
    "research": ("report", WORDS),
    "assistant": (None, WORDS),
    "moderation": ("result", "Done by the model."),
    "support": ("result", "Done by the model."),
    "fanout": ("letter", WORDS),
    "inbox": ("answers", [WORDS] * 3),
    "checkout": (None, WORDS),
    "translation": (None, WORDS),
    "team": (None, MEMO),
    "feedback": (None, "look into price"),
    "trip": ("advice", WORDS),
    "forecast": ("messages", "It rains in Oslo."),
    "cafe": ("farewell", WORDS),
    "poster": ("dropped", "truly"),
}


class Model(Server):
    """A model that looks at what it is asked."""

    def choose_answer(self, body):
        text = "\n".join(str(message["content"]) for message in body["messages"])
        if body["messages"][-1]["role"] == "tool":
            return OpenAI.whole("It rains in Oslo.")
        if "tools" in body:
            return OpenAI.calls(("rain", '{"city": "Oslo"}'))
        if "needed least" in text:
            return OpenAI.whole("truly")
        reply = next((answer for words, answer in SAID.items() if words in text), WORDS)
        return OpenAI.whole(reply if isinstance(reply, str) else json.dumps(reply))


@pytest.fixture
def model(monkeypatch):
    server = Model()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    yield server
    server.close()


def test_each_dialect_has_two_samples_that_ask_a_model():
    count = Counter(sample.dialect for sample in samples() if sample.name in FOUND)
    assert {row.name for row in dialects() if count[row.name] < 2} == set()


@pytest.mark.parametrize("name", [name for name in FOUND if name in NAMES])
def test_a_sample_asks_a_real_model(name, model, capsys, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"answers": ANSWERS.get(name, [])}), encoding="utf-8")
    emits = [word for type_, payload in EVENTS.get(name, ()) for word in ("--emit", f"{type_}={json.dumps(payload)}")]
    code, out, err = called(capsys, "run", name, "--live", "--json", "--script", str(script), *emits)
    assert code == 0, err + out
    document = json.loads(out)
    assert document["simulated"] == []
    assert model.asked
    key, expected = FOUND[name]
    actual = document["board"] if key is None else document["board"][key]
    assert json.dumps(expected).strip('"') in json.dumps(actual)
